package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/internal/places"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	"kith/meta/trust/invite"
	"kith/meta/trust/token"
	"kith/store"
)

// keepWait is how long a step of an invitation may take to become durable.
const keepWait = 10 * time.Second

// desk is where a site receives those that it invited. What the invite.Desk holds is a
// copy of the invitations among the facts: each change is a fact first.
type desk struct {
	d    *Daemon
	desk *invite.Desk

	changes struct {
		sync.Mutex
		wake chan struct{}
		over []store.Invitation // ended among the facts, and not looked at yet
	}
	poke chan struct{}
}

var _ api.Trust = (*desk)(nil)

// openDesk makes the desk of a site with keys, as the facts have it.
func (d *Daemon) openDesk() *desk {
	k := &desk{d: d, poke: make(chan struct{}, 1)}
	k.changes.wake = make(chan struct{})
	var kept []invite.Offer
	for _, i := range d.state.Invitations() {
		if o, ok := offerOf(i); ok {
			kept = append(kept, o)
		}
	}
	k.desk = invite.NewDesk(invite.Config{
		Site: d.siteID(), Self: k.self, Now: time.Now, Keep: k.keep, Check: k.check, Report: k.report,
	}, kept)
	return k
}

// offerOf returns an invitation as the invite.Desk holds it, if anything can come of it:
// it waits, or its joiner may ask again.
func offerOf(i *store.Invitation) (invite.Offer, bool) {
	id, err := invite.ParseID(i.ID)
	if err != nil {
		return invite.Offer{}, false
	}
	o := invite.Offer{ID: id, For: i.Name, Verifier: invite.ParseVerifier(i.Verifier), Expires: i.Expires.Wall(), Wrong: int(i.Tries)}
	switch i.State {
	case store.InvitationOpen:
		return o, true
	case store.InvitationCame:
		o.State = invite.Came
	case store.InvitationAdmitted:
		o.State, o.Decided, o.Expires = invite.Admitted, i.Closed.Wall(), i.Closed.Wall()
	default:
		return o, false
	}
	b, err := trust.ParseBundle(i.Joiner.Bundle.Data)
	if err != nil {
		return o, false
	}
	j := &invite.Joiner{Site: i.Joiner.Site, Bundle: b, Addresses: i.Joiner.Addresses, Version: i.Joiner.Version}
	ca := b.CA(i.Joiner.Bundle.Keys[0])
	if ca == nil {
		return o, false
	}
	j.CA, j.Fingerprint = invite.PinOf(ca), trust.Fingerprint(ca)
	o.Joiner = j
	return o, true
}

func (k *desk) self() invite.Self { return k.d.selfToOthers() }

// selfToOthers is what another site is told of this one when they join.
func (d *Daemon) selfToOthers() invite.Self {
	return invite.Self{CA: d.identity.keys.CA(), Bundle: d.identity.keys.Bundle(), Version: Version(), Addresses: d.advertisedAll()}
}

// keep makes the step that an offer has taken a fact. It is waited for whether or not who
// takes it is still there, as it is not known otherwise whether it has been taken.
func (k *desk) keep(ctx context.Context, before, o invite.Offer) error {
	id, actor := o.ID.String(), identity.From(ctx).Actor
	var make_ func(token uint64) meta.Event
	switch {
	case before.ID != o.ID:
		make_ = func(t uint64) meta.Event {
			return meta.OpenInvitation{Token: t, ID: id, Name: o.For, Verifier: o.Verifier.Bytes(), Expires: job.Instant(o.Expires), Actor: actor}
		}
	case o.Wrong > before.Wrong:
		make_ = func(t uint64) meta.Event { return meta.TryInvitation{Token: t, ID: id} }
	case o.State == invite.Came:
		make_ = func(t uint64) meta.Event {
			return meta.ComeByInvitation{Token: t, ID: id, Joiner: store.Joiner{
				Site: o.Joiner.Site, Bundle: bundleFact(o.Joiner.Bundle, store.KeyID(o.Joiner.CA)), Addresses: o.Joiner.Addresses, Version: o.Joiner.Version,
			}}
		}
	case o.State == invite.Admitted:
		make_ = func(t uint64) meta.Event { return meta.AdmitSite{Token: t, Invitation: id, Actor: actor} }
	case o.State == invite.Declined:
		make_ = func(t uint64) meta.Event { return meta.CloseInvitation{Token: t, ID: id, Actor: actor} }
	case o.State == invite.Burnt:
		make_ = func(t uint64) meta.Event { return meta.CloseInvitation{Token: t, ID: id, Burnt: true} }
	default: // its time is over, which the facts see by themselves
		return nil
	}
	ctx, cancel := context.WithTimeout(k.d.background, keepWait)
	defer cancel()
	_, err := k.d.loop.Ask(ctx, make_)
	return err
}

