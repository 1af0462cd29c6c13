package owner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ticks is processor time as /proc has it: the kernel tells user space hundredths of a second on
// every architecture that Go runs on. A [time.Duration] ends at 292 years, which 256 busy
// processors use in 14 months.
type ticks int64

// seconds returns the time in seconds.
func (t ticks) seconds() float64 { return float64(t) / 100 }

var errStat = errors.New("not what the kernel writes")

// machineTime returns the processor time that was used on the machine since it was booted, of
// all processors: that of users, of the kernel, of interrupts, and what a hypervisor took.
func machineTime(stat []byte) (ticks, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 8 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("/proc/stat: %w", errStat)
	}
	var sum ticks
	for i, field := range fields[1:min(9, len(fields))] {
		const idle, wait = 3, 4
		if i == idle || i == wait {
			continue
		}
		n, err := strconv.ParseUint(string(field), 10, 56)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w: %w", errStat, err)
		}
		sum += ticks(n)
	}
	return sum, nil
}

// process is what a line of /proc/PID/stat says.
type process struct {
	pid, parent int
	started     uint64 // in ticks since boot: it tells two of the same number apart
	// used is its own processor time, and that of its children that have ended and were
	// waited for.
	used ticks
}

// parseProcess reads /proc/PID/stat. The name of the program, in parentheses, may hold anything.
func parseProcess(stat []byte) (process, error) {
	open, end := bytes.IndexByte(stat, ' '), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("/proc/PID/stat: %w", errStat)
	}
	const first = 3 // of the fields behind the name
	fields := bytes.Fields(stat[end+1:])
	number := func(field int) (n uint64, err error) {
		if field-first >= len(fields) {
			return 0, errStat
		}
		// Times of children are signed, and never negative.
		return strconv.ParseUint(string(fields[field-first]), 10, 56)
	}
	pid, err := strconv.Atoi(string(stat[:open]))
	p := process{pid: pid}
	parent, err2 := number(4)
	p.parent = int(parent)
	var err3 error
	p.started, err3 = number(22)
	err = errors.Join(err, err2, err3)
	for field := 14; field <= 17; field++ { // utime, stime, cutime, cstime
		n, e := number(field)
		err = errors.Join(err, e)
		p.used += ticks(n)
	}
	if err != nil {
		return process{}, fmt.Errorf("/proc/PID/stat: %w: %w", errStat, err)
	}
	return p, nil
}

// processes reads those of all processes into list. One that ends meanwhile is left out, and so
// is one whose line cannot be read: a machine may hide those of other users.
func processes(root string, list []process) ([]process, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile(root + "/" + name + "/stat")
		if err != nil {
			continue
		}
		if p, err := parseProcess(stat); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}
