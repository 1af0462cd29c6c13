package commit

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// disk is a sealer whose batches note in which order they were committed.
type disk struct {
	sealed, committed int
	full              error
}

func (d *disk) Seal(s *store.State) store.Batch {
	c := s.TakeChanges()
	d.sealed++
	return &batch{d: d, number: d.sealed, empty: c.Empty()}
}

type batch struct {
	d      *disk
	number int
	empty  bool
}

func (b *batch) Empty() bool { return b.empty }

func (b *batch) Commit() error {
	if b.d.full != nil {
		return b.d.full
	}
	b.d.committed = b.number
	return nil
}

func newBarrier(d *disk) (*Barrier, *store.State) {
	facts := store.NewState("alpha", 1)
	return New(facts, d, func(a job.AttemptID) bool { return a.Number == 1 }), facts
}

func change(t *testing.T, facts *store.State) {
	t.Helper()
	if err := facts.Apply(store.SetDrain{Draining: !facts.Site().Draining}); err != nil {
		t.Fatal(err)
	}
}

func reply(n uint64) meta.Effect { return meta.Reply{Token: n} }

func TestEffectsWaitForTheirBatch(t *testing.T) {
	d := &disk{}
	b, facts := newBarrier(d)
	change(t, facts)
	if now := b.Add([]meta.Effect{reply(1), reply(2)}); len(now) > 0 {
		t.Fatalf("leave at once: %v", now)
	}
	first, ok := b.Next()
	if !ok {
		t.Fatal("no batch")
	}
	// What comes while the batch is on its way gathers for the next one.
	change(t, facts)
	b.Add([]meta.Effect{reply(3)})
	change(t, facts)
	b.Add([]meta.Effect{reply(4)})
	if _, ok := b.Next(); ok {
		t.Fatal("two batches are under way")
	}
	d.full = errors.New("full")
	if effects, err := first.Commit(); len(effects) > 0 || !errors.Is(err, d.full) {
		t.Fatalf("a batch that is not durable released %v, %v", effects, err)
	}
	d.full = nil
	effects, err := first.Commit()
	if want := []meta.Effect{reply(1), reply(2)}; err != nil || !reflect.DeepEqual(effects, want) || d.committed != 1 {
		t.Fatalf("batch %d released %v, %v", d.committed, effects, err)
	}
	b.Done()
	second, ok := b.Next()
	if !ok {
		t.Fatal("no second batch")
	}
	effects, err = second.Commit()
	if want := []meta.Effect{reply(3), reply(4)}; err != nil || !reflect.DeepEqual(effects, want) || d.committed != 2 {
		t.Fatalf("batch %d released %v, %v", d.committed, effects, err)
	}
	b.Done()
	if _, ok := b.Next(); ok {
		t.Error("there is nothing left to do")
	}
}

// Facts without an effect are written, and effects without a fact leave.
func TestHalves(t *testing.T) {
	d := &disk{}
	b, facts := newBarrier(d)
	change(t, facts)
	r, ok := b.Next()
	if effects, err := r.Commit(); !ok || r.Empty() || err != nil || len(effects) > 0 || d.committed != 1 {
		t.Errorf("batch %v: %v, %v", ok, effects, err)
	}
	b.Done()
	b.Add([]meta.Effect{reply(1)})
	r, ok = b.Next()
	if effects, err := r.Commit(); !ok || !r.Empty() || err != nil || len(effects) != 1 || d.committed != 1 {
		t.Errorf("batch %v: %v, %v", ok, effects, err)
	}
	b.Done()
	called := false
	b.Wait(func() { called = true })
	if r, ok = b.Next(); !ok || len(r.Waiting()) != 1 || called {
		t.Errorf("batch %v, called %v", ok, called)
	}
}

