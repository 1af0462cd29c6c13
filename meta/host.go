package meta

import (
	"cmp"
	"slices"

	"kith/cluster"
	"kith/internal/fifo"
	"kith/internal/job"
	"kith/store"
)

// host keeps the copies that were given to this site: it queues them at the
// local scheduler, claims when their turn comes, and has them run.
type host struct {
	*core
	peers  *peers
	origin ownOrigin
	site   Site
	batch  Batch // the site too, nil if it is Kith's own
	tasks  *taskHost
	seer   *seer // nil without forecasts

	copies   store.Index[job.AttemptID, hostCopy]
	remote   map[job.SiteID]int           // how many of each other origin
	foreign  int                          // sum of remote
	aside    map[job.SiteID]job.AttemptID // origins set aside, and which copy is tried
	silent   map[job.SiteID]*silence      // origins that do not answer, or are out of reach
	ahead    map[job.SiteID]ahead         // origins that take its steps for a wrong clock
	verdicts map[job.SiteID]job.Time      // when each origin last answered a claim
	claims   fifo.Queue[claimDue]         // claims without an answer, by deadline
	late     []*hostCopy                  // whose grant came after its claim had run out, in this instant
	claimed  job.Time                     // when the latest claim was sent
	leases   []*hostCopy                  // attempts under way that run under a lease
	// unlaunched are own ones begun before a restart, see launchAgain.
	unlaunched []*hostCopy
	leaving    []job.AttemptID // guests that the latest pass has told to leave; scratch
	passing    bool            // the local scheduler wants a pass
	starting   starting        // whether starts succeed
	harm       harmClocks
	evictor    Evictor // the site too, nil if it has no guests leave
	timed      timed   // attempts that are asked to save before their limit
	saves      saves   // attempts that are copied while they run
	// told are the bounds that estimators of attempts that run here gave, see boundtold.go.
	told    map[job.AttemptID]told
	holding holding // attempts that wait with their claims
	dry     dryness // when the others are told that it has nothing to do
	owner   *cluster.Owner
	level   hostLevel

	stamp     uint64   // protocol steps, see nextStamp
	loadSeq   uint64   // load digests made
	settings  uint64   // configurations taken up since the start
	nextLoad  job.Time // of which one is due
	nextCheck job.Time // anti-entropy
	nextRenew job.Time // of leases
	nextProbe job.Time // of origins that do not answer
	began     job.Time // of this daemon
}

// ownOrigin is the origin at the host's own site. Each call stands for a
// message to another origin.
type ownOrigin interface {
	// claim asks for the right to start (Claim); NoReason grants it.
	claim(now job.Time, site job.SiteID, a job.AttemptID, stamp uint64) (job.Reason, job.SiteID)
	// onStarted says that the command runs, or has run (Started).
	onStarted(now job.Time, from job.SiteID, m Started)
	// endedHere says how an attempt ended (Result).
	endedHere(now job.Time, a job.AttemptID, outcome *job.Outcome)
	// savedHere says what an attempt that runs has saved (Saved).
	savedHere(now job.Time, m Saved)
	// givenBack says that an attempt never started here and is not held any more (GiveBack).
	givenBack(now job.Time, a job.AttemptID, reason job.Reason)
	// leftLevel says that a copy has outgrown the level that this site is, finally if it is not
	// to go to a lower one (GiveBack).
	leftLevel(now job.Time, a job.AttemptID, why job.Reason, final bool)
	// outgrownHere says that this site can no longer run a copy (GiveBack).
	outgrownHere(now job.Time, a job.AttemptID, reason job.Reason)
	// cancels reports whether the user has cancelled a job that has not ended.
	cancels(id job.ID) bool
}

func newHost(c *core, p *peers, site Site) *host {
	batch, _ := site.(Batch)
	h := &host{
		core: c, peers: p, site: site, batch: batch,
		copies: store.NewIndex(func(c *hostCopy) job.AttemptID { return c.rec.ID }), remote: make(map[job.SiteID]int), told: make(map[job.AttemptID]told),
		aside: make(map[job.SiteID]job.AttemptID), silent: make(map[job.SiteID]*silence), verdicts: make(map[job.SiteID]job.Time), nextProbe: job.Never,
		holding: holding{next: job.Never}, timed: timed{next: job.Never}, saves: saves{of: make(map[job.AttemptID]*saving), next: job.Never},
	}
	h.level.limits, h.level.next = c.cfg.Level.limits(&c.cfg.Self), job.Never
	h.tasks = newTaskHost(c, p, h)
	var tells bool
	h.harm.site, tells = site.(Harmed)
	h.harm.measures, h.harm.due = tells && c.cfg.NoHarm.Measure, job.Never
	if h.evictor, _ = site.(Evictor); h.evictor != nil {
		h.evictor.SetGrace(c.cfg.maxGrace())
	}
	return h
}

