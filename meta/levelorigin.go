package meta

import (
	"fmt"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched/level"
	"kith/store"
)

// LevelSkipped says that a job of a hierarchy went past a level without a site in reach for it:
// that is no fault of the job, and somebody should look. It is told once for a level, until one
// of its sites is in reach again.
type LevelSkipped struct {
	Job   job.ID
	Level uint8
}

func (LevelSkipped) effect() {}

// Word names the effect for logs.
func (LevelSkipped) Word() string { return "level-skipped" }

// mayTake reports whether a site may take a job by its size, and has not refused the latest attempt for
// good for another reason than that the job has outgrown its level. o is nil before there is a job.
func mayTake(o *openJob, r *job.Request, p *cluster.Peer) bool {
	return mayGoTo(r, p) && !o.barredFrom(p.Site)
}

// mayTakeHere is mayTake for this very site.
func (or *origin) mayTakeHere(o *openJob, r *job.Request) bool {
	return or.site.Refuse(r) == job.NoReason && !o.barredFrom(or.self)
}

// barredFrom reports whether a site has refused the latest attempt for what the job is, though not
// because it has outgrown the level of the site: it is as if the site were not there.
func (o *openJob) barredFrom(site job.SiteID) bool {
	if o == nil {
		return false
	}
	why := o.refusedBy(site)
	return forGood(why) && !ofLevel(why) && why != job.Level // that one may be another level now
}

// ladder are the levels that sites offer to a request, and whether one that is out of reach for a
// short while may be another. With reach, only those in reach count. o is nil where what sites said
// of the latest attempt does not count.
func (or *origin) ladder(now job.Time, o *openJob, r *job.Request, reach bool) (level.Ladder, bool) {
	l, open := level.Ladder{}, false
	if !or.policy.StaysHome {
		l, open = or.peers.ladder(now, reach, func(p *cluster.Peer) bool { return mayTake(o, r, p) })
	}
	if or.mayTakeHere(o, r) && (!reach || !or.st.Site().Draining) {
		l.Add(or.host.ownLevel(), or.cfg.Self.Processors)
	}
	return l, open
}

// sink looks whether a pending job of a hierarchy that found no place goes to a lower level, or
// ends as it has outgrown the last one, and reports whether it did.
//
// A job leaves its level if each site there that is in reach says that it has outgrown it. A site that
// refuses it for good for another reason is passed over, and so is a level without a site in reach, once it is certain that there is none: a site that has
// just gone may come back, and one that is new has yet to say what it is.
func (or *origin) sink(now job.Time, o *openJob) bool {
	if o.rec.Level == 0 || o.rec.State != job.Pending {
		return false
	}
	r := o.rec.Asked()
	reach, open := or.ladder(now, o, &r, true)
	at, ok := reach.At(r.Level, r.Processors)
	switch {
	case ok && at == r.Level:
		or.alarmed[r.Level] = false
		return or.leavesLevel(now, o, &r)
	case !ok && or.outgrewAll(now, o, &r):
		or.reject(now, o, fmt.Sprintf("it used what level %d lets a job use, and there is no level below", r.Level-1))
		return true
	case open || !ok:
		return false
	}
	for skipped := r.Level; skipped < at; skipped++ {
		if !or.alarmed[skipped] {
			or.alarmed[skipped] = true
			or.emit(LevelSkipped{Job: o.rec.ID, Level: skipped})
		}
	}
	or.lower(now, o, at, job.Level, "")
	return true
}

// outgrewAll reports whether a job went down from the last level. It did so while that was not
// known: its site or this one had yet to hear of others. Now all have said what they are, or were silent for long.
func (or *origin) outgrewAll(now job.Time, o *openJob, r *job.Request) bool {
	n := len(o.rec.Demotions)
	if n == 0 || o.rec.Demotions[n-1].Cause != job.OutOfLevel || or.unheard(now) {
		return false
	}
	known, _ := or.ladder(now, o, r, false)
	_, ok := known.At(r.Level, r.Processors)
	return !ok
}