// check refuses a joiner whose name belongs to another CA here.
func (k *desk) check(j invite.Joiner) error {
	var t *store.TrustedSite
	ctx, cancel := context.WithTimeout(k.d.background, keepWait)
	defer cancel()
	if err := k.d.loop.Glance(ctx, func(_ job.Time, v meta.Views) { t = v.TrustedSite(j.Site) }); err != nil {
		return err
	}
	return nameIsFree(t, j.CA)
}

// nameIsFree refuses a CA for a name that is known by another one.
func nameIsFree(t *store.TrustedSite, ca invite.Pin) error {
	if t == nil || t.State != store.SiteKnown || slices.Contains(t.Bundle.Keys, store.KeyID(ca)) {
		return nil
	}
	return fmt.Errorf("site %s is known here by another CA: %w; if the new CA is the right one: kith site revoke %s, and invite it again", t.Site, store.ErrNameTaken, t.Site)
}

// report writes down what became of a joiner's connection.
func (k *desk) report(a invite.Attempt) {
	e := audit.Entry{Kind: "join-came", Peer: string(a.Site), From: a.Address, Text: a.Fingerprint}
	if a.Invitation != (invite.ID{}) {
		e.Text = a.Invitation.String() + " " + e.Text
	}
	switch {
	case a.Reason != invite.NoReason:
		said := invite.Refusal{Reason: a.Reason}.Error()
		e.Kind, e.Rule, e.Text = "refused-join", a.Reason.Word(), e.Text+": "+said
		e.From = places.Sender(a.Address)
		k.d.audit.Refuse(e)
		k.d.log.Warn("site that wants to join was refused", "peer_id", string(a.Site), "address", a.Address, "invitation", a.Invitation.String(), "reason", said)
	case a.Err != nil:
		e.Kind, e.Rule, e.Text = "join-broke-off", "", e.Text+" "+a.Err.Error()
		e.From = places.Sender(a.Address)
		k.d.audit.Refuse(e)
	default:
		e.Kind = "join-told"
		k.d.audit.Record(e)
	}
}

// serve leads the exchange over a connection until the port closes.
func (k *desk) serve(c *tls.Conn) { _ = k.desk.Serve(k.d.port.ctx, c) } // what became of it is reported

// invitationChanged is told of each change among the facts. It waits for nothing: keep
// waits for the dispatcher, which calls it.
func (k *desk) invitationChanged(ch meta.InvitationChanged) {
	k.changes.Lock()
	if ch.Invitation.State.Over() {
		k.changes.over = append(k.changes.over, ch.Invitation)
	}
	close(k.changes.wake)
	k.changes.wake = make(chan struct{})
	k.changes.Unlock()
	select {
	case k.poke <- struct{}{}:
	default:
	}
}

// settle has the desk follow what ended among the facts by another way than the desk.
func (k *desk) settle(ctx context.Context) {
	for {
		select {
		case <-k.poke:
		case <-ctx.Done():
			return
		}
		k.changes.Lock()
		over := k.changes.over
		k.changes.over = nil
		k.changes.Unlock()
		for _, i := range over {
			id, err := invite.ParseID(i.ID)
			if err != nil {
				continue
			}
			switch i.State {
			case store.InvitationRefused:
				k.desk.Settle(id, invite.Declined)
			case store.InvitationExpired:
				k.desk.Settle(id, invite.Expired)
			case store.InvitationBurnt:
				k.desk.Settle(id, invite.Burnt)
			}
		}
	}
}

// Changed implements api.Trust.
func (k *desk) Changed() <-chan struct{} {
	k.changes.Lock()
	defer k.changes.Unlock()
	return k.changes.wake
}

