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

// protocol is the version of the exchange.
const protocol = 1

// Errors of serving a joiner.
var (
	// ErrCrowded is returned when too many connections have not proved a secret.
	ErrCrowded = fmt.Errorf("%d connections redeem invitations and have proved nothing", maxConnections)
	// ErrReplaced is returned when the joiner came again by another connection.
	ErrReplaced = errors.New("the joiner came again by another connection")
)

// Refusal is the error of an exchange that ended with a no.
type Refusal struct{ Reason Reason }

// Error implements error: what is wrong, for the joiner's operator, and the remedy.
func (r Refusal) Error() string {
	switch r.Reason {
	case UnknownInvitation:
		return "the inviter does not know this invitation: it has expired, or another site made it; ask for a new one"
	case WrongProof:
		return "the proof of the invitation's secret does not fit; ask for a new invitation"
	case TimeOver:
		return "the invitation has expired; ask for a new one"
	case WasBurnt:
		return "the invitation was tried with wrong secrets or by two sites, and is void; ask for a new one, over a way that others cannot read"
	case Used:
		return "another site has used this invitation; tell the inviter's operator, who can revoke that site, and ask for a new one"
	case OtherName:
		return "the invitation is for a site of another name; ask for one for this site's name"
	case Operator:
		return "the inviter's operator said no"
	case BadDetails:
		return "the inviter does not take what this site says of itself; compare the versions of kith"
	case NameTaken:
		return "the inviter knows another site of this name; its operator can revoke that one first"
	case OtherProtocol:
		return "the inviter speaks another version of the exchange; use the same version of kith"
	case Unavailable:
		return "the inviter cannot take part just now; try again"
	}
	return fmt.Sprintf("the inviter refuses for reason %d, which this version does not know", r.Reason)
}

// Serve leads the exchange with a joiner over a connection that negotiated kith-join/1,
// until it is decided, and closes the connection. It returns nil if the joiner was told
// that it is admitted, else a [Refusal] or what went wrong. An end of ctx ends it.
func (d *Desk) Serve(ctx context.Context, conn *tls.Conn) error {
	defer func() { _ = conn.Close() }()
	s := &session{desk: d, conn: conn, calm: interrupt(ctx, conn), report: Attempt{Address: conn.RemoteAddr().String()}}
	defer s.calm()
	err := s.run(ctx)
	if r := (Refusal{}); errors.As(err, &r) {
		s.report.Reason = r.Reason
	} else {
		s.report.Err = err
	}
	d.cfg.Report(s.report)
	return err
}

// session is one connection of a joiner.
type session struct {
	desk   *Desk
	conn   *tls.Conn
	calm   func() // lets the end of the context interrupt no more
	report Attempt
	site   job.SiteID
	ca     *x509.Certificate
	id     ID
}

func (s *session) run(ctx context.Context) error {
	proof, err := s.prove(ctx)
	if err != nil {
		return err
	}
	if err := s.send(&kithv1.JoinReply{Reply: &kithv1.JoinReply_Proof{Proof: &kithv1.JoinProof{Proof: proof}}}); err != nil {
		return err
	}
	j, err := s.details()
	if err != nil {
		return err
	}
	if err := s.desk.cfg.Check(j); err != nil {
		return fmt.Errorf("%w: %w", s.refuse(NameTaken), err)
	}
	turn, o, why := s.desk.come(ctx, s.id, j)
	s.report.State = o.State
	if why != NoReason {
		return s.refuse(why)
	}
	return s.wait(ctx, turn)
}

