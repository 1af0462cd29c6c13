package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// watch checks the invariants of the design (docs/architecture.md) from the
// outside: by what leaves the sites and what runs on their machines, not by
// what the engines believe.
type watch struct {
	w      *World
	broken error

	// grants are the verdicts that left: S1.
	grants map[job.AttemptID]job.SiteID
	// givenUp are grants to sites that their origin has revoked since: the job is LOST, and
	// what may start there is beyond its reach.
	givenUp map[job.AttemptID]bool
	// running are the processes that run now, several how many each job has: S2.
	// starts counts all.
	running map[job.AttemptID]*process
	several map[job.ID]int
	starts  map[job.AttemptID]int
	// ends are the states in which jobs were closed, as is on disk: S3.
	ends map[job.ID]job.State
	// cancels are the jobs that clients were told will be cancelled: S5.
	cancels map[job.ID]bool
	// acks are the jobs that clients were told of: S5.
	acks  map[job.ID]bool
	order []job.ID
	// unended is the place in order of a job that had not ended.
	unended int
	// liars are sites that are not held to anything, nor are others for what
	// happens to their jobs.
	liars map[job.SiteID]bool
	// trust is whom sites trust, by what, as is durable; revoked whom operators were told
	// that they do not.
	trust   map[trustKey]store.TrustedSite
	revoked map[trustKey]bool
	letRun  map[trustKey]bool // what runs of a site that was revoked was to go on, once
	// gone counts acknowledged jobs that were lost with the only disk that had them.
	gone int
	// tasks watches those of bags, depends what jobs and bags wait for.
	tasks   taskWatch
	depends dependencyWatch
	saved   checkpointWatch
	bounds  boundWatch
	levels  levelWatch
	// estimates watches jobs that bring an estimator.
	estimates estimateWatch
}

func (x *watch) init(w *World) {
	x.w = w
	x.grants, x.givenUp = make(map[job.AttemptID]job.SiteID), make(map[job.AttemptID]bool)
	x.running = make(map[job.AttemptID]*process)
	x.several = make(map[job.ID]int)
	x.cancels = make(map[job.ID]bool)
	x.starts = make(map[job.AttemptID]int)
	x.ends = make(map[job.ID]job.State)
	x.acks = make(map[job.ID]bool)
	x.trust, x.revoked, x.letRun = make(map[trustKey]store.TrustedSite), make(map[trustKey]bool), make(map[trustKey]bool)
	x.tasks.init(x)
	x.depends.init(x)
	x.saved.init(x)
	x.levels = levelWatch{x, make(map[job.ID]uint8)}
	x.estimates.init(x)
	x.bounds = boundWatch{x: x, sites: make(map[job.SiteID]*keptWaiting)}
}

func (x *watch) violate(format string, args ...any) {
	if x.broken == nil {
		x.broken = x.w.violation(format, args...)
		x.w.trace("VIOLATION %v", x.broken)
	}
}

// granted watches the grants that leave a site.
func (x *watch) granted(s *Site, f meta.Grant) {
	if !x.w.cfg.Check || x.liars[f.Attempt.Job.Origin] {
		return
	}
	if x.w.cfg.Disk.Keep && s.state.Job(f.Attempt.Job) != nil {
		if _, err := s.backend.Payload(f.Attempt.Job); err != nil {
			x.violate("S5: attempt %v is granted to %s, and what it runs is not on disk: %v", f.Attempt, f.To, err)
		}
	}
	holder, again := x.grants[f.Attempt]
	if again && holder != f.To {
		x.violate("S1: attempt %v was granted to %s and to %s", f.Attempt, holder, f.To)
	}
	// A daemon whose lead is over may have been stopped before it said what came before the end.
	if end, ok := x.ends[f.Attempt.Job]; ok && !again && !s.deposed {
		x.violate("S3: job %v is %v, and attempt %v is granted to %s", f.Attempt.Job, end, f.Attempt, f.To)
	}
	x.grants[f.Attempt] = f.To
}

