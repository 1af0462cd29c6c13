package sim

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// Conserve says what L4, work conservation, means in a run.
//
// A job waits while its origin has its record open, not on hold, not cancelled and not held
// back, as attempts of it were lost, nothing of it runs or is being staged, and its holder has not given its
// processors back while its input comes: then the holder alone may start it, and
// nothing promises that it has processors when the input is there. A site could run it if
//
//   - both its origin and the site are up and at peace, and so is the stream
//     between them: nothing has gone wrong there for Settle,
//   - the site is not draining, and it has a copy of the job or room for one
//     within its limits, at each look,
//   - as many processors as the job takes are not taken by what runs there or is
//     being staged, at any moment since the latest look, and
//   - the site's own scheduler would start it at once, if nothing were reserved
//     for claims (but for those of a site that lies: it answers them, and might as
//     well have jobs to run; no site promises shares by origin), nothing postponed, and all copies gone of jobs that do not wait.
//     So no start is asked for that would move a guarantee. Gone are also copies
//     of origins out of reach, and of those that are in trouble or have been at peace for
//     less than Settle those that could start, and those that the site has set aside. The
//     others of such an origin keep their place: their host cannot know, before they could start. So do
//     attempts whose input has come since they gave their processors back, and pilots for
//     which tasks wait.
//
// L4 is broken when a site could run a job for longer than Bound without a break:
// its processors were idle and work waited. Where the limits of a site let no more copies of
// other sites wait than it has processors, each start begins with a message to an origin, so that processors in
// turn stand between two jobs. There it is broken only if what was idle meanwhile, less Handover
// for each processor that came free, is as much as the job's processors idle for Bound; so it is where claims
// came too late for jobs that had started elsewhere, less the time from such claims to their answers.
// It is broken, too, when a copy
// waits at a site for longer than Patience, the time limits of the copies that were
// there before it, and two of the longest there meanwhile, while the site could
// start it but for others, and Bound, in which any start may be late. That is how
// long it may be overtaken. Time in which
// local jobs wait at the site does not count for a remote copy: they go first. Nor does
// that up to the time limits of local jobs that started since it came, where these and
// the copy do not fit the site together: they went first.
//
// L5 is broken when a job that waits has fewer than K live copies for longer than Lack,
// while one and the same site could take another one: origin and site are at peace, the
// site is not draining, can run the job, has room within its limits at each look and for
// each copy of the origin that came in between. A copy is live if the site has it. Of a
// site in trouble it counts until that has been out of reach for as long as it takes to
// vanish. A job of which attempts were lost is held back for a while. Where an origin does
// not conserve work, as in the papers' schemes, nothing is promised.
type Conserve struct {
	Bound, Settle, Patience, Lack, Handover time.Duration
}

// keeper watches L4. It looks once a second, when all that happens in an instant has
// happened, from the outside: by what runs, what is on record, and what a copy of the local
// scheduler would do.
type keeper struct {
	w    *World
	cfg  *Conserve
	jobs []*waiting
	// numbered are those of each origin's latest generation by sequence number, see here.
	numbered []numbered
	// sites and streams are how long these are at peace, by index.
	sites   []peace
	streams []peace
	begun   map[job.ID]uint32 // of this look: its latest attempt that runs or is staged
	plans   []*outlook
	memory  []*outlook // that plans use again
	crowds  []*crowd
	// least is the fewest processors that were free at each site since the latest look.
	least []int32
	// held is how many copies each site had of each origin at the latest look, and, behind
	// these, of all other sites.
	held [][]int
	// tenants are what each site has, of this look, and reach is which origins and hosts
	// have been at peace with each other for long enough, by the places of both.
	tenants []tenants
	reach   []bool
	// locals are what each site has started of its own jobs.
	locals [][]localStart
	// lives are those of the sites at the latest look.
	lives []int
	// idle is what each site had free; claimed are the claims under way.
	idle    []idleness
	claimed map[claimOf]claimSent
	// due says that it looks when all passes of this instant are made.
	due bool
	copies
}

// peace is since when nothing goes wrong, 0 if something does.
type peace struct {
	since job.Time
	life  int // of the daemon, or of the stream; it counts what else may have come and gone
}

