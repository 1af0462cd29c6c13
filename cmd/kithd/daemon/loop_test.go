package daemon

import (
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
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

// emptyStore returns a store without facts, in memory.
func emptyStore(t *testing.T) (store.Backend, *store.State) {
	t.Helper()
	b, err := memstore.Open(&memstore.Disk{}, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	return b, state
}

// jammedLoop is a loop that waits for its disk.
func jammedLoop(t *testing.T, carry func(meta.Effect)) (*loop, *jammed) {
	t.Helper()
	plain, state := emptyStore(t)
	site, err := sitesched.New(sitesched.Config{Processors: 1})
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
	l := newLoop(newInbox(state.Site().Latest, nil, slog.New(slog.DiscardHandler)), engine, commit.New(state, b, nil), carry)
	go l.run(nil)
	l.tell(meta.SetDrain{On: true}) // a fact
	for err := error(nil); err == nil; time.Sleep(time.Millisecond) {
		_, err = l.trouble.now()
	}
	return l, b
}

// failing carries each effect out by telling the loop at once of the end of an
// attempt, as the runner does with a launch that cannot be run.
type failing struct {
	tell    func(meta.Event)
	carried atomic.Int64
}

func (f *failing) carry(meta.Effect) {
	n := f.carried.Add(1)
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(n)}, Number: 1}
	f.tell(meta.AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Failure}})
}

// pour posts events until the loop takes no more, and goes on in the
// background until it has posted all.
func pour(t *testing.T, l *loop, events int64) (done chan struct{}) {
	t.Helper()
	var posted atomic.Int64
	done = make(chan struct{})
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
		return posted.Load() == before && len(l.places) == cap(l.places)
	}
	for stop := time.Now().Add(30 * time.Second); !stands(); {
		if time.Now().After(stop) || posted.Load() == events {
			t.Fatalf("%d of %d events were taken", posted.Load(), events)
		}
	}
	return done
}

func awaitDone(t *testing.T, done chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the loop, the committer and the dispatcher wait for each other")
	}
}

// What waits for a disk is bounded: whoever brings more waits, too, and all is
// done when the disk works again.
func TestLoopIsBounded(t *testing.T) {
	t.Parallel()
	f := new(failing)
	l, b := jammedLoop(t, f.carry)
	f.tell = l.tell
	const events = mostGathered + waitingInputs + 2*takenAtOnce
	done := pour(t, l, events)
	b.free.Store(true)
	awaitDone(t, done)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.close()
	}()
	awaitDone(t, closed)
	if f.carried.Load() < events {
		t.Errorf("%d effects of %d events", f.carried.Load(), events)
	}
}

// Effects that lead to events can be carried out while the loop takes nothing:
// it has gathered as many effects as it may, and waits for those before them.
func TestCarryingWaitsForNobody(t *testing.T) {
	t.Parallel()
	f := new(failing)
	open := make(chan struct{})
	l, b := jammedLoop(t, func(ef meta.Effect) {
		<-open
		f.carry(ef)
	})
	f.tell = l.tell
	b.free.Store(true)
	done := pour(t, l, 3*mostGathered)
	close(open)
	awaitDone(t, done)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.close()
	}()
	awaitDone(t, closed)
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
	for len(l.places) < cap(l.places) {
		time.Sleep(time.Millisecond)
	}
	close(l.closing)
	<-posting
	l.close()
	if err := l.Look(t.Context(), func(job.Time, meta.Views) {}); err == nil {
		t.Error("a loop that has stopped shows something")
	}
}

// Found by an overload of a real site: when more inputs waited than are taken
// at once, the one behind the last was received and never looked at. Four of
// 52,000 submissions had no answer.
func TestMoreInputsThanAreTakenAtOnce(t *testing.T) {
	_, state := emptyStore(t)
	l := newLoop(newInbox(state.Site().Latest, nil, slog.New(slog.DiscardHandler)), &meta.Engine{}, commit.New(state, nil, nil), nil)
	const all = 3*takenAtOnce + 1
	seen := 0
	for range all {
		l.lanes.put(lane{}, input{look: newLook(func(job.Time, meta.Views) { seen++ })})
	}
	for woken := true; woken; {
		select {
		case <-l.lanes.wake:
			l.take()
		default:
			woken = false
		}
	}
	if seen != all {
		t.Errorf("%d of %d inputs were taken", seen, all)
	}
}
