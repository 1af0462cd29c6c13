package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// The tests of this file are the acceptance checks of the specifications, one
// test for each check.

// cases is how many random cases the specifications ask for.
const cases = 10_000

func secs(n int) time.Duration { return time.Duration(n) * time.Second }

// waiting is a copy of the hand-made cases.
func waiting(n, procs, wall int, remote bool) entry {
	return entry{id: attempt("a", n), processors: int32(procs), walltime: secs(wall), arrival: job.Time(n), remote: remote}
}

func enqueueAll(s *Scheduler, now job.Time, copies ...entry) {
	for _, c := range copies {
		s.Step(now, Event{Kind: Enqueue, Copy: c})
	}
}

// Spec 001 section 5 check 1: the table of ten processors.
func TestEASYUnitTable(t *testing.T) {
	// 6 of 10 processors run until 100. The head needs 8.
	h, b1, b2, b3 := waiting(1, 8, 50, false), waiting(2, 4, 100, false), waiting(3, 3, 200, false), waiting(4, 2, 300, false)
	site := func(queue ...entry) *Scheduler {
		s := mustNew(t, Config{Processors: 10, Backfill: EASY})
		s.Step(0, Event{Kind: Adopt, Copy: waiting(0, 6, 100, false), At: 0})
		enqueueAll(s, 0, queue...)
		return s
	}
	s := site(h, b1, b2, b3)
	if got := s.Pass(0); !slices.Equal(got, []job.AttemptID{b1.id}) {
		t.Errorf("starts %v, want b1 alone", got)
	}
	if at, ok := s.Guarantee(h.id); !ok || at != 100*second || s.extra != 2 || s.free != 0 {
		t.Errorf("t* = %d %v, x = %d, free = %d; want 100 s, 2, 0", at, ok, s.extra, s.free)
	}
	s = site(h, b2, b3)
	if got := s.Pass(0); !slices.Equal(got, []job.AttemptID{b3.id}) {
		t.Errorf("without b1, starts %v, want b3 alone", got)
	}
	if at, ok := s.Guarantee(h.id); !ok || at != 100*second || s.extra != 0 || s.free != 2 {
		t.Errorf("without b1, t* = %d %v, x = %d, free = %d; want 100 s, 0, 2", at, ok, s.extra, s.free)
	}
}

// Spec 001 section 5 check 2: no head starts after the first t* recorded for
// it, as long as nothing runs longer than estimated.
func TestEASYNeverDelaysTheHead(t *testing.T) {
	for _, queues := range []Queues{Single, DualStrict, DualBackfill} {
		for _, backfill := range []Backfill{EASY, NoBackfill} {
			c := Config{Backfill: backfill, Queues: queues, Scope: ScopeHead}
			t.Run(c.Policy(), func(t *testing.T) {
				stories(t, cases/6, c, spice{withdrawals: true, memory: true}, func(g *stage) func(int, []job.AttemptID) error {
					promised := map[job.AttemptID]job.Time{}
					return func(now int, started []job.AttemptID) error {
						for _, id := range started {
							if at, ok := promised[id]; ok && job.Time(now)*second > at {
								return fmt.Errorf("%v starts at %d, was promised %d", id, now, at/second)
							}
						}
						for c := range g.s.Queued {
							if _, known := promised[c.Copy.ID]; !known && c.Guarantee != job.Never {
								promised[c.Copy.ID] = c.Guarantee
							}
						}
						return nil
					}
				})
			})
		}
	}
}

// mirror makes a reference in the state of s, for computing plans
// independently of the product.
func mirror(s *Scheduler) *reference {
	r := &reference{cfg: s.cfg}
	of := func(c job.Copy) *refJob {
		return &refJob{
			id: c.ID, p: int(s.cfg.Charge(&c.Request)), wall: int(c.Request.Walltime / 1e9), arrival: int(c.Arrival / second),
			remote: c.Remote && s.cfg.Queues != Single, slot: noSlot,
		}
	}
	for c := range s.Queued {
		j := of(c.Copy)
		j.state, j.notBefore, j.within = queued, int(c.NotBefore/second), c.Within
		if c.Guarantee != job.Never {
			j.slot = int(c.Guarantee / second)
		}
		r.insert(j)
	}
	for c := range s.Running {
		j := of(c.Copy)
		j.state, j.end = running, int(c.End/second)
		r.insert(j)
	}
	return r
}

