package meta

import (
	"math"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
	"kith/sitesched/level"
	"kith/store"
)

// hostLevel are the jobs of a hierarchy that are at a site, and the limits of the level that the
// site is.
type hostLevel struct {
	limits level.Limits
	copies []*hostCopy // of such jobs, in the order of their arrival; some may have gone
	next   job.Time    // when limits are enforced at the latest
	due    bool        // one has come or gone since they were
	// What one look has seen, for the rest of the event if none comes or goes: who is here, as
	// the rules see them, who has to leave, and the work of the others.
	looked bool
	here   []*hostCopy
	tasks  []level.Occupant
	list   []level.Departure
	work   level.Complexity
	share  levelShare
}

// levelNews notes that a job of the hierarchy has come or gone.
func (h *host) levelNews(c *hostCopy) {
	if c.rec.Request.Level > 0 {
		h.level.due, h.level.looked, h.passing = true, false, true
	}
}

// lookLevel lists the jobs of the hierarchy that are here and asks the rules who has to leave: once for
// an event, unless one comes or goes.
func (h *host) lookLevel(now job.Time) {
	l := &h.level
	if l.looked {
		return
	}
	known, open := h.peers.ladder(now, false, func(p *cluster.Peer) bool { return !p.NoCheckpoints })
	l.looked, l.here, l.tasks = true, l.here[:0], l.tasks[:0]
	for _, c := range l.copies {
		if h.copies.Get(c.rec.ID) != c || c.rec.Phase == store.CopyEnded || c.over || c.killed {
			continue
		}
		r := c.rec.Request
		_, below := known.Below(l.limits.Rank, r.Processors)
		last := !below && !open
		task := h.levelTask(r, c.rec.Before, c.ran(now))
		if h.toBeEstimated(r, h.levelTask(r, c.rec.Before, 0), last) { // or it is: what is known now does not count
			task.Unknown = true
		}
		o := level.Occupant{Task: task, Stayed: max(0, now.Sub(c.rec.Arrived)), Ran: c.ran(now), Last: last}
		if o.Ran > 0 {
			o.Ran += usedBefore(c.rec.Before)
		}
		l.here, l.tasks = append(l.here, c), append(l.tasks, o)
	}
	l.list, l.work = level.EnforceQueueLimits(&l.limits, l.tasks, false, l.list[:0])
}

// ran is for how long the command of a copy has run here.
func (c *hostCopy) ran(now job.Time) time.Duration {
	if c.started == 0 {
		return 0
	}
	return max(0, now.Sub(c.since))
}

// levelTask is a job as the rules see it that has run here for a while. A job of Kith has a width
// that is fixed, where the source's tasks spread over all N processors of a level: N is its width.
func (h *host) levelTask(r *job.Request, before *job.Progress, ran time.Duration) level.Task {
	l := &h.level.limits
	wide := float64(min(r.Processors, l.Processors)) / float64(l.Processors)
	share := l.Bound * wide
	var b level.Bound
	done := 0.0
	if before != nil {
		if done = before.Done; before.Bound > 0 {
			_ = b.Add(level.Complexity(before.Bound)) // it is checked at the border
		}
	}
	done += ran.Seconds() * float64(r.Processors) * h.speed(r)
	return b.Task(level.Complexity(done), share)
}

// levelWork is Q: the work of the jobs of the hierarchy that are here and stay.
func (h *host) levelWork(now job.Time) level.Complexity {
	l := &h.level
	if l.limits.Rank == 0 {
		return 0
	}
	h.lookLevel(now)
	return l.work
}

// overloaded reports whether this level has more work than it takes: a bag's tasks are given back.
func (h *host) overloaded(now job.Time) bool {
	l := &h.level.limits
	return l.Rank > 0 && l.Action(level.Overload, false) != level.Off && h.levelWork(now) > l.QueueLimit()
}

// levelRefusal says why a job of a hierarchy that comes here is not taken, and whether it is not
// to go to a lower level either.
func (h *host) levelRefusal(now job.Time, r *job.Request, before *job.Progress) (why job.Reason, final bool) {
	l := &h.level.limits
	switch {
	case r.Level == 0:
		return job.NoReason, false
	case l.Rank != r.Level:
		return job.Level, false
	}
	last := h.lastLevel(now, r)
	if l.Run-usedBefore(before) < time.Second { // what it ran before at this level counts
		return job.LevelOverdue, l.Action(level.Overdue, last) != level.Demote
	}
	a := level.Arrival{Task: h.levelTask(r, before, 0)}
	v := level.ProcessNewTask(l, h.levelWork(now), a, last)
	if v.Step == level.Estimate {
		if h.toBeEstimated(r, a.Task, last) { // when it begins
			return job.NoReason, false
		}
		a.Estimated = true
		v = level.ProcessNewTask(l, 0, a, last)
	}
	if v.Step == level.Leave {
		return reasonOf(v.Trigger), v.Action != level.Demote
	}
	return job.NoReason, false
}

