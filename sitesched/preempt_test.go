package sitesched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// house is a site at which local jobs do not see guests, beside one that has never heard of
// guests. Both get the same local events at the same instants.
type house struct {
	t           *testing.T
	site, alone *Scheduler
	rng         *rand.Rand
	now         job.Time
	grace       time.Duration // how long guests take to leave
	homes       []resident
	guests      []resident
	agenda      []errand
	began       map[job.AttemptID]job.Time // local ones at the site
	should      map[job.AttemptID]job.Time // and alone
	evicted     int
	spice       bool   // postponements, withdrawals, copies that outlive their limits
	reference   bool   // guests are held against the slow rule
	seen        func() // if set, called after each instant
}

type resident struct {
	c   job.Copy
	run time.Duration
}

// errand is something that happens at an instant: an end, then another thing, then an arrival.
type errand struct {
	at    job.Time
	order int
	home  bool // it is about a local job
	do    func()
}

func (h *house) plan(at job.Time, order int, do func()) {
	h.agenda = append(h.agenda, errand{at, order, false, do})
}

func (h *house) planHome(at job.Time, order int, do func()) {
	h.agenda = append(h.agenda, errand{at, order, true, do})
}

func newHouse(t *testing.T, c Config, seed uint64) *house {
	t.Helper()
	c.Queues = DualPreempt
	site := mustNew(t, c)
	c.Queues, c.Scope, c.KeepFree, c.Patience, c.StartMargin = Single, ScopeHead, 0, 0, 0
	return &house{
		t: t, site: site, alone: mustNew(t, c), rng: rand.New(rand.NewPCG(seed, 15)),
		began: map[job.AttemptID]job.Time{}, should: map[job.AttemptID]job.Time{},
	}
}

// populate makes random jobs.
func (h *house) populate(homes, guests int) {
	p := int(h.site.cfg.Processors)
	draw := func(origin job.SiteID, n int) resident {
		limit := time.Duration(1+h.rng.IntN(60)) * time.Second
		run := time.Duration(1+h.rng.IntN(int(limit/time.Second))) * time.Second
		if h.spice && h.rng.IntN(12) == 0 {
			run = limit + 3*time.Second
		}
		c := job.Copy{ID: attempt(origin, n), Arrival: job.Time(h.rng.IntN(400)) * second, Remote: origin != "a", Level: uint8(h.rng.IntN(3))}
		c.Request.Processors, c.Request.Walltime = int32(1+h.rng.IntN(p)), limit
		return resident{c, run}
	}
	for n := range homes {
		h.homes = append(h.homes, draw("a", n))
	}
	for n := range guests {
		r := draw("b", n)
		if h.spice { // so that guests come and go at instants at which local jobs do not
			r.c.Arrival, r.run = r.c.Arrival.Add(300*time.Millisecond), r.run-400*time.Millisecond
		}
		h.guests = append(h.guests, r)
	}
}

// play lives through it all.
func (h *house) play() {
	for _, r := range h.homes {
		h.planHome(r.c.Arrival, 2, func() {
			h.site.Enqueue(h.now, r.c)
			h.alone.Enqueue(h.now, r.c)
		})
		if h.spice && h.rng.IntN(8) == 0 {
			h.planHome(r.c.Arrival.Add(time.Duration(1+h.rng.IntN(30))*time.Second), 1, func() {
				if _, started := h.began[r.c.ID]; !started {
					h.site.Withdraw(h.now, r.c.ID)
					h.alone.Withdraw(h.now, r.c.ID)
				}
			})
		}
	}
	for _, r := range h.guests {
		if h.site.RefuseGuest(&r.c.Request) == job.NoReason {
			h.plan(r.c.Arrival, 2, func() { h.site.Enqueue(h.now, r.c) })
		}
	}
	for {
		next := min(h.site.NextWake(h.now), h.alone.NextWake(h.now))
		for _, e := range h.agenda {
			next = min(next, e.at)
		}
		if next == job.Never {
			break
		}
		h.now = max(next, h.now)
		h.instant()
		if h.t.Failed() {
			return
		}
	}
	for _, r := range append(slices.Clone(h.homes), h.guests...) {
		if h.site.Has(r.c.ID) {
			h.t.Errorf("%v is still there at the end", r.c.ID)
		}
	}
}

