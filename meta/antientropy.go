package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Host and origin compare what they hold of each other: on every connect and
// once a period the host sends a count and a hash; if the origin comes to
// other numbers it asks for the list, and mends what differs. A host only
// lists; all decisions are the origin's. So whatever was lost on the way
// converges, and when nothing was lost the comparison costs one message.

// digestPage is how many copies go into one page of a list.
const digestPage = 4096

// summary is an order-blind fingerprint of a set of copies.
type summary struct{ count, hash uint64 }

// add puts a copy into the set. Begun says that the command has started or the
// attempt ended: a lost report of that is found, too.
func (s *summary) add(a job.AttemptID, begun bool) {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	mix := func(b byte) { h = (h ^ uint64(b)) * prime }
	for i := range len(a.Job.Origin) {
		mix(a.Job.Origin[i])
	}
	words := [3]uint64{uint64(a.Job.Generation), a.Job.Seq, uint64(a.Number)<<1 | uint64(btoi(begun))}
	for _, w := range words {
		for range 8 {
			mix(byte(w))
			w >>= 8
		}
	}
	// FNV alone is weak in its high bits, and sets are combined by exclusive or.
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 29
	s.count++
	s.hash ^= h
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// begunHere is what the host says about a copy, begunThere what the origin
// thinks of the holder's.
func (c *hostCopy) begunHere() bool { return c.started != 0 || c.rec.Phase == store.CopyEnded }
func begunThere(j *store.Job) bool  { return j.Started != 0 || j.Outcome != nil }

// summaryOf is what this host holds of an origin.
func (h *host) summaryOf(origin job.SiteID) summary {
	var s summary
	for c := range h.copies.All {
		if c.rec.ID.Job.Origin == origin {
			s.add(c.rec.ID, c.begunHere())
		}
	}
	h.tasks.addTo(&s, origin)
	return s
}

func (h *host) sendSummary(to job.SiteID, s summary) {
	m := CopySummary{Count: s.count, Hash: s.hash}
	if t := h.st.TrustedSite(to); t != nil {
		m.GivenUp = t.Steps
	}
	h.peers.send(to, m)
}

// compareCopies tells every connected site what this host holds of it: in full where an
// answer to a claim is missing, as both may hold the same and the origin alone know that the
// attempt was granted.
func (h *host) compareCopies(now job.Time) {
	if now < h.nextCheck {
		return
	}
	h.nextCheck = now.Add(h.cfg.Timing.AntiEntropy)
	sums, doubts := make(map[job.SiteID]*summary, len(h.peers.linked)), make(map[job.SiteID]bool)
	for _, l := range h.peers.linked {
		if l.up {
			sums[l.site] = &summary{}
		}
	}
	for c := range h.copies.All {
		origin := c.rec.ID.Job.Origin
		if s := sums[origin]; s != nil {
			s.add(c.rec.ID, c.begunHere())
			doubts[origin] = doubts[origin] || c.doubts()
		}
	}
	for _, l := range h.peers.linked {
		switch {
		case !l.up:
		case doubts[l.site]:
			h.sendDigest(now, l.site)
		default:
			h.tasks.addTo(sums[l.site], l.site)
			h.sendSummary(l.site, *sums[l.site])
		}
	}
}

// expected says whether this origin thinks that site holds a copy of the job's
// latest attempt.
func expected(o *openJob, site job.SiteID) (is, begun bool) {
	switch o.rec.State.Claim() {
	case job.ClaimOpen:
		i := slices.Index(o.rec.Sites, site)
		return i >= 0 && o.at[i] != unsent, false
	case job.ClaimTaken:
		return o.rec.Holder == site, begunThere(o.rec)
	}
	return false, false
}

// onCopySummary compares a host's fingerprint with this origin's own.
func (or *origin) onCopySummary(_ job.Time, from job.SiteID, m CopySummary) {
	or.peers.givesUp(from, m.GivenUp)
	var own summary
	for _, o := range or.jobs {
		if o.ended {
			continue
		}
		if is, begun := expected(o, from); is {
			own.add(o.rec.AttemptID(), begun)
		}
	}
	or.bags.addTo(&own, from)
	if own.count != m.Count || own.hash != m.Hash {
		or.counters.DigestsRequested++
		or.peers.send(from, DigestRequest{})
	}
}

// sendDigest lists what this host holds of an origin, in pages.
func (h *host) sendDigest(now job.Time, origin job.SiteID) {
	copies := h.copiesOf(origin)
	list := make([]DigestEntry, len(copies))
	for i, c := range copies {
		list[i] = DigestEntry{
			Attempt: c.rec.ID, Begun: c.rec.Phase != store.CopyQueued, Ended: c.rec.Phase == store.CopyEnded, Started: c.started,
		}
	}
	list = h.tasks.list(list, origin)
	var after job.ID
	for {
		n := min(len(list), digestPage)
		// Attempts of one job stay on one page.
		for n < len(list) && n > 0 && list[n].Attempt.Job == list[n-1].Attempt.Job {
			n++
		}
		page := CopyDigest{Stamp: h.tasks.listStamp(origin), After: after, Entries: list[:n:n]}
		list = list[n:]
		if len(list) > 0 {
			page.Through = page.Entries[n-1].Attempt.Job
			after = page.Through
		}
		h.peers.send(origin, page)
		if len(list) == 0 {
			return
		}
	}
}

// onCopyDigest mends what differs between a host's list and this origin's facts.
func (or *origin) onCopyDigest(now job.Time, from job.SiteID, m CopyDigest) {
	listed := make(map[job.AttemptID]struct{}, len(m.Entries))
	for i := range m.Entries {
		entry := &m.Entries[i]
		listed[entry.Attempt] = struct{}{}
		or.mendListed(now, from, entry)
	}
	missing := func(o *openJob) bool {
		id := o.rec.ID
		if o.ended || (!m.After.IsZero() && id.Compare(m.After) <= 0) || (!m.Through.IsZero() && id.Compare(m.Through) > 0) {
			return false
		}
		_, ok := listed[o.rec.AttemptID()]
		is, _ := expected(o, from)
		return is && !ok
	}
	var mend []*openJob // to mend one may end others
	for _, o := range or.jobs {
		if missing(o) {
			mend = append(mend, o)
		}
	}
	for _, o := range mend {
		if missing(o) {
			or.mendMissing(now, from, o, m.Stamp)
		}
	}
	or.bags.mendMissing(now, from, &m, listed)
}

// mendListed deals with a copy that the host has.
func (or *origin) mendListed(now job.Time, from job.SiteID, entry *DigestEntry) {
	a := entry.Attempt
	o := or.open.Get(a.Job)
	if o != nil && o.rec.Attempt == a.Number {
		if is, _ := expected(o, from); is {
			or.mendExpected(now, from, o, entry)
			return
		}
	}
	if o == nil && or.bags.mendListed(now, from, entry) {
		return
	}
	// The host should not have it.
	if entry.Ended {
		return // its result, repeated on every connect, is answered as superseded
	}
	if entry.Begun {
		if o != nil && o.rec.Outcome == nil && !o.rec.CancelRequested && earlier(o.rec, a.Number, from) {
			return // it may still win
		}
		or.recall(now, from, outKey{stop, a})
		return
	}
	or.counters.StrayCopies++
	or.recall(now, from, outKey{withdrawal, a})
}

// mostRecalled is how many requests to a host may wait for an answer while it is asked
// to give up one more copy that it should not have.
const mostRecalled = 4 * digestPage

// recall asks a host to give up what it should not have. A host that lists copies
// without end and answers nothing is asked for a bounded number of them; the rest it is
// asked for when it has answered, as the next comparison finds them.
func (or *origin) recall(now job.Time, from job.SiteID, key outKey) {
	if l := or.peers.links[from]; l == nil || len(l.waiting) < mostRecalled {
		or.peers.request(now, from, key)
	}
}

func (or *origin) mendExpected(now job.Time, from job.SiteID, o *openJob, entry *DigestEntry) {
	a := entry.Attempt
	switch o.rec.State {
	case job.Queued:
		or.peers.link(from).settle(outKey{placement, a})
		if i := slices.Index(o.rec.Sites, from); i >= 0 {
			o.at[i] = queued
		}
	case job.Cancelling:
		or.peers.request(now, from, outKey{stop, a})
	case job.Claimed:
		switch {
		case entry.Started != 0:
			or.onStarted(now, from, Started{Attempt: a, At: entry.Started})
		case !entry.Begun:
			or.remind(o)
		}
	}
}

// afterStep returns the step by which a list is to be judged that was made at one: a host
// that has claimed and waits for the answer lists what it holds as of the step before, and if
// that was a claim, too, what it got is in the list or was given back.
func afterStep(stamp uint64) uint64 { return stamp + 1 }

// mendMissing deals with a copy that the host should have and has not.
func (or *origin) mendMissing(now job.Time, from job.SiteID, o *openJob, stamp uint64) {
	if o.rec.State == job.Queued {
		or.sendCopy(now, o, slices.Index(o.rec.Sites, from))
		return
	}
	if or.isNews(o, afterStep(stamp)) {
		or.holderLacks(now, o, job.LostByHost)
	}
}