// leavesLevel is sink for a job with sites in reach at its level.
func (or *origin) leavesLevel(now job.Time, o *openJob, r *job.Request) bool {
	why, final, site := or.outgrownLevel(now, o, r)
	if why == job.NoReason {
		return false
	}
	known, open := or.ladder(now, o, r, false)
	_, below := known.Below(r.Level, r.Processors)
	switch {
	case !final && !below && (open || or.unheard(now)): // the last level is not known to be the last
		return false
	case final || !below:
		or.reject(now, o, fmt.Sprintf("level %d takes it no more, and there is none below: site %s says that %s", r.Level, site, why.Sentence()))
	default:
		or.lower(now, o, r.Level+1, why, site)
	}
	return true
}

// outgrownLevel returns why a job leaves its level, NoReason if one of the sites there that are in
// reach may still take it; whether it ends with that, and one site that says so.
func (or *origin) outgrownLevel(now job.Time, o *openJob, r *job.Request) (why job.Reason, final bool, site job.SiteID) {
	if or.host.ownLevel() == r.Level && or.mayTakeHere(o, r) && !or.st.Site().Draining {
		before := o.rec.Before()
		if why, final = or.host.levelRefusal(now, r, &before); !ofLevel(why) {
			if why = o.refusedBy(or.self); !ofLevel(why) {
				return job.NoReason, false, ""
			}
			final = o.refusedFinally(or.self)
		}
		site = or.self
	}
	if or.policy.StaysHome {
		return why, final, site
	}
	for _, p := range or.peers.view.Peers() {
		if !p.Known || !p.Connected || !p.Digest.Level.Is(r.Level) || p.Digest.Draining || !mayTake(o, r, p) {
			continue
		}
		said := o.refusedBy(p.Site)
		if !ofLevel(said) {
			return job.NoReason, false, ""
		}
		why, site, final = said, p.Site, final || o.refusedFinally(p.Site)
	}
	return why, final, site
}

// refusedFinally reports whether a site said that the job is not to go to a lower level either.
func (o *openJob) refusedFinally(site job.SiteID) bool {
	for i := range o.refused {
		if o.refused[i].site == site {
			return o.refused[i].final
		}
	}
	return false
}

// lower takes a pending job to a lower level, and looks for a place there.
func (or *origin) lower(now job.Time, o *openJob, to uint8, why job.Reason, site job.SiteID) {
	record(or.st, store.LowerJob{Job: o.rec.ID, From: o.rec.Level, To: to, Reason: why, Site: site, Time: now})
	o.refused, o.failures, o.retryAt, o.crowded = nil, 0, 0, false
	or.changed(o.rec.ID)
	or.place(now, o)
}

// reject ends a pending job that no level takes.
func (or *origin) reject(now job.Time, o *openJob, why string) {
	record(or.st, store.RejectJob{Job: o.rec.ID, Level: o.rec.Level, Why: why, Time: now})
	or.removeOpen(o)
	or.changed(o.rec.ID)
}

// leftLevel learns that this very site does not keep a copy of a job of a hierarchy.
func (or *origin) leftLevel(now job.Time, a job.AttemptID, why job.Reason, final bool) {
	o := or.open.Get(a.Job)
	if o == nil || o.rec.State != job.Queued || o.rec.Attempt != a.Number {
		return
	}
	for i, s := range o.rec.Sites {
		if s == or.self {
			or.copyReturnedFinally(now, o, i, why, final)
			return
		}
	}
}

// lastLevelOf reports whether no level below that of a job is known that would take it.
func (or *origin) lastLevelOf(now job.Time, j *store.Job) bool {
	r := j.Asked()
	known, open := or.ladder(now, nil, &r, false)
	_, below := known.Below(r.Level, r.Processors)
	return !below && !open && !or.unheard(now)
}

// unheard is that of peers, for a site whose jobs go elsewhere.
func (or *origin) unheard(now job.Time) bool { return !or.policy.StaysHome && or.peers.unheard(now) }

// leastLevel returns an error if a job could begin at no level that is known.
func (or *origin) leastLevel(now job.Time, r *job.Request) error {
	if r.Level == 0 {
		return nil
	}
	known, open := or.ladder(now, nil, r, false)
	if _, ok := known.At(r.Level, r.Processors); ok || open {
		return nil
	}
	return fmt.Errorf("%w: level %d: no known site of this level or one below it takes a job with %d processors; see \"kith sites\"", ErrInvalid, r.Level, r.Processors)
}
