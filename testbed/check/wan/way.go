package wan

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A way is one direction of a link: what its connections share.
type way struct {
	from, to string

	mu   sync.Mutex
	path Path
	rng  *rand.Rand
	// idle is when the line has sent all it was given, for the rate.
	idle time.Time
	// passing is closed while the way is not cut.
	passing chan struct{}
	cut     bool
	// active counts reads and writes under way; quiet is told when it falls.
	active int
	quiet  sync.Cond
	pumps  map[*pump]struct{}
	passed int64 // bytes that left
}

// newWay returns a way that passes.
func newWay(from, to string, path Path, rng *rand.Rand) *way {
	passing := make(chan struct{})
	close(passing)
	w := &way{from: from, to: to, path: path, rng: rng, passing: passing, pumps: make(map[*pump]struct{})}
	w.quiet.L = &w.mu
	return w
}

// release returns when n bytes that came at now may leave: after the line has
// sent what came before, and these; after the delay; and after some jitter.
func (w *way) release(now time.Time, n int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := now
	if rate := w.path.BytesPerSecond; rate > 0 {
		if w.idle.Before(now) {
			w.idle = now
		}
		w.idle = w.idle.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
		t = w.idle
	}
	t = t.Add(w.path.Delay)
	if w.path.Jitter > 0 {
		t = t.Add(time.Duration(w.rng.Int64N(int64(w.path.Jitter) + 1)))
	}
	return t
}

// maxBacklog is how far the line may be behind before nothing more is read
// for it: a router's buffer, not a lake. smallestRead keeps a slow line from
// moving single bytes.
const (
	maxBacklog   = 50 * time.Millisecond
	smallestRead = 512
)

// ready returns how many bytes may be read for the line, and how long to wait
// before that.
func (w *way) ready(now time.Time) (most int, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rate := w.path.BytesPerSecond
	if rate == 0 {
		return readBytes, 0
	}
	most = int(min(readBytes, max(smallestRead, rate/50)))
	return most, w.idle.Add(-maxBacklog).Sub(now)
}

// change sets the path's values through f.
func (w *way) change(f func(p *Path)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.path)
}

// close cuts the way: reads and writes under way are interrupted, and when it
// returns there are none, nor will there be before open.
func (w *way) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.cut = true
		w.passing = make(chan struct{})
		for p := range w.pumps {
			p.interrupt()
		}
	}
	for w.active > 0 {
		w.quiet.Wait()
	}
}

// open heals the way.
func (w *way) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		w.cut = false
		close(w.passing)
	}
}

// gate returns a channel that is closed while the way is not cut.
func (w *way) gate() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passing
}

// passes reports whether the way is not cut.
func (w *way) passes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut
}

// enter begins a read or a write of a connection that a cut can interrupt by
// its deadline; exit ends it. It reports false, and begins nothing, while the
// way is cut. The deadline that a cut left is taken back.
func (w *way) enter(setDeadline func(time.Time) error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return false
	}
	w.active++
	setDeadline(time.Time{}) //nolint:errcheck // A closed connection says so when it is used.
	return true
}

// exit ends what enter began; n bytes left.
func (w *way) exit(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed += int64(n)
	if w.active--; w.active == 0 {
		w.quiet.Broadcast()
	}
}

// join makes p one of those that a cut interrupts.
func (w *way) join(p *pump) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pumps[p] = struct{}{}
}

// leave undoes join.
func (w *way) leave(p *pump) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pumps, p)
}

// stats returns what the way is doing.
func (w *way) stats() WayStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WayStats{Path: w.path, Cut: w.cut, Bytes: w.passed}
	for p := range w.pumps {
		s.HeldBytes += p.queue.bytes()
	}
	return s
}
