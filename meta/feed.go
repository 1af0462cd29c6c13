package meta

import (
	"math"
	"slices"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
)

// Feeding idle sites: the first half of a round (conserve.go).

// target is an idle site in a round.
type target struct {
	site job.SiteID
	load *cluster.Digest
	free int32 // processors that a copy could start on
	room int32 // processors that copies are given for
	many int32 // how many times the free ones that is
	// work is the seconds to drain the site, with what was sent there since it said so.
	work float64
	// freed is when more of its processors were free for copies of others than it had said before.
	freed job.Time
	// mute says that it leaves unanswered what it is asked of copies.
	mute bool
}

// feed is how much a site was given when it was idle.
type feed struct {
	at   job.Time
	many int32
}

// feedIdle gives queued copies to sites that have processors for them.
func (or *origin) feedIdle(now job.Time) {
	c := &or.conserve
	own := or.host.describe(now)
	or.listTargets(now, &own)
	looks, tries := mostLooks, 0
	for len(c.targets) > 0 && looks > 0 && tries < mostTries && c.looked < len(or.jobs) {
		if c.cursor >= len(or.jobs) {
			c.cursor = 0
		}
		o := or.jobs[c.cursor]
		c.cursor++
		c.looked++
		looks -= len(c.targets)
		if !o.ended && o.rec.State == job.Queued {
			tries += or.feedWith(now, o, &own)
		}
	}
	if c.looked >= len(or.jobs) || len(c.targets) == 0 {
		c.cursor, c.looked = 0, 0 // older jobs first
	} else {
		or.conserveAt(now.Add(roundPause))
	}
	clear(c.targets)
}

// listTargets lists the idle sites, last those that may not answer: a job that is offered to one
// of them waits there for Timing.Resend.
func (or *origin) listTargets(now job.Time, own *cluster.Digest) {
	c := &or.conserve
	c.targets = c.targets[:0]
	if !own.Draining && !own.NotStarting {
		or.addTarget(now, own, own.Load.Free, own.Load.Work, now)
	}
	for _, p := range or.peers.view.PeersAt(now) {
		if len(c.targets) >= mostTargets {
			break
		}
		// Where a copy would wait, whatever is free, it may have left a site that would start it.
		if takes(now, p) && p.Age(now) <= or.cfg.Placement.MaxLoadAge && !p.Digest.Load.Blocked {
			or.addTarget(now, &p.Digest, p.Digest.Load.Free-int32(min(max(0, p.Sent.Procs), math.MaxInt32)), workAt(p), p.Freed)
		}
	}
	slices.SortStableFunc(c.targets, func(a, b target) int {
		switch {
		case a.mute == b.mute:
			return 0
		case b.mute:
			return -1
		}
		return 1
	})
}

// addTarget lists a site with free processors. One that runs dry again and
// again is given twice as much each time: its jobs are short.
func (or *origin) addTarget(now job.Time, d *cluster.Digest, free int32, work float64, freed job.Time) {
	if free <= 0 || free > d.Processors {
		return
	}
	many := int32(1)
	if isDry(d) {
		many = feedFirst
		if f := or.conserve.fed[d.Site]; f.many > 0 && now.Sub(f.at) < feedFades {
			many = min(2*f.many, feedMost)
		}
	}
	room := int32(min(int64(free)*int64(many), math.MaxInt32))
	or.conserve.targets = append(or.conserve.targets, target{site: d.Site, load: d, free: free, room: room, many: many, work: work, freed: freed, mute: or.peers.isMute(d.Site)})
}

// inFlight reports whether a copy of a job is on its way to a site in reach, which
// has had no time yet to answer. One that does not answer is no reason to wait.
func (or *origin) inFlight(now job.Time, o *openJob) bool {
	late := o.sent.Add(or.cfg.Timing.Resend)
	for i, at := range o.at {
		if at == unsent || at == placing && now < late && or.peers.reachable(o.rec.Sites[i]) {
			or.conserveAt(max(late, now.Add(roundPause)))
			return true
		}
	}
	return false
}