// waiting is a job that has not ended.
type waiting struct {
	id job.ID
	o  *Site
	// here says at which sites its attempt has a copy, at this look.
	here []bool
	// begun says that something of it runs or is staged, at this look; quiet that nothing of
	// what follows is under way.
	begun, quiet bool
	// rec is its record in a life of its origin.
	rec  *store.Job
	life int
	// could is since when each site could run it without a break, 0 if it cannot.
	could []job.Time
	// spare is what each site had free before could, see idleness.
	spare []idleness
	// queued is how long its copy was held up at each site by others, most what is
	// allowed but for the longest time limit there since.
	queued, most, longest []time.Duration
	came                  []job.Time // when that began, by the site's clock
	stray                 job.Time   // since when its output cannot be fetched, see returning
	cancelled             job.Time   // since when it should have been stopped, see stopping
	unfit                 []job.Time // since when it has a copy at each site that can never run it
	lacks                 []job.Time // since when it lacks a copy that each site could take
	// losses counts its attempts that were lost, the latest of which is lostLast, at lost.
	losses   int
	lostLast uint32
	lost     job.Time
}

// look is how often the keeper looks.
const look = time.Second

func (k *keeper) init(w *World) {
	k.w, k.cfg = w, w.cfg.Conserve
	if k.cfg == nil {
		return
	}
	k.begun, k.numbered = make(map[job.ID]uint32), make([]numbered, len(w.sites))
	k.sites, k.streams = make([]peace, len(w.sites)), make([]peace, len(w.net.pairs))
	k.plans, k.memory = make([]*outlook, len(w.sites)), make([]*outlook, len(w.sites))
	k.crowds, k.least = make([]*crowd, len(w.sites)), make([]int32, len(w.sites))
	k.locals, k.idle = make([][]localStart, len(w.sites)), make([]idleness, len(w.sites))
	k.held, k.lives = make([][]int, len(w.sites)), make([]int, len(w.sites))
	k.tenants, k.reach = make([]tenants, len(w.sites)), make([]bool, len(w.sites)*len(w.sites))
	for i := range w.sites {
		k.held[i], k.tenants[i].its = make([]int, len(w.sites)+1), make([]int, len(w.sites))
	}
	k.copies.init(w)
	for i, s := range w.sites { // at peace from the beginning, and for long
		k.sites[i] = peace{since: Start.Add(-k.cfg.Settle), life: s.life}
	}
	for i, p := range w.net.pairs {
		if p != nil {
			k.streams[i] = peace{since: Start.Add(-k.cfg.Settle), life: p.epoch}
		}
	}
	w.agenda.add(w.now.Add(look), housekeeping, 0, k)
}

// act implements action.
func (k *keeper) act() {
	k.due = true
	k.w.agenda.add(k.w.now.Add(look), housekeeping, 0, k)
}

// lookIfDue looks at the end of an instant whose time it is: what a site has been told in it
// may change in its pass.
func (k *keeper) lookIfDue() {
	if k.due {
		k.due = false
		k.look()
	}
}

func (k *keeper) add(id job.ID) {
	if k.cfg != nil {
		n := len(k.w.sites)
		spans := make([]time.Duration, 3*n)
		x := &waiting{
			id: id, o: k.w.byID[id.Origin], here: make([]bool, n), could: make([]job.Time, n), spare: make([]idleness, n), queued: spans[:n], most: spans[n : 2*n], longest: spans[2*n:], came: make([]job.Time, n), unfit: make([]job.Time, n), lacks: make([]job.Time, n),
		}
		k.jobs = append(k.jobs, x)
		k.numbered[x.o.index].add(x)
	}
}

// note brings a peace up to date.
func (k *keeper) note(p *peace, calm bool, life int) {
	switch {
	case !calm:
		p.since = 0
	case p.since == 0 || p.life != life:
		p.since = k.w.now
	}
	p.life = life
}

// settled reports whether something has been at peace for long enough.
func (k *keeper) settled(p *peace) bool { return p.since != 0 && k.w.now.Sub(p.since) >= k.cfg.Settle }

// calm reports whether nothing goes wrong at a site.
func (s *Site) calm() bool {
	return s.Up() && !s.frozen && s.slow == 0 && !s.diskFull() && !s.unstartable && s.holds == 0 && s.w.now >= s.pausing && !s.shimless && !s.w.watch.liars[s.cfg.ID]
}

// calm reports whether nothing goes wrong on a stream, and nothing waits in it behind what was sent
// when it was slower.
func (n *network) calm(p *pair) bool {
	a, b := p.ends[0], p.ends[1]
	return p.up && p.known[0] && p.known[1] && !p.cut[0] && !p.cut[1] && *p.way[0] == *n.way(a, b) && *p.way[1] == *n.way(b, a) && !n.late(p, 0) && !n.late(p, 1)
}

// late reports whether a message of end i that was sent now would wait for others.
func (n *network) late(p *pair, i int) bool {
	c := p.way[i]
	return p.last[1-i] > n.w.now.Add(2*c.Latency+mostJitter*c.Jitter)
}

// mostJitter bounds what the shapes make of a jitter, as good as always.
const mostJitter = 100

