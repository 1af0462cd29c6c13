package meta

import (
	"fmt"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// Engine is the meta-scheduler of one site. It belongs to one goroutine.
type Engine struct {
	cfg  Config
	self job.SiteID
	st   *store.State
	site Site
	view cluster.View

	// As origin: the jobs that have not ended, by id and in the order of ids.
	open     store.Index[job.ID, openJob]
	jobs     []*openJob
	gone     int          // entries of jobs that have ended
	leaving  []*openJob   // copies wait for the end of the instant to leave
	homeless []*openJob   // pending jobs that found no place, see retry
	lent     []*openJob   // jobs whose holders may have a lease
	queries  []*openJob   // wait for sites to say when they would start, by deadline
	closed   fifo[job.ID] // ended jobs, oldest first, until purged

	// As host: all copies, and how many of each other origin.
	copies  store.Index[job.AttemptID, hostCopy]
	remote  map[job.SiteID]int
	foreign int            // sum of remote
	claims  fifo[claimDue] // claims without an answer, by deadline
	claimed job.Time       // when the latest claim was sent
	leases  []*hostCopy    // attempts under way that run under a lease
	passing bool           // the local scheduler wants a pass

	links    map[job.SiteID]*link
	linked   []*link // by site
	busy     []*link // those with requests that may wait for an answer
	vanished fifo[vanishDue]

	out       []Effect
	said      job.ID         // the job that this step said last to have changed
	policy    place.Policy   // what cfg.Placement is made of
	round     place.Round    // scratch
	answers   []place.Answer // scratch, too
	promises  place.Promises // what those of sites were worth
	counters  Counters
	stamp     uint64
	query     uint64
	loadSeq   uint64
	nextLoad  job.Time
	nextCheck job.Time // anti-entropy
	nextRetry job.Time
	nextRenew job.Time // of what this site holds
	nextLease job.Time // no lease that it gave ends before
	began     job.Time // of this daemon
}

// New returns an engine over the given facts and local scheduler. The first
// thing to do with it is [Engine.Restore].
func New(cfg Config, st *store.State, site Site) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, self: st.Site().ID, st: st, site: site, policy: cfg.Placement.Policy(),
		open: store.NewIndex[job.ID, openJob](), copies: store.NewIndex[job.AttemptID, hostCopy](),
		remote: make(map[job.SiteID]int), links: make(map[job.SiteID]*link),
	}
	e.policy.Verdicts = cfg.Limits.Verdicts
	if cfg.Board != nil {
		e.view.Attach(cfg.Board)
	}
	return e, nil
}

// Step takes up what happened at now and returns what must be done about it.
// now must not be earlier than at the step before. The slice is valid until
// the next call.
func (e *Engine) Step(now job.Time, ev Event) []Effect {
	e.out, e.said = e.out[:0], job.ID{}
	switch ev := ev.(type) {
	case Submit:
		e.submit(now, ev)
	case Cancel:
		e.cancel(now, ev)
	case Hold:
		e.hold(now, ev)
	case Release:
		e.release(now, ev)
	case SetDrain:
		e.setDrain(now, ev)
	case ForgetSite:
		e.forgetSite(now, ev)
	case Receive:
		e.receive(now, ev.From, ev.Message)
	case PeerUp:
		e.peerUp(now, ev)
	case PeerDown:
		e.peerDown(now, ev.Site)
	case LoadSeen:
		e.loadSeen(now, ev.Digest)
	case AttemptStarted:
		e.attemptStarted(now, ev)
	case AttemptEnded:
		e.attemptEnded(now, ev)
	case AttemptMissing:
		e.attemptMissing(now, ev.Attempt)
	case FilesHome:
		e.filesHome(now, ev)
	case Tick:
		e.tick(now)
	case SendCopies:
		e.sendPlaced(now)
	case Pass:
		e.pass(now)
	default:
		panic(fmt.Sprintf("meta: unknown event %T", ev))
	}
	// Along with other facts now and then the time, see [store.Site].
	if now.Sub(e.st.Site().Latest) > store.Late && e.st.Dirty() {
		record(e, store.NoteTime{Time: now})
	}
	return e.out
}