// lastLevel reports whether no level that a job may go to is below this one, as far as is known.
// While sites that may be one have yet to be heard of, there is one.
func (h *host) lastLevel(now job.Time, r *job.Request) bool {
	known, open := h.peers.ladder(now, false, func(p *cluster.Peer) bool { return mayGoTo(r, p) })
	_, below := known.Below(h.level.limits.Rank, r.Processors)
	return !below && !open && !h.peers.unheard(now)
}

// mayGoTo reports whether a job of a hierarchy may go to a site by its size and by what the site knows.
func mayGoTo(r *job.Request, p *cluster.Peer) bool {
	return !p.NoCheckpoints && p.Refuses(r) == job.NoReason && place.Fits(r, p.Digest.Processors, p.Digest.MemoryBytes) == job.NoReason
}

// unheardVanish is how many times timing.vanish a site that has yet to say what it is may be a lower level
// where a job would end for want of one.
const unheardVanish = 10

// unheard reports whether a site has yet to say what it is, and may still: this one has forgotten with its
// restart what others were. A job that would end for want of a lower level waits for that, and no longer, as a site may be gone for good.
func (p *peers) unheard(now job.Time) bool {
	return slices.ContainsFunc(p.view.PeersAt(now), func(s *cluster.Peer) bool {
		return !s.Known && now.Sub(s.Since) < unheardVanish*p.cfg.Timing.Vanish
	})
}

// ladder are the levels that other sites offer that take what a request is, and whether one that
// is not in reach for a short while may be another. With reach, only those in reach count.
func (p *peers) ladder(now job.Time, reach bool, takes func(*cluster.Peer) bool) (l level.Ladder, open bool) {
	for _, s := range p.view.PeersAt(now) {
		if fresh := now.Sub(s.Since) < p.cfg.Timing.Vanish; fresh && (!s.Known || !s.Connected && s.Digest.Level != nil) {
			open = true
		}
		if !s.Known || s.Digest.Level == nil || !takes(s) || reach && (!s.Connected || s.Digest.Draining) {
			continue
		}
		l.Add(s.Digest.Level.Rank, s.Digest.Processors)
	}
	return l, open
}

// usedBefore is how long earlier attempts of a job of a hierarchy ran together at its level.
func usedBefore(before *job.Progress) time.Duration {
	if before == nil {
		return 0
	}
	return before.Used
}

// levelLimit is how long a job of the hierarchy may run here: T_e, less what it ran before at this
// level, or what is left of its own walltime.
func (h *host) levelLimit(r *job.Request, before *job.Progress) time.Duration {
	return min(h.level.limits.Run-usedBefore(before), h.here(r).Walltime)
}

// limitSeconds is the time limit of a request here, in whole seconds, where it is another than its
// own; 0 where it is the same.
func (h *host) limitSeconds(r *job.Request, before *job.Progress) uint32 {
	if r.Level == 0 || h.level.limits.Rank == 0 {
		return h.ownerLimit(r)
	}
	return uint32(min(math.MaxUint32, max(1, math.Ceil(h.levelLimit(r, before).Seconds()))))
}

// levelEnd is how long an attempt that has begun may run here: the limit that its copy has, and no
// longer than until T_q from its arrival.
func (h *host) levelEnd(rec *store.Copy, limit time.Duration) time.Duration {
	if rec.Request.Level == 0 || h.level.limits.Rank == 0 || rec.Begun == 0 {
		return limit
	}
	return min(limit, max(time.Second, h.level.limits.Queue-max(0, rec.Begun.Sub(rec.Arrived))))
}

// levelGrace is how long before its time limit an attempt that is to go on at the next level is
// asked to save what it has done.
func (h *host) levelGrace(limit time.Duration) time.Duration { return min(time.Minute, limit/4) }

// ofLevel reports whether the time limit of a copy here is that of a level, not the job's own.
func (h *host) ofLevel(rec *store.Copy) bool {
	return rec.Request.Level > 0 && h.entry(rec).Request.Walltime < h.here(rec.Request).Walltime
}

// limitedRequest is what a copy asks for as it is run here. One whose limit is that of a level is not
// one that is asked before its own: it goes down, or ends with what it has.
func (h *host) limitedRequest(rec *store.Copy) job.Request {
	r := h.entry(rec).Request
	if h.ofLevel(rec) {
		r.AskSeconds = 0
	}
	return r
}

// sinks reports whether a job goes to the next level when it has used what this one allows.
func (h *host) sinks(now job.Time, r *job.Request) bool {
	return h.level.limits.Action(level.Overdue, h.lastLevel(now, r)) == level.Demote
}

// goesOn reports whether the job of an attempt that begins goes to the next level if its time limit
// ends it.
func (h *host) goesOn(now job.Time, c *store.Copy) bool {
	begun := *c
	begun.Begun = now
	rec := &begun
	if rec.Last() || !rec.Request.Movable() || !h.ofLevel(rec) {
		return false
	}
	// A level that is only not known to be missing does not do: what the job leaves would not be kept
	// at the last one. While this daemon is there, it is looked again before the limit.
	known, _ := h.peers.ladder(now, false, func(p *cluster.Peer) bool { return mayGoTo(rec.Request, p) })
	_, below := known.Below(h.level.limits.Rank, rec.Request.Processors)
	return h.level.limits.Action(level.Overdue, !below) == level.Demote
}

