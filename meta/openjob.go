package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// openJob is the volatile state of a job that has not ended; the facts are in rec.
type openJob struct {
	rec *store.Job
	// at says for each of rec.Sites how far its copy has come; inline is its
	// place for the usual numbers, so that it needs no allocation of its own.
	at     []copyAt
	inline [8]copyAt
	// refused are sites that refused or gave back a copy of this attempt, or that
	// it was taken from.
	refused []refusal
	// sent is when the latest copy was placed at another site.
	sent job.Time
	// barren names the sites that could take copies when none of them could take one
	// of this job, see [origin.topUp]; 0 if that may have changed.
	barren uint64
	// crowded says that the latest of them found a site with as many copies as it takes, or
	// one that was not asked as it had said so of another job.
	crowded bool
	// The origin's lists of those names have it.
	leaves, unplaced, leased, short, away bool
	ended                                 bool
	lost                                  *losses // nil if none was
	retryAt                               job.Time
	// changed is the effect that says that the job has changed.
	changed Effect
	// query collects what sites say about the start; nil if none is under way.
	query *startQuery
	// foresight collects what sites say about the start of a placed job; nil if nothing is
	// asked.
	foresight *foresight
	// decision tells why there is no place, while the job is pending.
	decision *store.Decision
	// promises are kept only where weights learn from them.
	promises *promises
	// filesWait is why its output cannot come home for now.
	filesWait string
	// homeward is what has been saved and is on its way; nil of most jobs.
	homeward *homeward
	// over is the attempt whose processes are gone, as its holder says, while its output
	// is being collected there; 0 for none.
	over uint32
	// failures counts the attempts in a row that no site kept a copy of; the
	// next one waits until retryAt.
	failures uint8
	// moves counts the copies of this attempt that were moved to idle sites, up to
	// mostDoublings.
	moves uint8
	// lease is when the holder's lease has ended for sure; 0 without one.
	lease job.Time
}

// refusal is a site that did not want a copy, and why. None is moved there before until,
// and none that the job lacks goes there before keeps.
type refusal struct {
	site         job.SiteID
	reason       job.Reason
	until, keeps job.Time
	// moved says that the origin took the copy away: the site did not refuse it, and gets
	// one again before until if the job lacks one, and from early on where it would or may
	// start. at is when that was.
	moved     bool
	at, early job.Time
	// final says of a job of a hierarchy that it is not to go to a lower level either.
	final bool
}

// refusesAt reports whether a site must not be asked for this attempt at now.
func (o *openJob) refusesAt(now job.Time, site job.SiteID) bool {
	for i := range o.refused {
		if r := &o.refused[i]; r.site == site && now < r.until {
			return true
		}
	}
	return false
}

// movesBack returns from when on a site from which a copy was moved may have one again, Never for
// not before long. Processors came free there at freed; dry says that a copy would start on them
// at once.
func (o *openJob) movesBack(site job.SiteID, dry bool, freed job.Time) job.Time {
	for i := range o.refused {
		if r := &o.refused[i]; r.site == site && r.moved && (dry || freed > r.at) {
			return r.early
		}
	}
	return job.Never
}

// keepsFrom reports whether a site gets no copy at now that the job lacks.
func (o *openJob) keepsFrom(now job.Time, site job.SiteID) bool {
	for i := range o.refused {
		if r := &o.refused[i]; r.site == site && now < r.keeps {
			return true
		}
	}
	return false
}

// refuse notes that a site does not want a copy of this attempt before until.
func (o *openJob) refuse(r refusal) {
	if !r.moved {
		r.keeps = r.until
	}
	o.refused = slices.DeleteFunc(o.refused, func(old refusal) bool { return old.site == r.site })
	o.refused, o.barren = append(o.refused, r), 0
}

// wantedBy reports whether one of the sites may take a copy that the job gets now: it did
// not refuse the latest attempt for what the job is.
func (o *openJob) wantedBy(sites []job.SiteID) bool {
	return slices.ContainsFunc(sites, func(site job.SiteID) bool {
		return !slices.ContainsFunc(o.refused, func(r refusal) bool { return r.site == site && r.until == job.Never })
	})
}

// unwilling adds to sites those that refused a pending job for what it is, while it is not time to
// ask them again. A job that is looked at before, as another site may have room, is not sent to them.
func (o *openJob) unwilling(now job.Time, sites []job.SiteID) []job.SiteID {
	if o.rec.State != job.Pending || now >= o.retryAt {
		return sites
	}
	sites = slices.Clip(sites)
	for i := range o.refused {
		if r := &o.refused[i]; now < r.keeps {
			sites = append(sites, r.site)
		}
	}
	return sites
}

// askAnew forgets who refused the latest attempt, but for those that it is not time to ask again.
// Where a site refused the job for what it is, no copy is moved there: it would lose its place at
// another site for nothing.
func (o *openJob) askAnew(now job.Time) {
	lasts := func(r *refusal) bool { return r.until == job.Never && forGood(r.reason) && !ofLevel(r.reason) }
	o.refused = slices.DeleteFunc(o.refused, func(r refusal) bool {
		return r.moved || now >= r.until || now >= o.retryAt && !lasts(&r)
	})
	for i := range o.refused {
		r := &o.refused[i]
		if r.keeps = min(r.keeps, o.retryAt); !lasts(r) {
			r.until = r.keeps
		}
	}
}

// refusedBy returns why a site did not want a copy of this attempt, NoReason if it did.
func (o *openJob) refusedBy(site job.SiteID) job.Reason {
	for _, r := range o.refused {
		if r.site == site {
			return r.reason
		}
	}
	return job.NoReason
}

// copyAt is how far a copy has come, as the origin knows.
type copyAt uint8

const (
	unsent  copyAt = iota // leaves at the end of this instant
	placing               // sent, not confirmed
	queued                // the host has it
)