// prove reads the joiner's proof and returns the inviter's. It holds one of few places
// meanwhile: until it ends anybody can be at the other end.
func (s *session) prove(ctx context.Context) ([]byte, error) {
	select {
	case s.desk.gate <- struct{}{}:
	default:
		return nil, ErrCrowded
	}
	defer func() { <-s.desk.gate }()
	s.deadline(stepWait)
	if err := s.conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := s.conn.ConnectionState()
	secret, err := exporter(state)
	if err != nil {
		return nil, err
	}
	if s.site, s.ca, err = trust.SelfMade(state.PeerCertificates, s.desk.cfg.Now()); err != nil {
		return nil, err
	}
	s.report.Site, s.report.Fingerprint = s.site, trust.Fingerprint(s.ca)
	var hello kithv1.JoinHello
	s.deadline(stepWait)
	if err := readFrame(s.conn, &hello, maxFrame); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if hello.GetProtocol() != protocol {
		return nil, s.refuse(OtherProtocol)
	}
	if len(hello.GetInvitationId()) != len(s.id) {
		return nil, s.refuse(UnknownInvitation)
	}
	s.id = ID(hello.GetInvitationId())
	s.report.Invitation = s.id
	b := binding{secret, s.desk.cfg.Self().CA, s.ca, s.desk.cfg.Site, s.site, s.id}
	o, why := s.desk.try(ctx, s.id, s.site, PinOf(s.ca), func(v Verifier) bool { return v.checkJoiner(b, hello.GetProof()) })
	s.report.State = o.State
	if why != NoReason {
		return nil, s.refuse(why)
	}
	return o.Verifier.inviterProof(b), nil
}

func (s *session) details() (Joiner, error) {
	var details kithv1.JoinDetails
	s.deadline(stepWait)
	if err := readFrame(s.conn, &details, maxDetails); err != nil {
		return Joiner{}, fmt.Errorf("details: %w", err)
	}
	bundle, err := bundleOf(details.GetBundle(), s.site, s.ca)
	if err == nil {
		err = checkAbout(details.GetAddresses(), details.GetVersion())
	}
	if err != nil {
		return Joiner{}, fmt.Errorf("%w: %w", s.refuse(BadDetails), err)
	}
	return Joiner{s.site, PinOf(s.ca), trust.Fingerprint(s.ca), bundle, details.GetAddresses(), details.GetVersion()}, nil
}

// bundleOf reads the bundle of a site and demands the CA that its connection proved.
func bundleOf(raw []byte, site job.SiteID, ca *x509.Certificate) (trust.Bundle, error) {
	b, err := trust.ParseBundle(raw)
	switch {
	case err != nil:
		return trust.Bundle{}, err
	case b.Site != site:
		return trust.Bundle{}, fmt.Errorf("bundle of %s from site %s: %w", b.Site, site, trust.ErrBundle)
	case !b.Holds(ca):
		return trust.Bundle{}, fmt.Errorf("bundle of %s without the CA of the connection: %w", site, trust.ErrBundle)
	}
	return b, nil
}

// wait tells the joiner that the operator is asked, until there is an answer.
func (s *session) wait(ctx context.Context, turn int) error {
	for {
		o, mine, changed := s.desk.look(s.id, turn)
		s.report.State = o.State
		if !mine {
			return ErrReplaced
		}
		why, more := ended(o)
		switch {
		case why != NoReason:
			return s.refuse(why)
		case !more:
			return s.admit()
		}
		if err := s.send(&kithv1.JoinReply{Reply: &kithv1.JoinReply_Waiting{Waiting: &kithv1.JoinWaiting{}}}); err != nil {
			return err
		}
		timer := time.NewTimer(min(keepalive, max(o.Expires.Sub(s.desk.cfg.Now()), time.Millisecond)))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			s.calm() // or it may cut the refusal in two
			_ = s.refuse(Unavailable)
			return ctx.Err()
		}
	}
}

func (s *session) admit() error {
	self := s.desk.cfg.Self()
	return s.send(&kithv1.JoinReply{Reply: &kithv1.JoinReply_Admitted{Admitted: &kithv1.JoinAdmitted{
		Bundle: self.Bundle.Marshal(), Addresses: self.Addresses, Version: self.Version,
	}}})
}

// refuse tells the joiner why, and returns it as an error.
func (s *session) refuse(why Reason) error {
	_ = s.send(&kithv1.JoinReply{Reply: &kithv1.JoinReply_Refused{Refused: &kithv1.JoinRefused{Reason: kithv1.JoinRefused_Reason(why)}}})
	return Refusal{why}
}

func (s *session) send(m *kithv1.JoinReply) error {
	s.deadline(stepWait)
	return writeFrame(s.conn, m, maxDetails)
}

func (s *session) deadline(wait time.Duration) { _ = s.conn.SetDeadline(time.Now().Add(wait)) }
