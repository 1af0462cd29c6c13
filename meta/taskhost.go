package meta

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// taskHost runs tasks that origins offer, this site among them: it queues pilots at the
// local scheduler, asks for tasks when their turn comes, keeps what it got in stock, and
// tells how tasks ended. It belongs to the host.
//
// What events say it only notes. It decides at the end of the instant ([taskHost.settle]),
// when the local scheduler has made its pass: so it knows which pilots have begun, and
// whether a home job still waits.
type taskHost struct {
	*core
	host   *host
	peers  *peers
	origin ownBags

	lines   []*line // by origin and shape
	serial  uint32  // of the latest pilot
	seq     uint64  // of the latest line
	pilots  map[job.AttemptID]*pilot
	bundles map[job.AttemptID]*heldTasks
	runs    map[job.AttemptID]*taskRun // by the run's name
	// unacked counts the results of each origin that it has yet to acknowledge.
	unacked map[job.SiteID]int

	dirty    bool         // a line has something to decide
	own      []*heldTasks // whose batches this site's own bags have yet to take
	flushing []*heldTasks // with results that are not in a batch
	leased   []*heldTasks // that run under a lease
	guests   guests
	room     room
	news     job.Time // when a job was queued here or freed processors, the latest time
	// homePilots are those of this site's own bags that wait in the queue.
	homePilots int
	adopting   int      // runs of which the driver has not said what became of them
	adoptBy    job.Time // until when no start waits for that
	rng        *rand.Rand

	nextFlush, nextRenew job.Time
}

// ownBags is the origin at the host's own site. Each call stands for a message.
type ownBags interface {
	// claim asks for tasks (TaskClaim).
	claim(now job.Time, site job.SiteID, m TaskClaim) TaskVerdict
	onTaskResults(now job.Time, from job.SiteID, m TaskResults)
	onGiveBack(now job.Time, from job.SiteID, m GiveBack)
}

// heldTasks is what a host keeps in mind of a bundle beside the facts.
type heldTasks struct {
	rec    *store.HeldBundle
	line   *line
	lease  attemptLease
	lapsed bool // it was told to stop for want of one
	batch  bags.Batch
	files  map[uint32][]byte // what tasks left that are not in a batch
	runs   map[uint32]*taskRun
	// waiting are tasks that may begin once there is a lease.
	waiting job.TaskSet
	// due says that it is among those to be flushed.
	due bool
	// unwanted says that the origin does not want it, or was given up: what still runs ends
	// without a word, and then the bundle is forgotten. gone says that it is.
	unwanted, gone bool
}

// taskRun is a run of a task.
type taskRun struct {
	id     job.AttemptID
	bundle *heldTasks
	task   uint32
	pilot  *pilot // nil once it needs no processors any more, or after a restart
	begun  job.Time
	run    TaskRun // for the driver; it does not change
	// started: its command runs, or has. killed: the driver was told to stop it. adopted: it
	// was begun before a restart, and asked says that the driver has not answered yet.
	started, killed, adopted, asked bool
}

// Bounds on what a host keeps of an origin.
const (
	// mostLines bounds the shapes.
	mostLines = 64
	// mostUnacked is how many results may wait to be acknowledged before the host asks for
	// no more tasks; at twice that it begins none.
	mostUnacked = 4096
	// mostPilots bounds the pilots of a line that wait in the queue.
	mostPilots = 64
)

func newTaskHost(c *core, p *peers, h *host) *taskHost {
	return &taskHost{
		core: c, host: h, peers: p, pilots: make(map[job.AttemptID]*pilot), bundles: make(map[job.AttemptID]*heldTasks),
		runs: make(map[job.AttemptID]*taskRun), unacked: make(map[job.SiteID]int), nextFlush: job.Never, nextRenew: job.Never,
		rng: rand.New(rand.NewPCG(seedOf(job.ID{Origin: c.self}), 0)),
	}
}

// takesTasks reports whether this site runs tasks at all. A batch system has no room for
// pilots yet.
func (th *taskHost) takesTasks() bool { return th.host.batch == nil }

