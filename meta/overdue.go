package meta

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/internal/job"
)

// A site that holds the claim of a job may be slow, or lie and never say that the job has
// ended. An attempt is overdue when its time limit and overdueAfter have passed since the
// grant, by this site's clock. Timing.Overdue later this site does without its holder, as
// the job's on_site_lost says: the next attempt follows, or the job is lost. Nothing runs
// twice that may not: a lease is left to end first, and a lost job does not run again.
//
// The holder must have had its say then. One that is out of reach may have ended the job long
// ago; its result is waited for, for any time, and comes first when it is back. So a holder is
// given up
//
//   - when a stream to it has been up for overdueUp, or
//   - when all its streams since the end of the last wait make overdueUp together, each counted
//     as overdueMoment at least, and Timing.Overdue has passed since it was there first.
//
// By the second it does not help a holder to break its streams before they count, and one whose
// network comes back in pieces, or whose daemon ends at once, has a day for it to be mended.

const (
	overdueAfter = 5 * time.Minute
	// overdueUp is how long a holder must be up before it is given up.
	overdueUp = time.Minute
	// overdueMoment is what a stream counts as that broke sooner.
	overdueMoment = 5 * time.Second
	// overdueEvery is how often jobs are looked through at most.
	overdueEvery = time.Minute
)

// GivenUp says that a site did not finish jobs of this one, which go on without it.
type GivenUp struct {
	Site job.SiteID
	Jobs int
}

func (GivenUp) effect()      {}
func (GivenUp) Word() string { return "given-up" }

// overdue is what an origin keeps in mind of overdue jobs. Times of before a start of the
// daemon are those of a clock that may have been set since, so the last wait is counted anew.
type overdue struct {
	began job.Time // this run
	next  job.Time // nothing is to be given up before
	// given counts the jobs that each site was given up for in this run, and fresh those of
	// them that the operator has not been told of.
	given, fresh map[job.SiteID]int
	// unsaid are the attempts whose last wait is over and whose holders had no say yet.
	unsaid map[job.AttemptID]unsaid
}

// unsaid is what is known of a holder since the last wait for one of its attempts was over.
type unsaid struct {
	before time.Duration // how long it had been up until then
	back   job.Time      // when it was first seen up since, Never before
}

// expectEnd notes that the claim of a job is with a site.
func (or *origin) expectEnd(o *openJob) {
	or.overdue.next = min(or.overdue.next, or.givesUpAt(o))
}

// dueAt returns when an attempt becomes overdue, Never if no other site holds it.
func (or *origin) dueAt(o *openJob) job.Time {
	j := o.rec
	switch {
	case j.State.Claim() != job.ClaimTaken, j.Holder == or.self, j.Outcome != nil:
		return job.Never
	case or.cfg.ReferenceTimes: // walltimes of simulations are no times on the clock
		return job.Never
	}
	at := cmp.Or(grantedAt(j), or.overdue.began) // earlier versions forgot grants
	return at.Add(j.Request.Walltime).Add(overdueAfter)
}

// givesUpAt returns when this site does without the holder of an attempt, Never if it waits
// for any time.
func (or *origin) givesUpAt(o *openJob) job.Time {
	return max(or.dueAt(o), or.overdue.began).Add(or.cfg.Timing.Overdue)
}

// expireOverdue gives up the holders of jobs that are overdue for too long.
func (or *origin) expireOverdue(now job.Time) {
	if now >= or.overdue.next {
		next := job.Never
		before := or.overdue.unsaid
		or.overdue.unsaid = nil
		var late []*openJob
		for _, o := range or.away {
			at := or.givesUpAt(o)
			switch {
			case !or.isAway(o):
			case now < at:
				next = min(next, at)
			case leased(&o.rec.Request) && (runsAgain(o) || o.rec.State == job.Cancelling): // ends with its lease, which is not renewed
			case !or.hadItsSay(now, o, before):
				next = now
			default:
				late = append(late, o)
			}
		}
		or.overdue.next = max(next, now.Add(overdueEvery))
		if next == job.Never {
			or.overdue.next = job.Never
		}
		for _, o := range late {
			or.giveUp(now, o)
		}
	}
	for _, site := range slices.Sorted(maps.Keys(or.overdue.fresh)) {
		or.emit(GivenUp{Site: site, Jobs: or.overdue.fresh[site]})
	}
	clear(or.overdue.fresh)
}

// hadItsSay reports whether the holder of an attempt, the last wait for which is over, has
// said what it had to say. It keeps what it knows of one that has not; before is what was
// kept when jobs were last looked through.
func (or *origin) hadItsSay(now job.Time, o *openJob, before map[job.AttemptID]unsaid) bool {
	site, a := o.rec.Holder, o.rec.AttemptID()
	p := or.peers.view.Get(site)
	up := p != nil && p.Connected
	if up && now >= p.Since.Add(overdueUp) {
		return true
	}
	met := or.peers.met(now, site)
	u, known := before[a]
	if !known {
		u = unsaid{before: met, back: job.Never}
	}
	if u.back == job.Never && (up || met > u.before) {
		u.back = now
	}
	if met-u.before >= overdueUp && u.back != job.Never && now >= u.back.Add(or.cfg.Timing.Overdue) {
		return true
	}
	if or.overdue.unsaid == nil {
		or.overdue.unsaid = make(map[job.AttemptID]unsaid)
	}
	or.overdue.unsaid[a] = u
	return false
}

// giveUp does without the holder of a job that it never ended.
func (or *origin) giveUp(now job.Time, o *openJob) {
	or.noteGivenUp(now, o)
	holder, a := o.rec.Holder, o.rec.AttemptID()
	switch {
	case o.rec.State == job.Cancelling:
		or.revoke(now, o, job.Overdue, false)
	case runsAgain(o):
		or.revoke(now, o, job.Overdue, o.rec.Request.OnSiteLost == job.Race)
	default:
		late := now.Sub(or.dueAt(o).Add(-overdueAfter)).Round(time.Minute)
		or.settleOutcome(now, o, job.Outcome{Kind: job.Loss, End: now, Reason: fmt.Sprintf("site %s, which had its claim, did not say that it ended for %v after its time limit", holder, late)})
		or.recall(now, holder, outKey{stop, a})
	}
}

// noteGivenUp counts a job that its holder never ended, and keeps it away from that site for
// as long as was waited: no other one may be able to run it.
func (or *origin) noteGivenUp(now job.Time, o *openJob) {
	site := o.rec.Holder
	if or.overdue.given == nil {
		or.overdue.given, or.overdue.fresh = make(map[job.SiteID]int), make(map[job.SiteID]int)
	}
	or.overdue.given[site]++
	or.overdue.fresh[site]++
	o.avoid(site, now.Add(or.cfg.Timing.Overdue), job.AttemptLost)
}