// ending is what ends of an attempt mean for its job.
func (h *host) ending(rec *store.Copy) Ending { return Ending{GoesOn: rec.GoesOn, Last: rec.Last()} }

// askInTime has attempts whose time here is nearly used save what they have done and go on at the
// next level, and returns when the next one is due. One that is not asked in time, as its daemon is
// down, is demoted when its limit ends it ([Ending]).
func (h *host) askInTime(now job.Time) job.Time {
	next := job.Never
	for _, c := range h.level.here {
		if h.demotable(c) != nil || c.demoted || !h.ofLevel(c.rec) {
			continue
		}
		limit := h.entry(c.rec).Request.Walltime
		grace := h.levelGrace(limit)
		if at := c.since.Add(limit - grace); now < at {
			next = min(next, at)
		} else if h.sinks(now, c.rec.Request) { // else its time limit ends it, and it keeps what it has
			h.demoteLevel(c, grace)
		}
	}
	return next
}

// enforceLevel has the jobs of the hierarchy that have outgrown this level leave it.
func (h *host) enforceLevel(now job.Time) {
	l := &h.level
	if !l.due && now < l.next {
		return
	}
	l.due, l.next = false, job.Never
	h.lookLevel(now)
	l.copies = append(l.copies[:0], l.here...)
	if len(l.here) == 0 || l.limits.Rank == 0 {
		return
	}
	list, leaving := slices.Clone(l.list), make([]*hostCopy, len(l.list)) // what they cause may look again
	for i, d := range list {
		leaving[i] = l.here[d.Index]
	}
	l.next = min(now.Add(level.EnforcePeriod), h.askInTime(now))
	for i, c := range leaving {
		h.leaveLevel(now, c, list[i])
	}
}

// leaveLevel has one copy leave this level. What waits with a claim that is on its way, or that it
// has, is looked at again later.
func (h *host) leaveLevel(now job.Time, c *hostCopy, d level.Departure) {
	id, why, final := c.rec.ID, reasonOf(d.Trigger), d.Action != level.Demote
	switch {
	case h.copies.Get(id) != c:
	case c.rec.Phase == store.CopyBegun:
		if !final && !h.lastLevel(now, c.rec.Request) { // else its time limit ends it, and it keeps what it has
			h.demoteLevel(c, h.levelGrace(h.entry(c.rec).Request.Walltime))
		}
	case c.status != waiting || c.returned || c.outgrown != job.NoReason:
	case id.Job.Origin == h.self:
		h.drop(now, c)
		h.origin.leftLevel(now, id, why, final)
	case h.peers.reachable(id.Job.Origin):
		h.drop(now, c)
		h.peers.send(id.Job.Origin, GiveBack{Attempt: id, Reason: why, Final: final, Stamp: h.nextStamp()})
	}
}

// demoteLevel has an attempt that runs save what it has done and go on at the next level.
// One that has not started, or is being stopped, is looked at again later.
func (h *host) demoteLevel(c *hostCopy, grace time.Duration) {
	_ = h.demote(c.rec.ID, job.OutOfLevel, grace)
}

// relevel takes up which level the site is now. Copies of jobs of another level that wait go
// back; what runs keeps the limit that it has.
func (h *host) relevel(now job.Time, p LevelPolicy) {
	if h.cfg.Level == p {
		return
	}
	h.cfg.Level = p
	l := &h.level
	l.limits, l.due, l.looked = p.limits(&h.cfg.Self), true, false
	h.lookLevel(now)
	for _, c := range slices.Clone(l.here) {
		if c.rec.Request.Level != l.limits.Rank && c.rec.Phase == store.CopyQueued && c.status == waiting && !c.returned {
			h.returnOther(now, c)
		}
	}
	h.passing = true
}

// returnOther gives back a copy of a job that is of another level than the site has become.
func (h *host) returnOther(now job.Time, c *hostCopy) {
	switch id := c.rec.ID; {
	case h.copies.Get(id) != c:
	case id.Job.Origin == h.self:
		h.drop(now, c)
		h.origin.outgrownHere(now, id, job.Level)
	case h.peers.reachable(id.Job.Origin):
		h.giveBack(now, c, job.Level)
	default:
		c.outgrown = job.Level // it goes back once its origin is in reach, and is in no queue until then
		h.site.Withdraw(now, id)
		h.dequeueOutside(id)
	}
}

// ownLevel is the level of a hierarchy that the site is, 0 for none.
func (h *host) ownLevel() uint8 { return h.level.limits.Rank }

// describeLevel is what this site says of the level that it is, nil if it is none.
func (h *host) describeLevel(now job.Time) *cluster.Level {
	l := &h.level.limits
	if l.Rank == 0 {
		return nil
	}
	h.sampleShare(now)
	s := &h.level.share
	return &cluster.Level{
		Rank: l.Rank, Queue: l.Queue, Run: l.Run, Work: float64(h.levelWork(now)), Limit: float64(l.QueueLimit()),
		Shares: true, Available: s.available, Latency: time.Duration(s.latency),
	}
}
