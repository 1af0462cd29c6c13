package meta

import (
	"cmp"
	"maps"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// silence is what a host keeps in mind of an origin whose copies are set aside
// (hostaside.go), because it is out of reach or left a claim without an answer.
// One copy at a time claims then, to see whether the origin answers: an origin
// whose disk hangs, or which is slow, costs its hosts next to nothing.
type silence struct {
	// missed is how many rounds of claims in a row were not answered in time.
	missed uint8
	// probe is the copy that may claim meanwhile, zero if none; probed is when
	// the latest was chosen, or when the first claim ran out. left is the latest
	// that has left while its claim was under way.
	probe, left job.AttemptID
	probed      job.Time
	// retry is when the next copy may claim, [job.Never] while one does and while
	// the origin is out of reach.
	retry job.Time
}

// mostMissed bounds the pause between two such claims: timing.backoff, doubled
// up to six times.
const mostMissed = 7

// outOfReach sets the copies of an origin aside until a stream to it is up.
func (h *host) outOfReach(now job.Time, origin job.SiteID) {
	s := h.silent[origin]
	switch {
	case s == nil:
		s = h.silence(now, origin)
	case !s.probe.Job.IsZero(): // the copy that was to claim waits with the others
		h.aside[origin] = job.AttemptID{}
		h.site.SetAside(now, origin)
		h.passing = true
	}
	s.probe, s.retry = job.AttemptID{}, job.Never
}

// originDown sets the copies aside of an origin whose stream has ended.
func (h *host) originDown(now job.Time, origin job.SiteID) {
	if h.remote[origin] > 0 {
		h.outOfReach(now, origin)
	}
}

func (h *host) silence(now job.Time, origin job.SiteID) *silence {
	s := &silence{probed: now, retry: job.Never}
	h.silent[origin] = s
	h.setAside(now, origin)
	return s
}

// doubtAfter is the part of Timing.Claim after which a claim without an answer keeps
// further processors from waiting for the same origin; mostDoubts bounds the claims
// that are looked at for it.
const (
	doubtAfter = 10
	mostDoubts = 64
)

// doubt sets the copies of origins aside that have left a claim without an answer
// for a while: else a site whose jobs are short soon has all its processors waiting
// for one origin that is hung. The claim under way is the try: its answer brings
// the copies back. An origin that has answered another claim meanwhile is slow, not
// hung.
func (h *host) doubt(now job.Time) {
	if !h.cfg.Placement.Conserve || h.batch != nil { // a batch system would start anew
		return
	}
	doubtful, looks := now.Add(h.cfg.Timing.Claim-h.cfg.Timing.Claim/doubtAfter), mostDoubts
	for d := range h.claims.All {
		if looks--; d.at > doubtful || looks < 0 {
			return
		}
		sent := d.at.Add(-h.cfg.Timing.Claim)
		if origin := d.attempt.Job.Origin; h.silent[origin] == nil && h.verdicts[origin] <= sent && !h.over(&d) {
			h.silence(now, origin).probe = d.attempt
		}
	}
}

// unanswered takes up that the claim of a copy has run out. What was claimed at
// the same time runs out with it and counts once.
func (h *host) unanswered(now job.Time, c *hostCopy) {
	origin := c.rec.ID.Job.Origin
	s := h.silent[origin]
	switch {
	case s == nil:
		s = h.silence(now, origin)
	case s.probe != c.rec.ID:
		return
	}
	s.probe, s.missed = job.AttemptID{}, min(s.missed+1, mostMissed)
	h.probeAt(s, now.Add(h.cfg.Timing.Backoff<<(s.missed-1)))
}

// answered takes up a verdict about c, nil if there is no such copy any more: it may
// have been withdrawn while its claim was under way. In time, the verdict brings all
// copies of the origin back. Late, it says that the origin is there and slow: the
// next claim need not wait for long, but a while if the last one was late, too.
func (h *host) answered(now job.Time, origin job.SiteID, c *hostCopy, m *Verdict) {
	h.verdicts[origin] = now
	s := h.silent[origin]
	switch {
	case s == nil:
	case c != nil && c.status == claiming, c == nil && s.left == m.Attempt && now < m.Sent.Add(h.cfg.Timing.Claim):
		h.heard(now, origin)
	case !s.probe.Job.IsZero():
	case s.missed > 1:
		h.probeAt(s, min(s.retry, max(now, s.probed.Add(h.cfg.Timing.Backoff))))
	default:
		h.probeAt(s, now)
	}
}

// heard brings back the copies of an origin that is there again.
func (h *host) heard(now job.Time, origin job.SiteID) {
	delete(h.silent, origin)
	h.bringBack(now, origin)
}

func (h *host) probeAt(s *silence, at job.Time) {
	s.retry = at
	h.nextProbe = min(h.nextProbe, at)
}

// probeSilent lets a copy claim of each origin whose pause is over.
func (h *host) probeSilent(now job.Time) {
	if now < h.nextProbe {
		return
	}
	h.nextProbe = job.Never
	for _, origin := range slices.Sorted(maps.Keys(h.silent)) {
		s := h.silent[origin]
		if s.retry > now {
			h.nextProbe = min(h.nextProbe, s.retry)
			continue
		}
		c := h.narrowest(origin)
		if c == nil {
			h.heard(now, origin) // nothing waits for its answer
			continue
		}
		s.probe, s.probed, s.retry = c.rec.ID, now, job.Never
		h.probe(now, c)
	}
}

// putBack puts a copy whose claim came to nothing back, aside with the others of
// its origin. What a batch system started for it leaves, and is
// queued there anew.
func (h *host) putBack(now job.Time, c *hostCopy) {
	if h.batch != nil {
		h.postpone(now, c, now.Add(h.cfg.Timing.Backoff))
		h.site.Postpone(now, c.rec.ID, now) // the plan lets it go as soon as its origin is back
		return
	}
	h.postpone(now, c, now)
}

// narrowest returns the waiting copy of an origin that would hold the fewest
// processors, nil if none waits.
func (h *host) narrowest(origin job.SiteID) *hostCopy {
	var best *hostCopy
	for _, c := range h.copiesOf(origin) {
		if c.status == waiting && c.rec.Phase == store.CopyQueued && !c.postponed && !c.bringing && (best == nil || c.narrower(best)) {
			best = c
		}
	}
	return best
}

// narrower reports whether a copy finds room sooner than another one: it needs fewer processors, or
// as many for a shorter time.
func (c *hostCopy) narrower(other *hostCopy) bool {
	a, b := c.rec.Request, other.rec.Request
	return cmp.Or(cmp.Compare(a.Processors, b.Processors), cmp.Compare(a.Walltime, b.Walltime)) < 0
}

// probeNarrower has a copy that has come claim in place of one that is to and has found no room yet:
// it may wait for long, and the others of its origin with it.
func (h *host) probeNarrower(now job.Time, c *hostCopy) {
	origin := c.rec.ID.Job.Origin
	s := h.silent[origin]
	if s == nil || s.probe.Job.IsZero() {
		return
	}
	if p := h.copies.Get(s.probe); p == nil || p.status != waiting || p.rec.Phase != store.CopyQueued || !c.narrower(p) {
		return
	}
	h.aside[origin] = job.AttemptID{}
	h.site.SetAside(now, origin)
	s.probe, s.probed = c.rec.ID, now
	h.probe(now, c)
}

// probeGone has another copy claim in place of one that has left.
func (h *host) probeGone(c *hostCopy) {
	s := h.silent[c.rec.ID.Job.Origin]
	if s == nil || s.probe != c.rec.ID {
		return
	}
	pause := h.cfg.Timing.Claim // one that has not claimed has held nothing up
	if c.status == claiming {
		s.left, pause = c.rec.ID, h.cfg.Timing.Backoff
	}
	s.probe = job.AttemptID{}
	h.probeAt(s, s.probed.Add(pause))
}
