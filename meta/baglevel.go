package meta

import (
	"fmt"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/sitesched/level"
	"kith/store"
)

// A bag of a hierarchy is the source's task: divisible, with one clock. t_e runs from the first task
// that is given out at a level, t_q from the arrival there, and when one of them is above the limit
// of each site of the level in reach, the bag goes down by one level, whole (spec 000 sections 1 and
// 2.3). It is the time that is measured, not the work done: work of what runs is known when it has
// ended, and the source turns time into work only to compare it with a bound of what is left, which
// a bag has none of. The origin decides, as no host sees more of a bag than its own bundles.

// bagLimits are those of a level by its sites in reach that could run tasks of a bag.
type bagLimits struct {
	run, queue time.Duration // the largest T_e and T_q; 0 if no site is in reach
	// full says that each of them has more work than it takes, or gave a bundle back as the bag
	// has outgrown its level. by is one that did.
	full bool
	by   job.SiteID
}

// add takes up a site.
func (l *bagLimits) add(run, queue time.Duration, full bool, site job.SiteID) {
	if full && l.by == "" {
		l.by = site
	}
	l.full = full && (l.full || l.run == 0)
	l.run, l.queue = max(l.run, run), max(l.queue, queue)
}

// mayTake reports whether another site could run tasks of a bag of a hierarchy at its level.
func (bo *bagOrigin) mayTake(r *job.Request, p *cluster.Peer) bool {
	return mayGoTo(r, p) && bo.peers.knowsTasks(p.Site)
}

// mayTakeHere is mayTake for this very site.
func (bo *bagOrigin) mayTakeHere(r *job.Request) bool {
	return bo.host.takesTasks() && bo.jobs.site.Refuse(r) == job.NoReason
}

// ladder is that of jobs ([origin.ladder]), for tasks of a bag.
func (bo *bagOrigin) ladder(now job.Time, r *job.Request, reach bool) (level.Ladder, bool) {
	l, open := level.Ladder{}, false
	if !bo.jobs.policy.StaysHome {
		l, open = bo.peers.ladder(now, reach, func(p *cluster.Peer) bool { return bo.mayTake(r, p) })
	}
	if bo.mayTakeHere(r) && (!reach || !bo.st.Site().Draining) {
		l.Add(bo.jobs.host.ownLevel(), bo.cfg.Self.Processors)
	}
	return l, open
}

// limits are those of the level that a bag is at.
func (bo *bagOrigin) limits(now job.Time, o *openBag, r *job.Request) (l bagLimits) {
	gaveBack := func(site job.SiteID) bool { return now < o.refused[site] && o.outgrown[site] }
	if bo.jobs.host.ownLevel() == r.Level && bo.mayTakeHere(r) && !bo.st.Site().Draining {
		own := bo.jobs.host.describe(now).Level
		l.add(own.Run, own.Queue, own.Work > own.Limit || gaveBack(bo.self), bo.self)
	}
	if bo.jobs.policy.StaysHome {
		return l
	}
	for _, p := range bo.peers.view.PeersAt(now) {
		d := p.Digest.Level
		if p.Known && p.Connected && d.Is(r.Level) && !p.Digest.Draining && bo.mayTake(r, p) {
			l.add(d.Run, d.Queue, d.Work > d.Limit || gaveBack(p.Site), p.Site)
		}
	}
	return l
}

// lookAtLevel looks at the limits of the level that a bag is at, and returns how long a task may run
// there: T_e as it was when the first task was given out there, or its own walltime if that is less.
// 0 if none was and no site of the level is in reach, and for a bag of no hierarchy.
func (bo *bagOrigin) lookAtLevel(now job.Time, o *openBag) time.Duration {
	if o.rec.Level == 0 {
		return 0
	}
	r := o.rec.Asked(0)
	o.level = bo.limits(now, o, &r)
	if o.rec.Limit > 0 {
		return o.rec.Limit
	}
	return min(o.level.run, r.Walltime, bags.MaxTaskWalltime)
}

// overdueAt is when a bag is overdue at its level, [job.Never] if no site of it is in reach.
func overdueAt(b *store.Bag, l *bagLimits) job.Time {
	if l.run == 0 {
		return job.Never
	}
	due := b.Since.Add(l.queue)
	if b.Begun != 0 {
		due = min(due, b.Begun.Add(l.run))
	}
	return due
}

// outgrown returns why a bag leaves its level, NoReason if it stays, and which site says so.
func outgrown(now job.Time, b *store.Bag, l *bagLimits) (why job.Reason, by job.SiteID) {
	switch {
	case now > overdueAt(b, l): // as the source has it: not at the limit
		return job.LevelOverdue, ""
	case l.full && b.Given() == 0:
		return job.LevelFull, l.by
	}
	return job.NoReason, ""
}

// levelSoon has the levels of all bags looked at.
func (bo *bagOrigin) levelSoon(now job.Time) { bo.nextLevel = min(bo.nextLevel, now) }

