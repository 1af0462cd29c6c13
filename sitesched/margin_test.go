package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// claims is a site whose remote copies start some time after the pass that
// chose them, as their claims take time.
type claims struct {
	s   *Scheduler
	rng *rand.Rand
	now job.Time
	// most is the longest time that a claim takes.
	most time.Duration
	// due is what will happen, by time.
	due []claimed
	// promised are the guarantees seen so far.
	promised map[job.AttemptID]job.Time
	moved    int
}

type claimed struct {
	at   job.Time
	kind EventKind
	c    entry
}

func (x *claims) later(e claimed) {
	i, _ := slices.BinarySearchFunc(x.due, e.at, func(e claimed, at job.Time) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	x.due = slices.Insert(x.due, i, e)
}

// begin lets a copy run for at most its walltime.
func (x *claims) begin(c entry) {
	x.s.Step(x.now, Event{Kind: Confirm, ID: c.id})
	x.later(claimed{x.now.Add(1 + time.Duration(x.rng.Int64N(int64(c.walltime)))), Finish, c})
}

// settle makes a pass, and notes which guarantees have moved back.
func (x *claims) settle(t *testing.T) {
	for _, id := range slices.Clone(x.s.Pass(x.now)) {
		c := x.s.known(id)
		switch {
		case !c.remote:
			x.begin(c)
		case x.most == 0:
			x.begin(c)
		case x.rng.IntN(4) == 0:
			x.later(claimed{x.now.Add(time.Duration(x.rng.Int64N(int64(x.most)))), Withdraw, c})
		default:
			x.later(claimed{x.now.Add(time.Duration(x.rng.Int64N(int64(x.most) + 1))), Confirm, c})
		}
	}
	if err := x.s.Check(); err != nil {
		t.Fatalf("at %d: %v", x.now, err)
	}
	for q := range x.s.Queued {
		if q.Guarantee == job.Never || q.Copy.Remote {
			continue
		}
		if was, ok := x.promised[q.Copy.ID]; ok && q.Guarantee > was {
			x.moved++
		}
		x.promised[q.Copy.ID] = q.Guarantee
	}
}

func (x *claims) run(t *testing.T, events int) {
	for n := range events {
		x.now += job.Time(x.rng.Int64N(int64(4 * time.Second)))
		for len(x.due) > 0 && x.due[0].at <= x.now {
			e := x.due[0]
			x.due = x.due[1:]
			now := x.now
			x.now = e.at
			if e.kind == Confirm {
				x.begin(e.c)
			} else {
				x.s.Step(x.now, Event{Kind: e.kind, ID: e.c.id})
			}
			x.settle(t)
			x.now = now
		}
		x.s.Step(x.now, Event{Kind: Enqueue, Copy: entry{
			id: attempt(job.SiteID([]string{"a", "b"}[n%2]), n), remote: n%2 == 1, arrival: x.now,
			processors: 1 + x.rng.Int32N(8), walltime: time.Duration(1+x.rng.IntN(30)) * time.Second,
		}})
		x.settle(t)
	}
}

// S4 with latency: the start of a remote copy whose claim takes no longer than
// the margin moves no local guarantee. Without a margin it does.
func TestLateClaimsMoveNoGuarantee(t *testing.T) {
	for _, b := range []Backfill{EASY, Conservative} {
		for _, scope := range []Scope{ScopeHead, ScopeAll} {
			t.Run(fmt.Sprint(b, " ", scope), func(t *testing.T) {
				moved := func(margin, most time.Duration) (n int) {
					for seed := range uint64(20) {
						x := &claims{
							s:   mustNew(t, Config{Processors: 8, Backfill: b, Queues: DualBackfill, Scope: scope, StartMargin: margin}),
							rng: rand.New(rand.NewPCG(seed, 0)), most: most, promised: make(map[job.AttemptID]job.Time),
						}
						x.run(t, 300)
						n += x.moved
					}
					return n
				}
				if n := moved(0, 0); n > 0 {
					t.Errorf("%d guarantees moved although claims take no time", n)
				}
				if n := moved(3*time.Second, 3*time.Second); n > 0 {
					t.Errorf("%d guarantees moved although claims take no longer than the margin", n)
				}
				if moved(0, 3*time.Second) == 0 {
					t.Error("no guarantee moved without a margin: nothing was tested")
				}
			})
		}
	}
}

// A confirmed copy is expected to end a walltime after its start, whatever of
// the margin it used up.
func TestMarginEndsWithTheStart(t *testing.T) {
	s := mustNew(t, Config{Processors: 4, Queues: DualBackfill, Backfill: EASY, StartMargin: 5 * time.Second})
	c := entry{id: attempt("b", 1), processors: 2, walltime: 10 * time.Second, remote: true}
	s.Step(0, Event{Kind: Enqueue, Copy: c})
	s.Step(0, Event{Kind: Pass})
	end := func() (at job.Time) {
		for r := range s.Running {
			at = r.End
		}
		return at
	}
	if end() != 15*second {
		t.Errorf("reserved until %v, want 15 s", end())
	}
	s.Step(2*second, Event{Kind: Confirm, ID: c.id})
	if end() != 12*second {
		t.Errorf("runs until %v, want 12 s", end())
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// After a restart it is not known at first how long a remote copy that had begun
// took to start: its margin is kept free until it is told, and what was promised
// to local copies before stays true.
func TestAdoptedCopiesKeepTheMargin(t *testing.T) {
	s := mustNew(t, Config{Processors: 4, Queues: DualBackfill, Backfill: EASY, StartMargin: 5 * time.Second})
	c := entry{id: attempt("b", 1), processors: 2, walltime: 10 * time.Second, remote: true}
	s.Step(4*second, Event{Kind: Adopt, Copy: c, At: 1 * second})
	end := func() (at job.Time) {
		for r := range s.Running {
			at = r.End
		}
		return at
	}
	if end() != 16*second {
		t.Errorf("adopted until %v, want 16 s", end())
	}
	head := entry{id: attempt("a", 2), processors: 4, walltime: 10 * time.Second, arrival: 4 * second}
	s.Step(4*second, Event{Kind: Enqueue, Copy: head})
	s.Step(4*second, Event{Kind: Pass})
	if at, ok := s.Guarantee(head.id); !ok || at != 16*second {
		t.Errorf("the head is promised %v, want 16 s", at)
	}
	s.Step(4*second, Event{Kind: Confirm, ID: c.id, At: 3 * second})
	s.Step(4*second, Event{Kind: Pass})
	if end() != 13*second {
		t.Errorf("runs until %v, want 13 s", end())
	}
	s.Step(5*second, Event{Kind: Confirm, ID: c.id, At: 5 * second}) // told again
	if end() != 13*second {
		t.Errorf("runs until %v after it was told again, want 13 s", end())
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
