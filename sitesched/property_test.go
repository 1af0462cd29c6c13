package sitesched

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

// act is one event of a running story.
type act struct {
	at    int
	order int // completions, cancellations, claims, arrivals
	n     int // player
	ev    Event
}

// stage runs one story on both schedulers.
type stage struct {
	story
	s      *Scheduler
	ref    *reference
	agenda []act
	claims []int
	// log is the story as it goes, if asked for.
	log     []string
	logging bool
	// observe, if set, is called after each pass with what it started.
	observe func(now int, started []job.AttemptID) error
	// prior is the state before that pass, if asked for.
	prior      *Scheduler
	wantsPrior bool
}

func newStage(y story) (*stage, error) {
	s, err := New(y.cfg)
	if err != nil {
		return nil, err
	}
	g := &stage{story: y, s: s, ref: &reference{cfg: y.cfg, aside: make(map[job.SiteID]bool)}, claims: make([]int, len(y.players))}
	for n, p := range y.players {
		if p.adopt >= 0 {
			g.plan(act{p.comes, 3, n, Event{Kind: Adopt, Copy: p.copy, At: job.Time(p.adopt) * second}})
			g.plan(act{p.comes + 1 + max(0, p.adopt+p.run-p.comes), 0, n, Event{Kind: Finish, ID: p.copy.id}})
			continue
		}
		g.plan(act{p.comes, 3, n, Event{Kind: Enqueue, Copy: p.copy}})
		if p.withdraw >= 0 {
			g.plan(act{p.withdraw, 1, n, Event{Kind: Withdraw, ID: p.copy.id}})
		}
	}
	for i, at := range y.drains {
		g.plan(act{at, 4, 0, Event{Kind: []EventKind{Drain, Resume}[i%2]}})
	}
	for _, a := range y.absences {
		of := job.AttemptID{Job: job.ID{Origin: a.origin}}
		g.plan(act{a.from, 4, 0, Event{Kind: Aside, ID: of}})
		g.plan(act{(a.from + a.to) / 2, 5, 0, Event{Kind: Try, ID: a.probe}})
		g.plan(act{a.to, 6, 0, Event{Kind: Back, ID: of}})
	}
	return g, nil
}

