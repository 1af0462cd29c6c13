package sim

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// Conserve says what L4, work conservation, means in a run.
//
// A job waits while its origin has its record open, not on hold and not
// cancelled, and nothing of it runs or is being staged. A site could run it if
//
//   - both its origin and the site are up and at peace, and so is the stream
//     between them: nothing has gone wrong there for Settle,
//   - the site is not draining, and it has a copy of the job or room for one
//     within its limits,
//   - as many processors as the job takes are not taken by what runs there or is
//     being staged, and
//   - the site's own scheduler would start it at once, if nothing were reserved
//     for claims, nothing postponed, and all copies gone of jobs that do not wait.
//     So no start is asked for that would move a guarantee.
//
// L4 is broken when a site could run a job for longer than Bound without a break:
// its processors were idle and work waited. It is broken, too, when a copy
// waits at a site for longer than Patience and two of the longest time limits
// there, plus one for each copy that was there before it, while the site could
// start it but for others. That is how long it may be overtaken. Time in which
// local jobs wait at the site does not count for a remote copy: they go first.
type Conserve struct {
	Bound, Settle, Patience time.Duration
}

// keeper watches L4. It looks once a second, from the outside: by what runs, what
// is on record, and what a copy of the local scheduler would do.
type keeper struct {
	w    *World
	cfg  *Conserve
	jobs []*waiting
	// sites and streams are how long these are at peace, by index.
	sites   []peace
	streams []peace
	begun   map[job.ID]bool // of this look: something of it runs or is staged
	longest time.Duration   // the longest time limit of any job
	plans   []*outlook
}

// outlook is what a site would do if nothing but work stood in the way.
type outlook struct {
	*sitesched.Scheduler
	localWaits bool
	waiting    int // copies that wait
}

// peace is since when nothing goes wrong, 0 if something does.
type peace struct {
	since job.Time
	life  int // of the daemon, or of the stream
}

// waiting is a job that has not ended.
type waiting struct {
	id job.ID
	// could is since when each site could run it without a break, 0 if it cannot.
	could []job.Time
	// queued is how long its copy was held up at each site by others, most
	// what is allowed.
	queued, most []time.Duration
	stray        job.Time // since when its output cannot be fetched, see returning
	cancelled    job.Time // since when it should have been stopped, see stopping
}

// look is how often the keeper looks.
const look = time.Second

func (k *keeper) init(w *World) {
	k.w, k.cfg = w, w.cfg.Conserve
	if k.cfg == nil {
		return
	}
	k.sites, k.streams = make([]peace, len(w.sites)), make([]peace, len(w.net.pairs))
	k.plans = make([]*outlook, len(w.sites))
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
	k.look()
	k.w.agenda.add(k.w.now.Add(look), housekeeping, 0, k)
}

