package hierarchy

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/level"
)

// play is a system under way.
type play struct {
	system
	rng          *rand.Rand
	now          job.Time
	events       eventHeap
	seq          uint64
	sites        []*site
	queued       [][]*task // by queue, in order of arrival
	work         []level.Complexity
	tasks        []*task
	open         int
	leaves       []level.Departure
	rule         []level.Occupant
	settledTasks []*task  // scratch
	guesses      *guesses // nil where nothing is guessed
}

// site is a grid: the scheduler that Kith has for a site, and owners.
type site struct {
	grid
	s      *sitesched.Scheduler
	subs   []subjob
	spare  []int32
	owner  job.AttemptID
	owners int32
	walk   float64
	dirty  bool
}

// subjob is one sub-job in a grid. Its number there is its place and its tries.
type subjob struct {
	t       *task
	started job.Time
	running bool
	try     uint32
}

func newPlay(sys system, list []submitted, rng *rand.Rand) (*play, error) {
	p := &play{system: sys, rng: rng, queued: make([][]*task, len(sys.queues)), work: make([]level.Complexity, len(sys.queues))}
	for i, g := range sys.grids {
		s, err := sitesched.New(sitesched.Config{Processors: g.processors, Queues: g.queues})
		if err != nil {
			return nil, err
		}
		p.sites = append(p.sites, &site{grid: g, s: s})
		if g.owners > 0 {
			p.at(0, event{kind: moves, n: i})
		}
	}
	for i, x := range list {
		t := &task{submitted: x, id: i, queue: -1, est: newEstimator(x.work, rng)}
		p.tasks = append(p.tasks, t)
		p.at(x.at, event{kind: arrives, n: i})
	}
	p.open = len(p.tasks)
	return p, nil
}

func (p *play) at(at job.Time, e event) {
	p.seq++
	e.at, e.seq = max(at, p.now), p.seq
	p.events.push(e)
}

// run plays until every task has ended.
func (p *play) run(ctx context.Context) error {
	p.at(0, event{kind: ticks})
	for n := 0; p.open > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.now = p.events[0].at
		for len(p.events) > 0 && p.events[0].at == p.now {
			p.happen(p.events.pop())
		}
		p.pass()
	}
	return nil
}

func (p *play) happen(e event) {
	switch e.kind {
	case arrives:
		t, q := p.tasks[e.n], e.g
		if len(t.visits) == 0 {
			q = p.begins(t)
		}
		p.enter(t, q)
	case estimated:
		if t := p.tasks[e.n]; t.stage == int(e.mark) {
			p.decide(t)
		}
	case sends:
		if t := p.tasks[e.n]; t.stage == int(e.mark) {
			p.begin(t)
		}
	case ends, breaks:
		p.subjobOver(e)
	case moves:
		p.moveOwners(e.n)
	case ticks:
		for q := range p.queues {
			p.enforce(q)
		}
		p.at(p.now.Add(level.EnforcePeriod), event{kind: ticks})
	}
}

// enter lets a task come to a queue.
func (p *play) enter(t *task, q int) {
	t.queue, t.came, t.began, t.settled = q, p.now, 0, false
	t.visits = append(t.visits, q)
	t.stage++
	t.here = parallel{}
	p.enforce(q) // so that what is overdue does not stand in its way
	p.queued[q] = append(p.queued[q], t)
	last := p.queues[q].next < 0
	v := level.ProcessNewTask(&p.queues[q].limits, p.work[q], level.Arrival{Task: t.rule(p.now, 0)}, last)
	switch {
	case v.Step == level.Leave:
		p.leave(t, v.Trigger, v.Action)
	case v.Step == level.Estimate:
		p.estimate(t)
	default:
		p.decide(t)
	}
	p.enforce(q) // who was alone and overdue is not any more
}

// estimate has a task estimated for as long as its level allows: at level 1 by a job on its server that waits its turn, below
// it on what processors the grid has free.
func (p *play) estimate(t *task) {
	q := &p.queues[t.queue]
	limit := q.limits.EstimateLimit()
	if !q.parallel {
		t.piece, t.unsent, t.n = limit.Seconds()*q.limits.Speed*share, 1, 1
		p.send(t)
		return
	}
	free := max(p.sites[q.grid].s.Load(p.now).Free, 1)
	p.bounded(t, limit, float64(min(free, q.limits.Processors)))
	p.at(p.now.Add(limit), event{kind: estimated, n: t.id, mark: uint32(t.stage)}) //nolint:gosec // Few.
	t.cost.estimation += limit.Seconds()
}

// bounded works on the bound of a task.
func (p *play) bounded(t *task, time time.Duration, processors float64) {
	if err := t.bound.Add(level.Complexity(t.est.work(time, processors))); err != nil {
		panic(err)
	}
}

