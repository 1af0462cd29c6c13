package runner

import (
	"sync"
	"time"

	"kith/internal/job"
	"kith/meta/transfer"
)

// What tasks of a bag leave, if it is short but too long for the description of their files,
// goes into containers: one chunk, written and synced once, for many tasks. A task whose
// output waits for its container has no processors any more, unless very many wait: that is
// for the engine to say. Tasks of different bags share none: a site, or a user, that may read
// one is not to have the other.

const (
	// gatherFirst is for how long the first output of a bag waits for others. While others
	// come it doubles up to gatherLongest; the last ones wait for a quarter of that.
	gatherFirst   = 50 * time.Millisecond
	gatherLongest = 2 * time.Second
	// gatherMost is how many outputs are in one container.
	gatherMost = 256
	// gatherBytes is the most that waits in memory, of all bags together. What does not fit
	// is stored as that of a job.
	gatherBytes = 16 << 20
)

// gathering is what waits for containers.
type gathering struct {
	mu    sync.Mutex
	bytes int64
	bags  map[job.ID]*gatheredBag
}

type gatheredBag struct {
	waiting []gathered
	bytes   int64
	full    chan struct{} // one container is
}

// gathered is a task whose output waits.
type gathered struct {
	run        *run
	outcome    job.Outcome
	leaving    transfer.Leaving
	collection transfer.Collection
	reserved   int64
}

// reserve takes room in memory for an output.
func (g *gathering) reserve(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > transfer.MaxLoose || g.bytes+n > gatherBytes {
		return false
	}
	g.bytes += n
	return true
}

func (g *gathering) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= n
}

// gather has an output wait for its container.
func (s *Runner) gather(w gathered) {
	g, bag := &s.gathering, w.run.task.Bundle.Job
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bags[bag]
	if b == nil {
		if g.bags == nil {
			g.bags = make(map[job.ID]*gatheredBag)
		}
		b = &gatheredBag{full: make(chan struct{}, 1)}
		g.bags[bag] = b
		s.wg.Go(func() { s.pour(bag, b) })
	}
	b.waiting = append(b.waiting, w)
	if b.bytes += w.collection.LooseBytes(); len(b.waiting) >= gatherMost || b.bytes >= transfer.MaxContainer {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// pour fills containers with what waits of a bag until nothing comes any more.
func (s *Runner) pour(bag job.ID, b *gatheredBag) {
	for wait := gatherFirst; ; {
		if !s.await(b, wait) {
			return // collected by the next daemon
		}
		all := s.gathering.take(bag, b)
		if len(all) == 0 {
			return
		}
		if wait = min(2*wait, gatherLongest); len(all) == 1 {
			wait = gatherFirst
		}
		s.contain(all)
	}
}

// await returns when a container is full, or wait is over, or nothing came for a quarter of
// it; false, when the daemon ends.
func (s *Runner) await(b *gatheredBag, wait time.Duration) bool {
	tick := time.NewTicker(max(wait/4, gatherFirst))
	defer tick.Stop()
	end := time.Now().Add(wait)
	for had := s.gathering.count(b); ; {
		select {
		case <-b.full:
			return true
		case <-s.ctx.Done():
			return false
		case <-tick.C:
		}
		has := s.gathering.count(b)
		if has == had || !time.Now().Before(end) {
			return true
		}
		had = has
	}
}

// count is how many outputs of a bag wait.
func (g *gathering) count(b *gatheredBag) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(b.waiting)
}

// take returns what goes into the next container. With nothing left the bag is forgotten.
func (g *gathering) take(bag job.ID, b *gatheredBag) []gathered {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, int64(0)
	for ; n < min(len(b.waiting), gatherMost); n++ {
		if size += b.waiting[n].collection.LooseBytes(); size > transfer.MaxContainer {
			break
		}
	}
	if n == 0 {
		delete(g.bags, bag)
		return nil
	}
	all := b.waiting[:n:n]
	b.waiting = append([]gathered(nil), b.waiting[n:]...)
	b.bytes = 0
	for i := range b.waiting {
		b.bytes += b.waiting[i].collection.LooseBytes()
	}
	return all
}

// contain puts outputs into a container and reports the ends of their tasks. If that fails
// each is collected by itself, as that of a job is, which waits for what the machine lacks.
func (s *Runner) contain(all []gathered) {
	list := make([]*transfer.Collection, len(all))
	for i := range all {
		list[i] = &all[i].collection
	}
	err := transfer.PutContainer(s.files.blobs, list)
	if err != nil {
		s.log.Warn("container of outputs not stored; each is stored by itself", "bag_id", all[0].run.task.Bundle.Job.String(),
			"tasks", len(all), "error", err.Error())
	}
	for i := range all {
		w := &all[i]
		s.gathering.release(w.reserved)
		if err == nil {
			s.attach(&w.outcome, w.collection, w.run, w.run.requires())
			s.over(w.run, w.outcome)
			continue
		}
		w.collection.Hold.Close()
		s.wg.Go(func() {
			ctx, stop := s.untilStale(w.run)
			defer stop()
			s.collectAlone(ctx, w.run, w.outcome, w.leaving, s.small)
		})
	}
}