func (k *keeper) look() {
	w := k.w
	for i, s := range w.sites {
		k.note(&k.sites[i], s.calm(), s.life+s.upsets)
		k.plans[i], k.crowds[i] = nil, nil
		k.tally(s)
		k.forgetLocals(s)
	}
	for i, p := range w.net.pairs {
		if p != nil {
			k.note(&k.streams[i], w.net.calm(p), p.epoch+p.lost)
		}
	}
	k.lookAtStreams()
	for _, o := range w.sites {
		for _, s := range w.sites {
			k.reach[k.at(o, s)] = (o == s || !s.low) && k.settledBoth(o, s)
		}
	}
	clear(k.begun)
	for _, p := range w.watch.running {
		k.hasBegun(p.attempt)
	}
	for _, s := range w.sites {
		for a := range s.staged {
			k.hasBegun(a)
		}
		for a := range s.bringing {
			if o := w.byID[a.Job.Origin]; o.engine != nil && o.state.Job(a.Job) != nil && o.state.Job(a.Job).AttemptID() == a {
				k.hasBegun(a)
			}
		}
	}
	k.lookForCopies()
	k.jobs = slices.DeleteFunc(k.jobs, func(x *waiting) bool {
		o := x.o
		if o.gone {
			return true
		}
		if o.engine == nil {
			clear(x.could)
			clear(x.queued)
			clear(x.lacks)
			return false
		}
		j := x.rec
		if j == nil || j.State.Terminal() {
			return true
		}
		k.lookAt(x, o, j)
		return false
	})
	for i, s := range w.sites {
		k.lookInto(s)
		k.least[i] = math.MaxInt32
	}
	clear(k.met)
}

func (k *keeper) hasBegun(a job.AttemptID) { k.begun[a.Job] = max(k.begun[a.Job], a.Number) }

// waits reports whether a job wants to run and does not, if nothing of it has begun.
func waits(j *store.Job) bool {
	return (j.State == job.Pending || j.State == job.Queued || j.State == job.Claimed) && !j.CancelRequested
}

// lookAt looks at one job at all sites.
func (k *keeper) lookAt(x *waiting, o *Site, j *store.Job) {
	k.returning(x, o, j)
	k.stopping(x, o, j)
	x.noteLosses(j)
	waits := !x.begun && waits(j)
	if !waits && j.State != job.Queued {
		x.rest()
		return
	}
	x.quiet = false
	k.lacking(x, o, j)
	if j.State == job.Claimed {
		if h := k.w.site(j.Holder); h != nil && (!k.reaches(o, h) || h.procs[j.AttemptID()] != nil) {
			waits = false // its holder may have begun it or has, and no other site may
		}
	}
	for i, s := range k.w.sites {
		k.unfitting(x, o, s, j)
		reach := waits && k.reaches(o, s)
		if !reach || j.State == job.Pending && k.heldBack(x, o) || !k.could(x, s, o, j) {
			x.could[i] = 0
		} else {
			if x.could[i] == 0 {
				x.could[i], x.spare[i] = k.w.now, k.idle[s.index]
			}
			if idle := k.w.now.Sub(x.could[i]); idle > k.cfg.Bound && !k.excused(s, o, &x.spare[i], &j.Request) {
				k.w.watch.violate("L4: for %v site %s could have run job %v, which is %v (sites %v, holder %q)", idle, s.cfg.ID, j.ID, j.State, j.Sites, j.Holder)
			}
		}
		if !reach {
			x.queued[i], x.most[i] = 0, 0
			continue
		}
		k.overtaken(x, s, j, i)
	}
}

// rest forgets since when a job that does not wait could have run, and what else is watched of
// those that wait.
func (x *waiting) rest() {
	if !x.quiet {
		x.quiet = true
		clear(x.could)
		clear(x.lacks)
		clear(x.queued)
		clear(x.most)
		clear(x.unfit)
	}
}

// reaches reports whether an origin and a host have been at peace for long
// enough, with each other, at this look.
func (k *keeper) reaches(o, s *Site) bool { return k.reach[k.at(o, s)] }

func (k *keeper) settledBoth(o, s *Site) bool {
	if !k.settled(&k.sites[o.index]) || !k.settled(&k.sites[s.index]) {
		return false
	}
	return o == s || k.settled(k.stream(o, s))
}

// inReach reports whether a host has a stream to an origin, as far as it knows: that an origin is
// gone it learns a while later.
func (k *keeper) inReach(o, s *Site) bool {
	if o == s {
		return true
	}
	p, from := k.w.net.pair(s, o)
	return p.known[from]
}