// Spec 001 section 5 check 3, first half: no start of a remote copy moves what
// the scope protects. The local plans are computed anew before and after each
// remote start.
func TestRemoteStartsMoveNoGuarantee(t *testing.T) {
	for _, c := range []Config{
		{Backfill: EASY, Queues: DualBackfill, Scope: ScopeHead},
		{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll},
		{Backfill: NoBackfill, Queues: DualBackfill, Scope: ScopeHead},
		{Backfill: NoBackfill, Queues: DualBackfill, Scope: ScopeAll},
		{Backfill: Conservative, Queues: DualBackfill},
		{Backfill: ConservativeReplan, Queues: DualBackfill},
		{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll, GuaranteeDepth: 2},
		{Backfill: Conservative, Queues: DualBackfill, GuaranteeDepth: 2},
	} {
		t.Run(fmt.Sprint(c.Policy(), ", depth ", c.GuaranteeDepth), func(t *testing.T) {
			remoteStarts := 0
			stories(t, cases/6, c, spice{withdrawals: true}, func(g *stage) func(int, []job.AttemptID) error {
				g.wantsPrior = true
				return func(now int, started []job.AttemptID) error {
					remote := func(id job.AttemptID) bool { return g.players[g.player(id)].copy.remote }
					if !slices.ContainsFunc(started, remote) {
						return nil
					}
					// The state between the local and the remote half of the pass:
					// the same pass without any remote copy.
					r := mirror(withoutRemote(g.prior, now))
					before := protected(r, now)
					for _, id := range started {
						if !remote(id) {
							continue
						}
						remoteStarts++
						r.step(now, Event{Kind: Adopt, Copy: g.players[g.player(id)].copy, At: job.Time(now) * second})
						after := protected(r, now)
						for i := range before {
							if after[i] > before[i] {
								return fmt.Errorf("%v at %d moves local plans from %v to %v", id, now, before, after)
							}
						}
						before = after
					}
					return nil
				}
			})
			if remoteStarts < int(scaled(500)) {
				t.Errorf("only %d remote starts, the stories show little", remoteStarts)
			}
		})
	}
}

// withoutRemote returns s without its remote queue, after a pass.
func withoutRemote(s *Scheduler, now int) *Scheduler {
	s = s.Clone()
	var remote []job.AttemptID
	for c := range s.Queued {
		if c.Copy.Remote {
			remote = append(remote, c.Copy.ID)
		}
	}
	for _, id := range remote {
		s.Step(job.Time(now)*second, Event{Kind: Withdraw, ID: id})
	}
	s.Step(job.Time(now)*second, Event{Kind: Pass})
	return s
}

// protected returns the instants that remote starts must not move: t* of the
// local head, the current plan of all local jobs within the guarantee depth, or
// their recorded slots as far as they are still possible.
func protected(r *reference, now int) []int {
	q := r.protected(now)
	if len(q) == 0 {
		return nil
	}
	if r.cfg.Backfill < Conservative && r.cfg.Scope == ScopeHead {
		f := r.surface(now)
		return []int{now + earliest(f, 0, q[0].p, q[0].wall)}
	}
	if r.cfg.Backfill < Conservative {
		slots, _ := r.localPlan(now)
		return slots
	}
	f := r.surface(now)
	var slots []int
	for _, j := range q {
		slot := j.slot
		for !fitsAt(f, slot-now, j.p, j.wall) {
			slot++
		}
		add(f, slot-now, j.wall, -j.p)
		slots = append(slots, slot)
	}
	return slots
}