// Invite implements api.Trust.
func (k *desk) Invite(ctx context.Context, site job.SiteID, addresses []string, lifetime time.Duration) (api.Invited, error) {
	doubt := ""
	if len(addresses) == 0 {
		addresses = k.self().Addresses
		doubt = doubtAbout(site, addresses)
	}
	if lifetime == 0 {
		lifetime = invite.Lifetime
	}
	i, err := invite.New(k.d.siteID(), invite.PinOf(k.d.identity.keys.CA()), addresses, lifetime, time.Now())
	if err != nil {
		field := "addresses"
		if lifetime < invite.MinLifetime || lifetime > invite.MaxLifetime {
			field = "lifetime"
		}
		return api.Invited{}, &api.FieldError{Field: field, Reason: err.Error(), Err: err}
	}
	text, err := i.Text()
	if err != nil {
		return api.Invited{}, err
	}
	o, err := i.Offer(site)
	if err != nil {
		return api.Invited{}, &api.FieldError{Field: "site_id", Reason: err.Error(), Err: err}
	}
	if err := k.desk.Add(ctx, o); err != nil {
		return api.Invited{}, err
	}
	k.d.witness(ctx, meta.OpenInvitation{ID: o.ID.String(), Name: site, Actor: identity.From(ctx).Actor})
	return api.Invited{Text: text, ID: o.ID.String(), Expires: i.Expires, Fingerprint: trust.Fingerprint(k.d.identity.keys.CA()), Doubt: doubt}, nil
}

// doubtAbout says what is wrong with addresses that nobody has chosen for an invitation:
// loopback is another machine at the other site.
func doubtAbout(site job.SiteID, addresses []string) string {
	if len(addresses) == 0 || slices.ContainsFunc(addresses, func(a string) bool { return !isLoopback(a) }) {
		return ""
	}
	return fmt.Sprintf("the text names %s, where only this machine finds this site; for a site elsewhere, where this one is reached from there: "+
		"kith site invite %s --address HOST:PORT, and listen.address or listen.advertise in the configuration", strings.Join(addresses, " "), site)
}

// Decide implements api.Trust.
func (k *desk) Decide(ctx context.Context, id, fingerprint string, admit bool) error {
	parsed, err := invite.ParseID(id)
	if err != nil {
		return err
	}
	o, err := k.desk.Offer(ctx, parsed)
	if err != nil {
		return err
	}
	decided := func(o invite.Offer) bool {
		return o.State == invite.Admitted && admit || o.State == invite.Declined && !admit
	}
	if !admit && fingerprint == "" {
		return k.withdraw(ctx, o)
	}
	switch {
	case o.Joiner == nil:
		return fmt.Errorf("invitation %s is %s: %w", parsed, o.State, invite.ErrNothingToDecide)
	case o.Joiner.Fingerprint != fingerprint:
		return fmt.Errorf("invitation %s: the site that came has fingerprint %s, not %.64q: %w", parsed, o.Joiner.Fingerprint, fingerprint, invite.ErrNothingToDecide)
	case decided(o):
		return nil // repeated
	}
	if err := k.desk.Decide(ctx, parsed, o.Joiner.CA, admit); err != nil {
		if now, gone := k.desk.Offer(ctx, parsed); gone == nil && decided(now) && now.Joiner.CA == o.Joiner.CA {
			return nil // said twice at once
		}
		return err
	}
	actor := identity.From(ctx).Actor
	if admit {
		k.d.witness(ctx, meta.AdmitSite{Invitation: parsed.String() + " " + fingerprint, Site: o.Joiner.Site, Actor: actor})
	} else {
		k.d.witness(ctx, meta.CloseInvitation{ID: parsed.String(), Actor: actor})
	}
	return nil
}

// withdraw ends an invitation, whoever has come by it.
func (k *desk) withdraw(ctx context.Context, o invite.Offer) error {
	if o.State == invite.Declined {
		return nil // repeated
	}
	if err := k.desk.Withdraw(ctx, o.ID); err != nil {
		return err
	}
	k.d.witness(ctx, meta.CloseInvitation{ID: o.ID.String(), Actor: identity.From(ctx).Actor})
	return nil
}

// CreateToken implements api.Trust.
func (k *desk) CreateToken(ctx context.Context, user string, lifetime time.Duration) (string, token.Token, error) {
	signer, err := token.NewSigner(k.d.siteID(), k.d.identity.keys.TokenKey())
	if err != nil {
		return "", token.Token{}, err
	}
	text, t, err := signer.Create(user, lifetime, time.Now())
	if err != nil {
		return "", t, err
	}
	c := identity.From(ctx)
	if _, err := k.d.loop.Ask(ctx, func(ask uint64) meta.Event {
		return meta.MakeToken{Token: ask, ID: t.ID, User: t.User, Expires: job.Instant(t.Expires), Actor: c.Actor}
	}); err != nil {
		return "", t, err
	}
	k.d.sync(ctx, audit.Entry{
		Kind: "create-token", User: c.Actor.String(), From: c.Address,
		Text: fmt.Sprintf("%s for %s until %s", t.ID, t.User, t.Expires.Format(time.RFC3339)),
	})
	return text, t, nil
}

// Told implements api.Trust.
func (k *desk) Told(site job.SiteID) (audit.Told, bool) { return k.d.audit.Told(site) }
