package meta

import (
	"fmt"
	"slices"

	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// openJob is what the origin keeps in mind of a job that has not ended,
// beside the facts.
type openJob struct {
	rec *store.Job
	// at says for each of rec.Sites how far its copy has come; few is its place
	// for the usual numbers.
	at  []copyAt
	few [8]copyAt
	// refused are sites that refused or gave back a copy of this attempt.
	refused []refusal
	// failures counts the attempts in a row that no site kept a copy of; the
	// next one waits until retryAt.
	failures int
	retryAt  job.Time
	// changed is the effect that says that the job has changed.
	changed Effect
	// query collects what sites say about the start; nil if none is under way.
	query *startQuery
	// decision tells why there is no place, while the job is pending.
	decision *store.Decision
	// promises are what the sites of the latest attempt promised at decided.
	// They are kept only where weights learn from them.
	promises []promise
	decided  job.Time
	// lease is when the holder's lease has ended for sure; 0 without one.
	lease job.Time

	leaves, homeless, ended bool
	lent                    bool // it is in Engine.lent
}

// refusal is a site that did not want a copy, and why.
type refusal struct {
	site   job.SiteID
	reason job.Reason
}

// refusedBy returns why a site did not want a copy of this attempt, NoReason if it did.
func (o *openJob) refusedBy(site job.SiteID) job.Reason {
	for _, r := range o.refused {
		if r.site == site {
			return r.reason
		}
	}
	return job.NoReason
}

// copyAt is how far a copy has come, as the origin knows.
type copyAt uint8

const (
	unsent  copyAt = iota // leaves at the end of this instant
	placing               // sent, not confirmed
	queued                // the host has it
)

// submit takes on a new job and looks for a place.
func (e *Engine) submit(now job.Time, ev Submit) {
	if j := e.st.JobOfRequest(ev.RequestID); j != nil {
		if j.BodyHash != ev.BodyHash {
			e.reply(ev.Token, j.ID, j.State, fmt.Errorf("request_id %q, job %v: %w", ev.RequestID, j.ID, ErrRequestReused))
			return
		}
		e.reply(ev.Token, j.ID, j.State, nil)
		return
	}
	if err := e.admit(&ev.Request); err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	id := e.st.NextID()
	record(e, store.SubmitJob{
		ID: id, Request: ev.Request, RequestID: ev.RequestID, BodyHash: ev.BodyHash, Payload: ev.Payload, Time: now,
	})
	e.counters.JobsSubmitted++
	o := e.addOpen(e.st.Job(id))
	if ev.Hold {
		record(e, store.HoldJob{Job: id, Time: now})
	} else {
		e.place(now, o)
	}
	e.changed(id)
	e.reply(ev.Token, id, o.rec.State, nil)
}

// admit checks a request against what this site and the known others can do.
func (e *Engine) admit(r *job.Request) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e.open.Len() >= e.cfg.Limits.Jobs {
		return &FullError{Jobs: e.open.Len(), RetryAfter: e.cfg.Timing.Retry}
	}
	return e.largeEnough(r)
}