// instant lets happen what is due, makes the passes, and looks.
func (h *house) instant() {
	var due []errand
	h.agenda = slices.DeleteFunc(h.agenda, func(e errand) bool {
		if e.at == h.now {
			due = append(due, e)
		}
		return e.at == h.now
	})
	slices.SortStableFunc(due, func(a, b errand) int { return a.order - b.order })
	home := h.alone.NextWake(h.now) <= h.now
	for _, e := range due {
		e.do()
		home = home || e.home
	}
	for _, id := range h.passAlone(home) {
		h.alone.Confirm(h.now, id, h.now)
		h.should[id] = h.now
		run := h.find(h.homes, id).run
		h.planHome(h.now.Add(run), 0, func() { h.alone.Finish(h.now, id) })
	}
	for again := true; again && !h.t.Failed(); {
		again = h.pass()
	}
	if h.seen != nil {
		h.seen()
	}
}

// passAlone makes a pass of the site without guests, but only if something has happened there.
func (h *house) passAlone(due bool) []job.AttemptID {
	if !due {
		return nil
	}
	return slices.Clone(h.alone.Pass(h.now))
}

func (h *house) find(list []resident, id job.AttemptID) *resident {
	i := slices.IndexFunc(list, func(r resident) bool { return r.c.ID == id })
	if i < 0 {
		h.t.Fatalf("%v starts, which nobody knows", id)
	}
	return &list[i]
}

// pass makes one pass of the site, and says whether another is due at once.
func (h *house) pass() (again bool) {
	var want []job.AttemptID
	before := h.site.Clone()
	started := slices.Clone(h.site.Pass(h.now))
	told := slices.Clone(h.site.Evicted())
	h.look(told)
	if h.reference {
		want = h.guestsThatFit(before)
	}
	var guests []job.AttemptID
	for _, id := range started {
		if h.site.Confirm(h.now, id, h.now); id.Job.Origin == "a" {
			h.began[id] = h.now
			run := h.find(h.homes, id).run
			h.plan(h.now.Add(run), 0, func() { h.site.Finish(h.now, id) })
			continue
		}
		guests = append(guests, id)
		run := h.find(h.guests, id).run
		h.plan(h.now.Add(run), 0, func() { h.site.Finish(h.now, id) }) // no-op if it has left by then
	}
	if h.reference && !slices.Equal(guests, want) {
		h.t.Errorf("at %v the guests %v start, the slow rule says %v", h.now, guests, want)
	}
	for _, id := range told {
		h.evicted++
		h.plan(h.now.Add(h.grace), 0, func() { h.leave(id) })
	}
	if h.grace == 0 && len(told) > 0 {
		for _, id := range told {
			h.leave(id)
		}
		return true
	}
	return false
}

// leave lets a guest that was told to go be gone, and come again later as another attempt.
func (h *house) leave(id job.AttemptID) {
	if !h.site.Has(id) {
		return
	}
	h.site.Finish(h.now, id)
	r := *h.find(h.guests, id)
	if r.c.ID.Number++; r.c.ID.Number < 6 {
		r.c.Arrival = h.now
		h.guests = append(h.guests, r)
		h.site.Enqueue(h.now, r.c)
	}
}

// look checks the site after a pass.
func (h *house) look(told []job.AttemptID) {
	if err := h.site.Check(); err != nil {
		h.t.Errorf("at %v: %v", h.now, err)
	}
	used, staying, waiting := int64(0), int64(0), int64(0)
	for r := range h.site.Running {
		charge := int64(r.Copy.Request.Processors)
		switch {
		case r.Waits:
			waiting += charge
			if h.site.Started(r.Copy.ID) {
				h.t.Errorf("at %v: %v waits for guests to leave and has started", h.now, r.Copy.ID)
			}
			continue
		case !r.Leaving:
			staying += charge
		}
		used += charge
	}
	p := int64(h.site.cfg.Processors)
	if used > p || staying+waiting > p {
		h.t.Errorf("at %v: %d processors of %d in use, with those that wait and without those that leave %d", h.now, used, p, staying+waiting)
	}
	if blocked := h.site.Blocked(h.now, nil); h.grace == 0 && len(told) == 0 && len(blocked) > 0 {
		h.t.Errorf("at %v: %v wait, and nobody was told to leave", h.now, blocked)
	}
}