func (k *keeper) add(id job.ID) {
	if k.cfg != nil {
		n := len(k.w.sites)
		if j := k.w.byID[id.Origin].state.Job(id); j != nil {
			k.longest = max(k.longest, j.Request.Walltime)
		}
		k.jobs = append(k.jobs, &waiting{id: id, could: make([]job.Time, n), queued: make([]time.Duration, n), most: make([]time.Duration, n)})
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
	return s.Up() && !s.frozen && s.slow == 0 && !s.diskFull() && !s.unstartable && s.w.now >= s.pausing && !s.shimless && !s.w.watch.liars[s.cfg.ID]
}

// calm reports whether nothing goes wrong on a stream.
func (n *network) calm(p *pair) bool {
	a, b := p.ends[0], p.ends[1]
	return p.up && p.known[0] && p.known[1] && !p.cut[0] && !p.cut[1] && *p.way[0] == *n.way(a, b) && *p.way[1] == *n.way(b, a)
}

func (k *keeper) look() {
	w := k.w
	for i, s := range w.sites {
		k.note(&k.sites[i], s.calm(), s.life)
		k.plans[i] = nil
	}
	for i, p := range w.net.pairs {
		if p != nil {
			k.note(&k.streams[i], w.net.calm(p), p.epoch)
		}
	}
	k.begun = make(map[job.ID]bool)
	for _, p := range w.watch.running {
		k.begun[p.attempt.Job] = true
	}
	for _, s := range w.sites {
		for a := range s.staged {
			k.begun[a.Job] = true
		}
	}
	k.jobs = slices.DeleteFunc(k.jobs, func(x *waiting) bool {
		o := w.byID[x.id.Origin]
		if o.gone {
			return true
		}
		if o.engine == nil {
			clear(x.could)
			clear(x.queued)
			return false
		}
		j := o.state.Job(x.id)
		if j == nil || j.State.Terminal() {
			return true
		}
		k.lookAt(x, o, j)
		return false
	})
}

// waits reports whether a job wants to run and does not.
func (k *keeper) waits(j *store.Job) bool {
	return (j.State == job.Pending || j.State == job.Queued || j.State == job.Claimed) && !j.CancelRequested && !k.begun[j.ID]
}

// lookAt looks at one job at all sites.
func (k *keeper) lookAt(x *waiting, o *Site, j *store.Job) {
	k.returning(x, o, j)
	k.stopping(x, o, j)
	waits := k.waits(j)
	if h := k.w.byID[j.Holder]; j.State == job.Claimed && h != nil && !k.reaches(o, h) {
		waits = false // its holder may have begun it, and no other site may
	}
	for i, s := range k.w.sites {
		reach := waits && k.reaches(o, s)
		if !reach || !k.could(s, o, j) {
			x.could[i] = 0
		} else {
			if x.could[i] == 0 {
				x.could[i] = k.w.now
			}
			if idle := k.w.now.Sub(x.could[i]); idle > k.cfg.Bound {
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

// reaches reports whether an origin and a host have been at peace for long
// enough, with each other.
func (k *keeper) reaches(o, s *Site) bool {
	if !k.settled(&k.sites[o.index]) || !k.settled(&k.sites[s.index]) {
		return false
	}
	if o == s {
		return true
	}
	n := &k.w.net
	return k.settled(&k.streams[min(o.index, s.index)*len(n.w.sites)+max(o.index, s.index)])
}

// could reports whether a site could start a job now.
func (k *keeper) could(s, o *Site, j *store.Job) bool {
	r := &j.Request
	if k.free(s) < s.cfg.Scheduler.Charge(r) || s.state.Site().Draining || s.scheduler.Refuse(r) != job.NoReason {
		return false
	}
	a := j.AttemptID()
	if j.State == job.Pending {
		a.Number++ // the attempt to come
	}
	if s != o && s.state.Copy(a) == nil && !k.hasRoom(s, o) {
		return false
	}
	plan := k.plan(s).Clone()
	if !plan.Has(a) {
		plan.Enqueue(s.now(), job.Copy{ID: a, Request: *r, Arrival: s.now(), Remote: s != o})
	}
	return slices.Contains(plan.Pass(s.now()), a)
}

// free returns how many processors of a site nothing has.
func (k *keeper) free(s *Site) int32 {
	free := int64(s.cfg.Scheduler.Processors) - s.taken.processors
	for _, g := range s.staged {
		free -= int64(g.launch.Request.Processors)
	}
	return int32(max(free, 0)) // at most the site's
}

// hasRoom reports whether a site would take another copy of an origin.
func (k *keeper) hasRoom(s, o *Site) bool {
	all, its := 0, 0
	for c := range s.state.Copies() {
		switch c.ID.Job.Origin {
		case s.cfg.ID:
		case o.cfg.ID:
			its++
			all++
		default:
			all++
		}
	}
	l := &s.cfg.Meta.Limits
	return its < l.CopiesPerOrigin && all < l.Copies
}

// plan returns a copy of a site's scheduler as it would be if nothing but
// work stood in the way. It is made once a look.
func (k *keeper) plan(s *Site) *outlook {
	if k.plans[s.index] != nil {
		return k.plans[s.index]
	}
	p, now := &outlook{Scheduler: s.scheduler.Clone()}, s.now()
	for _, o := range k.w.sites {
		p.BringBack(now, o.cfg.ID)
	}
	p.Drain(now, s.state.Site().Draining)
	var reserved, postponed, strays []job.AttemptID
	for c := range p.Running {
		if c.Reserved && !s.launched(c.Copy.ID) {
			reserved = append(reserved, c.Copy.ID)
		}
	}
	for _, a := range reserved {
		p.Postpone(now, a, now)
	}
	for c := range p.Queued {
		p.waiting++
		p.localWaits = p.localWaits || !c.Copy.Remote
		o := k.w.byID[c.Copy.ID.Job.Origin]
		switch {
		case o == nil || o.engine == nil || !k.reaches(o, s) || !k.wants(o, c.Copy.ID):
			strays = append(strays, c.Copy.ID)
		case c.NotBefore > now:
			postponed = append(postponed, c.Copy.ID)
		}
	}
	for _, a := range strays {
		p.Withdraw(now, a)
	}
	for _, a := range postponed {
		p.Postpone(now, a, now)
	}
	k.plans[s.index] = p
	return p
}

// wants reports whether an origin's job waits for this attempt to start.
func (k *keeper) wants(o *Site, a job.AttemptID) bool {
	j := o.state.Job(a.Job)
	return j != nil && j.Attempt == a.Number && k.waits(j)
}

// overtaken watches how long a copy waits at a site that is at peace.
func (k *keeper) overtaken(x *waiting, s *Site, j *store.Job, i int) {
	a := j.AttemptID()
	if j.State != job.Queued || s.state.Copy(a) == nil || s.state.Site().Draining || s.scheduler.Refuse(&j.Request) != job.NoReason {
		x.queued[i], x.most[i] = 0, 0
		return
	}
	if x.most[i] == 0 {
		x.most[i] = k.allowed(s)
	}
	if s.cfg.ID != j.ID.Origin && s.scheduler.Config().Queues != sitesched.Single && k.plan(s).localWaits {
		return
	}
	if x.queued[i] += look; x.queued[i] > x.most[i] {
		k.w.watch.violate("L4: for %v site %s has had a copy of job %v, the bound is %v", x.queued[i], s.cfg.ID, j.ID, x.most[i])
	}
}

// allowed returns how long a copy may wait that comes to a site now.
func (k *keeper) allowed(s *Site) time.Duration {
	return k.cfg.Patience + time.Duration(2+k.plan(s).waiting)*(k.longest+s.cfg.Scheduler.StartMargin)
}

// returning watches that a job that may run again does not wait for output
// that a site out of reach has.
func (k *keeper) returning(x *waiting, o *Site, j *store.Job) {
	holder := k.w.byID[j.Holder]
	if j.State != job.Returning || j.Request.OnSiteLost != job.Rerun || holder == nil || holder == o || !k.settled(&k.sites[o.index]) {
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
	s := k.w.byID[j.Holder]
	p := (*process)(nil)
	if s != nil {
		p = s.procs[j.AttemptID()]
	}
	if j.State != job.Cancelling || s == o || p == nil || p.outcome != nil || !s.Up() || s.frozen || !k.reachesOut(o, s) {
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
	n := &k.w.net
	return k.settled(&k.sites[o.index]) && k.settled(&k.streams[min(o.index, s.index)*len(n.w.sites)+max(o.index, s.index)])
}

// fitsSomewhere reports whether a job could run at any site that is left.
func (w *World) fitsSomewhere(j *store.Job) bool {
	return slices.ContainsFunc(w.sites, func(s *Site) bool { return !s.gone && s.Up() && s.scheduler.Refuse(&j.Request) == job.NoReason })
}
