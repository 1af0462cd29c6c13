package meta

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// losses are the attempts of a job that sites reported as lost: a machine was
// restarted, or the job ends what should have told of its end. A job that is run
// again then keeps away from that site for a while, and from all sites when it
// happens again, longer each time: it must not use up its attempts in a moment, nor
// a site's processes.
type losses struct {
	row   uint8
	sites []lostAt
	until job.Time // before it the job is not placed
}

// lostAt is a site that gets no copy of a job before a time, and why.
type lostAt struct {
	site  job.SiteID
	until job.Time
	why   job.Reason
}

// mostDoublings bounds pauses that double: to 64 times the first.
const mostDoublings = 6

// note notes that the job's attempt was lost at a site, and returns when the job
// may be placed again.
func (l *losses) note(now job.Time, site job.SiteID, pause time.Duration) job.Time {
	l.row = min(l.row+1, mostDoublings+2)
	l.sites = slices.DeleteFunc(l.sites, func(s lostAt) bool { return s.site == site || s.until <= now })
	l.sites = append(l.sites, lostAt{site, now.Add(pause << (l.row - 1)), job.AttemptLost})
	l.until = now
	if l.row > 1 {
		l.until = now.Add(pause << (l.row - 2))
	}
	return l.until
}

// avoid keeps the job away from a site until a time, for a reason.
func (o *openJob) avoid(site job.SiteID, until job.Time, why job.Reason) {
	if o.lost == nil {
		o.lost = &losses{}
	}
	l := o.lost
	l.sites = slices.DeleteFunc(l.sites, func(s lostAt) bool { return s.site == site })
	l.sites = append(l.sites, lostAt{site, until, why})
}

// holds reports whether the job is not placed at now, wherever there is room.
func (l *losses) holds(now job.Time) bool { return l != nil && now < l.until }

// avoids says why a site gets no copy at now; nothing if it may.
func (l *losses) avoids(now job.Time, site job.SiteID) job.Reason {
	if l == nil {
		return job.NoReason
	}
	for i := range l.sites {
		if s := &l.sites[i]; s.site == site && now < s.until {
			return s.why
		}
	}
	return job.NoReason
}

// avoidsAny reports whether a site gets no copy at now that gets one later.
func (l *losses) avoidsAny(now job.Time) bool {
	return l != nil && slices.ContainsFunc(l.sites, func(s lostAt) bool { return now < s.until && s.until != job.Never })
}

// avoided returns the sites that get no copy at now, after those in tried.
func (l *losses) avoided(now job.Time, tried []job.SiteID) []job.SiteID {
	if l == nil {
		return tried
	}
	for i := range l.sites {
		if now < l.sites[i].until {
			tried = append(tried, l.sites[i].site)
		}
	}
	return tried
}

// waitsSince is since when a job has waited for a start, over all attempts before that were given back
// before they had started. Such a job keeps its place in the queue of its own site. Else the oldest one
// there, which is offered first to whatever site has room, would move to the end of that queue each
// time that such a site cannot start it.
func (o *openJob) waitsSince(now job.Time) job.Time {
	since, attempt := now, o.rec.Attempt
	if o.rec.Request.Level > 0 {
		return since // its time in a queue has a bound
	}
	for _, e := range slices.Backward(o.rec.Events) {
		if e.Attempt != attempt && e.Kind != store.CopyReturned {
			break
		}
		attempt = e.Attempt
		if e.Kind == store.ClaimOpened {
			since = e.Time
		}
	}
	return since
}