// Spec 001 section 5 check 3, second half: with an empty remote queue a dual
// site schedules byte for byte like a plain one.
func TestEmptyRemoteQueueIsPlain(t *testing.T) {
	for b := range Backfill(len(backfillNames)) {
		t.Run(b.String(), func(t *testing.T) {
			for seed := range scaled(cases / 40) {
				y := randomStory(rand.New(rand.NewPCG(seed, 3)), Config{Backfill: b}, everything)
				for i := range y.players {
					y.players[i].copy.remote = false
				}
				want, _ := performLogged(y, nil, true)
				for _, c := range []Config{
					{Queues: DualStrict}, {Queues: DualBackfill, Scope: ScopeHead}, {Queues: DualBackfill, Scope: ScopeAll},
				} {
					y.cfg.Queues, y.cfg.Scope = c.Queues, c.Scope
					if got, _ := performLogged(y, nil, true); !slices.Equal(got, want) {
						t.Fatalf("seed %d: %s differs from a single queue", seed, y.cfg.Policy())
					}
				}
			}
		})
	}
	t.Run("kth-5k", func(t *testing.T) {
		w := readLoad(t, "kth-5k", 100)
		var want []job.Time
		for _, q := range []Queues{Single, DualStrict, DualBackfill} {
			r := &replay{s: mustNew(t, Config{Processors: 100, Backfill: EASY, Queues: q, Scope: ScopeAll}), w: w}
			r.starts = make([]job.Time, len(w.copies))
			if err := r.all(); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r.starts
			}
			if !slices.Equal(r.starts, want) {
				t.Errorf("%v differs from a single queue", q)
			}
		}
	})
}

// Spec 001 section 5 check 4: at no instant more processors are in use than
// there are, every job runs exactly once, and the processor-seconds are those
// of the workload. Counted here from the effects alone.
func TestAllocationNeverExceedsTheSite(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		for seed := range scaled(cases / 14) {
			y := randomStory(rand.New(rand.NewPCG(seed, 4)), c, spice{})
			var want, got, used int
			ends := map[int]int{}
			runs := map[job.AttemptID]int{}
			for _, p := range y.players {
				want += int(p.copy.processors) * p.run
			}
			err := perform(y, func(g *stage) func(int, []job.AttemptID) error {
				last := 0
				return func(now int, started []job.AttemptID) error {
					for ; last < now; last++ {
						used -= ends[last+1]
					}
					for _, id := range started {
						p := g.players[g.player(id)]
						runs[id]++
						used += int(p.copy.processors)
						ends[now+p.run] += int(p.copy.processors)
						got += int(p.copy.processors) * p.run
					}
					if used > int(y.cfg.Processors) {
						return fmt.Errorf("%d of %d processors in use at %d", used, y.cfg.Processors, now)
					}
					return nil
				}
			})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, p := range y.players {
				if runs[p.copy.id] != 1 {
					t.Fatalf("seed %d: %v ran %d times", seed, p.copy.id, runs[p.copy.id])
				}
			}
			if got != want {
				t.Fatalf("seed %d: %d processor-seconds, want %d", seed, got, want)
			}
		}
	})
}

// Spec 004 section 5 check 1: one node of 1 MIPS, running until 10, 5 MI
// waiting locally and 7 MI remotely. Completion times of a new job of 3 MI.
func TestPredictionHandCase(t *testing.T) {
	for _, m := range []struct {
		queues Queues
		remote bool
		want   int
	}{
		{DualStrict, false, 18}, {DualStrict, true, 25}, {Single, false, 25}, {Single, true, 25},
	} {
		s := mustNew(t, Config{Processors: 1, Queues: m.queues})
		s.Step(0, Event{Kind: Adopt, Copy: waiting(0, 1, 10, false), At: 0})
		enqueueAll(s, 1, waiting(1, 1, 5, false), waiting(2, 1, 7, true))
		guest := waiting(3, 1, 3, m.remote)
		p, err := s.WhatIf(2, guest.copy())
		if err != nil || !p.Exact || p.Start.Add(secs(3)) != job.Time(m.want)*second {
			t.Errorf("%v remote %v: start %d exact %v, %v; want completion at %d s", m.queues, m.remote, p.Start, p.Exact, err, m.want)
		}
	}
}