// guestsThatFit is the slow rule: copies of other sites in queue order, each if second by second
// there is room for it beside local jobs that run, the plan of those that wait, as far as the scope
// protects it, and other guests.
func (h *house) guestsThatFit(before *Scheduler) (list []job.AttemptID) {
	const horizon = 1500
	cfg := &h.site.cfg
	free := make([]int, horizon)
	for i := range free {
		free[i] = int(cfg.Processors)
	}
	take := func(from, to job.Time, n int32) {
		for i := max(int((from-h.now)/second), 0); i < min(int((to-h.now)/second), horizon); i++ {
			free[i] -= int(n)
		}
	}
	for r := range h.site.Running {
		if started := before.Has(r.Copy.ID) && before.Started(r.Copy.ID); started || !r.Copy.Remote {
			take(h.now, max(r.End, h.now+second), r.Copy.Request.Processors)
		}
	}
	most := 1
	if cfg.Backfill.plans() || cfg.Scope == ScopeAll {
		most = 1 << 20
	}
	waiting := map[job.AttemptID]job.Copy{}
	for q := range h.site.Queued {
		waiting[q.Copy.ID] = q.Copy
	}
	for id, at := range h.site.Starts(h.now, most) {
		if c := waiting[id]; !c.Remote {
			take(at, at.Add(c.Request.Walltime), c.Request.Processors)
		}
	}
	for q := range before.Queued {
		c := q.Copy
		if !c.Remote || q.NotBefore > h.now {
			continue
		}
		fits := true
		for i := range int(c.Request.Walltime / time.Second) {
			fits = fits && free[i] >= int(c.Request.Processors)
		}
		if fits {
			take(h.now, h.now.Add(c.Request.Walltime), c.Request.Processors)
			list = append(list, c.ID)
		}
	}
	return list
}

// What is predicted for a copy of another site is what happens if all that run use their limits, and the quick
// estimate is never before now nor without room.
func TestPredictionsOfGuests(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		asked, late := 0, 0
		for seed := range scaled(60) {
			h := newHouse(t, c, seed)
			h.grace = time.Duration(seed%3) * 2 * time.Second
			h.populate(20, 30)
			h.seen = func() {
				for q := range h.site.Clone().Queued {
					if !q.Copy.Remote {
						continue
					}
					w, err := h.site.WhatIf(h.now, q.Copy)
					want := playOn(h.site.Clone(), h.now, q.Copy.ID)
					if err != nil || w.Start != want || !w.Exact {
						t.Fatalf("seed %d, at %v: %v is said to start at %+v (%v), and starts at %v", seed, h.now, q.Copy.ID, w, err, want)
					}
					if asked++; want > h.now {
						late++
					}
					return
				}
			}
			h.play()
		}
		if late < 50 {
			t.Errorf("%d predictions, %d of a start that is not at once: too few to say anything", asked, late)
		}
	})
}

// A scenario in which everybody runs for the limit is the prediction, also where guests that run have to leave.
func TestScenariosOfGuests(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		c.Scope = ScopeHead // which is what scenarios play
		var p Player
		late := 0
		for seed := range scaled(40) {
			h := newHouse(t, c, seed)
			h.grace = time.Duration(seed%3) * 2 * time.Second
			h.populate(20, 30)
			h.seen = func() {
				for q := range h.site.Clone().Queued {
					w, err := h.site.WhatIf(h.now, q.Copy)
					if err != nil {
						t.Fatal(err)
					}
					if err := h.site.Prepare(h.now, &q.Copy, 0, &p); err != nil {
						t.Fatal(err)
					}
					if at, ok := p.Play(limits{}); at != w.Start || !ok {
						t.Fatalf("seed %d, at %v: %v starts at %v in a scenario, and is said to start at %v", seed, h.now, q.Copy.ID, at, w.Start)
					}
					late += btoi(w.Start > h.now)
				}
			}
			h.play()
		}
		if late < 50 {
			t.Errorf("%d predictions of a start that is not at once: too few to say anything", late)
		}
	})
}

