package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const mib = 1 << 20

// A small heap grows to the floor, one that is large anyway by as much as lives.
func TestPercentOfAHeap(t *testing.T) {
	for name, c := range map[string]struct {
		heap heap
		want int
	}{
		"nothing lives":         {heap{}, 800},
		"little lives":          {heap{live: 1 * mib}, 800},
		"a quarter of it":       {heap{live: 8 * mib}, 300},
		"the same, with stacks": {heap{live: 8 * mib, roots: 4 * mib}, 200},
		"half of it":            {heap{live: 16 * mib}, 100},
		"more than half":        {heap{live: 20 * mib}, 100},
		"all of it":             {heap{live: 32 * mib}, 100},
		"much more":             {heap{live: 1000 * mib, roots: mib}, 100},
	} {
		if got := percentFor(32*mib, c.heap); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// goal is the size at which the heap is collected next.
func goal() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collectUntil collects until the goal is as wanted: it is adapted after a collection, by
// another goroutine.
func collectUntil(t *testing.T, wanted func(goal uint64) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if wanted(goal()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the goal is %d MiB, with %d MiB live", goal()/mib, readHeap().live/mib)
		}
	}
}

func TestHeapFloor(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	collectUntil(t, func(g uint64) bool { return g < 16*mib })

	restore := HeapFloor(32 * mib)
	collectUntil(t, func(g uint64) bool { return g >= 30*mib && g <= 40*mib })

	// Where much lives the heap doubles and no more.
	much := make([][]byte, 64)
	for i := range much {
		much[i] = make([]byte, mib)
	}
	collectUntil(t, func(g uint64) bool { return g >= 128*mib && g <= 150*mib })
	runtime.KeepAlive(much) // and no longer
	collectUntil(t, func(g uint64) bool { return g >= 30*mib && g <= 40*mib })

	restore()
	if p := debug.SetGCPercent(100); p != 100 {
		t.Errorf("GOGC is %d afterwards", p)
	}
	collectUntil(t, func(g uint64) bool { return g < 16*mib })
}

// What the operator has set stays.
func TestHeapFloorLeavesGOGC(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	defer HeapFloor(32 * mib)()
	if p := debug.SetGCPercent(50); p != 50 {
		t.Errorf("GOGC is %d", p)
	}
}
