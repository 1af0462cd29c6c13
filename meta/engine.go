package meta

import (
	"fmt"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// Engine is the meta-scheduler of one site: it hands each event to the role
// that it concerns. It belongs to one goroutine.
//
// As origin a site keeps the jobs submitted to it, as host the copies that it
// was given; it reaches the other sites through its peers. Origin and host of
// one site meet as two sites would, only that calls take the place of
// messages (ownHost, ownOrigin).
type Engine struct {
	*core
	origin *origin
	host   *host
	peers  *peers
	bags   *bagOrigin // what was submitted here as a bag
	deps   *dependencies
	seer   *seer // nil without forecasts
	// severed are sites whose stream, up as it is, is not heard, see [Engine.sever].
	severed map[job.SiteID]bool
}

// New returns an engine over the given facts and local scheduler. The first
// thing to do with it is [Engine.Restore].
func New(cfg Config, st *store.State, site Site) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &core{cfg: cfg, self: st.Site().ID, st: st}
	p := newPeers(c)
	h := newHost(c, p, site)
	o := newOrigin(c, p, h, site)
	h.origin = o
	b := newBagOrigin(c, p, o)
	b.host, h.tasks.origin, o.bags, p.resultsOf = h.tasks, b, b, h.tasks.message
	p.savedOf = h.savedOf
	d := newDependencies(c, o, b)
	o.deps, b.deps = d, d
	s := newSeer(c, h, o, p, site)
	o.seer, h.seer = s, s
	return &Engine{core: c, origin: o, host: h, peers: p, bags: b, deps: d, seer: s}, nil
}

// Step takes up what happened at now and returns what must be done about it.
// now must not be earlier than at the step before. The slice is valid until
// the next call.
func (e *Engine) Step(now job.Time, ev Event) []Effect {
	e.out, e.origin.lastChanged, e.bags.lastChanged = e.out[:0], job.ID{}, job.ID{}
	e.host.level.looked = false
	switch ev := ev.(type) {
	case Submit:
		e.origin.submit(now, ev)
	case Cancel:
		e.origin.cancel(now, ev)
	case Hold:
		e.origin.hold(now, ev)
	case Release:
		e.origin.release(now, ev)
	case CheckpointJob:
		e.origin.checkpoint(now, ev)
	case SetDrain:
		e.setDrain(now, ev)
	case ForgetSite:
		e.forgetSite(now, ev)
	case Receive:
		e.receive(now, ev.From, ev.Message)
	case PeerUp:
		e.peerUp(now, ev)
	case PeerDown:
		delete(e.severed, ev.Site)
		e.peerDown(now, ev.Site)
	case LoadSeen:
		e.loadSeen(now, ev.Digest)
	case AttemptStarted:
		e.host.attemptStarted(now, ev)
	case AttemptEnded:
		e.host.attemptEnded(now, ev)
	case AttemptMissing:
		e.host.attemptMissing(now, ev)
	case StartFailed:
		e.startFailed(now, ev)
	case DiskSeen:
		e.diskSeen(now, ev)
	case MachineSeen:
		e.machineSeen(now, ev)
	case AttemptOver:
		e.host.attemptOver(now, ev.Attempt)
	case EstimateTold:
		e.host.estimateTold(now, ev)
	case FilesHere:
		e.host.filesHere(now, ev.Attempt)
	case TurnCame:
		e.host.turnCame(now, ev.Attempt)
	case SavedCopied:
		e.host.savedCopied(now, ev)
	case SavedHome:
		e.origin.savedHome(now, ev)
	case FilesHome:
		e.origin.filesHome(now, ev)
	case FilesWait:
		e.origin.filesWait(ev)
	case OwnerSeen:
		e.host.ownerSeen(ev)
	case ForecastJob:
		e.forecastJob(now, ev)
	case Foreseen:
		e.seer.foreseen(now, ev)
	case Tick:
		e.tick(now)
	case Stopping:
		e.seer.stopping()
	case Reconfigure:
		e.reconfigure(now, ev)
	case SendCopies:
		e.origin.sendPlaced(now)
	case SubmitBag, CancelBag, HoldBag, ReleaseBag, RetryTasks, SetPolicies, SetBudget, TrustHost, TasksHome:
		e.bagStep(now, ev)
	case Pass:
		e.pass(now)
	default:
		e.trustStep(now, ev)
	}
	if _, pass := ev.(Pass); !pass { // what goes on then is placed, and leaves with the pass
		e.deps.resolve(now)
	}
	// Along with other facts now and then the time, see [store.Site].
	if now.Sub(e.st.Site().Latest) > store.Late && e.st.Dirty() {
		record(e.st, store.NoteTime{Time: now})
	}
	return e.out
}