// What happens to guests is no reason to look at local jobs again: where estimates are broken, that may start one at
// an instant at which nothing happens on a site without guests.
func TestGuestsAreNoReasonForAPass(t *testing.T) {
	t.Parallel()
	s := mustNew(t, Config{Processors: 10, Backfill: EASY, Queues: DualPreempt})
	half := job.Time(time.Second / 2)
	mine := func(n int, procs int32, limit time.Duration) job.Copy {
		return job.Copy{ID: attempt("a", n), Arrival: job.Time(n), Request: job.Request{Processors: procs, Walltime: limit}}
	}
	s.Adopt(0, mine(1, 5, 10*time.Second), 0)
	s.Enqueue(0, mine(2, 10, time.Minute))
	s.Enqueue(19*half, mine(3, 5, time.Second)) // would be half a second in the way of the second one
	if started := s.Pass(19 * half); len(started) > 0 {
		t.Fatalf("%v starts", started)
	}
	// The first one has outlived its limit, and is expected to end in a second from whenever one looks.
	s.Enqueue(21*half, guest(1, 2, 0))
	if started := s.Pass(21 * half); len(started) > 0 {
		t.Errorf("%v starts when a guest comes", started)
	}
	s.Enqueue(22*half, mine(4, 10, time.Minute))
	if started := s.Pass(22 * half); len(started) != 1 || started[0] != attempt("a", 3) {
		t.Errorf("%v starts when a local job comes", started)
	}
}

// playOn plays a site on until a copy starts, with guests that leave at once and are gone, and
// everybody else there for their limits.
func playOn(s *Scheduler, now job.Time, id job.AttemptID) job.Time {
	for r := range s.Clone().Running {
		if r.Leaving {
			s.Finish(now, r.Copy.ID)
		}
	}
	for {
		for again := true; again; {
			for _, x := range slices.Clone(s.Pass(now)) {
				if x == id {
					return now
				}
				s.Confirm(now, x, now)
			}
			again = len(s.Evicted()) > 0
			for _, x := range slices.Clone(s.Evicted()) {
				s.Finish(now, x)
			}
		}
		next := s.NextWake(now)
		for r := range s.Running {
			next = min(next, max(r.End, now+1))
		}
		if next == job.Never {
			return next
		}
		now = next
		for r := range s.Clone().Running {
			if r.End <= now {
				s.Finish(now, r.Copy.ID)
			}
		}
	}
}

// The quick estimate for a copy of another site knows of local jobs that run and wait, and of guests.
func TestEarliestStartOfGuests(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		s := mustNew(t, c)
		s.Adopt(0, job.Copy{ID: attempt("a", 1), Request: job.Request{Processors: 5, Walltime: 100 * time.Second}}, 0)
		s.Adopt(0, guest(1, 3, 0), 0)
		s.Pass(0)
		wide := guest(2, 6, 0)
		for procs, want := range map[int32]job.Time{2: 0, 3: 100 * second, 7: 100 * second, 8: job.Time(time.Hour)} {
			wide.Request.Processors = procs
			if at, ok := s.EarliestStart(0, wide); at != want || !ok {
				t.Errorf("%d processors are free at %v, want %v", procs, at, want)
			}
		}
		mine := job.Copy{ID: attempt("a", 2), Request: job.Request{Processors: 5, Walltime: time.Minute}}
		if at, ok := s.EarliestStart(0, mine); at != 0 || !ok {
			t.Errorf("a local job that needs processors of guests: %v", at)
		}
	})
}

// everyPreempting calls f for each discipline with guests that local jobs do not see.
func everyPreempting(t *testing.T, f func(t *testing.T, c Config)) {
	t.Helper()
	for b := range Backfill(len(backfillNames)) {
		for scope := range Scope(len(scopeNames)) {
			if scope == ScopeAll && b.plans() {
				continue // means nothing there
			}
			c := Config{Processors: 10, Backfill: b, Queues: DualPreempt, Scope: scope}
			t.Run(c.Policy(), func(t *testing.T) {
				t.Parallel()
				f(t, c)
			})
		}
	}
}

