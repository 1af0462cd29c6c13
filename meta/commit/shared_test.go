package commit

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// sharedDisk is a disk that several members keep.
type sharedDisk struct {
	store.Backend // nobody calls it
	disk
}

func (d *sharedDisk) Seal(s *store.State) store.Batch { return d.disk.Seal(s) }
func (d *sharedDisk) Replicated()                     {}

func newShared(d *sharedDisk) (*Barrier, *store.State) {
	facts := store.NewState("alpha", 1)
	return New(facts, d, func(a job.AttemptID) bool { return a.Number == 1 }), facts
}

// After the answer that nobody knows, and after a no for good, nothing leaves, not even if
// the disk works again.
func TestNothingLeavesAfterTheThirdAnswer(t *testing.T) {
	for _, answer := range []error{store.ErrUndecided, store.ErrDeposed} {
		d := &sharedDisk{}
		b, facts := newShared(d)
		change(t, facts)
		b.Add([]meta.Effect{reply(1)})
		b.Wait(func() { t.Error("it was called") })
		r, _ := b.Next()
		d.full = fmt.Errorf("term 7: %w", answer)
		for range 2 {
			if effects, err := r.Commit(); len(effects) > 0 || !errors.Is(err, answer) || len(r.Waiting()) > 0 {
				t.Errorf("%v: released %v and %d functions, %v", answer, effects, len(r.Waiting()), err)
			}
			d.full = nil
		}
		if d.committed != 0 {
			t.Errorf("%v: it was committed all the same", answer)
		}
		if _, ok := b.Next(); ok {
			t.Errorf("%v: the next batch was sealed", answer)
		}
	}
}

// A plain no is no reason to give up: as with a disk of one's own.
func TestARetryLeavesOnceItWorks(t *testing.T) {
	d := &sharedDisk{}
	b, facts := newShared(d)
	change(t, facts)
	b.Add([]meta.Effect{reply(1)})
	r, _ := b.Next()
	d.full = errors.New("a leader is being chosen")
	if effects, err := r.Commit(); len(effects) > 0 || err == nil {
		t.Errorf("released %v, %v", effects, err)
	}
	d.full = nil
	if effects, err := r.Commit(); len(effects) != 1 || err != nil {
		t.Errorf("released %v, %v", effects, err)
	}
}

// An answer without a new fact is confirmed, too: another member may lead.
func TestAnswersWithoutFactsAreConfirmed(t *testing.T) {
	d := &sharedDisk{}
	b, facts := newShared(d)
	facts.DropChanges()
	b.Add([]meta.Effect{reply(1)})
	r, _ := b.Next()
	d.full = store.ErrDeposed
	if effects, err := r.Commit(); r.Empty() || len(effects) > 0 || !errors.Is(err, store.ErrDeposed) {
		t.Errorf("empty %v, released %v, %v", r.Empty(), effects, err)
	}
}

// A renewal by a member that leads no longer could keep an attempt running beside its next one.
func TestRenewalsWaitWhereAnotherMayLead(t *testing.T) {
	b, _ := newShared(&sharedDisk{})
	launched := job.AttemptID{Number: 1}
	asks, grants := meta.Send{Message: meta.Renew{Attempt: launched}}, meta.Send{Message: meta.Renewed{Lease: 1}}
	if now := b.Add([]meta.Effect{asks, grants}); !reflect.DeepEqual(now, []meta.Effect{asks}) {
		t.Errorf("at once: %v", now)
	}
	if !reflect.DeepEqual(b.Held(), []meta.Effect{grants}) {
		t.Errorf("held: %v", b.Held())
	}
}

// What runs is taken up before anything new is let on its processors: its beginning was loaded, so
// that it is durable, and the round for it may take long.
func TestAdoptionsDoNotWaitForTheOthers(t *testing.T) {
	b, _ := newShared(&sharedDisk{})
	adopt := meta.Adopt{Attempt: job.AttemptID{Number: 1}}
	if now := b.Add([]meta.Effect{adopt, reply(1)}); !reflect.DeepEqual(now, []meta.Effect{adopt}) {
		t.Errorf("at once: %v", now)
	}
	alone, _ := newBarrier(&disk{})
	if now := alone.Add([]meta.Effect{adopt}); len(now) > 0 {
		t.Errorf("at once, with a disk of its own: %v", now)
	}
}
