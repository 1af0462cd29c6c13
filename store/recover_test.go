package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/memstore"
	"kith/store/storetest"
)

var recovery = store.RecoverSite{Generation: 1 << 20, Actor: "kithd restore", Reason: "from a backup", Time: 1 << 41}

// Whatever the facts were, afterwards nothing begins by itself, nothing of other sites is held, no
// name is given again, what has ended is as it was, and the facts can be kept and loaded.
func TestRecoverAnyFacts(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		disk := &memstore.Disk{}
		b, err := memstore.Open(disk, "alpha", 9)
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Load()
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			s.Apply(storetest.Walk(rng, s))     //nolint:errcheck // a walk takes wrong steps too
			s.Apply(storetest.WalkBags(rng, s)) //nolint:errcheck // likewise
		}
		type was struct {
			state job.State
			next  uint32
			ended []byte
		}
		before := make(map[job.ID]was)
		for j := range s.Jobs(job.ID{}) {
			w := was{state: j.State, next: j.NextAttempt()}
			if j.State.Terminal() {
				w.ended = fmt.Append(nil, j.State, j.Closed)
			}
			before[j.ID] = w
		}
		bundles := make(map[job.ID]uint32)
		for bag := range s.Bags {
			bundles[bag.ID] = bag.Number
		}
		must(t, s, recovery)
		if s.CopyCount() != 0 || len(s.HeldBundles()) != 0 {
			t.Fatalf("seed %d: %d copies, %d bundles are held", seed, s.CopyCount(), len(s.HeldBundles()))
		}
		for j := range s.Jobs(job.ID{}) {
			w := before[j.ID]
			switch {
			case w.ended != nil:
				if !bytes.Equal(w.ended, fmt.Append(nil, j.State, j.Closed)) {
					t.Fatalf("seed %d: job %v had ended as %v and is %v", seed, j.ID, w.state, j.State)
				}
				continue
			case j.State == job.Pending, j.State == job.Queued, j.State == job.Claimed, j.State == job.Blocked:
				t.Fatalf("seed %d: job %v was %v and is %v: it begins by itself", seed, j.ID, w.state, j.State)
			case j.State == job.Running && j.Holder == "alpha", j.State == job.Cancelling && j.Holder == "alpha":
				t.Fatalf("seed %d: job %v runs here, where nothing runs", seed, j.ID)
			}
			if !j.State.Terminal() && j.NextAttempt() < w.next+store.RecoverGap {
				t.Fatalf("seed %d: job %v: the next attempt is %d, and was %d", seed, j.ID, j.NextAttempt(), w.next)
			}
		}
		for bag := range s.Bags {
			if bag.State == job.BagOpen || bag.State == job.BagBlocked {
				t.Fatalf("seed %d: bag %v is %v", seed, bag.ID, bag.State)
			}
			if !bag.State.Terminal() && bag.Number < bundles[bag.ID]+store.RecoverGap {
				t.Fatalf("seed %d: bag %v: the latest bundle is %d, and was %d", seed, bag.ID, bag.Number, bundles[bag.ID])
			}
			for _, bundle := range bag.Live {
				if bundle.Site == "alpha" && !bundle.Late {
					t.Fatalf("seed %d: bag %v has a bundle here", seed, bag.ID)
				}
			}
		}
		if site := s.Site(); site.Generation != recovery.Generation || site.Folder != (store.Folder{}) || s.NextID().Seq != 1 {
			t.Fatalf("seed %d: %+v", seed, site)
		}
		if err := b.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
		again, err := b.Load()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(codec.Dump(s), codec.Dump(again)) {
			t.Fatalf("seed %d: what was kept is something else", seed)
		}
	}
}

func TestRecoverRefuses(t *testing.T) {
	s, _ := opened(t)
	same, none := recovery, recovery
	same.Generation, none.Generation = 9, 0
	refused(t, s, same, store.ErrState)
	refused(t, s, none, store.ErrBounds)
}

// What becomes of a job by where it was.
func TestRecoverAJob(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   job.OnSiteLost
		holder job.SiteID // "" for none
		begun  bool
		cancel bool
		want   job.State
	}{
		{"it waits", job.Wait, "", false, false, job.OnHold},
		{"claimed elsewhere", job.Wait, "beta", false, false, job.Running},
		{"runs elsewhere", job.Wait, "beta", true, false, job.Running},
		{"ran here", job.Wait, "alpha", true, false, job.Lost},
		{"claimed here", job.Wait, "alpha", false, false, job.Lost},
		{"ran here, and may run again", job.Rerun, "alpha", true, false, job.OnHold},
		{"ran here, and was cancelled", job.Wait, "alpha", true, true, job.Cancelled},
		{"runs elsewhere, and was cancelled", job.Wait, "beta", true, true, job.Cancelling},
	} {
		s := store.NewState("alpha", 9)
		id := s.NextID()
		a := job.AttemptID{Job: id, Number: 1}
		must(t, s,
			store.SubmitJob{ID: id, Request: job.Request{Processors: 1, Walltime: time.Hour, OnSiteLost: c.rule}, Time: 10},
			store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha", "beta"}, Time: 11})
		if c.holder != "" {
			must(t, s, store.GrantClaim{Attempt: a, Site: c.holder, Stamp: 5, Time: 12})
		}
		if c.begun {
			must(t, s, store.RecordStart{Attempt: a, Site: c.holder, Started: 13})
		}
		if c.cancel {
			must(t, s, store.CancelJob{Job: id, Time: 14})
		}
		must(t, s, recovery)
		j := s.Job(id)
		if j.State != c.want {
			t.Errorf("%s: it is %v, not %v", c.name, j.State, c.want)
		}
		if c.want == job.Running && j.Started == 0 {
			t.Errorf("%s: it has not begun, so it would be placed anew if the site lacks it", c.name)
		}
		if act, is := j.LastAct(store.ActHold); c.want == job.OnHold && (!is || act.Reason != recovery.Reason) {
			t.Errorf("%s: it does not say why it is held: %+v", c.name, j.Acts)
		}
		if c.want == job.OnHold {
			must(t, s, store.ReleaseJob{Job: id, Time: 1 << 42})
			must(t, s, store.OpenAttempt{Attempt: job.AttemptID{Job: id, Number: j.NextAttempt()}, Sites: []job.SiteID{"beta"}, Time: 1 << 42})
		}
	}
}
