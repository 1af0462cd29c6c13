package meta

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// Conservation of work (ADR 0026): no site stands idle for long while a job
// that fits it waits at another one. Now and then the origin makes a round. It
// gives queued copies to sites that are idle, new ones or those of the site that will
// need them last, and adds copies to jobs that have fewer than K. What is
// claimed is not touched. All of it is off without [place.Options.Conserve].

// Bounds of one round. A look is a few comparisons, once for each site that could
// take a copy; a try is a decision.
const (
	mostLooks = 16_384
	mostTries = 512
	// mostTargets bounds the idle sites of one round.
	mostTargets = 64
)

const (
	// roundPause is the least time between two rounds, moreAfter that before the
	// next one where a round could not do all.
	roundPause = 250 * time.Millisecond
	moreAfter  = time.Second
	// feedFades is after how long a site that was fed counts as any other. A dry site is
	// given feedFirst times its free processors, and at most feedMost times.
	feedFades = 10 * time.Second
	feedFirst = 2
	feedMost  = 256
)

// conserve is what an origin keeps in mind from round to round.
type conserve struct {
	short  []*openJob          // queued jobs that may have fewer than K copies
	fed    map[job.SiteID]feed // idle sites that were given copies lately
	cursor int                 // place in origin.jobs where the next round looks on
	looked int                 // how many it has looked at without coming to the end
	next   job.Time            // when a round is due, job.Never for none
	last   job.Time            // when the latest was

	targets []target // of the round under way
}

// conserving reports whether the origin conserves work at all.
func (or *origin) conserving() bool { return or.cfg.Placement.Conserve && !or.policy.StaysHome }

// copiesOf returns how many copies a queued job should have.
func (or *origin) copiesOf(o *openJob) int { return or.cfg.CopiesOf(&o.rec.Request) }

// conserveSoon has a round made as soon as one may be.
func (or *origin) conserveSoon(now job.Time) {
	if or.conserving() {
		or.conserveAt(max(now, or.conserve.last.Add(roundPause)))
	}
}

func (or *origin) conserveAt(at job.Time) { or.conserve.next = min(or.conserve.next, at) }

// addShort notes a queued job that may have fewer than K live copies.
func (or *origin) addShort(now job.Time, o *openJob) {
	if o.short || !or.conserving() {
		return
	}
	o.short = true
	or.conserve.short = append(or.conserve.short, o)
	or.conserveAt(now.Add(or.cfg.Timing.Retry))
}

// addIfShort notes a queued job that has fewer than K copies.
func (or *origin) addIfShort(now job.Time, o *openJob) {
	if len(o.rec.Sites) < or.copiesOf(o) {
		or.addShort(now, o)
	}
}

// reconsider looks at all jobs after the configuration has changed.
func (or *origin) reconsider(now job.Time) {
	if !or.conserving() {
		return
	}
	for _, o := range or.jobs {
		if !o.ended && o.rec.State == job.Queued {
			or.addIfShort(now, o)
		}
	}
	or.conserveSoon(now)
}

// idleSeen learns from a digest that a site may have processors for a job.
func (or *origin) idleSeen(now job.Time, site job.SiteID) {
	if or.open.Len() == 0 || !or.conserving() {
		return
	}
	if p := or.peers.view.Get(site); p != nil && p.Known && p.Digest.Load.Free > 0 {
		if isDry(&p.Digest) {
			p.Sent.RanDry()
			or.addWilling(site)
		}
		or.conserveSoon(now)
	}
}

// idleHere is [origin.idleSeen] for this very site, which gets no digest of its own.
func (or *origin) idleHere(now job.Time) {
	if or.open.Len() == 0 || !or.conserving() {
		return
	}
	if own := or.host.describe(now); own.Load.Free > 0 {
		or.conserveSoon(now)
	}
}

// conserveWork makes a round if one is due.
func (or *origin) conserveWork(now job.Time) {
	c := &or.conserve
	if now < c.next {
		return
	}
	c.next, c.last = job.Never, now
	if !or.conserving() {
		for _, o := range c.short {
			o.short = false
		}
		c.short = nil
		return
	}
	or.feedIdle(now) // first: a site that counts copies has room for what would start at once
	or.topUp(now)
}

// topUp adds copies to jobs that have fewer than K.
func (or *origin) topUp(now job.Time) {
	c := &or.conserve
	if len(c.short) == 0 {
		return
	}
	var later []*openJob
	able, among := or.ableSites(now)
	n, looks, tries := 0, mostLooks, 0
	for ; n < len(c.short) && looks > 0 && tries < mostTries; n++ {
		o := c.short[n]
		looks--
		lacks := or.lacks(now, o)
		switch {
		case !lacks || o.barren == among:
		case or.couldGain(now, o, able):
			tries++
			or.gain(now, o)
			if lacks = or.lacks(now, o); lacks && !or.metFull() && !or.mayChange(now, o, able) {
				o.barren = among
			}
		default:
			looks -= len(able)
			if !or.mayChange(now, o, able) {
				o.barren = among
			}
		}
		c.short[n] = nil
		if o.short = lacks; lacks {
			later = append(later, o)
		}
	}
	c.short = append(c.short[n:], later...)
	switch {
	case len(c.short) == 0:
	case tries > 0 || looks <= 0:
		or.conserveAt(now.Add(moreAfter))
	default:
		or.conserveAt(min(now.Add(or.cfg.Timing.Retry), or.askedAgain(now)))
	}
}

// askedAgain returns when the first site that is full is asked again, Never if none is.
func (or *origin) askedAgain(now job.Time) job.Time {
	at := job.Never
	for _, p := range or.peers.view.PeersAt(now) {
		if p.Connected && p.Sent.Full(now) {
			at = min(at, p.Sent.FullUntil)
		}
	}
	return at
}