// started watches the processes.
func (x *watch) started(p *process) {
	if !x.w.cfg.Check {
		return
	}
	x.hold(p)
	x.outlawed(p)
	a := p.attempt
	if x.liars[p.s.cfg.ID] || x.liars[a.Job.Origin] {
		return
	}
	x.depends.started(p.work(), p.s.cfg.ID)
	if p.task != nil {
		x.tasks.started(p)
		return
	}
	if x.several[a.Job] > 0 && !p.race {
		for _, other := range x.running {
			if other.attempt.Job == a.Job {
				x.violate("S2: %v starts at %s while %v runs at %s", a, p.s.cfg.ID, other.attempt, other.s.cfg.ID)
			}
		}
	}
	x.saved.started(p)
	x.running[a] = p
	x.several[a.Job]++
	if x.starts[a]++; x.starts[a] > 1 {
		x.violate("S2: attempt %v was started %d times", a, x.starts[a])
	}
	if holder, ok := x.grants[a]; ok && holder != p.s.cfg.ID {
		x.violate("S1: attempt %v was granted to %s and starts at %s", a, holder, p.s.cfg.ID)
	}
	x.grants[a] = p.s.cfg.ID
	if end, ok := x.ends[a.Job]; ok && !p.race && !(end == job.Lost && x.givenUp[a]) {
		x.violate("S3: job %v is %v and starts at %s", a.Job, end, p.s.cfg.ID)
	}
}

func (x *watch) ended(p *process) {
	if !x.w.cfg.Check {
		return
	}
	x.release(p)
	if p.task != nil {
		x.tasks.ended(p)
		return
	}
	x.saved.ended(p)
	x.estimates.ended(p)
	if x.running[p.attempt] == p {
		delete(x.running, p.attempt)
		if x.several[p.attempt.Job]--; x.several[p.attempt.Job] == 0 {
			delete(x.several, p.attempt.Job)
		}
	}
}

// taken is what the processes that run at a site hold of it, whichever life of
// its daemon started them.
type taken struct{ processors, memory int64 }

// hold checks that a site has what a process takes: S6, from the outside.
func (x *watch) hold(p *process) {
	s, c := p.s, &p.s.cfg.Scheduler
	s.taken.processors += int64(p.processors)
	s.taken.memory += p.memory
	switch {
	case x.liars[s.cfg.ID]:
	case s.taken.processors > int64(c.Processors):
		x.violate("S6: site %s has %d processors, and with %v %d are taken", s.cfg.ID, c.Processors, p.attempt, s.taken.processors)
	case c.MemoryBytes > 0 && s.taken.memory > c.MemoryBytes:
		x.violate("S6: site %s has %d bytes of memory, and with %v %d are taken", s.cfg.ID, c.MemoryBytes, p.attempt, s.taken.memory)
	}
}

// release takes back what a process held. An orphan has done so already.
func (x *watch) release(p *process) {
	if !p.orphan {
		p.s.taken.processors -= int64(p.processors)
		p.s.taken.memory -= p.memory
	}
}

// orphaned is told of a process that is about to become one. From then on it
// does not count: no site can keep free what only a lost folder knew of.
func (x *watch) orphaned(p *process) {
	if x.w.cfg.Check && p.outcome == nil {
		x.release(p)
	}
}

// changed watches what a site shows of its jobs, which is durable.
func (x *watch) changed(s *Site, f meta.Changed) {
	if !x.w.cfg.Check {
		return
	}
	j := s.state.Job(f.Job)
	if f.Purged || j == nil {
		return // see durable
	}
	x.saved.durable(j)
	x.levels.durable(j)
	x.estimates.durable(j)
	if o := j.Outcome; j.State.Terminal() && o != nil && (strings.Contains(o.Reason, noShim) || strings.Contains(o.Reason, noRoom)) {
		x.violate("L1: job %v ended as %v at %s, for a reason of that site alone: %s", f.Job, j.State, j.Holder, o.Reason)
	}
	was, ended := x.ends[f.Job]
	if ended && was != j.State {
		x.violate("S3: job %v was %v and is %v", f.Job, was, j.State)
	}
}

// purge notes that a site no longer remembers a job, which it must not before
// the job has ended.
func (x *watch) purge(id job.ID) {
	if _, ended := x.ends[id]; !ended {
		x.violate("S5: job %v is purged and had not ended", id)
	}
	x.order = slices.DeleteFunc(x.order, func(other job.ID) bool { return other == id })
}

