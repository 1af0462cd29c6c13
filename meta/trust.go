package meta

import (
	"kith/internal/identity"
	"kith/internal/job"
	"kith/store"
)

// Who this site trusts is facts, of the trust table in package store. The operator's word
// comes as an event with a token; what the driver must do with keys, streams and files
// leaves as [TrustChanged] once it is durable. Bundles are opaque here: the driver reads
// them before, and says which CAs are in them.

// AdmitSite trusts a site. With Invitation, the rest is what came by that
// ([ComeByInvitation]), which ends with it as admitted.
type AdmitSite struct {
	Token      uint64
	Invitation string
	Site       job.SiteID
	Bundle     store.Bundle
	Addresses  []string
	// Told are those of them that the site itself named.
	Told    []string
	Version string
	Actor   identity.Actor
}

// SetAddresses says where a known site can be dialled, in place of all that was known.
type SetAddresses struct {
	Token     uint64
	Site      job.SiteID
	Addresses []string
	Actor     identity.Actor // for the audit log alone
}

// RevokeSite ends the trust in a site. What it runs here is stopped, unless LetRun, and
// what it holds of this site's jobs is given up.
type RevokeSite struct {
	Token  uint64
	Site   job.SiteID
	LetRun bool
	Reason string // for the audit log alone
	Actor  identity.Actor
}

// ForgetTrust removes a site that was revoked from the table; its name is free again. It
// is refused while anything of that site is left here.
type ForgetTrust struct {
	Token uint64
	Site  job.SiteID
	// Fingerprints are of the CAs that the name was bound to, for the audit log alone.
	Fingerprints []string
	Actor        identity.Actor // for the audit log alone
}

// Leave ends the trust in all sites, and all invitations: this site stands alone then.
type Leave struct {
	Token  uint64
	LetRun bool
	Reason string // for the audit log alone
	Actor  identity.Actor
}

// SetBundleSequence records the sequence of this site's own bundle.
type SetBundleSequence struct {
	Token    uint64
	Sequence uint64
}

// OpenInvitation invites a site of a name.
type OpenInvitation struct {
	Token    uint64
	ID       string
	Name     job.SiteID
	Verifier []byte
	Expires  job.Time
	Actor    identity.Actor
}

// TryInvitation is a wrong proof of an invitation's secret.
type TryInvitation struct {
	Token uint64
	ID    string
}

// ComeByInvitation is a site that proved an invitation's secret.
type ComeByInvitation struct {
	Token  uint64
	ID     string
	Joiner store.Joiner
}

// CloseInvitation is the operator's no, or the end of one that two sites have the text of.
type CloseInvitation struct {
	Token uint64
	ID    string
	Burnt bool
	Actor identity.Actor
}

// MakeToken records a token of this site before its user has it.
type MakeToken struct {
	Token   uint64
	ID      string
	User    string
	Expires job.Time
	Actor   identity.Actor
}

// RevokeToken ends a token of this site; one that is not recorded if it is Unlisted.
type RevokeToken struct {
	Token    uint64
	ID       string
	Unlisted bool
	Expires  job.Time
	Actor    identity.Actor
}

// TrustChange says why there is a [TrustChanged].
type TrustChange string

// The changes.
const (
	TrustRestored TrustChange = "restored" // the daemon has started
	TrustAdmitted TrustChange = "admitted"
	TrustBundle   TrustChange = "bundle" // a later one
	TrustRevoked  TrustChange = "revoked"
	TrustForgot   TrustChange = "forgotten"
	TrustRefused  TrustChange = "refused" // it is not trusted, and has a stream

	TrustTold      TrustChange = "told-addresses" // by itself
	TrustAddresses TrustChange = "addresses"      // by the operator
)

// TrustChanged says that a site is trusted, or by another bundle, or no more. The driver
// makes that true of its keys, streams, gossip, file reads and held chunks: State says
// what the site is now. Doing it twice is harmless.
type TrustChanged struct {
	Site store.TrustedSite
	Why  TrustChange
}

// InvitationChanged says that an invitation was opened, tried, came to something or is
// over; the driver lets sites join while any is open.
type InvitationChanged struct{ Invitation store.Invitation }

// TokenRevoked says that a token of this site counts no more.
type TokenRevoked struct {
	ID      string
	Expires job.Time
}

// Refused says that something of another site was refused before anything looked at it,
// see [Rights]. It is for the log and the audit log, where such lines are counted.
type Refused struct {
	Peer job.SiteID
	// Kind is the word of the message, "stream" for a stream.
	Kind string
	// Rule says which rule refused it.
	Rule string
	// Late says that an honest site may come to this, by a message that was on its way.
	Late bool
}

func (TrustChanged) effect()      {}
func (InvitationChanged) effect() {}
func (TokenRevoked) effect()      {}
func (Refused) effect()           {}

func (TrustChanged) Word() string      { return "trust-changed" }
func (InvitationChanged) Word() string { return "invitation-changed" }
func (TokenRevoked) Word() string      { return "token-revoked" }
func (Refused) Word() string           { return "refused" }

// revoked reports whether the trust in a site was revoked.
func (c *core) revoked(site job.SiteID) bool {
	t := c.st.TrustedSite(site)
	return t != nil && t.State == store.SiteRevoked
}

// restoreTrust tells the driver whom it may trust, and lists the sites.
func (e *Engine) restoreTrust(now job.Time) {
	for _, t := range e.st.TrustedSites() {
		if t.State == store.SiteKnown {
			e.peers.view.Expect(now, t.Site)
			e.emit(TrustChanged{Site: *t, Why: TrustRestored})
		}
	}
	for _, i := range e.st.Invitations() {
		if !i.State.Over() {
			e.emit(InvitationChanged{Invitation: *i})
		}
	}
	for _, t := range e.st.Tokens() {
		if t.Revoked != 0 {
			e.emit(TokenRevoked{ID: t.ID, Expires: t.Expires})
		}
	}
}

// pruneTrust ends what has expired.
func (e *Engine) pruneTrust(now job.Time) {
	if now < e.st.TrustDue() {
		return
	}
	var waiting []*store.Invitation
	for _, i := range e.st.Invitations() {
		if !i.State.Over() {
			waiting = append(waiting, i)
		}
	}
	record(e.st, store.PruneTrust{Time: now})
	for _, old := range waiting {
		if i := e.st.Invitation(old.ID); i != nil && i.State != old.State {
			e.emit(InvitationChanged{Invitation: *i})
		}
	}
}

func (e *Engine) revokeToken(now job.Time, ev RevokeToken) {
	err := store.Record(e.st, store.RevokeToken{ID: ev.ID, Unlisted: ev.Unlisted, Expires: ev.Expires, Actor: ev.Actor, Time: now})
	if t := e.st.Token(ev.ID); err == nil && t != nil {
		e.emit(TokenRevoked{ID: ev.ID, Expires: t.Expires})
	}
	e.reply(ev.Token, job.ID{}, 0, err)
}
