package meta

import (
	"slices"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/store"
)

// Revoked counts what became of the dealings with sites that were revoked.
type Revoked struct {
	Forgotten
	// Stopped are attempts of its jobs here that are stopped, Leased are jobs and
	// bags of this site of which it may run what it has until its lease ends; that runs elsewhere then.
	Stopped, Leased int
}

// revokeSite ends the trust in a site. All facts of it are in one step, so a crash leaves
// all or none of them; what the driver has to do is said again after a restart.
func (e *Engine) revokeSite(now job.Time, ev RevokeSite) {
	if err := store.Record(e.st, store.RevokeSite{Site: ev.Site, LetRun: ev.LetRun, Actor: ev.Actor, Time: now}); err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	r := &Revoked{}
	e.cutOff(now, ev.Site, ev.Actor, r)
	e.emit(Reply{Token: ev.Token, Revoked: r})
}

// leave revokes all sites and ends all invitations.
func (e *Engine) leave(now job.Time, ev Leave) {
	r := &Revoked{}
	var left []job.SiteID
	for _, t := range e.st.TrustedSites() {
		if t.State == store.SiteKnown {
			left = append(left, t.Site)
			record(e.st, store.RevokeSite{Site: t.Site, LetRun: ev.LetRun, Actor: ev.Actor, Time: now})
		}
	}
	for _, site := range left { // none of them takes over what another one had
		e.sever(now, site)
	}
	for _, site := range left {
		e.cutOff(now, site, ev.Actor, r)
	}
	for _, i := range e.st.Invitations() {
		if !i.State.Over() {
			record(e.st, store.CloseInvitation{ID: i.ID, State: store.InvitationRefused, Actor: ev.Actor, Time: now})
			e.emit(InvitationChanged{Invitation: *e.st.Invitation(i.ID)})
		}
	}
	e.emit(Reply{Token: ev.Token, Revoked: r})
}

// sever does without the stream to a site. It is closed once the revocation is durable;
// what comes over it until then is not heard, even if the site is admitted again meanwhile:
// the bundle that proved it counts no more.
func (e *Engine) sever(now job.Time, site job.SiteID) {
	if l := e.peers.links[site]; l != nil && l.up {
		if e.severed == nil {
			e.severed = make(map[job.SiteID]bool)
		}
		e.severed[site] = true
	}
	e.peerDown(now, site)
	e.peers.remove(site)
}

// cutOff carries out that a site is revoked: it is in no view any more, its copies leave,
// its attempts are stopped, and what it had of this site's jobs goes elsewhere or is lost.
func (e *Engine) cutOff(now job.Time, site job.SiteID, actor identity.Actor, count *Revoked) {
	e.sever(now, site)
	e.emit(TrustChanged{Site: *e.st.TrustedSite(site), Why: TrustRevoked})
	for _, o := range slices.Clone(e.origin.jobs) {
		if !o.ended {
			e.origin.revokedHost(now, o, site, actor, count)
		}
	}
	taken, left := e.bags.forgetHost(now, site, true, false)
	count.Revoked += taken
	count.Leased += left
	count.Stopped += e.host.tasks.forgetOrigin(now, site, !e.st.TrustedSite(site).LetRun)
	for _, c := range e.host.copiesOf(site) {
		switch c.rec.Phase {
		case store.CopyQueued:
			e.host.drop(now, c)
			count.Dropped++
		case store.CopyEnded:
			e.host.forget(c.rec.ID)
		case store.CopyBegun:
			if e.host.cutOff(c) {
				count.Stopped++
			}
		}
	}
	e.host.heard(now, site) // nothing of it is set aside any more
	delete(e.host.ahead, site)
	delete(e.host.verdicts, site)
}

// cutOff has an attempt of a revoked origin end, or run to its end, without telling any
// site. It reports whether the attempt is stopped. The job may hold the disk full, on which
// the revocation is to be written, so the kill does not wait for that. A crash in between
// takes the revocation back; the attempt then ends as a loss, since its origin did not
// cancel it: it runs again only if it may after a loss.
func (h *host) cutOff(c *hostCopy) bool {
	c.forgotten = true
	if h.st.TrustedSite(c.rec.ID.Job.Origin).LetRun {
		return false
	}
	stopped := c.killed
	h.kill(c, Kill{Stale: true, Lease: true, Early: true})
	return !stopped
}

// revokedHost does without a revoked site for one job of this origin. A job that it may run
// under a lease waits for the end of that: the site might be alive, and then ends it.
// Where two attempts may be at once the next one begins now; one that was to wait for its
// host is lost.
func (or *origin) revokedHost(now job.Time, o *openJob, site job.SiteID, actor identity.Actor, count *Revoked) {
	if o.rec.Holder == site && o.rec.Outcome == nil && leased(&o.rec.Request) {
		record(or.st, store.NoteForgotten{Job: o.rec.ID, Site: site, Actor: actor, Time: now})
		or.changed(o.rec.ID)
		count.Leased++
		return
	}
	or.forgetHost(now, o, ForgetSite{Site: site, Requeue: runsAgain(o), Actor: actor}, &count.Forgotten)
}

// remove forgets a site: it gets nothing more, and no request to it waits.
func (p *peers) remove(site job.SiteID) {
	p.view.Remove(site)
	if l := p.links[site]; l != nil {
		delete(p.links, site)
		p.linked = slices.DeleteFunc(p.linked, func(x *link) bool { return x == l })
	}
}