func (g *stage) plan(a act) {
	g.agenda = append(g.agenda, a)
	slices.SortStableFunc(g.agenda, func(a, b act) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
}

func (g *stage) player(id job.AttemptID) int {
	return slices.IndexFunc(g.players, func(p player) bool { return p.copy.id == id })
}

// feed gives one event to both schedulers and compares what they start.
func (g *stage) feed(now int, ev Event) ([]job.AttemptID, error) {
	got := append([]job.AttemptID(nil), g.s.Step(job.Time(now)*second, ev)...)
	want := g.ref.step(now, ev)
	if g.logging {
		g.log = append(g.log, fmt.Sprintf("%d %v %v%v -> %v", now, ev.Kind, ev.ID.Job.Seq, ev.Copy.id.Job.Seq, got))
	}
	if err := g.s.Check(); err != nil {
		return nil, fmt.Errorf("after %v at %d: %w", ev.Kind, now, err)
	}
	// A pass starts the same copies. Their order matters only within a queue,
	// and under the conservative disciplines not even there.
	if g.cfg.Backfill.plans() {
		slices.SortFunc(got, job.AttemptID.Compare)
		slices.SortFunc(want, job.AttemptID.Compare)
	}
	if !slices.Equal(got, want) {
		return nil, fmt.Errorf("pass at %d starts %v, want %v", now, got, want)
	}
	return got, nil
}

func (g *stage) run() error {
	for wake := ages; len(g.agenda) > 0 || wake < ages; {
		now := wake
		if len(g.agenda) > 0 {
			now = min(now, g.agenda[0].at)
		}
		if now > 20000 {
			return fmt.Errorf("the story does not end")
		}
		if err := g.instant(now); err != nil {
			return err
		}
		if err := g.compare(now); err != nil {
			return err
		}
		wake = ages
		if at := g.s.NextWake(job.Time(now) * second); at != job.Never {
			wake = max(int((at+second-1)/second)+g.tardy, now+1)
		}
	}
	for i, p := range g.players {
		if g.s.Has(p.copy.id) {
			return fmt.Errorf("player %d is still here at the end", i)
		}
	}
	return nil
}

// instant feeds all events of one instant and runs passes until nothing is
// denied on the spot.
func (g *stage) instant(now int) error {
	for again := true; again; {
		for len(g.agenda) > 0 && g.agenda[0].at == now {
			a := g.agenda[0]
			g.agenda = g.agenda[1:]
			if a.ev.Kind == Confirm && g.claim(a.ev.ID) {
				g.plan(act{now + g.players[a.n].run, 0, a.n, Event{Kind: Finish, ID: a.ev.ID}})
			}
			if _, err := g.feed(now, a.ev); err != nil {
				return err
			}
			// Questions between events and their pass must not do harm.
			if (now+a.n)%4 == 0 && g.cfg.Backfill != Conservative {
				if err := g.compareStarts(g.s, now); err != nil {
					return err
				}
			}
		}
		if g.wantsPrior {
			g.prior = g.s.Clone()
		}
		started, err := g.feed(now, Event{Kind: Pass})
		if err != nil {
			return err
		}
		if g.observe != nil {
			if err := g.observe(now, started); err != nil {
				return err
			}
		}
		again = false
		for _, id := range started {
			again = g.answer(now, g.player(id)) || again
		}
	}
	return nil
}

// claim reports whether the copy is still reserved.
func (g *stage) claim(id job.AttemptID) bool {
	j := g.ref.find(id)
	return j != nil && j.state == reserved
}

// answer plans what becomes of the claim of a started copy, and reports
// whether it is at this very instant.
func (g *stage) answer(now, n int) bool {
	p := g.players[n]
	a := answer{kind: Confirm}
	if k := g.claims[n]; k < len(p.answers) {
		a = p.answers[k]
	}
	g.claims[n]++
	ev := Event{Kind: a.kind, ID: p.copy.id}
	if a.kind == Postpone {
		ev.At = job.Time(now+a.after+a.until) * second
	}
	g.plan(act{now + a.after, 2, n, ev})
	return a.after == 0
}

// compare checks all that can be asked against the reference.
func (g *stage) compare(now int) error {
	work, procs := g.ref.load(now)
	l := g.s.Load(at(now))
	p := float64(g.cfg.Processors)
	if l.Work != float64(work)/p || l.Procs != float64(procs)/p || int(l.Free) != max(g.ref.free(), 0) {
		return fmt.Errorf("at %d load is %+v, want work %d and procs %d, free %d", now, l, work, procs, g.ref.free())
	}
	for _, j := range g.ref.jobs {
		want, has := job.Time(j.slot)*second, j.slot != noSlot && !j.remote && j.state == queued
		got, ok := g.s.Guarantee(j.id)
		if g.cfg.Backfill.plans() && (ok != has || has && got != want) {
			return fmt.Errorf("at %d the guarantee of %v is %d %v, want %d %v", now, j.id, got/second, ok, j.slot, has)
		}
	}
	if err := g.compareStarts(g.s, now); err != nil {
		return err
	}
	if now%4 != 0 || g.cfg.Backfill == Conservative && g.s.hidden > 0 {
		return nil
	}
	// The same a little later, without a pass. (Where a postponement ends
	// meanwhile, a standing plan is given up earlier than need be.)
	return g.compareStarts(g.s.Clone(), now+3)
}

func (g *stage) compareStarts(s *Scheduler, now int) error {
	for _, remote := range []bool{false, true} {
		c := entry{processors: 1 + int32(now)%g.cfg.Processors, walltime: time.Duration(1+now%7) * time.Second, remote: remote}
		if got, want := s.earliestStart(at(now), &c), g.ref.earliestStart(now, c); got != at(want) && (got != job.Never || want != noSlot) {
			return fmt.Errorf("at %d earliest start of %d × %v remote %v is %d, want %d",
				now, c.processors, c.walltime, remote, got/second, want)
		}
	}
	if g.cfg.Backfill == NoBackfill {
		if err := g.comparePredictions(s, now); err != nil {
			return err
		}
	}
	if g.cfg.Backfill == EASY {
		if err := g.compareAtOnce(s, now); err != nil {
			return err
		}
	}
	if g.cfg.Backfill.plans() {
		return nil
	}
	// The cheap prediction of a queued copy is its place in the plan.
	q := g.ref.waiting(now, false)
	slots, _ := g.ref.plan(now, q, g.ref.surface(now), 0, g.cfg.Backfill == NoBackfill)
	for i, j := range q {
		if got := s.estimate(at(now), &entry{id: j.id}, true); got != at(slots[i]) {
			return fmt.Errorf("at %d %v is estimated to start at %d, want %d", now, j.id, got/second, slots[i])
		}
	}
	return nil
}

// compareAtOnce compares what is said of starts at once under EASY with a pass of a copy
// of s, where that has nothing else to do.
func (g *stage) compareAtOnce(s *Scheduler, now int) error {
	for n := range 3 {
		c := entry{id: attempt("z", 99), processors: 1 + int32(now+n)%g.cfg.Processors, walltime: time.Duration(1+(now+3*n)%11) * time.Second, arrival: at(now)}
		t := s.Clone()
		if got := t.StartsAtOnce(at(now), c.copy()); t.sawAll(at(now)) && (!s.run.overdue(at(now)) || len(s.Clone().Pass(at(now))) == 0) {
			t = s.Clone()
			t.Enqueue(at(now), c.copy())
			if want := slices.Contains(t.Pass(at(now)), c.id); got != want {
				return fmt.Errorf("at %d %d × %v starts at once: %v, want %v", now, c.processors, c.walltime, got, want)
			}
		}
	}
	return nil
}

// comparePredictions compares what is read off the plan of a queue in which
// nothing overtakes with the scheduler played forward.
func (g *stage) comparePredictions(s *Scheduler, now int) error {
	for n, id := range []job.AttemptID{attempt("a", 0), attempt("b", now%9), attempt("z", 99)} {
		c := entry{
			id: id, processors: 1 + int32(now+n)%g.cfg.Processors, walltime: time.Duration(1+now%7) * time.Second,
			remote: (now+n)%3 > 0, arrival: at(now),
		}
		if s.draining || s.Has(id) {
			continue
		}
		want := s.simulate(at(now), &c, 0, false)
		got, err := s.WhatIf(at(now), c.copy())
		if err != nil {
			return err
		}
		if !got.Exact || got != want {
			return fmt.Errorf("at %d the start of %v, %d × %v remote %v is predicted at %d; played forward it is %d",
				now, id, c.processors, c.walltime, c.remote, got.Start/second, want.Start/second)
		}
	}
	return nil
}

// observer makes the observe function of a stage.
type observer func(g *stage) func(now int, started []job.AttemptID) error

// perform runs a story and returns what went wrong, nil if nothing.
func perform(y story, o observer) error {
	_, err := performLogged(y, o, false)
	return err
}

func performLogged(y story, o observer, logging bool) (log []string, err error) {
	g, err := newStage(y)
	if err != nil {
		return nil, err
	}
	g.logging = logging
	defer func() {
		if r := recover(); r != nil {
			log, err = g.log, fmt.Errorf("panic: %v", r)
		}
	}()
	if o != nil {
		g.observe = o(g)
	}
	err = g.run()
	return g.log, err
}

// shrink looks for a smaller story that goes wrong, too.
func shrink(y story, wrong func(story) bool) story {
	for again := true; again; {
		again = false
		try := func(z story) {
			if wrong(z) {
				y, again = z, true
			}
		}
		for i := len(y.players) - 1; i >= 0 && len(y.players) > 1; i-- {
			z := y
			z.players = slices.Delete(slices.Clone(y.players), i, i+1)
			try(z)
		}
		for i := range y.players {
			for _, simpler := range []func(*player){
				func(p *player) { p.answers = nil },
				func(p *player) { p.withdraw = -1 },
				func(p *player) { p.adopt = -1 },
				func(p *player) { p.run = int(p.copy.walltime / time.Second) },
				func(p *player) { p.copy.memoryBytes = 0 },
				func(p *player) { p.copy.elder = false },
				func(p *player) { p.copy.arrival = job.Time(p.comes) * second },
			} {
				z := y
				z.players = slices.Clone(y.players)
				simpler(&z.players[i])
				if fmt.Sprint(z) != fmt.Sprint(y) {
					try(z)
				}
			}
		}
		for _, simpler := range []func(*story){
			func(z *story) { z.tardy = 0 }, func(z *story) { z.drains = nil }, func(z *story) { z.absences = nil },
			func(z *story) { z.absences = z.absences[:min(1, len(z.absences))] }, func(z *story) { z.cfg.MemoryBytes = 0 },
		} {
			z := y
			simpler(&z)
			if fmt.Sprint(z) != fmt.Sprint(y) {
				try(z)
			}
		}
	}
	return y
}

// thorough is set where there is time for all random cases, as in .ci/run.
var thorough = os.Getenv("KITH_THOROUGH") == "1"

// scaled returns how many of n random cases there is time for.
func scaled(n int) uint64 {
	switch {
	case testing.Short() || raceEnabled:
		n /= 10
	case !thorough:
		n /= 4
	}
	return uint64(n)
}

// stories performs n random stories and reports the first that goes wrong,
// made small.
func stories(t *testing.T, n int, cfg Config, with spice, o observer) {
	t.Helper()
	for seed := range scaled(n) {
		y := randomStory(rand.New(rand.NewPCG(seed, 1)), cfg, with)
		if perform(y, o) != nil {
			y = shrink(y, func(z story) bool { return perform(z, o) != nil })
			log, err := performLogged(y, o, true)
			t.Fatalf("seed %d: %v\n%v%s", seed, err, y, strings.Join(log, "\n"))
		}
	}
}

// everyDiscipline calls f for each combination of the three switches but [DualPreempt], whose oracle is
// another one: a site without guests.
func everyDiscipline(t *testing.T, f func(t *testing.T, c Config)) {
	t.Helper()
	for b := range Backfill(len(backfillNames)) {
		for q := range DualPreempt {
			for c := range Scope(len(scopeNames)) {
				if c == ScopeAll && (q != DualBackfill || b.plans()) {
					continue // means nothing there
				}
				cfg := Config{Backfill: b, Queues: q, Scope: c}
				t.Run(cfg.Policy(), func(t *testing.T) { f(t, cfg) })
			}
		}
	}
}

// TestReference plays random stories with every complication, under every
// discipline, against the slow reference: starts, guarantees and loads agree
// at every instant, and the invariants hold after every event.
func TestReference(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) { stories(t, 1000, c, everything, nil) })
}

