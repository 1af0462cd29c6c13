package daemon

import (
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
	"kith/store/memstore"
)

// jammed is a backend whose disk is full until it is told otherwise.
type jammed struct {
	store.Backend
	free atomic.Bool
}

func (b *jammed) Seal(s *store.State) store.Batch { return jammedBatch{b.Backend.Seal(s), b} }

type jammedBatch struct {
	store.Batch
	b *jammed
}

func (j jammedBatch) Commit() error {
	if !j.b.free.Load() {
		return syscall.ENOSPC
	}
	return j.Batch.Commit()
}

// jammedLoop is a loop that waits for its disk.
func jammedLoop(t *testing.T, carry func(meta.Effect)) (*loop, *jammed) {
	t.Helper()
	plain, err := memstore.Open(&memstore.Disk{}, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	state, err := plain.Load()
	if err != nil {
		t.Fatal(err)
	}
	site, err := sitesched.NewSite(sitesched.Config{Processors: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self.Processors = 1
	engine, err := meta.New(cfg, state, site)
	if err != nil {
		t.Fatal(err)
	}
	b := &jammed{Backend: plain}
	l := newLoop(engine, state, b, carry, slog.New(slog.DiscardHandler))
	go l.run(nil)
	l.post(meta.SetDrain{On: true}) // a fact
	for err := error(nil); err == nil; time.Sleep(time.Millisecond) {
		_, err = l.trouble.now()
	}
	return l, b
}

// What waits for a disk is bounded: whoever brings more waits, too, and all is
// done when the disk works again.
func TestLoopIsBounded(t *testing.T) {
	t.Parallel()
	var changed atomic.Int64
	l, b := jammedLoop(t, func(meta.Effect) { changed.Add(1) })
	const events = mostGathered + waitingInputs + 2*takenAtOnce
	var posted atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range events {
			// A site that nobody has heard of: each time its load is told to it.
			l.post(meta.PeerUp{Site: "beta", Generation: 1})
			posted.Add(1)
		}
	}()
	stands := func() bool {
		before := posted.Load()
		time.Sleep(50 * time.Millisecond)
		return posted.Load() == before && len(l.in) == cap(l.in)
	}
	for stop := time.Now().Add(30 * time.Second); !stands(); {
		if time.Now().After(stop) || posted.Load() == events {
			t.Fatalf("%d of %d events were taken", posted.Load(), events)
		}
	}
	b.free.Store(true)
	<-done
	l.close()
	if changed.Load() < events {
		t.Errorf("%d effects of %d events", changed.Load(), events)
	}
}

// A loop that waits for its disk can be stopped, and so can those who wait for it.
func TestJammedLoopStops(t *testing.T) {
	l, _ := jammedLoop(t, func(meta.Effect) {})
	posting := make(chan struct{})
	go func() {
		defer close(posting)
		for {
			select {
			case <-l.closing:
				return
			default:
				l.post(meta.PeerUp{Site: "beta", Generation: 1})
			}
		}
	}()
	for len(l.in) < cap(l.in) {
		time.Sleep(time.Millisecond)
	}
	close(l.closing)
	<-posting
	l.close()
	if err := l.Look(t.Context(), func(job.Time, *meta.Engine) {}); err == nil {
		t.Error("a loop that has stopped shows something")
	}
}

// Found by an overload of a real site: when more inputs waited than are taken
// at once, the one behind the last was received and never looked at. Four of
// 52,000 submissions had no answer.
func TestMoreInputsThanAreTakenAtOnce(t *testing.T) {
	l := newLoop(nil, nil, nil, nil, slog.New(slog.DiscardHandler))
	const all = 3*takenAtOnce + 1
	seen := 0
	for range all {
		l.in <- input{look: &look{durable: make(chan struct{}), see: func(job.Time, *meta.Engine) { seen++ }}}
	}
	for len(l.in) > 0 {
		l.take(<-l.in)
	}
	if seen != all {
		t.Errorf("%d of %d inputs were taken", seen, all)
	}
}
