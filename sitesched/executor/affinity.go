package executor

import (
	"slices"

	"golang.org/x/sys/unix"
)

// processorSet hands out the machine's processors, so that jobs do not share
// them. The zero value hands out nothing: jobs then run anywhere.
type processorSet struct {
	free []int // ascending
}

// maxProcessorNumber is one more than the largest number that the affinity calls take here.
const maxProcessorNumber = 1024

// newProcessorSet returns the processors that the daemon may use, or why jobs
// are not pinned to them.
func newProcessorSet(c Config) (processorSet, string) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return processorSet{}, "sched_getaffinity: " + err.Error()
	}
	var all []int
	for cpu := range maxProcessorNumber {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	switch {
	case c.NoAffinity:
		return processorSet{}, "switched off"
	case c.Processors > len(all):
		return processorSet{}, "the site offers more processors than the machine has"
	}
	return processorSet{free: all}, ""
}

// reserve takes n processors, neighbours if possible. It returns nil if there
// are not enough; the job then runs anywhere.
func (p *processorSet) reserve(n int) []int {
	if n < 1 || n > len(p.free) {
		return nil
	}
	at := 0
	for i := 0; i+n <= len(p.free); i++ {
		if p.free[i+n-1]-p.free[i] == n-1 {
			at = i
			break
		}
	}
	taken := slices.Clone(p.free[at : at+n])
	p.free = slices.Delete(p.free, at, at+n)
	return taken
}

// take marks processors that an adopted job already uses and returns those
// that were free.
func (p *processorSet) take(cpus []int) []int {
	var taken []int
	for _, cpu := range cpus {
		if i, ok := slices.BinarySearch(p.free, cpu); ok {
			p.free = slices.Delete(p.free, i, i+1)
			taken = append(taken, cpu)
		}
	}
	return taken
}

func (p *processorSet) release(cpus []int) {
	p.free = append(p.free, cpus...)
	slices.Sort(p.free)
}