// hostCopy is what a host keeps in mind of a copy beside the facts.
type hostCopy struct {
	rec    *store.Copy
	status hostStatus
	// postponed says that its inputs could not be had, and that it waits for a
	// while, or for its origin to be in reach.
	postponed bool
	// outgrown says why this site can no longer run it: it is in no queue and goes
	// back once its origin is in reach.
	outgrown job.Reason
	// adopted says that it was begun before a restart, returned that it was
	// begun once and is back in the queue.
	adopted, returned bool
	// bringing says that the driver brings its inputs while it waits in the queue.
	bringing bool
	// unstaged says that the driver was told to take it back, as the site drains.
	unstaged bool
	// forgotten says that its origin was given up while it ran.
	forgotten bool
	// lapsed says that it was told to stop for want of a lease.
	lapsed bool
	// killed says that the driver was told to stop it.
	killed bool
	// demoted says that the driver was told to have it save and end, see [host.demote].
	demoted bool
	// evicted says that it was told to leave for a home job.
	evicted bool
	// over says that its processes are gone, and that its output is being collected.
	over bool
	// reclaimed is by how many steps stamp is above that of the first claim of this copy, or
	// the highest number if by more: then what reminds of that one is taken for another copy's.
	reclaimed uint16
	// granted says that a grant came after the claim had run out: the copy starts
	// in this instant without a further claim, or goes back. It is what came with it, else nil.
	granted *lateGrant
	// stamp tells this claim from an earlier one of the same copy.
	stamp uint64
	// claimed is when this daemon first claimed for this copy, 0 for not yet.
	claimed job.Time
	lease   attemptLease
	// holds is since when it waits with its claim, see [host.holds].
	holds job.Time
	// started is when the driver says that it started, 0 for not yet; since is that in the time
	// of this life of the daemon, whose clock may be another than that of the one before.
	started, since job.Time
	// harm is what guests cost it while it waits, if it is of this site's own.
	harm *harmClock
	// arrival is the number of its arrival plus 1, see [seer.arrived]; 0 for none.
	arrival int64
}

// lateGrant is what came with a grant.
type lateGrant struct{ payload []byte }

type hostStatus uint8

const (
	waiting  hostStatus = iota // in the queue
	claiming                   // processors reserved, claim sent
	launched                   // begun; the driver stages and starts it
)

func (h *host) onPlaceCopy(now job.Time, from job.SiteID, m PlaceCopy) {
	answer := CopyAnswer{Attempt: m.Attempt}
	if h.copies.Get(m.Attempt) == nil {
		if answer.Reason = cmp.Or(h.refusal(now, from, m.Attempt, &m.Request, &m.Before, m.Stays), h.notSooner(now, &m)); answer.Reason == job.NoReason {
			h.dropCopies(now, previous(m.Attempt)) // a newer attempt says that older ones are over
			h.take(now, store.AcceptCopy{Attempt: m.Attempt, Request: m.Request, OriginTooSmall: m.OriginTooSmall, Stays: m.Stays || m.Before.Last || h.peers.knowsNoCheckpoints(from), LimitSeconds: h.limitSeconds(&m.Request, &m.Before), Before: m.Before, Time: now})
		} else {
			h.counters.CopiesRefused++
			if ofLevel(answer.Reason) {
				_, answer.Final = h.levelRefusal(now, &m.Request, &m.Before)
			}
		}
	}
	answer.Accepted = answer.Reason == job.NoReason
	h.peers.send(from, answer)
}

// previous names the attempt before a; number 0, which no copy has, for the first.
func previous(a job.AttemptID) job.AttemptID {
	a.Number--
	return a
}