// closed is a job and the state in which it was closed, or from where it would go on, or what
// a batch says of a bag. Purged: it is forgotten.
type closed struct {
	job    job.ID
	state  job.State // 0: it is not closed
	goesOn *goesOn
	bag    *bagFacts // nil for a job
	ending ending    // how it has ended by then, once or more
	purged bool
	// revoked is a site that its origin gives up what it had granted to.
	revoked trustKey
}

// goesOn is what is kept of the attempts of a job for the next one: the checkpoint and the
// bound of its estimators.
type goesOn struct {
	checkpoint uint64
	bound      float64
}

// closing lists the jobs that a batch closes or forgets, which holds the facts behind effects.
func (x *watch) closing(s *Site, effects []meta.Effect) (list []closed) {
	if !x.w.cfg.Check {
		return nil
	}
	for _, f := range effects {
		switch f := f.(type) {
		case meta.Changed:
			j := s.state.Job(f.Job)
			switch {
			case f.Purged:
				list = append(list, closed{job: f.Job, purged: true})
			case j == nil:
			case j.State.Terminal():
				list = append(list, closed{job: j.ID, state: j.State, ending: x.depends.decided[j.ID]})
			case len(j.Demotions) > 0 || j.Saved != nil:
				list = append(list, closed{job: j.ID, goesOn: &goesOn{j.Resume().Sequence, j.Bound()}})
			}
		case meta.TrustChanged:
			if f.Site.State == store.SiteRevoked {
				list = append(list, closed{revoked: trustKey{s.cfg.ID, f.Site.Site}})
			}
		case meta.BagChanged:
			if f.Purged {
				list = append(list, closed{bag: &bagFacts{id: f.Bag}, purged: true})
			} else if b := s.state.Bag(f.Bag); b != nil {
				x.tasks.ruled(s, b)
				list = append(list, closed{bag: factsOf(s, b), ending: x.depends.decided[b.ID]})
			}
		}
	}
	return list
}

// durable notes that a batch is on disk, whether its effects have left or died with the daemon.
func (x *watch) durable(list []closed) {
	for _, c := range list {
		switch {
		case c.revoked != trustKey{}:
			x.givesUp(c.revoked)
		case c.purged && c.bag != nil:
			x.tasks.purged(c.bag.id)
		case c.purged:
			x.purge(c.job)
		case c.bag != nil:
			x.tasks.durable(c.bag)
		case c.goesOn != nil:
			x.saved.kept[c.job] = c.goesOn.checkpoint
			x.estimates.kept[c.job] = c.goesOn.bound
		default:
			x.ends[c.job] = c.state
		}
	}
}

// Cancelled notes that a client was told that a job will be cancelled.
func (w *World) Cancelled(id job.ID) { w.watch.cancels[id] = true }

// uncancelled reports whether a cancellation that was acknowledged is lost.
func (x *watch) uncancelled(id job.ID, j *store.Job) bool {
	return x.cancels[id] && !j.CancelRequested
}

func (x *watch) acknowledged(id job.ID) {
	if x.w.cfg.Check && !x.acks[id] {
		x.acks[id] = true
		x.w.keeper.add(id)
		x.order = append(x.order, id)
	}
}

// mostWakes is how often a site may have itself woken within a second. One that
// does so without an end takes a processor for itself, and time does not go on.
const mostWakes = 10_000

// wakes is how often a site had itself woken since a time.
type wakes struct {
	since job.Time
	n     int
}

// woken counts that a site had itself woken.
func (x *watch) woken(s *Site) {
	if !x.w.cfg.Check {
		return
	}
	if c := &s.wakes; x.w.now.Sub(c.since) >= time.Second {
		*c = wakes{since: x.w.now, n: 1}
	} else if c.n++; c.n > mostWakes {
		x.violate("spin: site %s had itself woken %d times within a second", s.cfg.ID, c.n)
	}
}

// stepped checks a site from the inside: S6 by the scheduler's own account,
// which includes what is reserved and does not run yet.
func (x *watch) stepped(s *Site) {
	if !s.unchecked {
		return
	}
	s.unchecked = false
	if err := s.Scheduler().Check(); err != nil {
		x.violate("S6: site %s: %v", s.cfg.ID, err)
	}
}