// TestReferenceWithin is TestReference with a guarantee depth that is soon
// reached: who waits behind it has no guarantee, who is within keeps it.
func TestReferenceWithin(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		if c.GuaranteeDepth = 1; c.depth() == math.MaxInt {
			t.Skip("this discipline promises nothing to every waiting job, so a depth of promises changes nothing")
		}
		for _, depth := range []int32{1, 2, 4} {
			c.GuaranteeDepth = depth
			with := everything
			with.crowd = 5
			stories(t, 250, c, with, nil)
			stories(t, 100, c, spice{crowd: 8}, nil)
		}
	})
}

// TestReferenceCrowded tells a few stories with queues of a hundred, so
// that gaps are closed and the profile has many chunks.
func TestReferenceCrowded(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		with := everything
		with.crowd = 160
		for seed := range 1 + scaled(10)/10 {
			y := randomStory(rand.New(rand.NewPCG(seed, 11)), c, with)
			y.cfg.Processors = max(y.cfg.Processors, 5) // else it takes forever
			if err := perform(y, nil); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	})
}

// TestReferencePlain is the same without complications but early completions,
// where the incremental passes do most of the work.
func TestReferencePlain(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) { stories(t, 1000, c, spice{}, nil) })
}

// TestReferenceKeptFree is TestReference at sites whose guests never have all processors,
// with elders and without.
func TestReferenceKeptFree(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		if c.Queues != DualBackfill {
			t.Skip("processors are kept free of guests only where guests have a queue of their own that fills gaps (dual-backfill)")
		}
		with := everything
		with.memory = false
		for _, keep := range []int32{1, 3, 10} {
			c.KeepFree = keep
			guests := func(g *stage) func(int, []job.AttemptID) error {
				return func(now int, _ []job.AttemptID) error {
					most := int64(g.cfg.Processors - g.cfg.KeepFree)
					if took := g.s.sums.guestCharge; took > most && g.s.free >= 0 && !slices.ContainsFunc(g.players, func(p player) bool { return p.adopt >= 0 }) {
						return fmt.Errorf("at %d guests have %d processors, at most %d are theirs", now, took, most)
					}
					return nil
				}
			}
			stories(t, 300, c, with, guests)
			c.Patience = 4 * time.Second
			stories(t, 300, c, spice{elders: true, crowd: 6}, guests)
			c.Patience = 0
		}
	})
}
