package meta

import (
	"fmt"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// forgetSite gives up a site that, as its operators say, will never return:
// copies there go elsewhere, jobs that it holds run again or are lost, and
// copies of its own jobs leave the queue; those that run end, and their outcome is
// dropped. It may be repeated.
func (e *Engine) forgetSite(now job.Time, ev ForgetSite) {
	p := e.peers.view.Get(ev.Site)
	switch {
	case ev.Site == e.self:
		e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %s is this site: %w", ev.Site, ErrConnected))
		return
	case p == nil && !e.names(ev.Site):
		e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %q: %w", ev.Site, ErrUnknownSite))
		return
	case p != nil && p.Connected:
		e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %s: %w; what it holds it answers for itself: wait, or end the trust in it with: kith site revoke %s", ev.Site, ErrConnected, ev.Site))
		return
	}
	r := Reply{Token: ev.Token}
	for _, o := range slices.Clone(e.origin.jobs) {
		if !o.ended {
			e.origin.forgetHost(now, o, ev, &r.Forgotten)
		}
	}
	taken, _ := e.bags.forgetHost(now, ev.Site, false, ev.Requeue)
	r.Forgotten.Revoked += taken
	e.host.tasks.forgetOrigin(now, ev.Site, false)
	for _, c := range e.host.copiesOf(ev.Site) {
		switch c.rec.Phase {
		case store.CopyQueued:
			e.host.drop(now, c)
			r.Forgotten.Dropped++
		case store.CopyEnded:
			e.host.forget(c.rec.ID)
		case store.CopyBegun: // it runs to its end, which is told to no site
			c.forgotten = true
		}
	}
	e.emit(r)
}

// Forgotten counts what [ForgetSite] gave up.
type Forgotten struct {
	// Revoked are jobs of this origin that the site held, and bags of which it had tasks,
	// Replaced copies of
	// such jobs that waited there, Dropped copies of the site's own jobs here.
	Revoked, Replaced, Dropped int
}

// forgetHost does without the site for one job of this origin.
func (or *origin) forgetHost(now job.Time, o *openJob, ev ForgetSite, count *Forgotten) {
	if o.rec.State == job.Queued {
		if i := slices.Index(o.rec.Sites, ev.Site); i >= 0 {
			record(or.st, store.NoteForgotten{Job: o.rec.ID, Site: ev.Site, Actor: ev.Actor, Time: now})
			or.copyReturned(now, o, i, store.CopyReplaced, job.Forgotten)
			count.Replaced++
		}
		return
	}
	if o.rec.Holder != ev.Site {
		return
	}
	count.Revoked++
	record(or.st, store.NoteForgotten{Job: o.rec.ID, Site: ev.Site, Actor: ev.Actor, Time: now})
	switch {
	case o.rec.State == job.Returning && ev.Requeue && o.rec.Outcome.Kind == job.Success && !o.rec.CancelRequested:
		or.emit(Unfetch{Attempt: o.rec.AttemptID()})
		or.revoke(now, o, job.Forgotten, false)
	case o.rec.State == job.Returning:
		or.closeWithout(now, o, fmt.Sprintf("site %s, which had its output, was given up", ev.Site))
	case ev.Requeue || o.rec.State == job.Cancelling:
		or.revoke(now, o, job.Forgotten, false)
	default:
		or.settleOutcome(now, o, job.Outcome{Kind: job.Loss, End: now, Reason: fmt.Sprintf("site %s, which had its claim, was given up", ev.Site)})
	}
}
