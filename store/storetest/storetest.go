package storetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
)

// Opener opens a back end; called again after Close it opens the same one.
type Opener func(t *testing.T) store.Backend

// Run is the suite: what every [store.Backend] must do. fresh returns an
// opener of a new, empty back end of site "alpha".
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	RunWithin(t, func(t *testing.T, test func(t *testing.T)) { test(t) }, fresh)
}

// RunWithin is [Run] with each test called by within, which may put it into a bubble of
// testing/synctest.
func RunWithin(t *testing.T, within func(t *testing.T, test func(t *testing.T)), fresh func(t *testing.T) Opener) {
	run := func(name string, test func(t *testing.T, open Opener)) {
		t.Run(name, func(t *testing.T) { within(t, func(t *testing.T) { test(t, fresh(t)) }) })
	}
	run("new", testNew)
	run("reopen", testReopen)
	run("uncommitted", testUncommitted)
	run("payload and decision", testSideRecords)
	run("trust", testTrust)
	run("bags", testBags)
	run("levels of bags", testBagLevels)
	run("files of tasks", testTaskFiles)
	run("forgotten and accepted again", testAgain)
	run("past", testPast)
	run("forecasts", testForecasts)
	run("past in stretches", testPastStretches)
}

func load(t *testing.T, b store.Backend) *store.State {
	t.Helper()
	s, err := b.Load()
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

func commit(t *testing.T, b store.Backend, s *store.State) {
	t.Helper()
	if err := b.Seal(s).Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func apply(t *testing.T, s *store.State, c store.Command) {
	t.Helper()
	if err := s.Apply(c); err != nil {
		t.Fatalf("%#v: %v", c, err)
	}
}

func closed(t *testing.T, b store.Backend) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func testNew(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	if site := s.Site(); site.ID != "alpha" || site.Generation == 0 || site.NextSeq != 1 || site.Draining {
		t.Errorf("a new site is %+v", site)
	}
	if s.JobCount() != 0 || s.CopyCount() != 0 {
		t.Errorf("a new site has %d jobs and %d copies", s.JobCount(), s.CopyCount())
	}
	generation := s.Site().Generation
	closed(t, b)
	b = open(t)
	defer closed(t, b)
	if got := load(t, b).Site().Generation; got != generation {
		t.Errorf("reopened, the generation is %d, was %d", got, generation)
	}
}

// Random walks with random commits: what was committed, and only that, is
// there again after reopening.
func testReopen(t *testing.T, open Opener) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	b := open(t)
	s := load(t, b)
	for round := range 40 {
		for range rng.IntN(60) {
			s.Apply(Walk(rng, s)) //nolint:errcheck // a walk takes wrong steps too
		}
		batch := b.Seal(s)
		if batch.Empty() == s.Dirty() && s.Dirty() {
			t.Fatal("sealing left changes behind")
		}
		if err := batch.Commit(); err != nil {
			t.Fatal(err)
		}
		want := codec.Dump(s)
		for range rng.IntN(5) {
			s.Apply(Walk(rng, s)) //nolint:errcheck // never committed
		}
		closed(t, b)
		b = open(t)
		s = load(t, b)
		if got := codec.Dump(s); !bytes.Equal(got, want) {
			t.Fatalf("seed %d, round %d: reopened with another state than was committed (%d and %d bytes)", seed, round, len(got), len(want))
		}
	}
	if s.JobCount() < 20 || s.CopyCount() < 5 {
		t.Errorf("the walk only came to %d jobs and %d copies", s.JobCount(), s.CopyCount())
	}
	closed(t, b)
}

func testUncommitted(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	apply(t, s, store.SubmitJob{ID: s.NextID(), Request: job.Request{Processors: 1, Walltime: 1}})
	before := codec.Dump(load(t, b))
	batch := b.Seal(s)
	if batch.Empty() {
		t.Error("a batch with a job is empty")
	}
	if got := codec.Dump(load(t, b)); !bytes.Equal(got, before) {
		t.Error("sealing alone changed what is stored")
	}
	if err := batch.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := codec.Dump(load(t, b)); !bytes.Equal(got, codec.Dump(s)) {
		t.Error("the committed batch is not what is stored")
	}
	if !b.Seal(s).Empty() {
		t.Error("a second batch repeats the first")
	}
	closed(t, b)
}

func testSideRecords(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	id := s.NextID()
	if _, err := b.Payload(id); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("payload of no job: %v, want ErrUnknown", err)
	}
	apply(t, s, store.SubmitJob{ID: id, Request: job.Request{Processors: 1, Walltime: 1}, Payload: []byte("run me")})
	apply(t, s, store.OpenAttempt{
		Attempt: job.AttemptID{Job: id, Number: 1}, Sites: []job.SiteID{"alpha"},
		Decision: &store.Decision{Rank: 3, Sites: []store.SiteDecision{{Site: "alpha", Chosen: true, Reason: job.StaleLoad, Score: 1.5, Weight: 1, Age: 7}}},
	})
	commit(t, b, s)
	closed(t, b)
	b = open(t)
	s = load(t, b)
	if p, err := b.Payload(id); err != nil || string(p) != "run me" {
		t.Errorf("payload %q, %v", p, err)
	}
	d, err := b.Decision(id)
	if err != nil || d == nil || d.Rank != 3 || len(d.Sites) != 1 || d.Sites[0] != (store.SiteDecision{Site: "alpha", Chosen: true, Reason: job.StaleLoad, Score: 1.5, Weight: 1, Age: 7}) {
		t.Errorf("decision %+v, %v", d, err)
	}
	if out, err := b.Outputs(id); out != nil || err != nil {
		t.Errorf("outputs of a job that has not ended: %q, %v", out, err)
	}
	apply(t, s, store.GrantClaim{Attempt: job.AttemptID{Job: id, Number: 1}, Site: "alpha"})
	apply(t, s, store.RecordOutcome{
		Attempt: job.AttemptID{Job: id, Number: 1}, Site: "alpha", Outcome: job.Outcome{Kind: job.Success, Files: []byte("files")},
	})
	commit(t, b, s)
	if o := load(t, b).Job(id).Outcome; o == nil || string(o.Files) != "files" {
		t.Errorf("outcome of a job whose output is on its way: %+v", o)
	}
	apply(t, s, store.CloseJob{Job: id})
	commit(t, b, s)
	if out, err := b.Outputs(id); string(out) != "files" || err != nil {
		t.Errorf("outputs %q, %v", out, err)
	}
	if o := load(t, b).Job(id).Outcome; o == nil || o.Files != nil {
		t.Errorf("files of an ended job are still in memory: %+v", o)
	}
	apply(t, s, store.PurgeJob{Job: id})
	commit(t, b, s)
	if _, err := b.Payload(id); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("payload of a purged job: %v, want ErrUnknown", err)
	}
	if d, err := b.Decision(id); d != nil || err != nil {
		t.Errorf("decision of a purged job: %v, %v", d, err)
	}
	if out, err := b.Outputs(id); out != nil || err != nil {
		t.Errorf("outputs of a purged job: %q, %v", out, err)
	}
	if load(t, b).Job(id) != nil {
		t.Error("a purged job came back")
	}
	closed(t, b)
}

// A copy that is forgotten and accepted again within one batch is there.
func testAgain(t *testing.T, open Opener) {
	b := open(t)
	s := load(t, b)
	a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	accept := store.AcceptCopy{Attempt: a, Request: job.Request{Name: "first", Processors: 1, Walltime: 1}}
	apply(t, s, accept)
	commit(t, b, s)
	apply(t, s, store.DropCopy{Attempt: a})
	accept.Request.Name = "second"
	apply(t, s, accept)
	commit(t, b, s)
	if c := load(t, b).Copy(a); c == nil || c.Request.Name != "second" {
		t.Errorf("the copy accepted again is %+v", c)
	}
	apply(t, s, store.DropCopy{Attempt: a})
	apply(t, s, accept)
	apply(t, s, store.DropCopy{Attempt: a})
	commit(t, b, s)
	if c := load(t, b).Copy(a); c != nil {
		t.Errorf("a forgotten copy came back: %+v", c)
	}
	closed(t, b)
}
