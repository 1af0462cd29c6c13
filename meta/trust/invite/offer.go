package invite

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

// MaxWrong is how many wrong proofs end an invitation.
const MaxWrong = 5

// AnswerFor is how long a decision is repeated to a joiner that asks again, at least.
const AnswerFor = 10 * time.Minute

// State is where an invitation is at the inviter.
type State uint8

// The states.
const (
	Open     State = iota // nobody came yet
	Came                  // somebody with the secret came, and the operator was asked
	Admitted              // the operator said yes
	Declined              // the operator said no
	Expired               // its time was over before that
	Burnt                 // it was ended by wrong proofs or by a second site with the secret
)

func (s State) String() string {
	return [...]string{"open", "came", "admitted", "declined", "expired", "burnt"}[s]
}

// A Reason says why a joiner is refused. Its numbers are those of JoinRefused.Reason
// in kith.v1. Zero is no refusal.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	UnknownInvitation
	WrongProof
	TimeOver
	WasBurnt
	Used
	OtherName
	Operator
	BadDetails
	NameTaken
	OtherProtocol
	Unavailable
	reasons // how many there are
)

// Word names the reason for programs that read the audit log.
func (r Reason) Word() string {
	if r >= reasons {
		return fmt.Sprintf("reason-%d", r)
	}
	return [reasons]string{
		NoReason: "none", UnknownInvitation: "unknown-invitation", WrongProof: "wrong-proof", TimeOver: "expired", WasBurnt: "burnt", Used: "used",
		OtherName: "other-name", Operator: "operator", BadDetails: "details", NameTaken: "name-taken", OtherProtocol: "protocol", Unavailable: "unavailable",
	}[r]
}

// Offer is an invitation as the inviter keeps it: plain data, without the secret.
type Offer struct {
	ID ID
	// For is the site that is invited.
	For      job.SiteID
	Verifier Verifier
	Expires  time.Time
	State    State
	// Wrong counts proofs that did not fit.
	Wrong int
	// Joiner came first with the secret; nil while nobody did.
	Joiner *Joiner
	// Decided is when it left Open and Came; zero before.
	Decided time.Time
}

// A Joiner is who redeems an invitation, as it says itself; its certificate proves the
// CA, and the secret that it was given the text.
type Joiner struct {
	Site job.SiteID
	// CA is the pin of the CA that signed its leaf. People compare its fingerprint.
	CA Pin
	// Fingerprint is the CA as people see it, see [trust.Fingerprint].
	Fingerprint string
	Bundle      trust.Bundle
	// Addresses are at most 8, host:port; none if the joiner only dials out.
	Addresses []string
	// Version of its kithd, printable, at most 256 bytes.
	Version string
}

// Offer returns what the inviter keeps of an invitation that is meant for a site.
func (i Invitation) Offer(to job.SiteID) (Offer, error) {
	if _, err := job.ParseSiteID(string(to)); err != nil {
		return Offer{}, err
	}
	if to == i.Site {
		return Offer{}, fmt.Errorf("site %s: that is this site; name the site to invite", to)
	}
	return Offer{ID: i.ID(), For: to, Verifier: i.Verifier(), Expires: i.Expires}, nil
}

// ErrNothingToDecide is returned when a decision meets no site that waits for it.
var ErrNothingToDecide = errors.New("no site waits for a decision about this invitation")

// trial is what an attempt to redeem turns out to be.
type trial uint8

const (
	wrong  trial = iota // the proof does not fit
	other               // it fits, and the site has another name than the invited one
	first               // it fits, and nobody came before
	again               // it fits, and it is the site that came first
	second              // it fits, and another CA came first
	trials
)

// outcome is what a trial does in a state.
type outcome struct {
	to  State
	why Reason
}

