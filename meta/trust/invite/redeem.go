package invite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	kithv1 "kith/proto/gen/kith/v1"

	"kith/internal/job"
	"kith/meta/trust"
)

// Errors of redeeming an invitation, beside [Refusal].
var (
	// ErrOtherInviter is returned when the site at the address is not the one that made
	// the invitation.
	ErrOtherInviter = errors.New("the site that answers is not the one that made the invitation; nothing was told to it. Check the address with the inviter's operator")
	// ErrSecret is returned when the inviter does not know the secret.
	ErrSecret = errors.New("the inviter does not prove that it made this invitation; ask for a new one")
	// ErrOver is returned for an invitation that has expired.
	ErrOver = errors.New("the invitation has expired; ask for a new one")
)

// Check says why a site with that CA is not the one that invited, nil if it is. It is
// for [trust.Endpoint.JoinTLS].
func (i Invitation) Check(site job.SiteID, ca *x509.Certificate) error {
	if site != i.Site || PinOf(ca) != i.CA {
		return fmt.Errorf("invited by %s, %s with CA %s answers: %w", i.Site, site, trust.Fingerprint(ca), ErrOtherInviter)
	}
	return nil
}

// Joining is what a site redeems an invitation with.
type Joining struct {
	Site job.SiteID // the own one
	Self Self
	Now  func() time.Time
	// Waiting is called when the inviter's operator is asked, once; nil for nobody.
	Waiting func()
}

// Admission is what the joiner learns: the inviter, and nothing of third sites.
type Admission struct {
	Site      job.SiteID
	Bundle    trust.Bundle
	Addresses []string // host:port, at most 8; none if it only dials out
	Version   string   // of its kithd, printable
}

// Redeem leads the joiner's side of the exchange, over a connection made with
// [trust.Endpoint.JoinTLS] of [Invitation.Check], and closes it. It waits for the
// inviter's operator until the invitation ends. The error is a [Refusal], wraps one of
// those above, or is what happened to the connection: then Redeem by another connection
// gets the same answer.
func Redeem(ctx context.Context, conn *tls.Conn, i Invitation, j Joining) (Admission, error) {
	defer func() { _ = conn.Close() }()
	if !j.Now().Before(i.Expires) {
		return Admission{}, fmt.Errorf("at %s: %w", i.Expires.Format(time.RFC3339), ErrOver)
	}
	defer interrupt(ctx, conn)()
	a, err := redeem(ctx, conn, i, j)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return Admission{}, fmt.Errorf("join %s: %w", i.Site, err)
	}
	return a, nil
}

func redeem(ctx context.Context, conn *tls.Conn, i Invitation, j Joining) (Admission, error) {
	deadline := func(wait time.Duration) { _ = conn.SetDeadline(time.Now().Add(wait)) }
	deadline(stepWait)
	if err := conn.HandshakeContext(ctx); err != nil {
		return Admission{}, err
	}
	state := conn.ConnectionState()
	secret, err := exporter(state)
	if err != nil {
		return Admission{}, err
	}
	// The configuration has checked this too, if it was the right one. Without it
	// whoever answers would get a proof.
	site, ca, err := trust.SelfMade(state.PeerCertificates, j.Now())
	if err != nil {
		return Admission{}, err
	}
	if err := i.Check(site, ca); err != nil {
		return Admission{}, err
	}
	b := binding{secret, ca, j.Self.CA, i.Site, j.Site, i.ID()}
	id := i.ID()
	deadline(stepWait)
	if err := writeFrame(conn, &kithv1.JoinHello{Protocol: protocol, InvitationId: id[:], Proof: i.joinerProof(b)}, maxFrame); err != nil {
		return Admission{}, err
	}
	deadline(stepWait)
	reply, err := readReply(conn)
	if err != nil {
		return Admission{}, err
	}
	if reply.GetProof() == nil || !i.Verifier().checkInviter(b, reply.GetProof().GetProof()) {
		return Admission{}, ErrSecret
	}
	deadline(stepWait)
	if err := writeFrame(conn, &kithv1.JoinDetails{Bundle: j.Self.Bundle.Marshal(), Addresses: j.Self.Addresses, Version: j.Self.Version}, maxDetails); err != nil {
		return Admission{}, err
	}
	for first := true; ; first = false {
		deadline(patience)
		reply, err := readReply(conn)
		if err != nil {
			return Admission{}, err
		}
		switch r := reply.GetReply().(type) {
		case *kithv1.JoinReply_Waiting:
			if first && j.Waiting != nil {
				j.Waiting()
			}
			// An inviter that keeps somebody waiting for ever ends here.
			if j.Now().After(i.Expires.Add(patience)) {
				return Admission{}, ErrOver
			}
		case *kithv1.JoinReply_Admitted:
			return admission(r.Admitted, site, ca)
		default:
			return Admission{}, fmt.Errorf("an answer that has no place here: %w", ErrFrame)
		}
	}
}

// readReply reads a frame of the inviter; a refusal becomes an error.
func readReply(conn *tls.Conn) (*kithv1.JoinReply, error) {
	var reply kithv1.JoinReply
	if err := readFrame(conn, &reply, maxDetails); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	if r := reply.GetRefused(); r != nil {
		return nil, Refusal{reasonOf(r.GetReason())}
	}
	return &reply, nil
}

// reasonOf reads a reason; one of a later version is none that is known here.
func reasonOf(r kithv1.JoinRefused_Reason) Reason {
	if r < 0 || r >= kithv1.JoinRefused_Reason(reasons) {
		return reasons
	}
	return Reason(r)
}

func admission(m *kithv1.JoinAdmitted, site job.SiteID, ca *x509.Certificate) (Admission, error) {
	bundle, err := bundleOf(m.GetBundle(), site, ca)
	if err != nil {
		return Admission{}, err
	}
	if err := checkAbout(m.GetAddresses(), m.GetVersion()); err != nil {
		return Admission{}, err
	}
	return Admission{site, bundle, m.GetAddresses(), m.GetVersion()}, nil
}