// decide goes on with a task that has its estimate, or needs none.
func (p *play) decide(t *task) {
	q := &p.queues[t.queue]
	t.settled = true
	v := level.ProcessNewTask(&q.limits, p.work[t.queue], level.Arrival{Task: t.rule(p.now, 0), Estimated: true}, q.next < 0)
	if v.Step == level.Leave {
		p.leave(t, v.Trigger, v.Action)
		return
	}
	wait := flowControl
	t.cost.flow += flowControl.Seconds()
	if q.latency > 0 {
		latency := q.latency
		if !q.steady {
			latency = time.Duration(p.rng.ExpFloat64() * float64(q.latency))
		}
		t.cost.grid += latency.Seconds()
		wait += latency
	}
	p.at(p.now.Add(wait), event{kind: sends, n: t.id, mark: uint32(t.stage)}) //nolint:gosec // Few.
}

// begin divides what is left of a task and hands the first sub-jobs to the grid.
func (p *play) begin(t *task) {
	q := &p.queues[t.queue]
	t.ready = p.now
	t.n = 1
	if q.parallel {
		t.n = max(int(math.Ceil(t.remaining()/(q.sub.Seconds()*q.limits.Speed*share))), 1)
	}
	t.piece, t.unsent, t.queued = t.remaining()/float64(t.n), t.n, 0
	t.here.all = t.n
	p.send(t)
}

// send hands sub-jobs to the grid: as many as one user may hold, in lots.
func (p *play) send(t *task) {
	q := &p.queues[t.queue]
	most := int(q.limits.Processors)
	if t.unsent == 0 || t.queued > most/2 {
		return
	}
	g := p.sites[q.grid]
	for ; t.unsent > 0 && t.queued+t.running < most; t.unsent-- {
		p.put(g, t)
	}
	g.dirty = true
}

// put makes a sub-job of a task and queues it.
func (p *play) put(g *site, t *task) {
	var n int32
	if k := len(g.spare); k > 0 {
		n, g.spare = g.spare[k-1], g.spare[:k-1]
	} else {
		g.subs = append(g.subs, subjob{})
		n = int32(len(g.subs) - 1) //nolint:gosec // Some thousands.
	}
	s := &g.subs[n]
	s.t, s.running = t, false
	s.try++
	t.queued++
	g.s.Enqueue(p.now, g.copy(n, p.queues[t.queue].guest))
}

// copy is what the scheduler knows of a sub-job: its place is that of its task.
func (g *site) copy(n int32, guest bool) job.Copy {
	s := &g.subs[n]
	return job.Copy{
		ID: g.name(n), Arrival: s.t.came, Remote: guest,
		Request: job.Request{Processors: 1, Walltime: time.Hour},
	}
}

func (g *site) name(n int32) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "grid", Generation: 1, Seq: uint64(n)}, Number: g.subs[n].try} //nolint:gosec // Not negative.
}

// pass lets the schedulers start what they can.
func (p *play) pass() {
	for i, g := range p.sites {
		for again := g.dirty; again; {
			g.dirty, again = false, false
			for _, id := range slices.Clone(g.s.Pass(p.now)) {
				g.s.Confirm(p.now, id, p.now)
				p.start(i, int32(id.Job.Seq)) //nolint:gosec // See put.
			}
			for _, id := range slices.Clone(g.s.Evicted()) {
				p.evict(i, int32(id.Job.Seq)) //nolint:gosec // See put.
				again = true
			}
			again = again || g.dirty
		}
	}
}

// start lets a sub-job run.
func (p *play) start(grid int, n int32) {
	g := p.sites[grid]
	s := &g.subs[n]
	t, q := s.t, &p.queues[s.t.queue]
	s.started, s.running = p.now, true
	if t.running == 0 {
		t.active.since = p.now
	}
	t.queued--
	t.running++
	t.starts += p.now.Sub(0).Seconds()
	if t.began == 0 && t.settled {
		t.began = p.now
		t.cost.local += p.now.Sub(t.ready).Seconds()
	}
	t.here.sample(t)
	run := time.Duration(t.piece / (q.limits.Speed * share) * float64(time.Second))
	kind := ends
	if q.volatility > 0 {
		if x := time.Duration(p.rng.ExpFloat64() / q.volatility * float64(time.Hour)); x < run {
			run, kind = x, breaks
		}
	}
	p.at(p.now.Add(max(run, 1)), event{kind: kind, n: int(n), g: grid, mark: s.try})
}

// sample counts the processors that t holds, as long as some of its sub-jobs wait to start.
func (x *parallel) sample(t *task) {
	if t.queued+t.unsent > 0 {
		x.held += float64(t.running)
		x.samples++
	}
}

// subjobOver is a sub-job that has ended, or lost its processor.
func (p *play) subjobOver(e event) {
	g := p.sites[e.g]
	s := &g.subs[e.n]
	if s.try != e.mark || !s.running {
		return // it has been evicted, or its task has left
	}
	n := int32(e.n) //nolint:gosec // See put.
	if e.kind == breaks {
		p.evict(e.g, n)
		return
	}
	t := s.t
	p.stop(g, n, false)
	g.spare = append(g.spare, n)
	if !t.settled { // it was estimating
		limit := p.queues[t.queue].limits.EstimateLimit()
		t.active.total -= limit
		t.cost.estimation += limit.Seconds()
		t.cost.local += (p.now.Sub(t.came) - limit).Seconds()
		p.bounded(t, limit, 1)
		p.decide(t)
		return
	}
	t.done += t.piece
	t.here.subjobs++
	if t.unsent+t.queued+t.running == 0 {
		p.finish(t, done)
		return
	}
	p.send(t)
}