// Local jobs start when they would on a site without guests, start for start, whatever guests
// there are; with guests that take a while to leave, no later than that while.
func TestHomeDoesNotSeeGuests(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		evicted := 0
		for seed := range scaled(150) {
			c.Patience, c.KeepFree, c.GuaranteeDepth = []time.Duration{0, 5 * time.Second, time.Minute}[seed%3], int32(seed%2), int32(seed%4)*2
			h := newHouse(t, c, seed)
			h.spice = true
			h.populate(30, 40)
			h.play()
			evicted += h.evicted
			for _, r := range h.homes {
				at, started := h.began[r.c.ID]
				if want, should := h.should[r.c.ID]; at != want || started != should {
					t.Fatalf("seed %d: %v starts at %v (%v), alone at %v (%v)", seed, r.c.ID, at, started, want, should)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if evicted < 100 {
			t.Errorf("%d guests were evicted, too few to say anything", evicted)
		}
	})
}

// Which guests start is what a slow rule says, second by second.
func TestGuestsFitAroundHome(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		for seed := range scaled(60) {
			h := newHouse(t, c, seed)
			h.reference = true
			h.grace = time.Duration(seed%3) * 2 * time.Second
			h.populate(30, 40)
			h.play()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}

// With guests that need a while, one local job that comes to a full site starts when they have left.
func TestHomeWaitsForTheGrace(t *testing.T) {
	t.Parallel()
	everyPreempting(t, func(t *testing.T, c Config) {
		s := mustNew(t, c)
		for n := range 10 {
			g := guest(n, 1, 0)
			s.Enqueue(0, g)
		}
		for _, id := range slices.Clone(s.Pass(0)) {
			s.Confirm(0, id, 0)
		}
		mine := job.Copy{ID: attempt("a", 1), Arrival: 10 * second, Request: job.Request{Processors: 4, Walltime: time.Minute}}
		s.Enqueue(10*second, mine)
		if started := s.Pass(10 * second); len(started) > 0 || len(s.Evicted()) != 4 {
			t.Fatalf("%v starts on a full site, %v is told to leave", started, s.Evicted())
		}
		told := slices.Clone(s.Evicted())
		if b := s.Blocked(10*second, nil); len(b) != 1 || b[0] != mine.ID {
			t.Errorf("blocked are %v", b)
		}
		for i, id := range told {
			s.Finish(11*second, id)
			started := s.Pass(11 * second)
			if len(s.Evicted()) > 0 {
				t.Errorf("%v is told to leave, too", s.Evicted())
			}
			if want := i == len(told)-1; want != (len(started) == 1) {
				t.Errorf("after %d of %d guests have left, %v starts", i+1, len(told), started)
			}
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
}

func guest(n int, procs int32, level uint8) job.Copy {
	return job.Copy{ID: attempt("b", n), Remote: true, Level: level, Request: job.Request{Processors: procs, Walltime: time.Hour}}
}

// Who leaves: lower levels first, then who loses least, then the youngest; nobody in vain.
func TestWhoLeaves(t *testing.T) {
	t.Parallel()
	type tenant struct {
		procs int32
		level uint8
		since int // seconds
	}
	for name, c := range map[string]struct {
		tenants []tenant
		width   int32
		want    []int
	}{
		"least work":                  {[]tenant{{5, 0, 10}, {5, 0, 20}}, 3, []int{1}},
		"work is width times time":    {[]tenant{{8, 0, 50}, {2, 0, 10}}, 2, []int{1}},
		"lower levels first":          {[]tenant{{5, 1, 80}, {5, 3, 10}}, 3, []int{1}},
		"those without a level last":  {[]tenant{{5, 0, 80}, {5, 1, 10}}, 3, []int{1}},
		"of equal ones the youngest":  {[]tenant{{2, 0, 40}, {4, 0, 70}}, 6, []int{1}},
		"then by name":                {[]tenant{{4, 0, 10}, {4, 0, 10}}, 3, []int{0}},
		"as many as it takes":         {[]tenant{{4, 0, 10}, {3, 0, 30}, {3, 0, 50}}, 5, []int{2, 1}},
		"nobody in vain":              {[]tenant{{9, 0, 10}, {1, 0, 90}}, 5, []int{0}},
		"nobody where there is room":  {[]tenant{{4, 0, 10}, {1, 0, 90}}, 5, nil},
		"all where all is needed":     {[]tenant{{4, 0, 10}, {6, 0, 90}}, 10, []int{0, 1}},
		"the last of them is not one": {[]tenant{{2, 0, 70}, {3, 0, 60}, {5, 0, 5}}, 3, []int{1}},
	} {
		s := mustNew(t, Config{Processors: 10, Backfill: EASY, Queues: DualPreempt})
		for n, x := range c.tenants {
			s.Adopt(job.Time(x.since)*second, guest(n, x.procs, x.level), job.Time(x.since)*second)
		}
		s.Enqueue(100*second, job.Copy{ID: attempt("a", 1), Arrival: 100 * second, Request: job.Request{Processors: c.width, Walltime: time.Hour}})
		s.Pass(100 * second)
		var got []int
		for _, id := range s.Evicted() {
			got = append(got, int(id.Job.Seq)) //nolint:gosec // A handful.
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(c.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d leave, want %d", name, got, want)
		}
		if s.Pass(101 * second); len(s.Evicted()) > 0 {
			t.Errorf("%s: %v is told a second time", name, s.Evicted())
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A local job that has its turn and is withdrawn, put off or kept by a drain before guests have left
// leaves nothing behind, and a site that comes back tells guests anew.
func TestTurnsThatAreLost(t *testing.T) {
	t.Parallel()
	mine := job.Copy{ID: attempt("a", 1), Arrival: second, Request: job.Request{Processors: 6, Walltime: time.Minute}}
	full := func() *Scheduler {
		s := mustNew(t, Config{Processors: 10, Backfill: EASY, Queues: DualPreempt})
		s.Adopt(0, guest(1, 10, 0), 0)
		s.Enqueue(second, mine)
		if started := s.Pass(second); len(started) > 0 || len(s.Evicted()) != 1 {
			t.Fatalf("%v starts, %v leave", started, s.Evicted())
		}
		return s
	}
	ok := func(s *Scheduler, what string) {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := full()
	s.Withdraw(2*second, mine.ID)
	ok(s, "withdrawn")
	s.Finish(3*second, attempt("b", 1))
	if started := s.Pass(3 * second); len(started) > 0 || s.Has(mine.ID) {
		t.Errorf("a job that was withdrawn starts: %v", started)
	}
	s = full()
	s.Confirm(2*second, mine.ID, 0) // nobody was told to start it
	s.Postpone(2*second, mine.ID, 5*second)
	ok(s, "put off")
	s.Finish(3*second, attempt("b", 1))
	if started := s.Pass(3 * second); len(started) > 0 {
		t.Errorf("a job that was put off starts early: %v", started)
	}
	if started := s.Pass(5 * second); len(started) != 1 {
		t.Errorf("a job that was put off does not start: %v", started)
	}
	s = full()
	s.Drain(2*second, true)
	s.Finish(3*second, attempt("b", 1))
	if started := s.Pass(3 * second); len(started) > 0 {
		t.Errorf("%v starts while the site drains", started)
	}
	s.Drain(4*second, false)
	if started := s.Pass(4 * second); len(started) != 1 {
		t.Errorf("after the drain %v starts", started)
	}
	ok(s, "drained")
	s = full()
	s.Finish(2*second, mine.ID) // the fact that an attempt has ended is always taken
	ok(s, "ended")
	s = full()
	if w, err := s.WhatIf(2*second, guest(2, 2, 0)); err != nil || w.Start != 2*second {
		t.Errorf("a guest beside a job that waits for others to leave: %+v, %v", w, err)
	}
	if w, err := s.WhatIf(2*second, guest(2, 8, 0)); err != nil || w.Start != 62*second {
		t.Errorf("a wide guest beside a job that waits for others to leave: %+v, %v", w, err)
	}
	if l := s.Load(2 * second); l.Free != 0 || l.Running != 2 || s.Overfull(2*second) {
		t.Errorf("%+v, overfull: %v", l, s.Overfull(2*second))
	}
	ok(s, "asked")
}

// The logs: every local job starts in the second of the oracle schedule, which knows of no guest,
// with the other log as guests.
func TestOracleSchedulesWithGuests(t *testing.T) {
	t.Parallel()
	for _, log := range []struct {
		home, guests string
		processors   int32
		policies     []string
	}{
		{"ctc-5k-p430", "kth-5k", 430, []string{"easy", "fcfs", "cons-compress"}},
		{"kth-5k", "ctc-5k-p430", 100, []string{"easy", "fcfs", "cons-compress", "cons-replan"}},
		{"ctc", "kth-5k", 338, []string{"easy"}},
	} {
		for _, policy := range log.policies {
			t.Run(fmt.Sprintf("%s at %s/%s", log.guests, log.home, policy), func(t *testing.T) {
				t.Parallel()
				if testing.Short() && log.home == "ctc" {
					t.Skip("left out with -short: the whole log takes seconds")
				}
				home := readLoad(t, log.home, log.processors)
				want := readStarts(t, log.home+"."+policy)
				y := &sublet{s: mustNew(t, Config{Processors: log.processors, Backfill: disciplines[policy], Queues: DualPreempt}), home: home}
				y.guests = readLoad(t, log.guests, 430)
				y.all()
				wrong := 0
				for i := range want {
					if got := int64(y.starts[i] / second); got != want[i] {
						if wrong++; wrong <= 5 {
							t.Errorf("job %d starts at %d, want %d", i, got, want[i])
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%d of %d starts are wrong", wrong, len(want))
				}
				t.Logf("%d local starts; %d guests ran, %d evictions, %d gave up", len(want), y.ran, y.evictions, y.gaveUp)
				if y.ran < 1000 || y.evictions < 10 {
					t.Errorf("%d guests ran, %d evictions: too few to say anything", y.ran, y.evictions)
				}
			})
		}
	}
}

var disciplines = map[string]Backfill{
	"easy": EASY, "fcfs": NoBackfill, "cons-compress": Conservative, "cons-replan": ConservativeReplan,
}

// sublet replays a log of local jobs together with one of guests that go on where they were.
type sublet struct {
	s                      *Scheduler
	home, guests           *load
	starts                 []job.Time
	ends                   endHeap // slots: local jobs, then guests
	since                  []job.Time
	left                   []time.Duration
	ran, evictions, gaveUp int
	tries                  []uint32
}

func (y *sublet) all() {
	n := len(y.home.copies)
	y.starts = make([]job.Time, n)
	y.since, y.left, y.tries = make([]job.Time, len(y.guests.copies)), slices.Clone(y.guests.run), make([]uint32, len(y.guests.copies))
	i, k := 0, 0
	for last := job.Time(0); ; {
		now := min(y.s.NextWake(last), y.ends.first())
		if i < n {
			now = min(now, y.home.copies[i].arrival)
		} else if k >= len(y.guests.copies) || y.guests.copies[k].arrival > last.Add(time.Hour) {
			k = len(y.guests.copies) // those that come later are in nobody's way
		}
		if k < len(y.guests.copies) {
			now = min(now, y.guests.copies[k].arrival)
		}
		if now == job.Never {
			return
		}
		last = now
		for y.ends.first() <= now {
			y.end(now, int(y.ends.pop().slot))
		}
		for ; i < n && y.home.copies[i].arrival == now; i++ {
			c := y.home.copies[i]
			y.s.Enqueue(now, c.copy())
		}
		for ; k < len(y.guests.copies) && y.guests.copies[k].arrival == now; k++ {
			y.come(now, k)
		}
		for again := true; again; {
			again = y.pass(now)
		}
	}
}

func (y *sublet) name(k int) job.AttemptID {
	id := attempt("b", k)
	id.Number += y.tries[k]
	return id
}

func (y *sublet) come(now job.Time, k int) {
	c := y.guests.copies[k]
	c.id, c.arrival, c.remote = y.name(k), now, true
	y.s.Enqueue(now, c.copy())
}

func (y *sublet) end(now job.Time, slot int) {
	if n := len(y.home.copies); slot < n {
		y.s.Finish(now, y.home.copies[slot].id)
	} else if k := slot - n; y.since[k] > 0 && y.since[k].Add(y.left[k]) == now {
		y.s.Finish(now, y.name(k))
		y.ran++
	}
}

func (y *sublet) pass(now job.Time) (again bool) {
	for _, id := range slices.Clone(y.s.Pass(now)) {
		y.s.Confirm(now, id, now)
		k := int(id.Job.Seq) //nolint:gosec // An index.
		if id.Job.Origin == "a" {
			y.starts[k] = now
			y.ends.push(realEnd{now.Add(y.home.run[k]), int32(k)}) //nolint:gosec // See above.
			continue
		}
		y.since[k] = now
		y.ends.push(realEnd{now.Add(y.left[k]), int32(len(y.home.copies) + k)}) //nolint:gosec // See above.
	}
	for _, id := range slices.Clone(y.s.Evicted()) {
		k := int(id.Job.Seq) //nolint:gosec // An index.
		y.s.Finish(now, id)
		y.left[k] = max(y.left[k]-now.Sub(y.since[k]), time.Second)
		y.since[k] = 0
		y.evictions++
		if y.tries[k]++; y.tries[k] < 64 {
			y.come(now, k)
		} else {
			y.gaveUp++
		}
		again = true
	}
	return again
}