// stream returns the peace of the stream between two sites.
func (k *keeper) stream(a, b *Site) *peace {
	return &k.streams[min(a.index, b.index)*len(k.w.sites)+max(a.index, b.index)]
}

// overtaken watches how long a copy waits at a site that is at peace.
func (k *keeper) overtaken(x *waiting, s *Site, j *store.Job, i int) {
	if j.State != job.Queued || !x.here[i] || s.state.Site().Draining || s.refuses(j) {
		x.queued[i], x.most[i] = 0, 0
		return
	}
	c := k.crowd(s)
	if x.most[i] == 0 {
		x.most[i], x.longest[i], x.came[i] = k.cfg.Patience+c.sum+k.cfg.Bound, 0, s.now()
	}
	x.longest[i] = max(x.longest[i], c.longest)
	if s.cfg.ID != j.ID.Origin && s.scheduler.Config().Queues != sitesched.Single && (c.localWaits || k.localsWent(s, x.came[i], &j.Request)) {
		return
	}
	x.queued[i] += look // it has waited for more than this less one look
	if most := x.most[i] + 2*x.longest[i]; x.queued[i]-look > most {
		k.w.watch.violate("L4: for %v site %s has had a copy of job %v, the bound is %v", x.queued[i], s.cfg.ID, j.ID, most)
	}
}

// crowd is what there is at a site: the time limits of what waits, set aside or not, and
// the longest one. Time limits are as they are planned there.
type crowd struct {
	sum, longest time.Duration
	localWaits   bool
}

// crowd looks at a site, once a look.
func (k *keeper) crowd(s *Site) *crowd {
	if k.crowds[s.index] != nil {
		return k.crowds[s.index]
	}
	c := new(crowd)
	waits := func(r *job.Request) {
		limit := r.Walltime + s.cfg.Scheduler.StartMargin
		c.sum, c.longest = c.sum+limit, max(c.longest, limit)
	}
	for q := range s.scheduler.Queued {
		waits(&q.Copy.Request)
		c.localWaits = c.localWaits || !q.Copy.Remote
	}
	for r := range s.scheduler.Running {
		c.longest = max(c.longest, r.Copy.Request.Walltime+s.cfg.Scheduler.StartMargin)
	}
	for x := range s.scheduler.Aside { // they come back into their places
		waits(&x.Request)
	}
	k.crowds[s.index] = c
	return c
}

// returning watches that a job that may run again does not wait for output
// that a site out of reach has.
func (k *keeper) returning(x *waiting, o *Site, j *store.Job) {
	if j.State != job.Returning {
		x.stray = 0
		return
	}
	holder := k.w.byID[j.Holder]
	if j.Request.OnSiteLost != job.Rerun || holder == nil || holder == o || !k.settled(&k.sites[o.index]) {
		x.stray = 0
		return
	}
	if p, _ := k.w.net.pair(o, holder); p.up {
		x.stray = 0
		return
	}
	if x.stray == 0 {
		x.stray = k.w.now
	}
	t := &o.cfg.Meta.Timing
	if waits := k.w.now.Sub(x.stray); waits > 2*(t.Lease+t.LeaseMargin)+k.cfg.Bound {
		k.w.watch.violate("L1: for %v job %v waits for its output, which site %s has, and that is away", waits, j.ID, j.Holder)
	}
}

// stopping watches that a cancelled job is stopped where it runs, whatever the
// disk does there.
func (k *keeper) stopping(x *waiting, o *Site, j *store.Job) {
	if j.State != job.Cancelling {
		x.cancelled = 0
		return
	}
	s := k.w.byID[j.Holder]
	p := (*process)(nil)
	if s != nil {
		p = s.procs[j.AttemptID()]
	}
	if s == o || p == nil || p.outcome != nil || !s.Up() || s.frozen || !k.reachesOut(o, s) || k.w.watch.undecided(s, o) {
		x.cancelled = 0
		return
	}
	if x.cancelled == 0 {
		x.cancelled = k.w.now
	}
	if goes := k.w.now.Sub(x.cancelled); goes > k.cfg.Bound {
		k.w.watch.violate("L1: for %v job %v has been cancelled, and still runs at site %s", goes, j.ID, j.Holder)
	}
}

// reachesOut reports whether an origin is at peace, and its stream to a site.
func (k *keeper) reachesOut(o, s *Site) bool {
	return k.settled(&k.sites[o.index]) && k.settled(k.stream(o, s))
}

// fitsSomewhere reports whether a job could run at any site that is left.
func (w *World) fitsSomewhere(j *store.Job) bool {
	return slices.ContainsFunc(w.sites, func(s *Site) bool { return !s.gone && s.Up() && !s.refuses(j) })
}