// booted checks that what was acknowledged is still there: S5.
func (x *watch) booted(s *Site) {
	if !x.w.cfg.Check {
		return
	}
	x.restoredTrust(s)
	x.tasks.booted(s)
	x.depends.booted(s)
	for _, id := range x.order {
		if id.Origin != s.cfg.ID {
			continue
		}
		j := s.state.Job(id)
		if j != nil {
			x.saved.durable(j)
			x.levels.durable(j)
			x.estimates.durable(j)
		}
		switch {
		case j == nil:
			x.violate("S5: acknowledged job %v is lost in a restart of site %s", id, s.cfg.ID)
		case x.uncancelled(id, j):
			x.violate("S5: the cancellation of job %v was acknowledged and is lost in a restart of site %s", id, s.cfg.ID)
		}
	}
}

// wiped forgets the jobs whose only record was on a disk that is gone.
func (x *watch) wiped(s *Site) {
	x.forgetTrust(s)
	x.tasks.wiped(s)
	n := len(x.order)
	x.order = slices.DeleteFunc(x.order, func(id job.ID) bool { return id.Origin == s.cfg.ID })
	x.gone += n - len(x.order)
}

// Distrust exempts a site, and all that concerns its jobs, from the
// invariants: it may say anything.
func (w *World) Distrust(id job.SiteID) {
	if w.watch.liars == nil {
		w.watch.liars = make(map[job.SiteID]bool)
	}
	w.watch.liars[id] = true
}

// Distrusted reports whether a site is exempt.
func (w *World) Distrusted(id job.SiteID) bool { return w.watch.liars[id] }

// LostWithDisk returns how many acknowledged jobs were lost with the only disk
// that had them.
func (w *World) LostWithDisk() int { return w.watch.gone }

// Acknowledged returns the jobs that clients were told of, in that order. They
// are noted only if [Config.Check] is set.
func (w *World) Acknowledged() []job.ID { return w.watch.order }

// Ended reports whether CheckEnded returns nil. It looks at the job first which had not
// ended the last time.
func (w *World) Ended() bool {
	if x := &w.watch; x.unended < len(x.order) {
		id := x.order[x.unended]
		if s := w.byID[id.Origin]; s.Up() {
			if _, ended := w.hasEnded(id); !ended {
				return false
			}
		}
	}
	return w.CheckEnded() == nil
}

// hasEnded reports whether an acknowledged job has ended, as far as that is promised. Its
// record is nil if it is lost.
func (w *World) hasEnded(id job.ID) (*store.Job, bool) {
	if w.watch.liars[id.Origin] {
		return nil, true
	}
	j := w.byID[id.Origin].state.Job(id)
	if j == nil {
		return nil, false
	}
	// What has lied may keep what it had claimed: it may not hear of its own count.
	return j, j.State.Terminal() || w.watch.liars[j.Holder] || j.State == job.Blocked && w.watch.depends.excused(w.byID[id.Origin], id) || w.keeper.cfg != nil && !w.fitsSomewhere(j)
}

// CheckEnded returns an error unless every acknowledged job has ended once, no
// process runs, and no site holds a copy any more: L1 and L2, once all faults
// are over.
func (w *World) CheckEnded() error {
	if w.watch.broken != nil {
		return w.watch.broken
	}
	for _, s := range w.sites {
		if !s.gone && (!s.Up() || s.frozen) {
			return w.violation("L1: site %s is down", s.cfg.ID)
		}
	}
	for i, id := range w.watch.order {
		j, ended := w.hasEnded(id)
		if ended {
			continue
		}
		w.watch.unended = i
		if j == nil {
			return w.violation("S5: acknowledged job %v is lost", id)
		}
		return w.violation("L1: job %v is %v at %q (sites %v, attempt %d)", id, j.State, j.Holder, j.Sites, j.Attempt)
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.watch.running), job.AttemptID.Compare) {
		return w.violation("L1: %v still runs at %s", id, w.watch.running[id].s.cfg.ID)
	}
	for _, s := range w.sites {
		if s.gone {
			continue
		}
		if n := s.state.CopyCount(); n > 0 {
			return w.violation("L2: site %s still holds %d copies", s.cfg.ID, n)
		}
	}
	return w.watch.tasks.checkEnded()
}
