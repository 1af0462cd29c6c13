package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// HeapFloor lets the heap of this process grow to so many bytes before its garbage is
// collected, until restore is called. A heap whose live part is more than half of that is
// collected when it has doubled, which is the default: so it costs no memory where there is
// much of it. A small heap is collected at 4 MiB by default, again and again where little
// lives and much is thrown away. GOGC in the environment goes before. There is one floor at
// a time in a process.
func HeapFloor(bytes uint64) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	f := &heapFloor{bytes: bytes, percent: mostPercent(bytes)}
	before := debug.SetGCPercent(f.percent)
	f.watch()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.over = true
		debug.SetGCPercent(before)
	}
}

// defaultPercent is GOGC unless it is set, and smallest the least heap that the runtime
// collects with it. That grows with GOGC.
const (
	defaultPercent = 100
	smallest       = 4 << 20
)

// mostPercent is GOGC at which no heap below the floor is collected.
func mostPercent(floor uint64) int {
	return max(defaultPercent, int(min(floor, 1<<40)*defaultPercent/smallest)) //nolint:gosec // at most 2^40
}

// heapFloor sets GOGC anew after each collection, to what lives then.
type heapFloor struct {
	bytes uint64

	mu      sync.Mutex
	percent int
	over    bool
}

// collected is garbage from the beginning, so that it is finalized after the next
// collection. It has one word with a pointer: what is of that size is swept among the first.
type collected struct{ floor *heapFloor }

// watch has adapt called after the next collection.
func (f *heapFloor) watch() {
	runtime.SetFinalizer(&collected{f}, func(c *collected) { c.floor.adapt() })
}

// adapt sets GOGC for the collection after this one, and watches for that.
func (f *heapFloor) adapt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	if p := percentFor(f.bytes, readHeap()); p != f.percent {
		f.percent = p
		debug.SetGCPercent(p)
	}
	f.watch()
}

// heap is what the last collection found, in bytes: what lives, and the other roots, for
// which GOGC lets the heap grow as well.
type heap struct{ live, roots uint64 }

func readHeap() heap {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s)
	return heap{live: s[0].Value.Uint64(), roots: s[1].Value.Uint64() + s[2].Value.Uint64()}
}

// percentFor returns GOGC with which a heap grows to the floor, or by as much as lives if
// that is more.
func percentFor(floor uint64, h heap) int {
	if h.live >= floor {
		return defaultPercent
	}
	p := (floor - h.live) * defaultPercent / max(h.live+h.roots, 1)
	return int(min(max(p, defaultPercent), uint64(mostPercent(floor)))) //nolint:gosec // between the two
}