// trustStep takes up what concerns the trust table.
func (e *Engine) trustStep(now job.Time, ev Event) {
	switch ev := ev.(type) {
	case AdmitSite:
		e.admitSite(now, ev)
	case SetAddresses:
		e.setAddresses(ev)
	case RevokeSite:
		e.revokeSite(now, ev)
	case ForgetTrust:
		e.forgetTrust(ev)
	case Leave:
		e.leave(now, ev)
	case SetBundleSequence:
		e.reply(ev.Token, job.ID{}, 0, store.Record(e.st, store.SetBundleSequence{Sequence: ev.Sequence}))
	case OpenInvitation:
		e.openInvitation(now, ev)
	case TryInvitation:
		e.tryInvitation(now, ev)
	case ComeByInvitation:
		e.comeByInvitation(now, ev)
	case CloseInvitation:
		e.closeInvitation(now, ev)
	case MakeToken:
		e.reply(ev.Token, job.ID{}, 0, store.Record(e.st, store.MakeToken{ID: ev.ID, User: ev.User, Expires: ev.Expires, Actor: ev.Actor, Time: now}))
	case RevokeToken:
		e.revokeToken(now, ev)
	default:
		panic(fmt.Sprintf("meta: unknown event %T", ev))
	}
}

// receive hands a message to the role that it is for, if its sender may say so at all
// (rights.go). It may be late or doubled: the role checks that.
func (e *Engine) receive(now job.Time, from job.SiteID, m Message) {
	if rule := e.refuse(from, m); rule != "" {
		row := &rights[m.kind()]
		e.emit(Refused{Peer: from, Kind: row.Kind, Rule: rule, Late: row.Late && rule == row.rule})
		return
	}
	switch m := m.(type) {
	// From an origin to its host.
	case PlaceCopy:
		e.host.onPlaceCopy(now, from, m)
	case Verdict:
		e.host.onVerdict(now, from, m)
	case Renewed:
		e.host.onRenewed(now, m)
	case Withdraw:
		e.host.onWithdraw(now, from, m)
	case Stop:
		e.host.onStop(now, from, m)
	case Demote:
		e.host.onDemote(m)
	case ResultAck:
		e.host.onResultAck(now, from, m)
	case SavedAck:
		e.host.onSavedAck(from, m)
	case DigestRequest:
		e.host.sendDigest(now, from)
	case StartQuery:
		e.host.onStartQuery(now, from, m)
	// From a host to its origin.
	case CopyAnswer:
		e.origin.onCopyAnswer(now, from, m)
	case Claim:
		e.origin.onClaim(now, from, m)
	case Renew:
		e.origin.onRenew(now, from, m)
	case Started:
		e.origin.onStarted(now, from, m)
	case Result:
		e.origin.onResult(now, from, m)
	case Saved:
		e.origin.onSaved(now, from, m)
	case GiveBack:
		e.origin.onGiveBack(now, from, m)
	case CopySummary:
		e.origin.onCopySummary(now, from, m)
	case CopyDigest:
		e.origin.onCopyDigest(now, from, m)
	case StartAnswer:
		e.origin.onStartAnswer(now, from, m)
	// About tasks.
	case Offer:
		e.host.tasks.onOffer(now, from, m)
	case TaskClaim:
		e.bags.onTaskClaim(now, from, m)
	case TaskVerdict:
		e.host.tasks.onTaskVerdict(now, from, m)
	case TaskResults:
		e.bags.onTaskResults(now, from, m)
	case TaskResultsAck:
		e.host.tasks.onTaskResultsAck(now, from, m)
	case Recall:
		e.host.tasks.onRecall(now, from, m)
	case StopTasks:
		e.host.tasks.onStopTasks(now, from, m)
	// Between any two sites.
	case WithdrawAck:
		e.origin.onWithdrawAck(now, from, m)
	case LoadDigest:
		e.loadSeen(now, m.Digest)
	case SiteBundle:
		e.onSiteBundle(now, from, m)
	case BundleTaken:
		e.emit(BundleConfirmed{Peer: from, Sequence: m.Sequence})
	}
}

func (e *Engine) peerUp(now job.Time, ev PeerUp) {
	if rule := e.stranger(ev.Site); rule != "" {
		e.emit(Refused{Peer: ev.Site, Kind: "stream", Rule: rule})
		e.emit(TrustChanged{Site: store.TrustedSite{Site: ev.Site, State: store.SiteRevoked}, Why: TrustRefused})
		return
	}
	delete(e.severed, ev.Site)
	known := e.peers.view.Get(ev.Site)
	anew := known == nil || known.Generation != ev.Generation || known.Incarnation != ev.Incarnation
	if !e.peers.up(now, ev) {
		return
	}
	e.origin.metAnew(ev.Site)
	e.peers.send(ev.Site, LoadDigest{Digest: e.host.digest(now)})
	e.origin.revive(now, ev.Site, anew)
	e.host.revive(now, ev.Site)
	e.bags.up(now, ev.Site, ev.Incarnation)
	e.host.tasks.up(now, ev.Site)
	e.origin.retrySoon(now, ev.Site)
}