// receive hands a message to whom it is for. What a peer sends is checked
// there: it may be late, doubled, about a job it has no business with.
func (e *Engine) receive(now job.Time, from job.SiteID, m Message) {
	if from == e.self {
		return // only a broken driver or a liar could do this
	}
	switch m := m.(type) {
	case PlaceCopy:
		e.onPlaceCopy(now, from, m)
	case CopyAnswer:
		e.onCopyAnswer(now, from, m)
	case Claim:
		e.onClaim(now, from, m)
	case Verdict:
		e.onVerdict(now, from, m)
	case Renew:
		e.onRenew(now, from, m)
	case Renewed:
		e.onRenewed(now, from, m)
	case Withdraw:
		e.onWithdraw(now, from, m)
	case WithdrawAck:
		e.link(from).settle(outKey{withdrawal, m.Attempt})
	case Started:
		e.onStarted(now, from, m)
	case Result:
		e.onResult(now, from, m)
	case ResultAck:
		e.onResultAck(now, from, m)
	case Stop:
		e.onStop(now, from, m)
	case GiveBack:
		e.onGiveBack(now, from, m)
	case CopySummary:
		e.onCopySummary(now, from, m)
	case DigestRequest:
		e.sendDigest(now, from)
	case CopyDigest:
		e.onCopyDigest(now, from, m)
	case LoadDigest:
		if m.Digest.Site == from {
			e.loadSeen(now, m.Digest)
		}
	case StartQuery:
		e.onStartQuery(now, from, m)
	case StartAnswer:
		e.onStartAnswer(now, from, m)
	}
}

// NeedsPass reports whether a [Pass] now could do anything.
func (e *Engine) NeedsPass() bool {
	return e.passing || len(e.leaving) > 0 || e.closed.len() > e.cfg.Limits.ClosedJobs
}

// pass ends an instant. Starts at this site come first, so that a job that
// starts at its origin at once never leaves it.
func (e *Engine) pass(now job.Time) {
	for e.passing {
		e.passing = false
		for _, id := range e.site.Pass(now) {
			e.propose(now, id)
		}
	}
	e.sendPlaced(now)
	if e.closed.len() > e.cfg.Limits.ClosedJobs {
		e.purge(now)
	}
}

// tick does what has become due.
func (e *Engine) tick(now job.Time) {
	e.expireClaims(now)
	e.expireQueries(now)
	e.resend(now)
	e.replaceVanished(now)
	e.expireLeases(now)
	if now >= e.nextRenew {
		e.renewLeases(now)
	}
	if now >= e.nextRetry {
		e.retryPlacements(now)
	}
	if now >= e.nextLoad {
		e.advertise(now)
	}
	if now >= e.nextCheck {
		e.compareCopies(now)
	}
	e.purge(now)
	if e.site.NextWake(now) <= now {
		e.passing = true
	}
}

// NextWake returns when the next [Tick] is due, [job.Never] if none is.
func (e *Engine) NextWake(now job.Time) job.Time {
	wake := min(e.nextLoad, e.nextCheck, e.nextRenew, e.nextLease, e.site.NextWake(now))
	if len(e.homeless) > 0 {
		wake = min(wake, e.nextRetry)
	}
	wake = min(wake, e.nextClaimDue())
	if len(e.queries) > 0 {
		wake = min(wake, e.queries[0].query.deadline)
	}
	if d, ok := e.vanished.first(); ok {
		wake = min(wake, d.at)
	}
	wake = min(wake, e.nextResend())
	if id, ok := e.closed.first(); ok {
		if j := e.st.Job(id); j != nil {
			wake = min(wake, j.Closed.Add(e.cfg.Limits.ClosedFor))
		}
	}
	return wake
}

// record records a fact that must be possible: the engine checked before. A
// failure is a bug and stops the site rather than let it go on with a wrong
// idea of the truth.
func record[C store.Command](e *Engine, c C) {
	if err := store.Record(e.st, c); err != nil {
		panic(fmt.Sprintf("meta: %T refused: %v", c, err))
	}
}

func (e *Engine) emit(f Effect) { e.out = append(e.out, f) }

// changed says that a job has changed, once a step as long as it is the same job.
func (e *Engine) changed(id job.ID) {
	if e.said == id {
		return
	}
	e.said = id
	o := e.open.Get(id)
	if o == nil {
		e.emit(Changed{Job: id})
		return
	}
	if o.changed == nil {
		o.changed = Changed{Job: id} // made once: it is sent at every turn of the job's life
	}
	e.emit(o.changed)
}

// send sends m over the stream to a site, if one is up.
func (e *Engine) send(to job.SiteID, m Message) {
	if l := e.links[to]; l != nil && l.up {
		e.emit(Send{To: to, Message: m})
	}
}

// nextStamp counts the protocol steps of this site as a host. It grows with
// the clock, so that it grows across restarts too.
func (e *Engine) nextStamp(now job.Time) uint64 {
	e.stamp = max(e.stamp+1, uint64(max(now, 0)))
	return e.stamp
}

// fifo is a queue of things that become due in the order they were added.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) push(v T) { f.items = append(f.items, v) }

func (f *fifo[T]) first() (T, bool) {
	if f.head == len(f.items) {
		var none T
		return none, false
	}
	return f.items[f.head], true
}

func (f *fifo[T]) pop() {
	var none T
	f.items[f.head] = none
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 64 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }
