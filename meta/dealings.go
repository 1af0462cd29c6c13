package meta

import (
	"kith/cluster"
	"kith/internal/job"
)

// What an origin knows of other sites from its own dealings with them
// ([cluster.Sent]). It is kept only where work is conserved: the papers' schemes go
// by what sites say.

// dealings returns what is known of another site, nil if nothing is kept.
func (or *origin) dealings(site job.SiteID) *cluster.Sent {
	if !or.conserving() {
		return nil
	}
	if p := or.peers.view.Get(site); p != nil {
		return &p.Sent
	}
	return nil
}

// noteSent counts a copy that is to leave for a site.
func (or *origin) noteSent(now job.Time, o *openJob, site job.SiteID) {
	if s := or.dealings(site); s != nil {
		s.Count(&o.rec.Request, 1)
		s.Offered(now, or.cfg.Timing.Retry)
	}
}

// noteWithdrawn counts a copy that a site is to drop, or did not keep. If the site
// has processors free for another, as far as it said, it need not wait for its next
// digest: of one that is never dry that may be up to Timing.Load later.
func (or *origin) noteWithdrawn(now job.Time, o *openJob, site job.SiteID) {
	s := or.dealings(site)
	if s == nil {
		return
	}
	s.Count(&o.rec.Request, -1)
	or.conserveAtFree(now, site)
}

// noteLeft counts that a site that took as many copies as it takes has one less. Jobs
// that wait for that need not wait for the end of a pause and the next digest.
func (or *origin) noteLeft(now job.Time, site job.SiteID) {
	if s := or.dealings(site); s != nil && s.Left() {
		or.room = true
		or.conserveAtFree(now, site)
	}
}

// noteUnsent counts that a copy did not leave for a site.
func (or *origin) noteUnsent(now job.Time, site job.SiteID) {
	if s := or.dealings(site); s != nil && s.Unsent(now) {
		or.conserveAtFree(now, site)
	}
}

// conserveAtFree has a round made soon if a site has processors free, as far as it said,
// for more than was sent there since.
func (or *origin) conserveAtFree(now job.Time, site job.SiteID) {
	if p := or.peers.view.Get(site); p.Known && float64(p.Digest.Load.Free) > p.Sent.Procs {
		or.conserveSoon(now)
	}
}

// noteAnswered learns that a site has answered an offer, and reports whether that was made after
// the latest copy left it.
func (or *origin) noteAnswered(from job.SiteID) bool {
	s := or.dealings(from)
	return s == nil || s.Answered()
}

// noteAccepted learns that a site has room for copies. One that was offered few, as it had
// been full, is offered more at once.
func (or *origin) noteAccepted(now job.Time, from job.SiteID) {
	if s := or.dealings(from); s != nil && s.Accepted() {
		or.roomSeen(now)
		or.conserveAtFree(now, from)
		if len(or.conserve.short) > 0 {
			or.conserveAt(now.Add(moreAfter))
		}
	}
}

// noteRefused learns why a site refused or gave back a copy.
func (or *origin) noteRefused(now job.Time, from job.SiteID, why job.Reason) {
	if s := or.dealings(from); s != nil && ofState(why) {
		s.Refused(now, or.cfg.Timing.Retry, ofCount(why))
	}
}

// metAnew forgets that a site was full: it has come back, from a drain or a
// broken stream.
func (or *origin) metAnew(site job.SiteID) {
	if s := or.dealings(site); s != nil {
		*s = cluster.Sent{}
	}
}

// ofCount reports whether a site refuses for as long as it has as many copies as it takes.
func ofCount(why job.Reason) bool { return why == job.Full || why == job.TooManyCopies }

// ofState reports whether a site refuses every copy for such a reason, until its
// state changes.
func ofState(why job.Reason) bool {
	switch why {
	case job.Full, job.TooManyCopies, job.Draining, job.DiskLow, job.CannotStart:
		return true
	}
	return false
}

// forGood reports whether a site that refuses a copy for such a reason will not take another
// copy of the same attempt either.
func forGood(why job.Reason) bool {
	switch why {
	case job.TooNarrow, job.TooSmall, job.Directory, job.BadRequest, job.NotOrigin, job.NoLease, job.NoCheckpoints, job.NoEstimators,
		job.GuestWalltime, job.KeptFree, job.NotEvictable, job.Level, job.LevelFull, job.LevelOverdue, job.LevelMismatch:
		return true
	}
	return false
}

// refusedUntil returns how long a site that refused or gave back a copy, or
// lost it, gets none of the same attempt. What it said of the job itself holds
// for good. What it said of itself is kept once for all jobs.
func (or *origin) refusedUntil(now job.Time, why job.Reason) job.Time {
	switch {
	case forGood(why), why == job.ClockAhead, why == job.Forgotten, !or.conserving():
		return job.Never
	case ofState(why):
		return now
	}
	return now.Add(or.cfg.Timing.Retry)
}

// seedOf returns the seed of a job's draws.
func seedOf(id job.ID) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(id.Origin) {
		h = (h ^ uint64(id.Origin[i])) * prime
	}
	return ((h^uint64(id.Generation))*prime ^ id.Seq) * prime
}
