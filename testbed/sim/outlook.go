package sim

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// outlook is what a site would do if nothing but work stood in the way.
type outlook struct {
	*sitesched.Scheduler
	// unsettled are the copies in the queue whose origin is in reach but not settled, those that
	// have been begun here before and whose input has come, and pilots for which tasks wait.
	unsettled map[job.AttemptID]bool
	// asked are the copies it was asked about that are not in its queue: all of a kind start,
	// or none does.
	asked map[newcomer]bool
	// begun are the copies that it would start now; nil if nobody has asked.
	begun map[job.AttemptID]bool
	// trial is what again returns.
	trial sitesched.Scheduler
}

// newcomer is what matters to a scheduler of a copy that comes now.
type newcomer struct {
	processors int32
	memory     int64
	walltime   time.Duration
	remote     bool
}

// again returns a copy of the scheduler, which is good until the next call.
func (l *outlook) again() *sitesched.Scheduler {
	l.CloneInto(&l.trial)
	return &l.trial
}

// begins returns the copies that start now.
func (l *outlook) begins(now job.Time) map[job.AttemptID]bool {
	if l.begun == nil {
		l.begun = make(map[job.AttemptID]bool)
		for _, a := range l.starts(now, l.again) {
			l.begun[a] = true
		}
	}
	return l.begun
}

// starts returns what starts now in a plan that make returns, again and again until
// nothing starts whose origin may not have granted it: such copies are gone in the next.
// What starts beside them does not count, as it may start because of them: it may end before
// what they put off, or has their place.
func (l *outlook) starts(now job.Time, plan func() *sitesched.Scheduler) []job.AttemptID {
	for {
		starts := plan().Pass(now)
		if len(l.unsettled) == 0 {
			return starts
		}
		doubtful := slices.DeleteFunc(slices.Clone(starts), func(x job.AttemptID) bool { return !l.unsettled[x] })
		if len(doubtful) == 0 {
			return starts
		}
		for _, x := range doubtful {
			l.Withdraw(now, x)
		}
		clear(l.asked)
	}
}

// could reports whether a site could start a job now.
func (k *keeper) could(x *waiting, s, o *Site, j *store.Job) bool {
	r := &j.Request
	if k.least[s.index] < s.cfg.Scheduler.Charge(r) || s.state.Site().Draining || s.refuses(j) {
		return false
	}
	a, here := j.AttemptID(), x.here[s.index]
	if j.State == job.Pending {
		a.Number = j.NextAttempt()
		here = s.state.Copy(a) != nil
	}
	if s != o && !here && !k.takes(s, o) {
		return false
	}
	look := k.plan(s)
	if look.Has(a) {
		return look.begins(s.now())[a]
	}
	look.begins(s.now()) // which leaves fewer doubtful copies
	c := newcomer{r.Processors, r.MemoryBytes, r.Walltime, s != o}
	starts, known := look.asked[c]
	if !known {
		starts = slices.Contains(look.starts(s.now(), func() *sitesched.Scheduler {
			plan := look.again()
			plan.Enqueue(s.now(), job.Copy{ID: a, Request: *r, Arrival: s.now(), Remote: s != o})
			return plan
		}), a)
		look.asked[c] = starts
	}
	return starts
}

// free returns how many processors of a site nothing has.
func (k *keeper) free(s *Site) int32 {
	free := int64(s.cfg.Scheduler.Processors) - s.taken.processors
	for _, g := range s.staged {
		free -= int64(g.launch.Request.Processors)
	}
	return int32(max(free, 0)) // at most the site's
}

// takes reports whether a site would take another copy of an origin at this look.
func (k *keeper) takes(s, o *Site) bool {
	l, t := &s.cfg.Meta.Limits, &k.tenants[s.index]
	return t.its[o.index] < l.CopiesPerOrigin && t.all < l.Copies
}

// hasRoom reports whether a site would take another copy of an origin now.
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
	p, now := k.memory[s.index], s.now()
	if p == nil {
		p = &outlook{Scheduler: new(sitesched.Scheduler), unsettled: make(map[job.AttemptID]bool), asked: make(map[newcomer]bool)}
		k.memory[s.index] = p
	}
	s.scheduler.CloneInto(p.Scheduler)
	clear(p.unsettled)
	clear(p.asked)
	p.begun = nil
	// What a host has set aside of an origin that is not settled stays so: it has learned that
	// the origin does not answer, and what would start beside such copies might start because
	// of their places, and put off what the host has promised to those that are first without them.
	for _, o := range k.w.sites {
		if k.reaches(o, s) {
			p.BringBack(now, o.cfg.ID)
		}
	}
	p.Drain(now, s.state.Site().Draining)
	var reserved, postponed, strays []job.AttemptID
	for c := range p.Running {
		// What claims of a liar wait for is taken: it is answered, and might as well be
		// used for jobs. No site promises shares by origin.
		if c.Reserved && !s.launched(c.Copy.ID) && !k.w.watch.liars[c.Copy.ID.Job.Origin] {
			reserved = append(reserved, c.Copy.ID)
		}
	}
	for _, a := range reserved {
		p.Postpone(now, a, now)
	}
	for c := range p.Queued {
		o := k.w.site(c.Copy.ID.Job.Origin)
		switch {
		case o == nil || !k.inReach(o, s):
			strays = append(strays, c.Copy.ID)
			continue
		case !k.reaches(o, s), s.inputHere(c.Copy.ID), isPilot(c.Copy.ID) && k.serves(o, s, &c.Copy.Request):
			p.unsettled[c.Copy.ID] = true
		case !k.wants(o, c.Copy.ID):
			strays = append(strays, c.Copy.ID)
			continue
		}
		if c.NotBefore > now {
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

// wants reports whether an origin's job waits for this attempt to start. An earlier one may run yet, at a
// site that the origin has revoked.
func (k *keeper) wants(o *Site, a job.AttemptID) bool {
	j := o.state.Job(a.Job)
	return j != nil && j.Attempt == a.Number && waits(j) && k.begun[j.ID] < a.Number
}