// feedWith gives a copy of a job to the first idle site that can take one, and
// returns how many decisions that took.
func (or *origin) feedWith(now job.Time, o *openJob, own *cluster.Digest) int {
	c, r, tries := &or.conserve, &o.rec.Request, 0
	for i := range c.targets {
		t := &c.targets[i]
		if r.Processors > t.room || place.Fits(r, t.load.Processors, t.load.MemoryBytes) != job.NoReason || !or.mayGive(now, o, t) {
			continue
		}
		if or.inFlight(now, o) || or.push.offered(o) != nil {
			return tries
		}
		from, ok := or.source(o, t, own)
		if !ok {
			continue
		}
		tries++
		if t.site == or.self && !isDry(own) && !or.wouldStartHere(now, o) {
			continue
		}
		if !or.eligible(now, o, t.site) {
			continue
		}
		or.give(now, o, t, from)
		return tries
	}
	return tries
}

// mayGive reports whether an idle site may be given a copy. That one was moved from there
// matters only for Timing.Retry if it would start at once, as nothing waits there, or may, as
// processors came free there since. Of this very site it is asked whether it would.
func (or *origin) mayGive(now job.Time, o *openJob, t *target) bool {
	if or.mayAsk(now, o, t.site) {
		return true
	}
	if o.rec.Request.Processors > t.free || !or.mayAdd(now, o, t.site) {
		return false
	}
	back := o.movesBack(t.site, t.site == or.self || isDry(t.load), t.freed)
	if now < back {
		or.conserveAt(back)
	}
	return now >= back
}

// source returns which copy of a job a site would get, -1 for a new one, and
// false if it should get none. Where the copy could not start at once, it must
// be better off than it is.
func (or *origin) source(o *openJob, t *target, own *cluster.Digest) (int, bool) {
	r, n := &o.rec.Request, len(o.rec.Sites)
	if n < or.copiesOf(o) {
		return -1, true
	}
	longest, most := 0, -1.0
	for i, s := range o.rec.Sites {
		work := own.Load.Work
		switch {
		case s == or.self && or.policy.KeepsOwn && n > 1:
			continue // a job keeps its place at its origin
		case s == or.self:
		case !or.peers.reachable(s) || o.at[i] == placing:
			return i, true // it may never have come
		default:
			work = workAt(or.peers.view.Get(s))
		}
		if work > most {
			longest, most = i, work
		}
	}
	if most < 0 || r.Processors > t.free && most <= t.workWith(r) {
		return 0, false
	}
	if n == 1 && or.policy.KeepsOwn && o.rec.Sites[0] == or.self {
		longest = -1
	}
	return longest, true
}

// workAt returns the seconds to drain a site, with what was sent there since it said so.
func workAt(p *cluster.Peer) float64 {
	return max(0, p.Digest.Load.Work+p.Sent.Work/float64(max(1, p.Digest.Processors)))
}

// workWith returns the seconds to drain the site with one more copy.
func (t *target) workWith(r *job.Request) float64 {
	return t.work + float64(r.Processors)*r.Walltime.Seconds()/float64(max(1, t.load.Processors))
}

// eligible reports whether no filter of the policy keeps a job from a site.
func (or *origin) eligible(now job.Time, o *openJob, site job.SiteID) bool {
	or.beginRound(now, o, nil)
	for i := range or.round.Sites {
		if s := &or.round.Sites[i]; s.Site == site {
			return s.Eligible
		}
	}
	return false
}

// give gives a site the i-th copy of a job, or a new one if i is -1.
func (or *origin) give(now job.Time, o *openJob, t *target, i int) {
	c, r := &or.conserve, &o.rec.Request
	if i < 0 {
		or.addCopy(now, o, t.site)
	} else {
		or.moveCopy(now, o, i, t.site)
	}
	t.work = t.workWith(r)
	t.free = max(0, t.free-r.Processors)
	t.room -= r.Processors
	if t.many >= feedFirst {
		if c.fed == nil {
			c.fed = make(map[job.SiteID]feed)
		}
		c.fed[t.site] = feed{at: now, many: t.many}
	}
	if t.room <= 0 {
		c.targets = slices.DeleteFunc(c.targets, func(t target) bool { return t.room <= 0 })
	}
}

// wouldStartHere reports whether a copy of a job would start at this site at once.
func (or *origin) wouldStartHere(now job.Time, o *openJob) bool {
	return or.site.StartsAtOnce(now, or.ownCopy(now, o))
}