func (e *Engine) peerDown(now job.Time, site job.SiteID) {
	if e.peers.down(now, site) {
		e.host.originDown(now, site)
		e.bags.down(site)
		e.host.tasks.down(site)
		e.origin.queriesDown(now, site)
		if e.seer != nil {
			e.seer.down(now, site)
		}
	}
}

func (e *Engine) loadSeen(now job.Time, d cluster.Digest) {
	if rule := e.stranger(d.Site); rule != "" {
		e.emit(Refused{Peer: d.Site, Kind: LoadDigest{}.Word(), Rule: rule})
		return
	}
	back := e.peers.loadSeen(now, d)
	p := e.peers.view.Get(d.Site)
	anew := p != nil && p.Anew(now, e.cfg.Timing.Retry)
	if back || anew {
		e.origin.metAnew(d.Site)
		e.origin.retrySoon(now, d.Site)
		e.bags.placeSoon(now)
	}
	if anew {
		e.origin.askAgain(now, d.Site)
		e.bags.askAgain(now, d.Site)
	}
	e.origin.idleSeen(now, d.Site)
	e.host.heldSeen(now, &d)
}

// setDrain stops or resumes taking copies and starting.
func (e *Engine) setDrain(now job.Time, ev SetDrain) {
	record(e.st, store.SetDrain{Draining: ev.On, Reason: ev.Reason, Actor: ev.Actor, Time: now})
	e.host.drain(now, ev.On)
	e.host.advertise(now)
	if ev.On {
		e.origin.moveOwn(now, job.Draining)
	} else {
		e.origin.retrySoon(now, e.self)
	}
	e.reply(ev.Token, job.ID{}, 0, nil)
}

// startFailed returns an attempt to its origin. If the host will not start for long,
// this site's own jobs that wait nowhere else go elsewhere, too.
func (e *Engine) startFailed(now job.Time, ev StartFailed) {
	e.host.startFailed(now, ev)
	if e.host.starting.away() {
		e.origin.moveOwn(now, job.CannotStart)
	}
}

// NeedsPass reports whether a [Pass] now could do anything.
func (e *Engine) NeedsPass() bool {
	return e.host.passing || e.host.tasks.dirty || e.bags.offering || len(e.origin.leaving) > 0 || e.origin.tooManyClosed() || e.seer != nil && len(e.seer.fresh) > 0
}

// pass ends an instant. Starts at this site come first, so that a job that
// starts at its origin at once never leaves it.
func (e *Engine) pass(now job.Time) {
	e.bags.offer(now)
	e.host.pass(now)
	e.host.noteFree(now)
	e.origin.sendPlaced(now)
	if e.seer != nil {
		e.seer.begin(now)
	}
	if e.origin.tooManyClosed() {
		e.origin.purge(now)
	}
}

// tick does what has become due.
func (e *Engine) tick(now job.Time) {
	e.host.expireClaims(now)
	e.host.resumeStarts(now)
	e.host.probeSilent(now)
	if now >= e.host.holding.next {
		e.host.returnHeld(now)
	}
	e.origin.expireQueries(now)
	if e.seer != nil {
		e.seer.expire(now)
	}
	e.peers.resend(now)
	e.origin.replaceVanished(now)
	e.origin.expireLeases(now)
	e.origin.expireOverdue(now)
	e.host.renewLeases(now)
	e.host.askTimed(now)
	e.host.copySaved(now)
	e.origin.retryPlacements(now)
	e.origin.conserveWork(now)
	e.origin.pushLevels(now)
	if now >= e.host.nextLoad {
		e.host.advertise(now)
		e.origin.idleHere(now)
	}
	e.host.compareCopies(now)
	e.origin.purge(now)
	e.bags.tick(now)
	e.host.tasks.tick(now)
	e.pruneTrust(now)
	if e.host.level.next <= now || e.host.site.NextWake(now) <= now || e.host.harm.due <= now {
		e.host.wantPass()
	}
}

// NextWake returns when the next [Tick] is due, [job.Never] if none is.
func (e *Engine) NextWake(now job.Time) job.Time {
	if e.deps.busy() {
		return now
	}
	return min(e.host.nextWake(now), e.origin.nextWake(), e.bags.nextWake(), e.peers.nextWake(), e.st.TrustDue(), e.seer.nextWake())
}
