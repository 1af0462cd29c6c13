package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
)

// Pilots: the copies in which a host runs tasks. They are in the queue of the local
// scheduler like any other copy, and in no fact.

// pilotBit is set in the number of pilots' names, and in no run's: those count bundles.
const pilotBit = 1 << 63

// pilot is a copy that runs tasks of a line, one after another.
type pilot struct {
	id    job.AttemptID
	line  *line
	began job.Time // 0 while it waits in the queue
	wall  time.Duration
	run   *taskRun // what it runs, nil if it idles
	tasks int      // that it has begun
	// beside says that a home job waited already when it began: the local scheduler let it
	// go ahead, so it runs one task.
	beside  bool
	stopped bool // its task is being stopped, and then it ends
	evicted bool // it was told to leave for a home job
	proved  bool // a task of it has started
}

// turn is how long a pilot runs tasks.
func (th *taskHost) turn() time.Duration {
	turn := cmp.Or(th.cfg.Bags.Turn, 10*time.Minute)
	if most := th.cfg.NoHarm.GuestWalltime; most > 0 {
		turn = min(turn, max(0, most-bags.PilotSlack))
	}
	return turn
}

// guests sums up the pilots of other sites that are in the queue or run. They end when a job
// wants their processors: their turns are not work that others have to wait for.
type guests struct {
	queued int64 // processors x walltime, in processor-milliseconds
	procs  int64 // of those that run
	ends   int64 // processors x end of the turn since the daemon began, of those that run
}

// count counts a pilot, sign 1, or counts it no more, sign -1.
func (th *taskHost) count(p *pilot, sign int64) {
	if p.line.origin == th.self {
		if p.began == 0 {
			th.homePilots += int(sign)
		}
		return
	}
	procs, g := sign*int64(p.line.shape.Processors), &th.guests
	if p.began == 0 {
		g.queued += procs * p.wall.Milliseconds()
		return
	}
	g.procs += procs
	g.ends += procs * p.began.Add(p.wall).Sub(th.host.began).Milliseconds()
}

// yielding is the work of pilots that yield, in seconds until the site has drained it.
func (th *taskHost) yielding(now job.Time) float64 {
	if g := &th.guests; th.cfg.Bags.Yield != bags.YieldNever && *g != (guests{}) {
		work := g.queued + max(0, g.ends-g.procs*now.Sub(th.host.began).Milliseconds())
		return float64(work) / 1000 / float64(max(1, th.cfg.Self.Processors))
	}
	return 0
}

// pilotRequest is what a pilot of a shape asks of the local scheduler.
func pilotRequest(s bags.Shape, turn time.Duration) job.Request {
	return job.Request{Name: "pilot", Processors: s.Processors, MemoryBytes: s.MemoryBytes, Walltime: s.PilotWalltime(turn)}
}

// isPilot reports whether a copy is named as a pilot is.
func isPilot(id job.AttemptID) bool { return id.Job.Generation == 0 && id.Job.Seq&pilotBit != 0 }

func (th *taskHost) newPilot(l *line) *pilot {
	th.serial++
	p := &pilot{
		id:   job.AttemptID{Job: job.ID{Origin: l.origin, Seq: pilotBit | l.seq}, Number: th.serial},
		line: l, wall: l.shape.PilotWalltime(th.turn()),
	}
	th.pilots[p.id] = p
	return p
}

// copy returns a pilot as the local scheduler queues it.
func (th *taskHost) copy(now job.Time, p *pilot) job.Copy {
	return job.Copy{ID: p.id, Request: pilotRequest(p.line.shape, th.turn()), Arrival: now, Remote: p.line.origin != th.self}
}

// proposed begins a pilot whose turn has come, and reports whether it is one.
func (th *taskHost) proposed(now job.Time, id job.AttemptID) bool {
	if !isPilot(id) {
		return false
	}
	p := th.pilots[id]
	if p == nil || p.began != 0 {
		return p != nil
	}
	if th.host.shuns(p.line.origin) {
		th.unqueue(now, p) // put back, it would be proposed again in this instant
		return true
	}
	if s := &th.host.starting; s.pause > 0 || s.machine != "" {
		if s.stopped() || th.host.probing() {
			th.host.site.Postpone(now, id, now)
			th.host.passing = true
			return true
		}
		s.probe = id
	}
	l := p.line
	l.queued = slices.DeleteFunc(l.queued, func(o *pilot) bool { return o == p })
	l.running, l.idle = append(l.running, p), append(l.idle, p)
	th.count(p, -1)
	p.began, p.beside = now, th.homeWaits(now, l)
	th.count(p, 1)
	th.host.site.Confirm(now, id, now)
	th.look(l)
	return true
}

// proving reports whether a pilot is the start that shows whether starts succeed.
func (th *taskHost) proving(id job.AttemptID) bool {
	p := th.pilots[id]
	return p != nil && p.began != 0 && !p.proved
}

// homeWaits reports whether a home job waits for processors that pilots of a line hold. To
// pilots of this site's own bags those of other bags of its own are none.
func (th *taskHost) homeWaits(now job.Time, l *line) bool {
	if th.cfg.Bags.Yield == bags.YieldNever {
		return false
	}
	waits := th.host.site.HomeWaits(now)
	if l.origin == th.self {
		waits -= th.homePilots
	}
	return waits > 0
}

// yield is what pilots of a line do for home jobs: tasks of this site's own are not stopped.
func (th *taskHost) yield(l *line) bags.Yield {
	if l.origin == th.self {
		return min(th.cfg.Bags.Yield, bags.YieldTask)
	}
	return th.cfg.Bags.Yield
}

// settle has pilots begin tasks and end, and tells origins what has become of tasks.
func (th *taskHost) settle(now job.Time) {
	for th.dirty || len(th.own) > 0 {
		th.dirty = false
		own := th.own
		th.own = nil
		for _, b := range own {
			th.tellOwn(now, b)
		}
		for _, l := range slices.Clone(th.lines) {
			if l.dirty {
				l.dirty = false
				th.settleLine(now, l)
			}
		}
		if th.host.passing {
			return // the local scheduler first
		}
	}
}

// yieldNow has pilots looked at that stop their tasks for home jobs.
func (th *taskHost) yieldNow(now job.Time) {
	if th.cfg.Bags.Yield != bags.YieldNow {
		return
	}
	for _, l := range th.lines {
		if len(l.running) > 0 && l.origin != th.self && th.homeWaits(now, l) {
			th.look(l)
		}
	}
}

// offersKept is for how many times Timing.AntiEntropy an offer holds that is not repeated.
const offersKept = 3

// settleLine decides for a line.
func (th *taskHost) settleLine(now job.Time, l *line) {
	if l.offered > 0 && now.Sub(l.heard) > offersKept*th.cfg.Timing.AntiEntropy {
		l.offered = 0
		l.interest.Offer(0)
	}
	if len(l.running) > 0 {
		l.emptied = now
	}
	if back, _ := bags.GiveBack(len(l.running), l.emptied, now, th.shut(l)); back {
		th.giveBack(now, l)
	}
	for {
		got := th.ask(now, l)
		for _, p := range slices.Clone(l.idle) {
			th.step(now, p)
		}
		l.busied()
		if !got {
			break
		}
	}
	if th.yield(l) == bags.YieldNow && th.homeWaits(now, l) { // else what runs a task goes on
		for _, p := range slices.Clone(l.running) {
			th.step(now, p)
		}
		l.busied()
	}
	th.ask(now, l)
	th.fill(now, l)
	th.wakeLine(now, l)
	th.tidy(l)
}

// busied takes the pilots that have begun a task off those that idle, all of them at once.
func (l *line) busied() {
	l.idle = slices.DeleteFunc(l.idle, func(p *pilot) bool { return p.run != nil })
}

// step does what a pilot does next. The caller calls [line.busied] behind the last one.
func (th *taskHost) step(now job.Time, p *pilot) {
	l := p.line
	left := p.began.Add(p.wall).Sub(now)
	home := th.homeWaits(now, l) && !th.goesAhead(p)
	m := bags.Moment{
		Left: left, Running: p.run != nil, Fits: l.stock.Fits(left), Stock: l.stock.Count(),
		Coming: l.claim != nil && now < l.claim.patience, Shortest: l.shape.Shortest(),
		Draining: th.st.Site().Draining || p.evicted || th.blocked(p) || th.host.site.Overfull(now), HomeWaits: home, Yield: th.yield(l),
	}
	switch act, _ := m.Next(); act {
	case bags.Begin:
		th.begin(now, p, left)
	case bags.Finish:
		th.finish(now, p)
	case bags.Stop:
		if !p.stopped {
			p.stopped = true
			th.kill(p.run, Kill{})
		}
	}
}

// goesAhead reports whether a pilot goes on though a home job waits: the local scheduler let
// it go ahead of those that waited when it began. Where guests yield at once, it does so
// only until there is a home job more, or processors come free: with its own, a home job
// might start.
func (th *taskHost) goesAhead(p *pilot) bool {
	return p.beside && p.tasks <= 1 && (p.tasks == 0 || p.run != nil) && (th.cfg.Bags.Yield != bags.YieldNow || p.began >= th.news)
}

// vacating reports whether guests are being stopped for a home job. Until all of them have
// ended no other begins: it would take the processors that are to come free together.
func (th *taskHost) vacating(now job.Time, l *line) bool {
	return th.cfg.Bags.Yield == bags.YieldNow && th.homeWaits(now, l) && slices.ContainsFunc(th.lines, func(o *line) bool {
		return o.origin != th.self && slices.ContainsFunc(o.running, func(p *pilot) bool { return !th.goesAhead(p) })
	})
}

// blocked reports whether a pilot may begin nothing: starts fail here, or the origin leaves
// too much unacknowledged.
func (th *taskHost) blocked(p *pilot) bool {
	s := &th.host.starting
	return s.stopped() || th.host.shuns(p.line.origin) || s.pause > 0 && s.probe != p.id || th.unacked[p.line.origin] >= 2*mostUnacked
}

// shut reports whether this site wants no tasks of a line: it drains, cannot start for long, or
// has no room for work of others.
func (th *taskHost) shut(l *line) bool {
	return th.st.Site().Draining || th.host.starting.away() || th.host.shuns(l.origin)
}

// finish ends a pilot.
func (th *taskHost) finish(now job.Time, p *pilot) {
	l := p.line
	th.host.site.Finish(now, p.id)
	th.host.passing = true
	th.count(p, -1)
	delete(th.pilots, p.id)
	l.running = slices.DeleteFunc(l.running, func(o *pilot) bool { return o == p })
	l.idle = slices.DeleteFunc(l.idle, func(o *pilot) bool { return o == p })
	if l.emptied = now; len(l.running) == 0 {
		th.look(l)
	}
	if th.cfg.Bags.Yield == bags.YieldNow {
		th.lookAll() // others may begin again
	}
}

// level is how a stock stands.
func (l *line) level() bags.Level {
	return bags.Level{Places: len(l.running), Running: len(l.running) - len(l.idle), Stock: l.stock.Count(), Mean: l.mean.Run()}
}

// levelAt is how a stock stands if what runs now counts, too: all of it has run for so long.
// The mean may be of another bag, whose tasks were short.
func (l *line) levelAt(now job.Time) bags.Level {
	v := l.level()
	least := time.Duration(-1)
	for _, p := range l.running {
		if p.run == nil {
			continue
		}
		if ran := now.Sub(p.run.begun); least < 0 || ran < least {
			least = ran
		}
	}
	if v.Mean > 0 {
		v.Mean = max(v.Mean, least)
	}
	return v
}

// ask claims tasks if there are too few in stock, and reports whether some came at once.
func (th *taskHost) ask(now job.Time, l *line) (got bool) {
	own := l.origin == th.self
	if c := l.claim; c != nil {
		if now >= c.again && th.peers.reachable(l.origin) {
			th.sendClaim(now, l)
		}
		return false
	}
	open, _ := l.interest.Open(now)
	want := l.level().Want()
	if want > 0 {
		want = l.levelAt(now).Want()
	}
	switch {
	case want == 0 || !open && !l.interest.Last() || !own && !th.peers.reachable(l.origin):
		return false
	case th.st.Site().Draining || th.host.starting.stopped() || th.host.shuns(l.origin) || th.unacked[l.origin] >= mostUnacked:
		return false
	}
	l.claim = &taskClaim{stamp: th.host.nextStamp(), want: want, patience: now.Add(th.cfg.Timing.Claim)}
	if !own {
		th.sendClaim(now, l)
		return false
	}
	v := th.origin.claim(now, th.self, th.claimOf(now, l))
	th.onTaskVerdict(now, th.self, v)
	return len(v.Bundles) > 0
}

// sendClaim sends the claim of a line, again if need be: it gets the same tasks.
func (th *taskHost) sendClaim(now job.Time, l *line) {
	l.claim.again = now.Add(th.cfg.Timing.Claim)
	th.peers.send(l.origin, th.claimOf(now, l))
}

func (th *taskHost) claimOf(now job.Time, l *line) TaskClaim {
	v := l.levelAt(now)
	return TaskClaim{Stamp: l.claim.stamp, Sent: now, Ask: bags.Ask{
		Site: th.self, Shape: l.shape, Places: v.Places, Running: v.Running, Stock: v.Stock, Mean: v.Mean, Want: l.claim.want,
	}}
}

// fill keeps as many pilots in the queue as there are tasks for: one, or more while
// processors are free.
func (th *taskHost) fill(now job.Time, l *line) {
	want := th.wanted(now, l)
	for len(l.queued) > want {
		th.unqueue(now, l.queued[len(l.queued)-1])
	}
	for len(l.queued) < want {
		p := th.newPilot(l)
		th.count(p, 1)
		l.queued = append(l.queued, p)
		th.host.site.Enqueue(now, th.copy(now, p))
		th.host.passing = true
	}
}

// unqueue takes a pilot out of the queue.
func (th *taskHost) unqueue(now job.Time, p *pilot) {
	p.line.queued = slices.DeleteFunc(p.line.queued, func(o *pilot) bool { return o == p })
	th.count(p, -1)
	th.host.site.Withdraw(now, p.id)
	delete(th.pilots, p.id)
	th.host.passing = true
}

// wanted is how many pilots of a line should wait in the queue.
func (th *taskHost) wanted(now job.Time, l *line) int {
	if th.shut(l) || th.unacked[l.origin] >= mostUnacked {
		return 0
	}
	if th.room.made || th.vacating(now, l) {
		return 0
	}
	tasks := l.stock.Count()
	if open, _ := l.interest.Open(now); open {
		tasks += l.offered
	}
	if l.claim != nil && now >= l.claim.patience && l.stock.Count() == 0 {
		return 0 // nobody answers
	}
	tasks -= len(l.idle)
	width := max(1, l.shape.Processors)
	free := int(th.host.site.Load(now).Free / width)
	want := min(tasks, mostPilots, max(1, free))
	if share := th.cfg.Bags.Share; share > 0 && share < 1 && th.crowded(l) {
		most := max(1, int(share*float64(th.cfg.Self.Processors))/int(width))
		want = min(want, most-len(l.running))
	}
	return max(0, want)
}

// crowded reports whether others have tasks for this site, too.
func (th *taskHost) crowded(l *line) bool {
	return l.origin != th.self && slices.ContainsFunc(th.lines, func(o *line) bool {
		return o.origin != l.origin && (o.offered > 0 || o.stock.Count() > 0)
	})
}

// wakeLine notes when a line is to be looked at again.
func (th *taskHost) wakeLine(now job.Time, l *line) {
	l.wake = job.Never
	if open, again := l.interest.Open(now); !open {
		l.wake = min(l.wake, again)
	}
	if c := l.claim; c != nil && th.peers.reachable(l.origin) {
		l.wake = min(l.wake, c.again)
	}
	if c := l.claim; c != nil && now < c.patience {
		l.wake = min(l.wake, c.patience)
	}
	if l.stock.Count() > 0 {
		if _, again := bags.GiveBack(len(l.running), l.emptied, now, false); again > now {
			l.wake = min(l.wake, again)
		}
	}
}

// tick does what has become due.
func (th *taskHost) tick(now job.Time) {
	th.makeRoom(now)
	for _, l := range th.lines {
		if l.wake <= now {
			l.wake = job.Never
			th.look(l)
		}
	}
	if th.adopting > 0 && now >= th.adoptBy {
		th.adopting = 0
		th.host.passing = true
	}
	th.flush(now)
	th.renewLeases(now)
}

// nextWake returns when the host has to do something next about tasks.
func (th *taskHost) nextWake() job.Time {
	wake := min(th.nextFlush, th.nextRenew, th.room.wake())
	for _, l := range th.lines {
		wake = min(wake, l.wake)
	}
	if th.adopting > 0 {
		wake = min(wake, th.adoptBy)
	}
	return wake
}