// levels has bags leave their level that have outgrown it.
func (bo *bagOrigin) levels(now job.Time) {
	if now < bo.nextLevel {
		return
	}
	bo.nextLevel = job.Never
	for at := 0; at < len(bo.open); {
		o := bo.open[at]
		if o.rec.Level > 0 && o.rec.State.Gives() && !o.rec.Spent() {
			for bo.sink(now, o) && bo.byID[o.rec.ID] == o && o.rec.State.Gives() { //nolint:revive // past levels without a site
			}
			if bo.byID[o.rec.ID] == o && o.rec.State.Gives() {
				r := o.rec.Asked(0)
				l := bo.limits(now, o, &r)
				bo.nextLevel = min(bo.nextLevel, now.Add(bo.cfg.Timing.Retry))
				if due := overdueAt(o.rec, &l); due >= now && due < job.Never { // else it waits to know more
					bo.nextLevel = min(bo.nextLevel, due+1)
				}
			}
		}
		if at < len(bo.open) && bo.open[at] == o {
			at++
		}
	}
}

// sink looks whether an open bag goes to a lower level, or ends as it has outgrown the last one, and
// reports whether it did. What is said of jobs at [origin.sink] holds for bags.
func (bo *bagOrigin) sink(now job.Time, o *openBag) bool {
	b := o.rec
	r := b.Asked(0)
	reach, open := bo.ladder(now, &r, true)
	at, ok := reach.At(b.Level, r.Processors)
	switch {
	case ok && at == b.Level:
		bo.jobs.alarmed[b.Level] = false
		return bo.leavesLevel(now, o, &r)
	case !ok && bo.outgrewAll(now, b, &r):
		bo.reject(now, o, fmt.Sprintf("it used what level %d lets a bag use, and there is no level below", b.Level-1))
		return true
	case open || !ok:
		return false
	}
	for skipped := b.Level; skipped < at; skipped++ {
		if !bo.jobs.alarmed[skipped] {
			bo.jobs.alarmed[skipped] = true
			bo.emit(LevelSkipped{Job: b.ID, Level: skipped})
		}
	}
	bo.lower(now, o, at, job.Level, "")
	return true
}

// outgrewAll is that of jobs: it went down from what was not known to be the last level.
func (bo *bagOrigin) outgrewAll(now job.Time, b *store.Bag, r *job.Request) bool {
	n := len(b.Demotions)
	if n == 0 || !ofLevel(b.Demotions[n-1].Reason) || bo.jobs.unheard(now) {
		return false
	}
	known, _ := bo.ladder(now, r, false)
	_, ok := known.At(r.Level, r.Processors)
	return !ok
}

// leavesLevel is sink for a bag with sites in reach at its level.
func (bo *bagOrigin) leavesLevel(now job.Time, o *openBag, r *job.Request) bool {
	l := bo.limits(now, o, r)
	why, by := outgrown(now, o.rec, &l)
	if why == job.NoReason {
		return false
	}
	known, open := bo.ladder(now, r, false)
	_, below := known.Below(r.Level, r.Processors)
	switch {
	case below:
		bo.lower(now, o, r.Level+1, why, by)
	case open || bo.jobs.unheard(now): // the last level is not known to be the last
		return false
	case why == job.LevelFull && o.rec.Begun != 0: // it waits for room
		return false
	default:
		bo.reject(now, o, fmt.Sprintf("level %d takes it no more, and there is none below: %s", r.Level, why.Sentence()))
	}
	return true
}

// lower takes a bag to a lower level: what it has at sites comes back, or ends there.
func (bo *bagOrigin) lower(now job.Time, o *openBag, to uint8, why job.Reason, site job.SiteID) {
	record(bo.st, store.LowerBag{Bag: o.rec.ID, From: o.rec.Level, To: to, Reason: why, Site: site, Time: now})
	clear(o.refused)
	clear(o.outgrown)
	bo.place(now, o)
	bo.changed(o)
	bo.stopAt(now, o, "")
}

// reject ends the tasks of a bag that have not ended: no level takes them.
func (bo *bagOrigin) reject(now job.Time, o *openBag, why string) {
	all := job.TaskRange(0, o.rec.Tasks())
	late := lateWith(o.rec, &all)
	record(bo.st, store.RejectBag{Bag: o.rec.ID, Level: o.rec.Level, Why: why, Time: now})
	bo.changed(o)
	bo.stopAt(now, o, "")
	bo.stopBeaten(now, o, late)
	bo.close(now, o)
}

// leastLevel is that of jobs: an error if a bag could begin at no level that is known.
func (bo *bagOrigin) leastLevel(now job.Time, r *job.Request) error {
	if r.Level == 0 {
		return nil
	}
	known, open := bo.ladder(now, r, false)
	if _, ok := known.At(r.Level, r.Processors); ok || open {
		return nil
	}
	return fmt.Errorf("%w: level %d: no known site of this level or one below it takes tasks with %d processors; see \"kith sites\"", ErrInvalid, r.Level, r.Processors)
}

// limitOf is [bagOrigin.lookAtLevel] as it was last found, 0 for a bag that has ended.
func (bo *bagOrigin) limitOf(b *store.Bag) time.Duration {
	if o := bo.byID[b.ID]; o != nil {
		return o.limit
	}
	return 0
}