// refusal says why a copy is not taken. stays says that its attempts were evicted too often.
func (h *host) refusal(now job.Time, from job.SiteID, a job.AttemptID, r *job.Request, before *job.Progress, stays bool) job.Reason {
	switch {
	case a.Number == 0 || r.Validate() != nil || before.Validate() != nil:
		return job.BadRequest
	case h.st.Site().Draining:
		return job.Draining
	case h.starting.away():
		return job.CannotStart
	case h.shuns(from):
		return job.DiskLow
	case h.isAhead(now, from):
		return job.ClockAhead
	case r.Directory != "" && (h.cfg.AllowDirectory == nil || !h.cfg.AllowDirectory(r.Directory)):
		return job.Directory
	case h.remote[from] >= h.cfg.Limits.CopiesPerOrigin:
		return job.Full
	case h.foreign >= h.cfg.Limits.Copies:
		return job.TooManyCopies
	}
	if h.leavesNothing(r) {
		return job.BusyOwner
	}
	here := h.here(r)
	fixed := stays || before.Last || h.peers.knowsNoCheckpoints(from)
	if r.Level > 0 {
		here.Walltime = max(h.levelLimit(r, before), 0)
		why, _ := h.levelRefusal(now, r, before)
		return cmp.Or(h.site.Refuse(r), why, h.harmful(&here), h.unevictable(&here, fixed))
	}
	return cmp.Or(h.site.Refuse(r), h.harmful(&here), h.unevictable(&here, fixed))
}

// accept takes a copy of a job of this very site, which has the place in the queue of one that came at
// since.
func (h *host) accept(now job.Time, a job.AttemptID, r *job.Request, before job.Progress, since job.Time) {
	h.take(now, store.AcceptCopy{Attempt: a, Request: *r, LimitSeconds: h.limitSeconds(r, &before), Before: before, Time: min(since, now)})
}

// take commits a copy and queues it.
func (h *host) take(now job.Time, cmd store.AcceptCopy) {
	if h.seer != nil && cmd.Request.Runs == ([9]uint16{}) { // its origin does not say
		cmd.Request.Runs = h.seer.expect(cmd.Attempt.Job.Origin, &cmd.Request)
	}
	record(h.st, cmd)
	c := h.addCopy(h.st.Copy(cmd.Attempt))
	if h.seer != nil {
		h.seer.arrived(now, c)
	}
	h.enqueue(now, c.rec)
	h.probeNarrower(now, c)
	h.passing = true
	h.counters.CopiesQueued++
}

func (h *host) addCopy(rec *store.Copy) *hostCopy {
	c := &hostCopy{rec: rec}
	h.copies.Put(c)
	if rec.Request.Level > 0 {
		h.level.copies = append(h.level.copies, c)
		h.level.due = true
	}
	if origin := rec.ID.Job.Origin; origin != h.self {
		h.remote[origin]++
		h.dry.came(rec.Request)
		h.foreign++
	}
	return c
}

func (h *host) removeCopy(c *hostCopy) {
	h.copies.Delete(c.rec.ID)
	delete(h.told, c.rec.ID)
	h.levelNews(c)
	h.probeGone(c)
	if origin := c.rec.ID.Job.Origin; origin != h.self {
		h.foreign--
		if h.remote[origin]--; h.remote[origin] == 0 {
			delete(h.remote, origin)
		}
	}
}

// copiesOf returns the copies of an origin in the order of jobs.
func (h *host) copiesOf(origin job.SiteID) []*hostCopy {
	if h.remote[origin] == 0 && origin != h.self {
		return nil
	}
	list := make([]*hostCopy, 0, h.remote[origin])
	for c := range h.copies.All {
		if c.rec.ID.Job.Origin == origin {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *hostCopy) int { return a.rec.ID.Compare(b.rec.ID) })
	return list
}

// drop forgets a copy that has not begun and frees what was reserved for it.
func (h *host) drop(now job.Time, c *hostCopy) {
	h.leavesQueue(now, c)
	record(h.st, store.DropCopy{Attempt: c.rec.ID})
	h.site.Withdraw(now, c.rec.ID)
	h.dequeueOutside(c.rec.ID)
	h.removeCopy(c)
	h.passing = true
	if c.returned {
		h.emit(Clear{Attempt: c.rec.ID}) // what was prepared for it
	}
}

// dropCopies drops all copies of a job up to attempt a that have not begun.
// Attempts of one job at one site are few: they are looked for from a downward.
func (h *host) dropCopies(now job.Time, a job.AttemptID) {
	const lookBack = 16 // an older stray is found by comparing copies
	for n := a.Number; n > 0 && a.Number-n < lookBack; n-- {
		if c := h.copies.Get(job.AttemptID{Job: a.Job, Number: n}); c != nil && c.rec.Phase == store.CopyQueued {
			h.drop(now, c)
		}
	}
}

func (h *host) onWithdraw(now job.Time, from job.SiteID, m Withdraw) {
	h.dropCopies(now, m.Attempt)
	h.peers.send(from, WithdrawAck(m))
}