// stop takes a running sub-job from its processor.
func (p *play) stop(g *site, n int32, lost bool) {
	s := &g.subs[n]
	t, ran := s.t, p.now.Sub(s.started)
	g.s.Finish(p.now, g.name(n))
	g.dirty = true
	s.running = false
	t.running--
	t.starts -= s.started.Sub(0).Seconds()
	t.used += ran.Seconds()
	t.usedAt[t.queue] += ran.Seconds()
	t.here.ran += ran.Seconds()
	if lost {
		t.lost += ran.Seconds()
		t.here.lost += ran.Seconds()
	}
	t.here.sample(t)
	if t.running == 0 {
		t.active.total += p.now.Sub(t.active.since)
	}
}

// evict makes a running sub-job lose its processor: it is done again from its beginning.
func (p *play) evict(grid int, n int32) {
	g := p.sites[grid]
	t := g.subs[n].t
	p.stop(g, n, true)
	t.here.evicted++
	s := &g.subs[n]
	s.try++
	t.queued++
	g.s.Enqueue(p.now, g.copy(n, p.queues[t.queue].guest))
}

// enforce applies the limits of a queue to the tasks in it. One that is being estimated is not in it yet.
func (p *play) enforce(q int) {
	p.settledTasks = p.settledTasks[:0]
	for _, t := range p.queued[q] {
		if t.settled {
			p.settledTasks = append(p.settledTasks, t)
		}
	}
	list := p.settledTasks
	if len(list) == 0 {
		p.work[q] = 0
		return
	}
	l := &p.queues[q].limits
	p.rule = p.rule[:0]
	for _, t := range list {
		o := level.Occupant{Task: t.rule(p.now, l.Speed*share), Stayed: p.now.Sub(t.came)}
		if t.began > 0 {
			o.Ran = p.now.Sub(t.began)
		}
		p.rule = append(p.rule, o)
	}
	p.leaves, p.work[q] = level.EnforceQueueLimits(l, p.rule, p.queues[q].next < 0, p.leaves[:0])
	if len(p.leaves) == 0 {
		return
	}
	list = slices.Clone(list) // who ends has limits enforced again, and others may have gone by that
	for _, d := range slices.Clone(p.leaves) {
		if t := list[d.Index]; t.queue == q && t.fate == open {
			p.leave(t, d.Trigger, d.Action)
		}
	}
}

// leave lets a task leave its queue.
func (p *play) leave(t *task, _ level.Trigger, a level.Action) {
	q := &p.queues[t.queue]
	bound, known := t.bound.Least()
	to := q.next
	if k := q.sibling; k >= 0 {
		s := &p.queues[k].limits
		left := bound - level.Complexity(t.done)
		if known && left <= s.TaskLimit(share) && p.work[k]+left <= s.QueueLimit() {
			to = k
		}
	}
	switch a {
	case level.Reject:
		p.finish(t, rejected)
	case level.Terminate:
		p.finish(t, killed)
	default:
		p.withdraw(t)
		t.cost.migration += migration.Seconds()
		t.queue = -1
		t.stage++
		p.at(p.now.Add(migration), event{kind: arrives, n: t.id, g: to})
	}
}

// withdraw takes all that a task has out of its queue: what runs is lost.
func (p *play) withdraw(t *task) {
	q := &p.queues[t.queue]
	if t.began == 0 && t.settled && t.ready >= t.came && t.ready > 0 {
		t.cost.local += p.now.Sub(t.ready).Seconds() // it has waited for nothing
	}
	if t.queued+t.running > 0 {
		g := p.sites[q.grid]
		for n := range g.subs {
			if s := &g.subs[n]; s.t == t {
				if s.running {
					p.stop(g, int32(n), true) //nolint:gosec // See put.
				} else if g.s.Has(g.name(int32(n))) { //nolint:gosec // See put.
					g.s.Withdraw(p.now, g.name(int32(n))) //nolint:gosec // See put.
				} else {
					continue
				}
				s.t = nil
				g.spare = append(g.spare, int32(n)) //nolint:gosec // See put.
			}
		}
		g.dirty = true
	}
	t.queued, t.unsent = 0, 0
	t.seen[t.queue] = t.here
	p.queued[t.queue] = slices.DeleteFunc(slices.Clone(p.queued[t.queue]), func(x *task) bool { return x == t })
}

// finish ends a task.
func (p *play) finish(t *task, f fate) {
	q := t.queue
	p.withdraw(t)
	t.end, t.fate = p.now, f
	t.stage++
	p.open--
	t.cost.settle(t)
	if p.guesses != nil {
		p.guesses.ended(t)
	}
	p.enforce(q)
}