// table is the whole life of an invitation but for time and the operator. Impossible
// pairs are refused as used. A second site does not undo what the operator decided;
// before that nobody can tell which of the two was given the text, so none is let in.
var table = [Burnt + 1][trials]outcome{
	Open:     {wrong: {Open, WrongProof}, other: {Open, OtherName}, first: {Came, NoReason}, again: {Open, Used}, second: {Open, Used}},
	Came:     {wrong: {Came, WrongProof}, other: {Came, OtherName}, first: {Came, Used}, again: {Came, NoReason}, second: {Burnt, WasBurnt}},
	Admitted: {wrong: {Admitted, WrongProof}, other: {Admitted, OtherName}, first: {Admitted, Used}, again: {Admitted, NoReason}, second: {Admitted, Used}},
	Declined: {wrong: {Declined, WrongProof}, other: {Declined, OtherName}, first: {Declined, Operator}, again: {Declined, Operator}, second: {Declined, Used}},
	Expired:  {wrong: {Expired, TimeOver}, other: {Expired, TimeOver}, first: {Expired, TimeOver}, again: {Expired, TimeOver}, second: {Expired, TimeOver}},
	Burnt:    {wrong: {Burnt, WasBurnt}, other: {Burnt, WasBurnt}, first: {Burnt, WasBurnt}, again: {Burnt, WasBurnt}, second: {Burnt, WasBurnt}},
}

// At returns the offer as it is at a time: one that waits expires.
func (o Offer) At(now time.Time) Offer {
	if (o.State == Open || o.State == Came) && !now.Before(o.Expires) {
		o.State, o.Decided = Expired, o.Expires
	}
	return o
}

// Forgettable reports whether nobody needs the offer any more: its decision has been
// repeated long enough.
func (o Offer) Forgettable(now time.Time) bool {
	o = o.At(now)
	return o.State != Open && o.State != Came && !now.Before(o.Expires) && !now.Before(o.Decided.Add(AnswerFor))
}

// Try returns the offer after a site with a CA tried to redeem it, and why it is
// refused. right tells whether its proof fits. A site that may go on has not come yet,
// see [Offer.Come].
func (o Offer) Try(site job.SiteID, ca Pin, right bool, now time.Time) (Offer, Reason) {
	o = o.At(now)
	row := table[o.State][o.trial(site, ca, right)]
	if row.why == WrongProof && (o.State == Open || o.State == Came) {
		if o.Wrong++; o.Wrong >= MaxWrong {
			row.to = Burnt
		}
	}
	if row.to == Burnt && o.State != Burnt {
		o.State, o.Decided = Burnt, now
	}
	return o, row.why
}

// Come returns the offer after a joiner that proved the secret gave its details. Of one
// that came before, the latest details count until the operator has decided.
func (o Offer) Come(j Joiner, now time.Time) (Offer, Reason) {
	o, why := o.Try(j.Site, j.CA, true, now)
	if why == NoReason && (o.State == Open || o.State == Came) {
		o.State, o.Joiner = Came, &j
	}
	return o, why
}

func (o Offer) trial(site job.SiteID, ca Pin, right bool) trial {
	switch {
	case !right:
		return wrong
	case site != o.For:
		return other
	case o.Joiner == nil:
		return first
	case o.Joiner.CA == ca:
		return again
	}
	return second
}

// Decide returns the offer after the operator said yes or no to the site with this CA.
// The error wraps [ErrNothingToDecide] if it does not wait for that.
func (o Offer) Decide(ca Pin, yes bool, now time.Time) (Offer, error) {
	o = o.At(now)
	switch {
	case o.State != Came:
		return o, fmt.Errorf("invitation %s is %s: %w", o.ID, o.State, ErrNothingToDecide)
	case o.Joiner.CA != ca:
		return o, fmt.Errorf("invitation %s: another site waits than the one decided about: %w", o.ID, ErrNothingToDecide)
	case yes:
		o.State = Admitted
	default:
		o.State = Declined
	}
	o.Decided = now
	return o, nil
}

// Withdraw ends an offer that is not decided, whether or not a site has come by it. The error
// wraps [ErrNothingToDecide].
func (o Offer) Withdraw(now time.Time) (Offer, error) {
	o = o.At(now)
	if o.State != Open && o.State != Came {
		return o, fmt.Errorf("invitation %s is %s: %w", o.ID, o.State, ErrNothingToDecide)
	}
	o.State, o.Decided = Declined, now
	return o, nil
}