// line is what a host has to do with an origin's tasks of one shape.
type line struct {
	origin job.SiteID
	shape  bags.Shape
	seq    uint64 // names its pilots

	interest bags.Interest
	offered  int
	heard    job.Time // when the latest offer came
	stock    bags.Stock
	mean     bags.Mean
	claim    *taskClaim
	queued   []*pilot
	running  []*pilot
	idle     []*pilot // those of running that run no task
	// emptied is since when no pilot runs for it.
	emptied job.Time
	bundles int // that it has
	dirty   bool
	wake    job.Time // when it is to be looked at again
}

// taskClaim is a claim that has no answer yet.
type taskClaim struct {
	stamp uint64
	want  int
	// patience is until when pilots wait for the answer; again is when it is repeated.
	patience, again job.Time
}

// find returns a line, nil if there is none, and where it belongs.
func (th *taskHost) find(origin job.SiteID, shape bags.Shape) (*line, int) {
	at, found := slices.BinarySearchFunc(th.lines, shape, func(l *line, shape bags.Shape) int {
		return cmp.Or(cmp.Compare(l.origin, origin), l.shape.Compare(shape))
	})
	if found {
		return th.lines[at], at
	}
	return nil, at
}

// lineOf returns the line of an origin's tasks of a shape, which it makes if need be.
func (th *taskHost) lineOf(now job.Time, origin job.SiteID, shape bags.Shape) *line {
	l, at := th.find(origin, shape)
	if l == nil {
		th.seq++
		l = &line{origin: origin, shape: shape, seq: th.seq, wake: job.Never, emptied: now}
		th.lines = slices.Insert(th.lines, at, l)
	}
	return l
}

// tidy forgets a line with which there is nothing to do.
func (th *taskHost) tidy(l *line) {
	if l.offered == 0 && l.claim == nil && l.bundles == 0 && len(l.queued)+len(l.running) == 0 && !l.interest.Last() {
		if _, at := th.find(l.origin, l.shape); at < len(th.lines) && th.lines[at] == l {
			th.lines = slices.Delete(th.lines, at, at+1)
		}
	}
}

// look has a line looked at at the end of the instant.
func (th *taskHost) look(l *line) { l.dirty, th.dirty = true, true }

// onOffer takes up what an origin has to do.
func (th *taskHost) onOffer(now job.Time, from job.SiteID, m Offer) {
	if !th.takesTasks() {
		return
	}
	l, _ := th.find(from, m.Shape)
	if l == nil {
		if m.Tasks <= 0 || th.linesOf(from) >= mostLines || th.unfit(from, m.Shape) {
			return
		}
		l = th.lineOf(now, from, m.Shape)
	}
	l.offered, l.heard = max(0, m.Tasks), now
	l.interest.Offer(m.Tasks)
	th.shun(l)
	th.look(l)
}

// shun asks for no more tasks of a line that are not to run here, as another configuration says.
func (th *taskHost) shun(l *line) {
	if th.unfit(l.origin, l.shape) {
		l.offered, l.interest = 0, bags.Interest{}
	}
}

// unfit reports whether this site runs no tasks of a shape. Guests may be too long for it: of that a
// pilot's slack is no part, and some tasks of a shape are shorter than others.
func (th *taskHost) unfit(from job.SiteID, shape bags.Shape) bool {
	r := pilotRequest(shape, th.turn())
	if th.host.site.Refuse(&r) != job.NoReason {
		return true
	}
	r.Walltime = shape.Shortest() + 1
	return from != th.self && th.host.harmful(&r) != job.NoReason
}

// reconfigured takes up what another configuration says of tasks.
func (th *taskHost) reconfigured() {
	for _, l := range th.lines {
		th.shun(l)
		th.look(l)
	}
}

func (th *taskHost) linesOf(origin job.SiteID) int {
	n := 0
	for _, l := range th.lines {
		if l.origin == origin {
			n++
		}
	}
	return n
}