// largeEnough returns a [TooLargeError] if no known site could ever run r.
func (e *Engine) largeEnough(r *job.Request) error {
	if e.site.Refuse(r) == job.NoReason {
		return nil
	}
	best := TooLargeError{Request: *r, Widest: e.self, Processors: e.cfg.Self.Processors, MemoryBytes: e.cfg.Self.MemoryBytes}
	for _, p := range e.view.Peers() {
		if !p.Known || e.policy.StaysHome {
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

func (e *Engine) addOpen(j *store.Job) *openJob {
	o := &openJob{rec: j}
	e.open.Put(j.ID, o)
	e.jobs = append(e.jobs, o)
	return o
}

// removeOpen forgets what was kept in mind of a job that has ended.
func (e *Engine) removeOpen(o *openJob) {
	e.open.Delete(o.rec.ID)
	o.ended = true
	e.dropQuery(o)
	e.counters.JobsClosed++
	e.closed.push(o.rec.ID)
	e.gone++
	if e.gone > 1024 && e.gone > len(e.jobs)/2 {
		e.jobs = slices.DeleteFunc(e.jobs, func(o *openJob) bool { return o.ended })
		e.gone = 0
	}
}

// place looks for sites for a pending job, asking them first if the policy
// wants it and the job has to wait.
func (e *Engine) place(now job.Time, o *openJob) {
	if o.rec.State != job.Pending || o.query != nil {
		return
	}
	if e.policy.Question != place.AskNothing && !e.startsHere(now, o) && e.ask(now, o) {
		return
	}
	e.openAttempt(now, o, e.decide(now, o, nil))
}

// openAttempt opens the job's next attempt at the chosen sites.
func (e *Engine) openAttempt(now job.Time, o *openJob, d *store.Decision) {
	sites := chosen(d)
	if len(sites) == 0 {
		o.decision = d
		e.addHomeless(o)
		return
	}
	o.decision, o.refused = nil, nil
	a := job.AttemptID{Job: o.rec.ID, Number: o.rec.Attempt + 1}
	record(e, store.OpenAttempt{Attempt: a, Sites: sites, Decision: d, Time: now})
	o.at = append(o.few[:0], make([]copyAt, len(sites))...)
	for i := range sites {
		e.settleIn(now, o, i)
	}
	e.changed(o.rec.ID)
}

// settleIn queues the i-th copy here, or marks it to leave.
func (e *Engine) settleIn(now job.Time, o *openJob, i int) {
	if o.rec.Sites[i] == e.self {
		e.accept(now, e.self, o.rec.AttemptID(), &o.rec.Request)
		o.at[i] = queued
		return
	}
	o.at[i] = unsent
	if !o.leaves {
		o.leaves = true
		e.leaving = append(e.leaving, o)
	}
}

// sendPlaced sends the copies that were placed in this instant. A job that
// has meanwhile started at its origin keeps its copies at home.
func (e *Engine) sendPlaced(now job.Time) {
	for i, o := range e.leaving {
		e.leaving[i] = nil
		o.leaves = false
		if o.rec.State != job.Queued {
			continue
		}
		for i, site := range o.rec.Sites {
			if o.at[i] == unsent {
				o.at[i] = placing
				e.request(now, site, outKey{placement, o.rec.AttemptID()})
			}
		}
	}
	e.leaving = e.leaving[:0]
}

func (e *Engine) addHomeless(o *openJob) {
	if !o.homeless {
		o.homeless = true
		e.homeless = append(e.homeless, o)
	}
}

// retryPlacements looks again for places for jobs that have none.
func (e *Engine) retryPlacements(now job.Time) {
	e.nextRetry = now.Add(e.cfg.Timing.Retry)
	waiting := e.homeless
	e.homeless = nil
	for _, o := range waiting {
		o.homeless = false
		switch {
		case o.ended || o.rec.State != job.Pending:
		case now < o.retryAt:
			e.addHomeless(o)
		default:
			e.place(now, o)
		}
	}
}

func (e *Engine) onCopyAnswer(now job.Time, from job.SiteID, m CopyAnswer) {
	e.link(from).settle(outKey{placement, m.Attempt})
	o := e.open.Get(m.Attempt.Job)
	if o == nil || o.rec.State != job.Queued || o.rec.Attempt != m.Attempt.Number {
		return // the withdrawal is on its way
	}
	i := slices.Index(o.rec.Sites, from)
	if i < 0 {
		return
	}
	if !m.Accepted {
		e.copyReturned(now, o, i, store.CopyReturned, m.Reason)
		return
	}
	o.at[i] = queued
	o.failures = 0
}

// onGiveBack learns that a host does not hold a copy.
func (e *Engine) onGiveBack(now job.Time, from job.SiteID, m GiveBack) {
	l := e.link(from)
	l.settle(outKey{placement, m.Attempt})
	l.settle(outKey{withdrawal, m.Attempt})
	l.settle(outKey{stop, m.Attempt})
	o := e.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number {
		return
	}
	if o.rec.State == job.Queued {
		if i := slices.Index(o.rec.Sites, from); i >= 0 {
			e.copyReturned(now, o, i, store.CopyReturned, m.Reason)
		}
		return
	}
	if o.rec.Holder == from && (m.Stamp == 0 || e.isNews(o, m.Stamp)) {
		e.holderLacks(now, o, m.Reason)
	}
}

// isNews reports whether what a holder said of the attempt at its step stamp is
// later than its claim. Steps before and after the loss of a disk cannot be
// compared; but then the claim is the earlier one.
func (e *Engine) isNews(o *openJob, stamp uint64) bool {
	return stamp > o.rec.HolderStamp || o.rec.HolderGeneration != e.generationOf(o.rec.Holder)
}

// holderLacks deals with a holder that says it does not hold the attempt: it
// never began, and another attempt may; or it began and lost it. A holder on
// a new disk cannot know, so the attempt counts as begun.
func (e *Engine) holderLacks(now job.Time, o *openJob, reason job.Reason) {
	holder, a := o.rec.Holder, o.rec.AttemptID()
	switch o.rec.State {
	case job.Claimed, job.Cancelling:
		if o.rec.Started != 0 || o.rec.HolderGeneration != e.generationOf(holder) {
			break
		}
		record(e, store.ReturnClaim{Attempt: a, Site: holder, Reason: reason, Time: now})
		o.at, o.lease = nil, 0
		if o.rec.State.Terminal() {
			e.removeOpen(o)
		} else {
			e.place(now, o)
		}
		e.changed(o.rec.ID)
		return
	case job.Running:
	default:
		return // the outcome is known already
	}
	if leased(&o.rec.Request) {
		return // what it knows nothing of may still run; the lease's end will tell
	}
	e.recordOutcome(now, o, job.Outcome{
		Kind: job.Loss, End: now, Reason: fmt.Sprintf("site %s no longer knows the attempt that it had started", holder),
	})
}

// copyReturned replaces the i-th copy of an open attempt with one at the next
// best site, or does without it.
func (e *Engine) copyReturned(now job.Time, o *openJob, i int, kind store.ClaimEventKind, reason job.Reason) {
	from := o.rec.Sites[i]
	o.refused = append(o.refused, refusal{from, reason})
	to := e.nextSite(now, o)
	if to == "" && len(o.rec.Sites) == 1 {
		record(e, store.NoteClaim{Job: o.rec.ID, Event: store.ClaimEvent{
			Time: now, Attempt: o.rec.Attempt, Kind: kind, Site: from, Reason: reason,
		}})
		record(e, store.UnplaceJob{Attempt: o.rec.AttemptID()})
		o.at = nil
		o.decision = e.decide(now, o, nil)
		for i := range o.decision.Verdicts {
			v := &o.decision.Verdicts[i]
			if why := o.refusedBy(v.Site); why != job.NoReason {
				v.Chosen, v.Reason = false, why
			}
		}
		// Sites that want nothing of the job are not asked every few seconds.
		const mostDoublings = 6
		o.retryAt = now.Add(e.cfg.Timing.Retry << min(o.failures, mostDoublings))
		o.failures++
		e.addHomeless(o)
		e.changed(o.rec.ID)
		return
	}
	record(e, store.MoveCopy{Attempt: o.rec.AttemptID(), From: from, To: to, Kind: kind, Reason: reason, Time: now})
	o.at = slices.Delete(o.at, i, i+1)
	if to != "" {
		o.at = append(o.at, unsent)
		e.settleIn(now, o, len(o.at)-1)
	}
	e.changed(o.rec.ID)
}

// replaceVanished gives up copies of open attempts at sites that have been
// out of reach for too long, where another site can take them.
func (e *Engine) replaceVanished(now job.Time) {
	for {
		d, ok := e.vanished.first()
		if !ok || d.at > now {
			return
		}
		e.vanished.pop()
		p := e.view.Get(d.site)
		if p == nil || p.Connected || p.Since > d.since {
			continue
		}
		for _, o := range e.jobs {
			if o.ended || o.rec.State != job.Queued {
				continue
			}
			if i := slices.Index(o.rec.Sites, d.site); i >= 0 && e.nextSite(now, o) != "" {
				e.copyReturned(now, o, i, store.CopyReplaced, job.Vanished)
			}
		}
		e.race(now, d.site)
	}
}