// ableSites are those that could take copies, as far as their state says, and a
// fingerprint of them, never 0.
func (or *origin) ableSites(now job.Time) (able []job.SiteID, among uint64) {
	h := fnv.New64a()
	add := func(s job.SiteID, processors int32, memory int64) {
		able = append(able, s)
		fmt.Fprint(h, s, processors, memory)
	}
	if !or.st.Site().Draining {
		add(or.self, or.cfg.Self.Processors, or.cfg.Self.MemoryBytes)
	}
	for _, p := range or.peers.view.PeersAt(now) {
		if takes(now, p) {
			add(p.Site, p.Digest.Processors, p.Digest.MemoryBytes)
		}
	}
	return able, max(h.Sum64(), 1)
}

// takes reports whether a site takes copies, as far as its state says.
func takes(now job.Time, p *cluster.Peer) bool {
	return p.Connected && p.Known && !p.Digest.Draining && !p.Digest.NotStarting && !p.Sent.Full(now)
}

// lacks reports whether a queued job has fewer than K live copies.
func (or *origin) lacks(now job.Time, o *openJob) bool {
	return !o.ended && o.rec.State == job.Queued && (len(o.rec.Sites) < or.copiesOf(o) || or.deadCopy(now, o) >= 0)
}

// deadCopy returns which copy is at a site that has been out of reach for too
// long, -1 if none is.
func (or *origin) deadCopy(now job.Time, o *openJob) int {
	return slices.IndexFunc(o.rec.Sites, func(s job.SiteID) bool {
		p := or.peers.view.Get(s)
		return p != nil && !p.Connected && now.Sub(p.Since) >= or.cfg.Timing.Vanish
	})
}

// couldGain reports whether one of the sites could get a copy of a job.
func (or *origin) couldGain(now job.Time, o *openJob, able []job.SiteID) bool {
	return slices.ContainsFunc(able, func(s job.SiteID) bool { return or.mayAdd(now, o, s) })
}

// metFull reports whether the latest decision met a site that is full for a while.
func (or *origin) metFull() bool {
	return slices.ContainsFunc(or.round.Sites, func(c place.Candidate) bool { return c.Reason == job.Full })
}

// mayChange reports whether time alone may let a site take a copy of a job that
// none can take now: a refusal expires, a withdrawal is answered, or a site that lost the
// job is avoided no more.
func (or *origin) mayChange(now job.Time, o *openJob, able []job.SiteID) bool {
	return o.lost.avoidsAny(now) || slices.ContainsFunc(able, func(s job.SiteID) bool { return or.withdrawing(o, s) }) ||
		slices.ContainsFunc(o.refused, func(r refusal) bool { return now < r.until && r.until != job.Never || or.withdrawing(o, r.site) })
}

// mayAsk reports whether a copy of the attempt may be moved to a site: it has none,
// refuses none, none was moved from it lately, and no withdrawal of one is on its way,
// which could meet the new copy.
func (or *origin) mayAsk(now job.Time, o *openJob, site job.SiteID) bool {
	return !slices.Contains(o.rec.Sites, site) && !o.refusesAt(now, site) && !or.withdrawing(o, site)
}

// mayAdd reports whether a site may get a copy that the job lacks. Unlike [origin.mayAsk]
// it does not matter that one was moved from it.
func (or *origin) mayAdd(now job.Time, o *openJob, site job.SiteID) bool {
	return !slices.Contains(o.rec.Sites, site) && !o.keepsFrom(now, site) && !or.withdrawing(o, site)
}

func (or *origin) withdrawing(o *openJob, site job.SiteID) bool {
	return or.peers.link(site).waits(outKey{withdrawal, o.rec.AttemptID()})
}

// gain gives a job the copies that it lacks, as far as there are sites.
func (or *origin) gain(now job.Time, o *openJob) {
	for len(o.rec.Sites) < or.copiesOf(o) {
		to := or.nextSite(now, o)
		if to == "" {
			return
		}
		or.addCopy(now, o, to)
	}
	if i := or.deadCopy(now, o); i >= 0 && or.nextSite(now, o) != "" {
		or.copyReturned(now, o, i, store.CopyReplaced, job.Vanished)
	}
}

// addCopy places a further copy of an open attempt.
func (or *origin) addCopy(now job.Time, o *openJob, to job.SiteID) {
	record(or.st, store.AddCopy{Attempt: o.rec.AttemptID(), Site: to})
	o.at = append(o.at, unsent)
	or.settleIn(now, o, len(o.at)-1)
	or.changed(o.rec.ID)
}

// moveCopy takes the i-th copy of an open attempt to another site. A claim of
// the old one that is on its way will be denied. The old site gets no copy of it for
// Timing.Retry, twice as long each time but where it would or may start at once (mayGive).
func (or *origin) moveCopy(now job.Time, o *openJob, i int, to job.SiteID) {
	pause := or.cfg.Timing.Retry
	from, a, left := o.rec.Sites[i], o.rec.AttemptID(), o.at[i] != unsent
	record(or.st, store.MoveCopy{Attempt: a, From: from, To: to, Kind: store.CopyReplaced, Reason: job.Outranked, Time: now})
	o.at = append(slices.Delete(o.at, i, i+1), unsent)
	o.refuse(refusal{site: from, reason: job.Withdrawn, until: now.Add(pause << o.moves), moved: true, at: now, early: now.Add(pause)})
	o.moves = min(o.moves+1, mostDoublings)
	or.push.endOffer(o)
	or.withdrawFrom(now, o, from, left)
	or.settleIn(now, o, len(o.at)-1)
	or.changed(o.rec.ID)
}