// onTaskVerdict takes the bundles that a claim got.
func (th *taskHost) onTaskVerdict(now job.Time, from job.SiteID, m TaskVerdict) {
	var l *line
	for _, c := range th.lines {
		if c.origin == from && c.claim != nil && c.claim.stamp == m.Stamp {
			l = c
		}
	}
	got, room := 0, 0
	if l != nil {
		room = l.claim.want
	}
	for i := range m.Bundles {
		g := &m.Bundles[i]
		if g.Bundle.Job.Origin != from || th.bundles[g.Bundle] != nil {
			continue
		}
		reason := job.LateGrant // an answer that is not waited for any more
		if l != nil {
			reason = th.refusal(now, from, l, g, m.Sent, room)
		}
		if reason != job.NoReason {
			th.decline(now, g.Bundle, reason)
			continue
		}
		th.accept(now, l, g, m.Sent)
		got += g.Tasks.Count()
		room -= g.Tasks.Count()
	}
	if l == nil {
		return
	}
	l.claim = nil
	l.interest.Answer(got, now, th.rng)
	th.look(l)
}

// decline tells an origin that this host does not hold a bundle.
func (th *taskHost) decline(now job.Time, bundle job.AttemptID, reason job.Reason) {
	m := GiveBack{Attempt: bundle, Reason: reason, Stamp: th.host.nextStamp()}
	if bundle.Job.Origin == th.self {
		th.origin.onGiveBack(now, th.self, m)
	} else {
		th.peers.send(bundle.Job.Origin, m)
	}
}

// refusal says why a bundle is not taken.
func (th *taskHost) refusal(now job.Time, from job.SiteID, l *line, g *GivenBundle, sent job.Time, room int) job.Reason {
	n := g.Tasks.Count()
	switch r := &g.Request; {
	case g.Bundle.Number == 0 || n == 0 || n > store.MaxBundleTasks || r.Validate() != nil || bags.ShapeOf(r) != l.shape:
		return job.BadRequest
	case n > room || len(th.bundles) >= mostBundles:
		return job.Full
	case th.st.Site().Draining:
		return job.Draining
	case th.host.starting.away():
		return job.CannotStart
	case th.host.shuns(from):
		return job.DiskLow
	case r.Level > 0 && r.Level != th.host.ownLevel():
		return job.Level
	case r.Level > 0 && th.host.overloaded(now):
		return job.LevelFull
	case r.Directory != "" && (th.cfg.AllowDirectory == nil || !th.cfg.AllowDirectory(r.Directory)):
		return job.Directory
	case leased(r) && from != th.self:
		var lease attemptLease
		if !lease.take(now, sent, g.Lease, th.host.began, now) || lease.until.Sub(now) <= lease.every {
			return job.LateGrant // the answer was too long on its way
		}
	}
	if from != th.self && g.Request.Level == 0 {
		return cmp.Or(th.host.site.Refuse(&g.Request), th.host.harmful(&g.Request))
	}
	return th.host.site.Refuse(&g.Request)
}

// mostBundles bounds the bundles that a host holds.
const mostBundles = 1 << 16

// accept commits a bundle and puts its tasks into the stock.
func (th *taskHost) accept(now job.Time, l *line, g *GivenBundle, sent job.Time) {
	record(th.st, store.AcceptBundle{
		Bundle: g.Bundle, Request: g.Request, BootID: th.cfg.BootID, Tasks: g.Tasks, Payload: g.Payload, Time: now,
	})
	b := th.addBundle(l, th.st.Held(g.Bundle))
	if leased(&g.Request) && l.origin != th.self {
		b.lease.take(now, sent, g.Lease, th.host.began, now)
		th.keepLease(now, b)
	}
	l.stock.Add(b.rec.ID, b.rec.Request.Walltime, b.rec.Tasks.Clone())
}

func (th *taskHost) addBundle(l *line, rec *store.HeldBundle) *heldTasks {
	b := &heldTasks{rec: rec, line: l, files: make(map[uint32][]byte), runs: make(map[uint32]*taskRun)}
	th.bundles[rec.ID] = b
	l.bundles++
	return b
}

// removeBundle forgets a bundle that the facts have forgotten.
func (th *taskHost) removeBundle(b *heldTasks) {
	delete(th.bundles, b.rec.ID)
	b.gone = true
	b.line.bundles--
	th.look(b.line)
}

// of returns the bundles of an origin, in the order of their ids.
func (th *taskHost) of(origin job.SiteID) []*heldTasks {
	var list []*heldTasks
	for id, b := range th.bundles {
		if id.Job.Origin == origin {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *heldTasks) int { return a.rec.ID.Compare(b.rec.ID) })
	return list
}

