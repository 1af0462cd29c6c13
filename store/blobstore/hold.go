package blobstore

import (
	"sync"
	"time"
)

// A Hold keeps chunks from every sweep for as long as something needs them that
// no record names yet: a transfer under way, an upload that waits for its job, an
// output that is being collected. It holds names: a chunk that comes later is held
// from its first moment. Holds are counted, so that one chunk may be in many. They
// live in memory: after a restart the grace period of the first sweep stands for
// them. Its methods may be called from any goroutine.
type Hold struct {
	store *Store

	mu     sync.Mutex
	sums   map[Sum]struct{}
	closed bool
}

// Hold returns a hold of sums. The caller closes it.
func (s *Store) Hold(sums ...Sum) *Hold {
	h := &Hold{store: s, sums: make(map[Sum]struct{}, len(sums))}
	h.Add(sums...)
	return h
}

// Add holds more chunks. After Close it does nothing.
func (h *Hold) Add(sums ...Sum) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	for _, sum := range sums {
		if _, again := h.sums[sum]; !again {
			h.sums[sum] = struct{}{}
			h.store.shards[sum[0]].hold(sum)
		}
	}
}

// Close lets the chunks go. The grace period of the next sweeps counts from here, not
// from when each was put. Closing twice is harmless.
func (h *Hold) Close() { h.closeAsOf(h.store.config.Now()) }

// closeAsOf is Close; the grace period counts from t, if that is later than the last put.
func (h *Hold) closeAsOf(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for sum := range h.sums {
		h.store.letGo(sum, t)
	}
	h.sums = nil
	h.store.released.Add(1)
}

// CloseAfter lets the chunks go after d, without a grace of its own: at the first sweep
// then, or sooner when many holds wait for their end.
func (h *Hold) CloseAfter(d time.Duration) {
	s := h.store
	now := s.config.Now()
	s.lingering.Lock()
	s.lingers = append(s.lingers, linger{h, now.Add(d)})
	many := len(s.lingers) > max(leastLingers, 2*s.lingerRest)
	s.lingering.Unlock()
	if many {
		s.closeDue(now)
	}
}

// leastLingers is how many holds may wait for their end before those that have come to it
// are looked for. After that they are looked for whenever their number has doubled: sweeps
// may be an hour apart, and thousands of jobs may name the same thousand chunks meanwhile.
const leastLingers = 64

// A linger is a hold that ends by itself.
type linger struct {
	hold *Hold
	at   time.Time
}

// closeDue closes the holds that have come to their end.
func (s *Store) closeDue(now time.Time) {
	s.lingering.Lock()
	var due []linger
	rest := s.lingers[:0]
	for _, l := range s.lingers {
		if l.at.Before(now) {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}
	clear(s.lingers[len(rest):])
	s.lingers, s.lingerRest = rest, len(rest)
	s.lingering.Unlock()
	for _, l := range due {
		l.hold.closeAsOf(time.Time{}) // it has been waited for long enough
	}
}

// Released counts the holds closed so far, among them, first, those whose time has
// come. As long as it stays the same, no chunk has become garbage by the end of a hold.
func (s *Store) Released() uint64 {
	s.closeDue(s.config.Now())
	return s.released.Load()
}

// hold counts one hold more of a chunk.
func (sh *shard) hold(sum Sum) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.held == nil {
		sh.held = make(map[Sum]int)
	}
	sh.held[sum]++
}

// letGo counts one hold less of a chunk, as of a time.
func (s *Store) letGo(sum Sum, t time.Time) {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.held[sum]--; sh.held[sum] == 0 {
		delete(sh.held, sum)
	}
	if e, ok := sh.chunks[sum]; ok && t.After(e.touched) {
		sh.chunks[sum] = s.touch(sum, e, t)
	}
}

// touch returns e as of now. The caller holds the shard's mutex.
func (s *Store) touch(sum Sum, e entry, now time.Time) entry {
	if now.Sub(e.touched) > touchEvery && !s.closed.Load() {
		if err := s.root.Chtimes(sum.path(), now, now); err != nil {
			s.log.Warn("time of chunk not renewed", "chunk", sum.Short(), "error", err)
		}
	}
	e.touched = now
	return e
}
