package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
	"kith/sitesched/level"
	"kith/store"
)

// Load sharing inside a level by moves (spec 000 section 2.5). With level.share = "push" a job of a
// hierarchy that was submitted here waits at one site. Every level.share_period its origin, which hears
// what all sites of the level say, compares when each would be done with it. Where another one would be
// clearly sooner it is offered the job: it gets a copy, which it refuses if that is no longer so, and only
// when it has taken it the other copy goes. So a job that is refused has lost nothing, and whoever claims
// in between has it.
//
// Of what waits before a job at its site the origin knows all that is there, less what it has placed there
// later itself. Later jobs are looked at first.

// push is what the origin keeps in mind for that.
type push struct {
	next job.Time            // when queues are compared, job.Never for when a job of a hierarchy is placed
	of   map[job.ID]*pushing // jobs that have not ended; most jobs are of no hierarchy
}

// offer is a copy that was offered because its site would be done with it sooner. elsewhere is when the
// one would be where the job waits.
type offer struct {
	attempt   uint32
	site      job.SiteID
	elsewhere time.Duration
}

// pushing is what is kept in mind of one job of a hierarchy.
type pushing struct {
	since job.Time // its latest copy was placed; 0 for before a restart
	offer offer
}

// pushes reports whether jobs of a hierarchy that are submitted here wait at one site and are moved.
func (c *Config) pushes() bool { return c.Level.Share == level.SharePush }

// CopiesOf returns at how many sites a job waits.
func (c *Config) CopiesOf(r *job.Request) int {
	if r.Level > 0 && c.pushes() {
		return 1
	}
	return c.Placement.CopiesOf(r)
}

// notePlaced notes that a copy of a job was placed.
func (or *origin) notePlaced(now job.Time, o *openJob) {
	if o.rec.Level == 0 || !or.cfg.pushes() {
		return
	}
	or.push.at(o).since = now
	or.pushSoon(now)
}

// at returns what is kept in mind of a job.
func (p *push) at(o *openJob) *pushing {
	x := p.of[o.rec.ID]
	if x == nil {
		if p.of == nil {
			p.of = make(map[job.ID]*pushing)
		}
		x = new(pushing)
		p.of[o.rec.ID] = x
	}
	return x
}

// pushSoon has queues compared after a period, if that is not to be anyway.
func (or *origin) pushSoon(now job.Time) {
	if or.cfg.pushes() && !or.policy.StaysHome {
		or.push.next = min(or.push.next, now.Add(or.cfg.Level.sharePeriod()))
	}
}

// offered returns the copy of a job that was offered and not answered yet, nil for none.
func (p *push) offered(o *openJob) *offer {
	x := p.of[o.rec.ID]
	if x == nil {
		return nil
	}
	f := &x.offer
	if f.site == "" || o.rec.State != job.Queued || f.attempt != o.rec.Attempt || len(o.rec.Sites) < 2 || !slices.Contains(o.rec.Sites, f.site) {
		return nil
	}
	return f
}

// elsewhere is [PlaceCopy.Elsewhere] of a copy, 0 for one that is not offered.
func (or *origin) elsewhere(a job.AttemptID, site job.SiteID) time.Duration {
	if o := or.open.Get(a.Job); o != nil {
		if f := or.push.offered(o); f != nil && f.site == site && f.attempt == a.Number {
			return f.elsewhere
		}
	}
	return 0
}

// endOffer ends the offer of a job, if there is one, and reports whether there was.
func (p *push) endOffer(o *openJob) bool {
	f := p.offered(o)
	if x := p.of[o.rec.ID]; x != nil {
		x.offer = offer{}
	}
	return f != nil
}

// offerTaken has the other copies of a job leave after one that was offered is where it was offered.
func (or *origin) offerTaken(now job.Time, o *openJob, site job.SiteID) {
	if f := or.push.offered(o); f == nil || f.site != site {
		return
	}
	or.push.endOffer(o)
	rest := now.Add(level.RestPeriods * or.cfg.Level.sharePeriod())
	for len(o.rec.Sites) > 1 {
		i := 0
		if o.rec.Sites[0] == site {
			i = 1
		}
		from, sent := o.rec.Sites[i], o.at[i] != unsent
		record(or.st, store.MoveCopy{Attempt: o.rec.AttemptID(), From: from, Kind: store.CopyReplaced, Reason: job.Pushed, Time: now})
		o.at = slices.Delete(o.at, i, i+1)
		o.refuse(refusal{site: from, reason: job.Withdrawn, until: rest, moved: true, early: rest})
		or.withdrawFrom(now, o, from, sent)
	}
	or.changed(o.rec.ID)
}

// pushLevels compares the queues of each level, and offers what waits to those that would be done sooner.
func (or *origin) pushLevels(now job.Time) {
	if now < or.push.next {
		return
	}
	or.push.next = job.Never
	if !or.cfg.pushes() || or.policy.StaysHome {
		return
	}
	waiting := or.latestFirst()
	if len(waiting) == 0 {
		return
	}
	or.push.next = now.Add(or.cfg.Level.sharePeriod())
	queues := or.queues(now)
	for i, tries := 0, mostTries; i < len(waiting) && tries > 0; i++ {
		tries -= or.comparePlaces(now, waiting[i], queues)
	}
}

