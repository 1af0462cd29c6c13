package meta

import (
	"fmt"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// admitSite trusts a site on the operator's word.
func (e *Engine) admitSite(now job.Time, ev AdmitSite) {
	if ev.Invitation != "" {
		i := e.st.Invitation(ev.Invitation)
		switch {
		case i == nil:
			e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("invitation %.40q: %w", ev.Invitation, store.ErrUnknown))
			return
		case i.State == store.InvitationAdmitted: // repeated
			e.emit(Reply{Token: ev.Token, Invitation: i})
			return
		case i.State != store.InvitationCame || i.Expires <= now:
			e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("invitation %s is %v, and no site waits for an answer: %w", i.ID, i.State, store.ErrInvitationOver))
			return
		}
		ev.Site, ev.Bundle, ev.Addresses, ev.Version = i.Joiner.Site, i.Joiner.Bundle, i.Joiner.Addresses, i.Joiner.Version
		ev.Told = i.Joiner.Addresses
	}
	err := store.Record(e.st, store.AdmitSite{
		Site: ev.Site, Bundle: ev.Bundle, Addresses: ev.Addresses, Told: ev.Told, Version: ev.Version, Actor: ev.Actor,
		Steps: e.host.nextStamp(), Time: now,
	})
	if err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	e.peers.view.Expect(now, ev.Site)
	e.emit(TrustChanged{Site: *e.st.TrustedSite(ev.Site), Why: TrustAdmitted})
	if ev.Invitation == "" {
		e.reply(ev.Token, job.ID{}, 0, nil)
		return
	}
	record(e.st, store.CloseInvitation{ID: ev.Invitation, State: store.InvitationAdmitted, Actor: ev.Actor, Time: now})
	e.toldOf(ev.Token, ev.Invitation)
}

// forgetTrust takes a site out of the table.
func (e *Engine) forgetTrust(ev ForgetTrust) {
	switch t := e.st.TrustedSite(ev.Site); {
	case t != nil && t.State == store.SiteKnown:
		e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %s is trusted: %w; revoke it first: kith site revoke %s", ev.Site, ErrSiteInUse, ev.Site))
		return
	case t != nil && e.keeps(ev.Site):
		e.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %s: something of it still runs here, or it may still run a job of this site: %w; try again later, or revoke it without letting its attempts run",
			ev.Site, ErrSiteInUse))
		return
	}
	err := store.Record(e.st, store.ForgetTrust{Site: ev.Site})
	if err == nil {
		e.emit(TrustChanged{Site: store.TrustedSite{Site: ev.Site, State: store.SiteRevoked}, Why: TrustForgot})
	}
	e.reply(ev.Token, job.ID{}, 0, err)
}

// keeps reports whether a site has anything here, or may still run a job of this site.
func (e *Engine) keeps(site job.SiteID) bool {
	return e.host.remote[site] > 0 || len(e.host.tasks.of(site)) > 0 || e.bags.keeps(site) || slices.ContainsFunc(e.origin.jobs, func(o *openJob) bool {
		return !o.ended && (o.rec.Holder == site || earlierAt(o, site))
	})
}

// toldOf tells the driver of an invitation, and answers with it.
func (e *Engine) toldOf(token uint64, id string) {
	i := e.st.Invitation(id)
	e.emit(InvitationChanged{Invitation: *i})
	e.emit(Reply{Token: token, Invitation: i})
}

func (e *Engine) openInvitation(now job.Time, ev OpenInvitation) {
	err := store.Record(e.st, store.OpenInvitation{
		ID: ev.ID, Name: ev.Name, Verifier: ev.Verifier, Expires: ev.Expires, Actor: ev.Actor, Time: now,
	})
	if err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	e.toldOf(ev.Token, ev.ID)
}

// tryInvitation counts a wrong proof. The answer leaves after the count is durable, so that
// a crash gives no try back.
func (e *Engine) tryInvitation(now job.Time, ev TryInvitation) {
	if err := store.Record(e.st, store.TryInvitation{ID: ev.ID, Time: now}); err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	e.toldOf(ev.Token, ev.ID)
}

func (e *Engine) comeByInvitation(now job.Time, ev ComeByInvitation) {
	old := e.st.Invitation(ev.ID)
	if err := store.Record(e.st, store.ComeByInvitation{ID: ev.ID, Joiner: ev.Joiner, Time: now}); err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	if i := e.st.Invitation(ev.ID); i == old { // the same site again, whose answer was lost
		e.emit(Reply{Token: ev.Token, Invitation: i})
		return
	}
	e.toldOf(ev.Token, ev.ID)
}

func (e *Engine) closeInvitation(now job.Time, ev CloseInvitation) {
	state := store.InvitationRefused
	if ev.Burnt {
		state = store.InvitationBurnt
	}
	err := store.Record(e.st, store.CloseInvitation{ID: ev.ID, State: state, Actor: ev.Actor, Time: now})
	if err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	e.toldOf(ev.Token, ev.ID)
}