func TestRenewalsLeaveEarly(t *testing.T) {
	b, _ := newBarrier(&disk{})
	launched, other := job.AttemptID{Number: 1}, job.AttemptID{Number: 2}
	asks, early := meta.Send{Message: meta.Renew{Attempt: launched}}, meta.Send{Message: meta.Renew{Attempt: other}}
	grants, ends := meta.Send{Message: meta.Renewed{Lease: 1}}, meta.Send{Message: meta.Renewed{}}
	longer := meta.Extend{Attempt: launched, Until: 1}
	now := b.Add([]meta.Effect{reply(1), asks, early, longer, grants, ends})
	if want := []meta.Effect{asks, longer, grants}; !reflect.DeepEqual(now, want) {
		t.Errorf("at once: %v, expected %v", now, want)
	}
	if want := []meta.Effect{reply(1), early, longer, ends}; !reflect.DeepEqual(b.Held(), want) {
		t.Errorf("held: %v, expected %v", b.Held(), want)
	}
}

// A bundle is renewed at once when a task of it has been launched.
func TestRenewalsOfBundlesLeaveEarly(t *testing.T) {
	facts := store.NewState("a", 1)
	request := job.Request{Processors: 1, Walltime: time.Hour}
	runs, waits := job.AttemptID{Job: job.ID{Origin: "b", Generation: 1, Seq: 1}, Number: 1}, job.AttemptID{Job: job.ID{Origin: "b", Generation: 1, Seq: 1}, Number: 2}
	for _, id := range []job.AttemptID{runs, waits} {
		if err := store.Record(facts, store.AcceptBundle{Bundle: id, Request: request, Tasks: job.TaskRange(0, 3), Time: 1}); err != nil {
			t.Fatal(err)
		}
	}
	run := facts.Held(runs).RunID(2)
	b := New(facts, &disk{}, func(a job.AttemptID) bool { return a == run })
	early, late := meta.Send{Message: meta.Renew{Attempt: runs}}, meta.Send{Message: meta.Renew{Attempt: waits}}
	if now := b.Add([]meta.Effect{early, late}); !reflect.DeepEqual(now, []meta.Effect{early}) {
		t.Errorf("at once: %v", now)
	}
}

// What the origin, the user or a lease ends, ends although nothing can be written.
// What ends because another attempt has ended waits for that outcome: a crash could
// take it back, and the end of this one would count.
func TestKillsLeaveEarly(t *testing.T) {
	b, _ := newBarrier(&disk{})
	launched, other := job.AttemptID{Number: 1}, job.AttemptID{Number: 2}
	asked, lapsed := meta.Kill{Attempt: launched, Early: true}, meta.Kill{Attempt: launched, Early: true, Lease: true}
	waits, outraced := meta.Kill{Attempt: other, Early: true}, meta.Kill{Attempt: launched}
	now := b.Add([]meta.Effect{reply(1), asked, lapsed, waits, outraced})
	if want := []meta.Effect{asked, lapsed}; !reflect.DeepEqual(now, want) {
		t.Errorf("at once: %v, expected %v", now, want)
	}
	if want := []meta.Effect{reply(1), waits, outraced}; !reflect.DeepEqual(b.Held(), want) {
		t.Errorf("held: %v, expected %v", b.Held(), want)
	}
}

// A site without a disk has nothing to wait for, and keeps the order of all effects.
func TestWithoutADisk(t *testing.T) {
	facts := store.NewState("alpha", 1)
	b := New(facts, nil, nil)
	longer := meta.Extend{Until: 1}
	if now := b.Add([]meta.Effect{reply(1), longer}); len(now) > 0 {
		t.Errorf("at once: %v", now)
	}
	r, ok := b.Next()
	b.Done()
	effects, err := r.Commit()
	if want := []meta.Effect{reply(1), longer}; !ok || !r.Empty() || err != nil || !reflect.DeepEqual(effects, want) || facts.Dirty() {
		t.Errorf("released %v, %v", effects, err)
	}
	b.Recycle(effects)
	b.Add([]meta.Effect{reply(2)})
	if len(b.Held()) != 1 {
		t.Errorf("held: %v", b.Held())
	}
}