// frozen returns the state of a random story at a random instant, after its
// pass, and when that is.
func frozen(t *testing.T, seed uint64, c Config) (*Scheduler, int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	y := randomStory(rng, c, spice{claims: true, withdrawals: true, disorder: true, memory: true})
	stop, at := rng.IntN(40), 0
	var s *Scheduler
	err := perform(y, func(g *stage) func(int, []job.AttemptID) error {
		return func(now int, _ []job.AttemptID) error {
			if s == nil || now <= stop {
				s, at = g.s.Clone(), now
			}
			return nil
		}
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return s, at
}

// playOut runs s without arrivals, every copy for its estimate, and returns
// all starts. What is past its estimate already ends in a second.
func playOut(t *testing.T, s *Scheduler, now job.Time) map[job.AttemptID]job.Time {
	t.Helper()
	starts, ends := map[job.AttemptID]job.Time{}, map[job.AttemptID]job.Time{}
	for c := range s.Running {
		if ends[c.Copy.ID] = c.End; c.End <= now {
			ends[c.Copy.ID] = now.Add(time.Second)
		}
	}
	for {
		for _, e := range slices.Clone(s.Step(now, Event{Kind: Pass})) {
			starts[e], ends[e] = now, now.Add(s.known(e).walltime)
			s.Step(now, Event{Kind: Confirm, ID: e})
		}
		next := s.NextWake(now)
		for _, end := range ends {
			next = min(next, end)
		}
		if next == job.Never {
			return starts
		}
		if next <= now {
			t.Fatalf("time stands still at %d", now)
		}
		now = next
		for id, end := range ends {
			if end == now {
				s.Step(now, Event{Kind: Finish, ID: id})
				delete(ends, id)
			}
		}
	}
}

// sight is all that can be seen of s.
func sight(s *Scheduler, now job.Time) string {
	text := fmt.Sprint(s.Load(now), s.NextWake(now), s.Check())
	for c := range s.Queued {
		text += fmt.Sprint(c)
	}
	for c := range s.Running {
		text += fmt.Sprint(c)
	}
	return text
}

// Spec 004 section 5 check 2: on a frozen state without later arrivals the
// predicted start of every queued copy, and of a copy that comes now, is the
// simulated one. Under every discipline.
func TestPredictionIsTheSimulation(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		n, predictions := scaled(cases/14), 0
		for seed := range n {
			s, at := frozen(t, seed, c)
			now := job.Time(at) * second
			before := sight(s, now)
			want := playOut(t, s.Clone(), now)
			for c := range s.Clone().Queued {
				p, err := s.WhatIf(now, job.Copy{ID: c.Copy.ID})
				if predictions++; err != nil || !p.Exact || p.Start != want[c.Copy.ID] {
					t.Fatalf("seed %d at %d: %v starts at %d, predicted %+v %v", seed, at, c.Copy.ID, want[c.Copy.ID], p, err)
				}
			}
			guest := entry{
				id: attempt("z", 99), processors: 1 + int32(seed)%s.cfg.Processors,
				walltime: secs(1 + int(seed)%9), arrival: now, remote: seed%2 == 0,
			}
			p, err := s.WhatIf(now, guest.copy())
			after := s.Clone()
			after.Step(now, Event{Kind: Enqueue, Copy: guest})
			if start := playOut(t, after, now)[guest.id]; err != nil || !p.Exact || p.Start != start {
				t.Fatalf("seed %d at %d: guest %+v starts at %d, predicted %+v %v", seed, at, guest, start, p, err)
			}
			if got := sight(s, now); got != before {
				t.Fatalf("seed %d: predictions changed the site from\n%s\nto\n%s", seed, before, got)
			}
		}
		if predictions < int(n) {
			t.Errorf("only %d predictions", predictions)
		}
	})
}

// Spec 004 section 5 check 3: over whole runs, no remote copy starts while a
// local job waits.
func TestDualStrictKeepsRemoteCopiesBack(t *testing.T) {
	for b := range Backfill(len(backfillNames)) {
		t.Run(b.String(), func(t *testing.T) {
			stories(t, cases/10, Config{Backfill: b, Queues: DualStrict}, everything, func(g *stage) func(int, []job.AttemptID) error {
				return func(now int, started []job.AttemptID) error {
					for _, id := range started {
						if !g.players[g.player(id)].copy.remote {
							continue
						}
						for c := range g.s.Queued {
							if !c.Copy.Remote && c.NotBefore <= job.Time(now)*second {
								return fmt.Errorf("%v starts at %d although %v waits", id, now, c.Copy.ID)
							}
						}
					}
					return nil
				}
			})
		})
	}
}
