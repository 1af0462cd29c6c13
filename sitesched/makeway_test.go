package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// inn is a site whose guests leave when they alone have kept a home job waiting for a bound, less
// the time that they take to leave.
type inn struct {
	t            *testing.T
	s            *Scheduler
	now          job.Time
	bound, grace time.Duration
	jobs         map[job.AttemptID]resident
	agenda       []errand
	since        map[job.AttemptID]job.Time
	total        map[job.AttemptID]time.Duration
	told         map[job.AttemptID]bool
	evicted      int
	worst        time.Duration
}

func (n *inn) plan(at job.Time, order int, do func()) {
	n.agenda = append(n.agenda, errand{at: at, order: order, do: do})
}

func (n *inn) come(r resident) {
	n.jobs[r.c.ID] = r
	n.plan(r.c.Arrival, 2, func() { n.s.Enqueue(n.now, r.c) })
}

// play lives through it all.
func (n *inn) play() {
	for !n.t.Failed() {
		next := n.s.NextWake(n.now)
		for _, e := range n.agenda {
			next = min(next, e.at)
		}
		for id, since := range n.since {
			if due := n.due(id, since); due > n.now {
				next = min(next, due)
			}
		}
		if next == job.Never {
			return
		}
		n.now = max(n.now, next)
		for again := true; again && !n.t.Failed(); {
			again = n.instant()
		}
	}
}

func (n *inn) due(id job.AttemptID, since job.Time) job.Time {
	return since.Add(n.bound - n.grace - n.total[id])
}

// instant lets happen what is due, and says whether more is due at once.
func (n *inn) instant() bool {
	var due []errand
	n.agenda = slices.DeleteFunc(n.agenda, func(e errand) bool {
		if e.at <= n.now {
			due = append(due, e)
		}
		return e.at <= n.now
	})
	slices.SortStableFunc(due, func(a, b errand) int { return a.order - b.order })
	for _, e := range due {
		e.do()
	}
	for _, id := range slices.Clone(n.s.Pass(n.now)) {
		n.s.Confirm(n.now, id, n.now)
		n.plan(n.now.Add(n.jobs[id].run), 0, func() {
			if n.grace == 0 && n.told[id] && n.s.Has(id) {
				n.t.Errorf("at %v: %v was told to leave and ends by itself", n.now, id)
			}
			n.s.Finish(n.now, id)
		})
	}
	if id, moved := n.s.Moved(); moved {
		n.t.Errorf("at %v: a guest moved the promise to %v", n.now, id)
	}
	blocked := n.s.Blocked(n.now, nil)
	for id, since := range n.since {
		if !slices.Contains(blocked, id) {
			n.total[id] += n.now.Sub(since)
			n.worst = max(n.worst, n.total[id])
			delete(n.since, id)
		}
	}
	again := false
	for _, id := range blocked {
		if _, runs := n.since[id]; !runs {
			n.since[id] = n.now
		}
		if n.due(id, n.since[id]) > n.now {
			continue
		}
		gone := slices.Clone(n.s.MakeWay(n.now, id, n.now.Add(n.grace)))
		for _, g := range gone {
			if n.told[g] {
				n.t.Errorf("at %v: %v is told twice to leave", n.now, g)
			}
			n.told[g] = true
			n.evicted++
			n.plan(n.now.Add(n.grace), 0, func() { n.leave(g) })
		}
		again = again || n.grace == 0 && len(gone) > 0
		if n.grace == 0 && len(gone) == 0 && !again { // else those that leave for another one do
			n.t.Errorf("at %v: %v is blocked by guests alone, and none is told to leave", n.now, id)
		}
	}
	if err := n.s.Check(); err != nil {
		n.t.Errorf("at %v: %v", n.now, err)
	}
	return again
}

func (n *inn) leave(id job.AttemptID) {
	if !n.s.Has(id) {
		return
	}
	n.s.Finish(n.now, id)
	r := n.jobs[id]
	r.c.ID.Number++
	r.c.Arrival = n.now
	n.come(r)
}

// Guests that make way keep no home job waiting for longer than the bound, whatever the
// discipline; each is told once; no promise is moved; and all end.
func TestMakeWay(t *testing.T) {
	t.Parallel()
	for b := range ConservativeReplan + 1 {
		for scope := range ScopeAll + 1 {
			c := Config{Processors: 10, Backfill: b, Queues: DualBackfill, Scope: scope}
			t.Run(fmt.Sprintf("%v, %v", b, scope), func(t *testing.T) {
				t.Parallel()
				evicted := 0
				for seed := range scaled(60) {
					rng := rand.New(rand.NewPCG(seed, 16))
					n := &inn{t: t, s: mustNew(t, c), bound: time.Duration(rng.IntN(3)) * 10 * time.Second, jobs: map[job.AttemptID]resident{},
						since: map[job.AttemptID]job.Time{}, total: map[job.AttemptID]time.Duration{}, told: map[job.AttemptID]bool{}}
					if seed%2 == 0 && n.bound > 0 {
						n.grace = 2 * time.Second
					}
					for i := range 60 {
						origin := job.SiteID("a")
						if i >= 30 {
							origin = "b"
						}
						limit := time.Duration(1+rng.IntN(60)) * time.Second
						r := resident{job.Copy{ID: attempt(origin, i), Arrival: job.Time(rng.IntN(400)) * second, Remote: origin != "a"}, time.Duration(1+rng.IntN(int(limit/time.Second))) * time.Second}
						r.c.Request.Processors, r.c.Request.Walltime = int32(1+rng.IntN(10)), limit
						n.come(r)
					}
					n.play()
					if n.worst > n.bound {
						t.Errorf("seed %d: a home job was blocked for %v, the bound is %v, and guests take %v to leave", seed, n.worst, n.bound, n.grace)
					}
					for id := range n.jobs {
						if n.s.Has(id) {
							t.Errorf("seed %d: %v is still there at the end", seed, id)
						}
					}
					if evicted += n.evicted; t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
				if evicted < 20 {
					t.Errorf("%d evictions: too few to say anything", evicted)
				}
			})
		}
	}
}