// addTo puts the bundles of an origin into a fingerprint.
func (th *taskHost) addTo(s *summary, origin job.SiteID) {
	for id := range th.bundles {
		if id.Job.Origin == origin {
			s.add(id, false)
		}
	}
}

// list adds the bundles of an origin to a list of copies.
func (th *taskHost) list(list []DigestEntry, origin job.SiteID) []DigestEntry {
	held := th.of(origin)
	if len(held) == 0 {
		return list
	}
	for _, b := range held {
		list = append(list, DigestEntry{Attempt: b.rec.ID, Begun: true, Ended: b.rec.Tasks.Empty()})
	}
	slices.SortFunc(list, func(a, b DigestEntry) int { return a.Attempt.Compare(b.Attempt) })
	return list
}

// claiming returns the stamp of the oldest claim that has no answer of an origin, and
// whether there is one.
func (th *taskHost) claiming(origin job.SiteID) (stamp uint64, is bool) {
	for _, l := range th.lines {
		if l.origin == origin && l.claim != nil && (!is || l.claim.stamp < stamp) {
			stamp, is = l.claim.stamp, true
		}
	}
	return stamp, is
}

// listStamp is the step at which a list of what this host holds of an origin was made. What
// a claim gets that has no answer yet is not in the list and may be on its way: the list is
// as of before that claim.
func (th *taskHost) listStamp(origin job.SiteID) uint64 {
	if stamp, claiming := th.claiming(origin); claiming {
		return stamp - 1
	}
	return th.host.nextStamp()
}

// up repeats to an origin what the old stream may have swallowed.
func (th *taskHost) up(now job.Time, site job.SiteID) {
	for _, l := range th.lines {
		if l.origin != site {
			continue
		}
		if l.claim != nil {
			l.claim.again = now
		}
		th.look(l)
	}
	for _, b := range th.of(site) {
		if len(b.rec.Unacked) > 0 {
			th.report(now, b)
		}
		if b.lease.every != 0 || leased(&b.rec.Request) {
			b.lease.renewAt, th.nextRenew = now, now
		}
	}
}

// down takes up that the stream to an origin is gone, and with it what it has offered.
func (th *taskHost) down(site job.SiteID) {
	for _, l := range th.lines {
		if l.origin == site {
			l.offered = 0
			l.interest.Offer(0)
			th.look(l)
		}
	}
}

// forgetOrigin gives up what is held of an origin: what waits goes, and what runs ends or
// is stopped without a word. It returns how many runs are stopped.
func (th *taskHost) forgetOrigin(now job.Time, site job.SiteID, stop bool) (stopped int) {
	th.down(site)
	for _, l := range th.lines {
		if l.origin == site {
			l.claim = nil
		}
	}
	for _, b := range th.of(site) {
		stopped += th.disown(now, b, stop, Kill{Stale: true, Lease: true, Early: true})
	}
	return stopped
}

// disown has a bundle end that nobody wants, without a word: its runs are stopped in the way
// of k, or end. It returns how many are stopped.
func (th *taskHost) disown(now job.Time, b *heldTasks, stop bool, k Kill) (stopped int) {
	b.unwanted = true
	all := job.TaskRange(0, job.MaxTasks)
	b.line.stock.Remove(b.rec.ID, &all)
	b.waiting.Clear()
	th.look(b.line)
	for _, r := range b.sorted() {
		if stop && !r.killed {
			stopped++
			th.kill(r, k)
		}
	}
	th.forgetUnwanted(now, b)
	return stopped
}

// forgetUnwanted forgets a bundle that nobody wants once nothing of it runs.
func (th *taskHost) forgetUnwanted(now job.Time, b *heldTasks) {
	if b.unwanted && !b.gone && len(b.runs) == 0 {
		th.forget(now, b, store.ForgetTasks{Bundle: b.rec.ID, All: true})
	}
}

// sorted returns the runs of a bundle in the order of tasks.
func (b *heldTasks) sorted() []*taskRun {
	list := make([]*taskRun, 0, len(b.runs))
	for _, r := range b.runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *taskRun) int { return cmp.Compare(a.task, b.task) })
	return list
}
