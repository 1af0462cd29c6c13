package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/trust"
	"kith/meta/trust/invite"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Between two tries to reach an inviter that had answered, and for one dial.
const (
	acceptPause = 2 * time.Second
	acceptDial  = 10 * time.Second
)

// Accept implements api.Trust.
func (k *desk) Accept(ctx context.Context, text string, tell func(*kithv1.AcceptInvitationResponse) error) (job.SiteID, error) {
	i, err := invite.Parse(text)
	if err != nil {
		return "", &api.FieldError{Field: "text", Reason: err.Error(), Err: err}
	}
	if i.Site == k.d.siteID() {
		return "", &api.FieldError{Field: "text", Reason: "this site made the invitation; give it to the operator of the other one"}
	}
	var t *store.TrustedSite
	if err := k.d.loop.Look(ctx, func(_ job.Time, v meta.Views) { t = v.TrustedSite(i.Site) }); err != nil {
		return "", err
	}
	// Before the inviter is told anything.
	if err := nameIsFree(t, i.CA); err != nil {
		return "", err
	}
	a := &acceptance{desk: k, invitation: i, tell: tell}
	admission, err := a.redeem(ctx)
	if err != nil {
		return "", err
	}
	return i.Site, k.admit(ctx, admission, i, a.address)
}

// admit trusts the inviter: durably, and then here.
func (k *desk) admit(ctx context.Context, a invite.Admission, i invite.Invitation, answered string) error {
	// Where it answered comes first: that address is known to be good.
	addresses := []string{answered}
	for _, more := range append(slices.Clone(a.Addresses), i.Addresses...) {
		if !slices.Contains(addresses, more) && len(addresses) < store.MaxAddresses {
			addresses = append(addresses, more)
		}
	}
	ev := meta.AdmitSite{
		Site: a.Site, Bundle: bundleFact(a.Bundle, store.KeyID(i.CA)), Addresses: addresses, Told: a.Addresses, Version: a.Version, Actor: identity.From(ctx).Actor,
	}
	// The inviter has made up its mind: a caller that goes now does not change this site's.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	_, err := k.d.loop.Ask(keep, func(token uint64) meta.Event {
		ev.Token = token
		return ev
	})
	if err != nil {
		return err
	}
	ev.Invitation = "accepted " + i.ID().String()
	k.d.witness(ctx, ev)
	return nil
}

// errNotServed is returned when a site has no invitation open: it ends the handshake.
var errNotServed = errors.New("the site there takes no invitation just now: it has been used, has expired or was refused; ask for a new one")

// acceptance is one invitation on its way to be redeemed.
type acceptance struct {
	desk       *desk
	invitation invite.Invitation
	tell       func(*kithv1.AcceptInvitationResponse) error
	address    string // of the inviter, the latest
	reached    bool   // the inviter has proved the secret once
}

// redeem tries the addresses of the inviter until it has an answer. An inviter that
// goes away while its operator is asked may come back until the invitation ends.
func (a *acceptance) redeem(ctx context.Context) (invite.Admission, error) {
	var failed error
	for {
		for _, address := range a.invitation.Addresses {
			if err := a.connecting(address, failed); err != nil {
				return invite.Admission{}, err
			}
			admission, err := a.try(ctx, address)
			switch {
			case err == nil:
				return admission, nil
			case ctx.Err() != nil:
				return invite.Admission{}, ctx.Err()
			case final(err):
				return invite.Admission{}, fmt.Errorf("%w: %w", api.ErrInviter, err)
			}
			failed = fmt.Errorf("%s: %w", address, err)
		}
		if !a.reached {
			if errors.Is(failed, invite.ErrOtherInviter) {
				return invite.Admission{}, fmt.Errorf("%w: %w", api.ErrInviter, failed)
			}
			return invite.Admission{}, fmt.Errorf("site %s at %w: %w; the same text can be accepted again until %s",
				a.invitation.Site, failed, api.ErrInviterAway, a.invitation.Expires.Format(time.RFC3339))
		}
		if !pause.For(ctx, acceptPause) {
			return invite.Admission{}, ctx.Err()
		}
	}
}

// final reports whether an error is the inviter's answer.
func final(err error) bool {
	if r, ok := errors.AsType[invite.Refusal](err); ok {
		return r.Reason != invite.Unavailable
	}
	return errors.Is(err, invite.ErrSecret) || errors.Is(err, invite.ErrOver) || errors.Is(err, errNotServed)
}

func (a *acceptance) connecting(address string, failed error) error {
	m := &kithv1.AcceptConnecting{SiteId: string(a.invitation.Site), Address: address}
	if failed != nil {
		m.Error = job.ClipText(failed.Error(), 1024)
	}
	return a.tell(&kithv1.AcceptInvitationResponse{Progress: &kithv1.AcceptInvitationResponse_Connecting{Connecting: m}})
}

func (a *acceptance) try(ctx context.Context, address string) (invite.Admission, error) {
	d := a.desk.d
	dial, cancel := context.WithTimeout(ctx, acceptDial)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(dial, "tcp", address)
	if err != nil {
		return invite.Admission{}, err
	}
	self := d.selfToOthers()
	self.Addresses = addressesFor([]string{address}, self.Addresses)
	var told error
	stop, end := context.WithCancel(ctx)
	defer end()
	admission, err := invite.Redeem(stop, tls.Client(raw, d.identity.endpoint.JoinTLS(a.invitation.Check)), a.invitation, invite.Joining{
		Site: d.siteID(), Self: self, Now: time.Now,
		Waiting: func() {
			a.reached = true
			w := &kithv1.AcceptWaiting{SiteId: string(a.invitation.Site), OwnFingerprint: trust.Fingerprint(self.CA)}
			if told = a.tell(&kithv1.AcceptInvitationResponse{Progress: &kithv1.AcceptInvitationResponse_Waiting{Waiting: w}}); told != nil {
				end()
			}
		},
	})
	a.address = address
	if err != nil && strings.Contains(err.Error(), "remote error: tls") {
		err = errNotServed
	}
	if err != nil && told != nil {
		err = told
	}
	return admission, err
}

// addressesFor returns which of this site's addresses are worth telling to a site that is
// reached at the known ones: loopback means something on this machine only. A site that
// listens nowhere else is for others one that dials out.
func addressesFor(known, own []string) []string {
	if !slices.ContainsFunc(known, func(a string) bool { return !isLoopback(a) }) {
		return own
	}
	return slices.DeleteFunc(slices.Clone(own), isLoopback)
}

// isLoopback reports whether host:port is on the machine of who dials it.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && config.IsLoopback(host)
}