// latestFirst lists the jobs of a hierarchy that wait, those that were placed last first.
func (or *origin) latestFirst() (list []*openJob) {
	for _, o := range or.jobs {
		if !o.ended && o.rec.Level > 0 && o.rec.State == job.Queued {
			list = append(list, o)
		}
	}
	since := func(o *openJob) job.Time {
		if x := or.push.of[o.rec.ID]; x != nil {
			return x.since
		}
		return 0
	}
	slices.SortFunc(list, func(a, b *openJob) int { return cmp.Or(cmp.Compare(since(b), since(a)), b.rec.ID.Compare(a.rec.ID)) })
	return list
}

// levelQueue is a site of a level in one comparison.
type levelQueue struct {
	site   job.SiteID
	digest *cluster.Digest
	takes  bool
	// sent is the work that was offered to it meanwhile, behind what is known of the jobs looked at so
	// far: these wait there after those still to come.
	sent, behind level.Complexity
}

// queues lists the sites that are levels and say what is needed, this one first.
func (or *origin) queues(now job.Time) (list []levelQueue) {
	own := or.host.describe(now)
	if _, ok := queueOf(&own); ok {
		list = append(list, levelQueue{site: or.self, digest: &own, takes: !own.Draining && !own.NotStarting})
	}
	for _, p := range or.peers.view.PeersAt(now) {
		if len(list) >= mostTargets {
			break
		}
		if !p.Known || !p.Connected || p.Age(now) > or.cfg.Placement.MaxLoadAge {
			continue
		}
		if _, ok := queueOf(&p.Digest); ok {
			list = append(list, levelQueue{site: p.Site, digest: &p.Digest, takes: takes(now, p)})
		}
	}
	return list
}

// comparePlaces offers one job to the site of its level that would be done with it first, if that is
// clearly sooner than where it waits, and returns how many decisions that took.
func (or *origin) comparePlaces(now job.Time, o *openJob, queues []levelQueue) (tries int) {
	r, before := o.rec.Asked(), o.rec.Before()
	var own *levelQueue
	for i := range queues {
		if q := &queues[i]; slices.Contains(o.rec.Sites, q.site) {
			own = q
			q.behind += q.left(&r, &before)
		}
	}
	if len(o.rec.Sites) != 1 || own == nil || o.at[0] != queued || !or.rested(now, o) {
		return 0
	}
	// What is behind counts this very job, too: it is no longer ahead.
	here, ok := etaAt(own.digest, own.sent-own.behind, &r, &before)
	if !ok {
		return 0
	}
	for range queues {
		to := or.soonest(now, o, &r, &before, queues, here)
		if to == nil {
			return tries
		}
		tries++
		if or.eligible(now, o, to.site) {
			left := own.left(&r, &before)
			own.behind -= left
			own.sent -= left
			to.sent += to.left(&r, &before)
			or.offerTo(now, o, to.site, here)
			return tries
		}
		o.refuse(refusal{site: to.site, reason: job.NotSooner, until: or.push.next, moved: true, early: or.push.next})
	}
	return tries
}

// soonest returns the site that would be done first with a job, nil if none may have it that is clearly
// sooner than where it waits.
func (or *origin) soonest(now job.Time, o *openJob, r *job.Request, before *job.Progress, queues []levelQueue, here time.Duration) (best *levelQueue) {
	least := level.Never
	for i := range queues {
		q := &queues[i]
		if !q.takes || !q.digest.Level.Is(r.Level) || place.Fits(r, q.digest.Processors, q.digest.MemoryBytes) != job.NoReason || !or.mayAsk(now, o, q.site) {
			continue
		}
		if eta, ok := etaAt(q.digest, q.sent, r, before); ok && eta < least && level.Sooner(eta, here) {
			best, least = q, eta
		}
	}
	return best
}

func (q *levelQueue) left(r *job.Request, before *job.Progress) level.Complexity {
	told, _ := queueOf(q.digest)
	return leftAt(q.digest, &told, r, before)
}

// rested reports whether no copy of a job was moved within the latest periods. It goes by what is
// recorded, so that a restart changes nothing.
func (or *origin) rested(now job.Time, o *openJob) bool {
	for i := len(o.rec.Events) - 1; i >= 0; i-- {
		if e := &o.rec.Events[i]; e.Kind == store.CopyReplaced {
			return level.Rested(now.Sub(e.Time), or.cfg.Level.sharePeriod())
		}
	}
	return true
}

// offerTo offers a copy of a job to a site. What this very site says of itself was asked just now.
func (or *origin) offerTo(now job.Time, o *openJob, to job.SiteID, elsewhere time.Duration) {
	or.push.at(o).offer = offer{attempt: o.rec.Attempt, site: to, elsewhere: elsewhere}
	or.addCopy(now, o, to)
	if to == or.self {
		or.offerTaken(now, o, to)
	}
}