func (h *host) onStop(now job.Time, from job.SiteID, m Stop) {
	c := h.copies.Get(m.Attempt)
	switch {
	case c == nil && h.tasks.onStop(now, from, m):
	case c == nil:
		h.peers.send(from, GiveBack{Attempt: m.Attempt, Reason: job.UnknownCopy, Stamp: h.nextStamp()})
	case c.rec.Phase == store.CopyQueued:
		h.giveBack(now, c, job.UserCancel)
	case c.rec.Phase == store.CopyBegun:
		h.kill(c, Kill{Early: true, Stale: m.Stale}) // its origin has said so
	default:
		h.peers.request(now, from, outKey{result, m.Attempt})
	}
}

// giveBack drops a copy and tells its origin.
func (h *host) giveBack(now job.Time, c *hostCopy, reason job.Reason) {
	h.drop(now, c)
	h.peers.send(c.rec.ID.Job.Origin, GiveBack{Attempt: c.rec.ID, Reason: reason, Stamp: h.nextStamp()})
}

// drain stops or resumes starting. What other origins have queued here goes
// back to them.
func (h *host) drain(now job.Time, on bool) {
	h.site.Drain(now, on || h.starting.held)
	h.passing = true
	h.tasks.drain()
	defer h.drainOutside(on) // what goes back to its origin is dequeued already
	if on {
		h.returnCopies(now, job.Draining)
		h.unstageAll()
	}
}

// wantPass has the local scheduler make a pass at the end of the instant.
func (h *host) wantPass() { h.passing = true }

// pass lets the local scheduler start what it can, again if guests had to give way meanwhile.
func (h *host) pass(now job.Time) {
	h.launchUnlaunched(now)
	h.enforceLevel(now)
	if h.passing {
		h.doubt(now)
	}
	for h.passes(now) && h.passing {
		continue
	}
}

// passes makes passes until nothing more starts, and reports whether it made any.
func (h *host) passes(now job.Time) bool {
	made := h.passing
	for h.passing || h.tasks.dirty {
		if !h.passing {
			h.tasks.settle(now)
			continue
		}
		h.passing, made = false, true
		h.holdStarts(now)
		starts := h.site.Pass(now)
		h.passed()
		if h.evictor != nil {
			h.leaving = append(h.leaving[:0], h.evictor.Evicted()...)
		}
		for _, id := range starts {
			if id.Job.Origin == h.self {
				h.harm.told++
			}
			c := h.copies.Get(id)
			switch {
			case c == nil && h.tasks.proposed(now, id):
			case c == nil: // nothing of it may be trusted but its name
				h.site.Withdraw(now, id)
				h.emit(NotHeld{Attempt: id})
			case h.mayStart(now, c):
				h.propose(now, c)
			}
		}
		h.evict(now, h.leaving)
		h.returnLate(now)
		h.tasks.yieldNow(now)
		h.tasks.makeRoom(now)
	}
	if made {
		h.lookHarm(now)
	}
	return made
}

// nextWake returns when the host has to do something next.
func (h *host) nextWake(now job.Time) job.Time {
	return min(h.starting.nextStart(), h.nextLoad, h.nextCheck, h.nextRenew, h.nextClaimDue(), h.nextProbe, h.timed.next, h.saves.next, h.holding.next, h.harm.due, h.level.next, h.tasks.nextWake(), h.site.NextWake(now))
}

// revive tells the origin what this host holds of it, repeats results
// and claims, and lets copies claim that had to wait because the origin was away.
func (h *host) revive(now job.Time, site job.SiteID) {
	h.renewSoon(now, site)
	h.heard(now, site)
	draining := h.st.Site().Draining
	for _, c := range h.copiesOf(site) {
		h.reviveSaved(now, site, c)
		h.tellBound(now, c)
		switch {
		case c.outgrown != job.NoReason:
			h.giveBack(now, c, c.outgrown)
		case draining && c.rec.Phase == store.CopyQueued:
			h.giveBack(now, c, job.Draining)
		case draining && c.rec.Phase == store.CopyBegun && c.started == 0:
			h.unstage(c)
		case c.status == claiming:
			h.peers.send(site, Claim{Attempt: c.rec.ID, Stamp: c.stamp, Sent: max(now, c.claimed)})
		case c.rec.Outcome != nil:
			h.peers.request(now, site, outKey{result, c.rec.ID})
		case c.over:
			h.tellOver(now, c)
		case c.status == waiting && c.postponed:
			c.postponed = false
			h.postpone(now, c, now)
		}
	}
	h.sendSummary(site, h.summaryOf(site))
}
