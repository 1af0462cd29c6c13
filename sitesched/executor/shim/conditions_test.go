package shim

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread that came later is looked at too, and what was listed is not listed again.
func TestConditionsSeeLaterThreads(t *testing.T) {
	c := readConditions()
	defer closeFD(c.scoreFile)
	defer closeFD(c.tasks)
	if reason := c.changed(); reason != "" {
		t.Fatalf("nothing was changed: %q", reason)
	}
	listed := slices.Clone(c.threads)
	made, end := make(chan int), make(chan struct{})
	const later = 8 // more than may lie idle
	for range later {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with it
			made <- unix.Gettid()
			<-end
		}()
	}
	var last int
	for range later {
		if id := <-made; !slices.Contains(listed, id) {
			last = id
		}
	}
	defer close(end)
	if last == 0 {
		t.Skip("no thread of this process is new: the test needs one whose scheduling nothing has changed yet")
	}
	// Any user may do this to a thread of their own, whatever its priority is.
	if err := unix.SchedSetAttr(last, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0); err != nil {
		t.Skip("this machine does not let a thread change how it is scheduled: ", err)
	}
	if reason := c.changed(); reason == "" {
		entries, _ := os.ReadDir("/proc/self/task")
		t.Errorf("thread %s of %d, listed %v, has another priority and that is not seen", strconv.Itoa(last), len(entries), c.threads)
	}
}

// BenchmarkConditions is what each job pays to see that its shim is as it was.
func BenchmarkConditions(b *testing.B) {
	c := readConditions()
	defer closeFD(c.scoreFile)
	defer closeFD(c.tasks)
	b.ReportAllocs()
	for b.Loop() {
		if reason := c.changed(); reason != "" {
			b.Fatal(reason)
		}
	}
}
