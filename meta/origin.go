package meta

import (
	"fmt"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/fifo"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// origin keeps the jobs submitted to this site: it places their copies, holds
// their claims and closes them.
type origin struct {
	*core
	peers *peers
	host  ownHost
	site  outlook

	open     store.Index[job.ID, openJob] // the jobs that have not ended
	jobs     []*openJob                   // the same in the order of ids
	gone     int                          // entries of jobs that have ended
	leaving  []*openJob                   // copies wait for the end of the instant to leave
	unplaced []*openJob                   // pending jobs that found no place, see retryPlacements
	leased   []*openJob                   // jobs whose holders may have a lease
	away     []*openJob                   // jobs whose claim another site may hold, see addAway
	told     map[job.ID]told              // what hosts said of bounds, see boundtold.go
	queries  []*openJob                   // wait for sites to say when they would start, by deadline
	closed   fifo.Queue[job.ID]           // ended jobs, oldest first, until purged
	conserve conserve                     // of work, see conserve.go
	bags     *bagOrigin                   // what was submitted here as a bag
	deps     *dependencies
	seer     *seer // nil without forecasts

	awayLeft    int                    // how long away was when it was looked through
	lastChanged job.ID                 // the job that this step last said to have changed
	policy      place.Policy           // what cfg.Placement is made of
	round       place.Round            // scratch of the placement under way
	answers     []place.Answer         // scratch, too
	promises    place.Promises         // what those of sites were worth
	query       uint64                 // number of the latest start query
	nextRetry   job.Time               // of placements
	nextCrowded job.Time               // of those of jobs that full sites refused
	alarmed     [job.MaxLevel + 1]bool // levels without a site in reach, as was told
	willing     []job.SiteID           // may take a job since the latest retry: they have run dry, or have come back
	room        bool                   // a full site has room again since then: nor does one that such a site refused
	nextLease   job.Time               // no lease that it gave ends before
	overdue     overdue                // see overdue.go
	push        push
}

// ownHost is the host at the origin's own site. Each call stands for a message
// to another host.
type ownHost interface {
	// accept queues a copy (PlaceCopy). The origin has asked Refuse.
	accept(now job.Time, a job.AttemptID, r *job.Request, before job.Progress, since job.Time)
	// dropCopies drops what has not begun of a job's copies up to a (Withdraw).
	dropCopies(now job.Time, a job.AttemptID)
	// stop stops an attempt that has begun (Stop).
	stop(a job.AttemptID, k Kill)
	// demote has an attempt that runs save and end, for its job to go on in another one.
	demote(a job.AttemptID, cause job.DemotionCause, grace time.Duration) error
	// forget forgets an attempt whose outcome is recorded (ResultAck).
	forget(a job.AttemptID)
	// waitHere says how long a copy that arrived now would wait (StartQuery).
	waitHere(now job.Time, c job.Copy, predict bool) (time.Duration, bool)
	// asked is a request as it would count here if its copy came now.
	asked(r *job.Request, before *job.Progress) job.Request
	// leavesNothing says that the owner of the machine leaves a request no time.
	leavesNothing(r *job.Request) bool
	// levelRefusal says why a job of a hierarchy that came now would not be taken, and whether it
	// is not to go to a lower level either.
	levelRefusal(now job.Time, r *job.Request, before *job.Progress) (why job.Reason, final bool)
	// ownLevel is the level of a hierarchy that the site is, 0 for none.
	ownLevel() uint8
	// levelDoes is the most that this level does for one such job.
	levelDoes(r *job.Request) float64
	// speed is how fast a request gets on here.
	speed(r *job.Request) float64
	// describe says what the site is and how loaded it is (LoadDigest).
	describe(now job.Time) cluster.Digest
	// wantPass has the local scheduler make a pass at the end of the instant.
	wantPass()
}

// outlook is what an origin may ask the local scheduler; only the host changes it.
type outlook interface {
	Refuse(r *job.Request) job.Reason
	StartsAtOnce(now job.Time, c job.Copy) bool
}

func newOrigin(c *core, p *peers, h ownHost, site outlook) *origin {
	or := &origin{core: c, peers: p, host: h, site: site, open: store.NewIndex(func(o *openJob) job.ID { return o.rec.ID }), told: make(map[job.ID]told), policy: c.cfg.Placement.Policy()}
	or.policy.Kept = c.cfg.Limits.DecisionSites
	or.conserve.next, or.overdue.next, or.push.next = job.Never, job.Never, job.Never
	p.elsewhere = or.elsewhere
	return or
}

// submit takes on a new job and looks for a place.
func (or *origin) submit(now job.Time, ev Submit) {
	if known, err := or.submitted(ev.RequestID, ev.BodyHash, false); known != (job.ID{}) {
		var state job.State
		if j := or.st.Job(known); j != nil {
			state = j.State
		}
		or.reply(ev.Token, known, state, err)
		return
	}
	err := or.admit(&ev.Request)
	if err == nil {
		err = or.leastLevel(now, &ev.Request)
	}
	if err != nil {
		or.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	after, err := or.deps.ask(&ev.Request, ev.After)
	if err != nil {
		or.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	if or.seer != nil {
		ev.Request.Runs = or.seer.expect(or.self, &ev.Request)
	}
	guess := or.seer.guess(&ev.Request)
	id := or.st.NextID()
	err = store.Record(or.st, store.SubmitJob{
		ID: id, Request: ev.Request, RequestID: ev.RequestID, BodyHash: ev.BodyHash, After: after, Payload: ev.Payload, Guess: guess, Actor: ev.Actor, Time: now,
	})
	if err != nil {
		or.reply(ev.Token, job.ID{}, 0, fmt.Errorf("%w: %w", ErrInvalid, err))
		return
	}
	or.counters.JobsSubmitted++
	o := or.addOpen(or.st.Job(id))
	or.deps.added(id, &o.rec.Request)
	switch {
	case o.rec.State.Terminal(): // it can never start
		or.removeOpen(o)
	case ev.Hold:
		record(or.st, store.HoldJob{Job: id, Actor: ev.Actor, Time: now})
	default:
		or.place(now, o)
	}
	or.changed(id)
	or.reply(ev.Token, id, o.rec.State, nil)
}

// admit checks a request against what this site and the known others can do.
func (or *origin) admit(r *job.Request) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if or.open.Len() >= or.cfg.Limits.Jobs {
		return &FullError{Jobs: or.open.Len(), RetryAfter: or.cfg.Timing.Retry}
	}
	return or.largeEnough(r)
}

// largeEnough returns a [TooLargeError] if no known site could ever run r.
func (or *origin) largeEnough(r *job.Request) error {
	if or.site.Refuse(r) == job.NoReason {
		return nil
	}
	best := TooLargeError{Request: *r, Widest: or.self, Processors: or.cfg.Self.Processors, MemoryBytes: or.cfg.Self.MemoryBytes}
	for _, p := range or.peers.view.Peers() {
		if !p.Known || or.policy.StaysHome {
			continue
		}
		d := &p.Digest
		if place.Fits(r, d.Processors, d.MemoryBytes) == job.NoReason {
			return nil
		}
		wider := d.Processors > best.Processors
		if r.Processors <= best.Processors { // width is not the trouble: memory is
			wider = d.Processors >= r.Processors && d.MemoryBytes > best.MemoryBytes
		}
		if wider {
			best.Widest, best.Processors, best.MemoryBytes = p.Site, d.Processors, d.MemoryBytes
		}
	}
	return &best
}

func (or *origin) addOpen(j *store.Job) *openJob {
	o := &openJob{rec: j}
	or.open.Put(o)
	or.jobs = append(or.jobs, o)
	return o
}

// removeOpen forgets what was kept in mind of a job that has ended.
func (or *origin) removeOpen(o *openJob) {
	or.open.Delete(o.rec.ID)
	delete(or.told, o.rec.ID)
	delete(or.push.of, o.rec.ID)
	o.ended = true
	if or.seer != nil {
		or.seer.unscored(o, forecast.Cancelled)
	}
	or.dropQuery(o)
	or.counters.JobsClosed++
	or.closed.Push(o.rec.ID)
	or.deps.ended(o.rec.ID, &o.rec.Request)
	or.gone++
	if or.gone > 1024 && or.gone > len(or.jobs)/2 {
		or.jobs = slices.DeleteFunc(or.jobs, func(o *openJob) bool { return o.ended })
		or.gone = 0
	}
}

// leastAway is how long the list of jobs that others hold must be to be looked through.
const leastAway = 16

// addAway notes that another site holds the claim of a job. When the list is twice as
// long as it was, the jobs that have moved on leave it.
func (or *origin) addAway(o *openJob) {
	if o.away || !or.isAway(o) {
		return
	}
	if len(or.away) >= max(leastAway, 2*or.awayLeft) {
		or.away = slices.DeleteFunc(or.away, func(o *openJob) bool {
			o.away = or.isAway(o)
			return !o.away
		})
		or.awayLeft = len(or.away)
	}
	o.away, or.away = true, append(or.away, o)
}

// isAway reports whether another site holds the claim of a job.
func (or *origin) isAway(o *openJob) bool {
	return !o.ended && o.rec.Holder != "" && o.rec.Holder != or.self
}

// changed says that a job has changed, at most once per step for consecutive
// changes of one job.
func (or *origin) changed(id job.ID) {
	if or.lastChanged == id {
		return
	}
	or.lastChanged = id
	o := or.open.Get(id)
	if o == nil {
		or.emit(Changed{Job: id})
		return
	}
	if o.changed == nil {
		o.changed = Changed{Job: id} // made once: it is sent at every turn of the job's life
	}
	or.emit(o.changed)
}

// place looks for sites for a pending job, asking them first if the policy
// wants it and the job has to wait.
func (or *origin) place(now job.Time, o *openJob) {
	if o.rec.State != job.Pending || o.query != nil || or.passesOver(now, o) {
		return
	}
	if or.policy.Question != place.AskNothing && !or.startsHere(now, o) && or.ask(now, o) {
		return
	}
	or.openAttempt(now, o, or.decide(now, o, nil))
}

// openAttempt opens the job's next attempt at the chosen sites.
func (or *origin) openAttempt(now job.Time, o *openJob, d *store.Decision) {
	sites := chosen(d)
	if len(sites) == 0 {
		if or.sink(now, o) {
			return
		}
		o.decision = d
		or.addUnplaced(o)
		return
	}
	o.askAnew(now)
	o.decision, o.moves, o.barren = nil, 0, 0
	a := job.AttemptID{Job: o.rec.ID, Number: o.rec.NextAttempt()}
	record(or.st, store.OpenAttempt{Attempt: a, Sites: sites, Decision: d, Time: now})
	o.at = append(o.inline[:0], make([]copyAt, len(sites))...)
	for i := range sites {
		or.settleIn(now, o, i)
	}
	or.addIfShort(now, o)
	if or.seer != nil {
		or.seer.placed(o)
	}
	or.changed(o.rec.ID)
}

// settleIn queues the i-th copy here, or marks it to leave.
func (or *origin) settleIn(now job.Time, o *openJob, i int) {
	or.notePlaced(now, o)
	if o.rec.Sites[i] == or.self {
		r := o.rec.Asked()
		or.host.accept(now, o.rec.AttemptID(), &r, o.rec.Before(), o.waitsSince(now))
		o.at[i] = queued
		return
	}
	o.at[i], o.sent = unsent, now
	or.noteSent(now, o, o.rec.Sites[i])
	if !o.leaves {
		o.leaves = true
		or.leaving = append(or.leaving, o)
	}
}

// sendPlaced sends the copies that were placed in this instant. A job that
// has meanwhile started at its origin keeps its copies at home.
func (or *origin) sendPlaced(now job.Time) {
	for i, o := range or.leaving {
		or.leaving[i] = nil
		o.leaves = false
		if o.rec.State != job.Queued {
			continue
		}
		for i := range o.rec.Sites {
			if o.at[i] == unsent {
				or.sendCopy(now, o, i)
			}
		}
	}
	or.leaving = or.leaving[:0]
}

func (or *origin) addUnplaced(o *openJob) {
	if !o.unplaced {
		o.unplaced = true
		or.unplaced = append(or.unplaced, o)
	}
}

// retryPlacements looks again for places for jobs that have none.
func (or *origin) retryPlacements(now job.Time) {
	if now < or.nextRetry {
		return
	}
	or.nextRetry = now.Add(or.cfg.Timing.Retry)
	waiting, willing, room := or.unplaced, or.willing, or.room
	if or.conserving() { // the pauses of full sites end after Timing.Retry, whoever else refused a job
		if room = room || now >= or.nextCrowded; room {
			or.nextCrowded = or.nextRetry
		}
		or.nextRetry = or.nextCrowded
	}
	or.unplaced, or.willing, or.room = nil, nil, false
	for _, o := range waiting {
		o.unplaced = false
		switch {
		case o.ended || o.rec.State != job.Pending:
		case o.lost.holds(now), now < o.retryAt && !o.wantedBy(willing) && (!room || !o.crowded):
			or.addUnplaced(o)
		default:
			or.place(now, o)
		}
	}
}

// roomSeen has places looked for soon for jobs that sites refused as they were full: the
// more jobs have none the later, as each is a decision.
func (or *origin) roomSeen(now job.Time) {
	or.room = true
	or.nextRetry = min(or.nextRetry, now.Add(moreAfter+time.Duration(len(or.unplaced))*time.Millisecond))
}

// retrySoon has the next tick look for places, as there may be one now at a site: also for
// jobs that it is not yet time to ask other sites about again.
func (or *origin) retrySoon(now job.Time, site job.SiteID) {
	if or.conserving() {
		or.addWilling(site)
	}
	or.nextRetry = now
	or.conserveSoon(now)
}

// addWilling has places looked for by jobs that a site has not refused for what they are.
func (or *origin) addWilling(site job.SiteID) {
	if !slices.Contains(or.willing, site) {
		or.willing = append(or.willing, site)
	}
}

// endedHere learns how an attempt ended at this very site.
func (or *origin) endedHere(now job.Time, a job.AttemptID, outcome *job.Outcome) {
	o := or.open.Get(a.Job)
	if o == nil || o.rec.Attempt != a.Number || o.rec.Holder != or.self {
		or.host.forget(a)
		return
	}
	if o.rec.Outcome == nil {
		or.recordOutcome(now, o, or.endOf(now, o.rec, *outcome))
	}
}

// nextWake returns when the origin has to do something next.
func (or *origin) nextWake() job.Time {
	wake := min(or.nextLease, or.conserve.next, or.overdue.next, or.push.next)
	if len(or.unplaced) > 0 {
		wake = min(wake, or.nextRetry)
	}
	if len(or.queries) > 0 {
		wake = min(wake, or.queries[0].query.deadline)
	}
	if id, ok := or.closed.First(); ok {
		if j := or.st.Job(id); j != nil {
			wake = min(wake, j.Closed.Add(or.cfg.Limits.ClosedFor))
		}
	}
	return wake
}
