package shim

import (
	"bytes"
	"os"
	"strconv"
)

// processes lists the processes of the job.
func (s *shim) processes() []int {
	if !s.setup.Namespaces {
		return descendants(os.Getpid())
	}
	all := numericNames("/proc")
	others := all[:0]
	for _, pid := range all {
		if pid != 1 {
			others = append(others, pid)
		}
	}
	return others
}

// descendants lists the processes below pid. It is a snapshot: to kill them
// all, look again until nothing is left.
func descendants(pid int) []int {
	list, ok := appendChildren(nil, pid)
	if !ok {
		return scanDescendants(pid)
	}
	for i := 0; i < len(list); i++ {
		list, _ = appendChildren(list, list[i])
	}
	return list
}

// appendChildren appends the children of every thread of pid. It reports false
// if this kernel does not list children.
func appendChildren(list []int, pid int) ([]int, bool) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	ok := false
	for _, tid := range numericNames(tasks) {
		b, err := os.ReadFile(tasks + "/" + strconv.Itoa(tid) + "/children")
		if err != nil {
			continue
		}
		ok = true
		for field := range bytes.FieldsSeq(b) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, child)
			}
		}
	}
	return list, ok
}

// scanDescendants finds the processes below root by the parents of all
// processes of the machine.
func scanDescendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range numericNames("/proc") {
		if parent, ok := parentOf(readProc(pid, "stat")); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	list := children[root]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// parentOf reads field 4 of /proc/PID/stat. The name before it may hold anything.
func parentOf(stat []byte) (int, bool) {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[i+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

func numericNames(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	var numbers []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
