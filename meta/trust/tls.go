package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
)

// The application protocols of the one port. The client names one, and that decides
// who may come in and what is served.
const (
	ALPNUsers  = "h2"
	ALPNPeer   = "kith-peer/1"
	ALPNGossip = "kith-gossip/1"
	ALPNJoin   = "kith-join/1"
)

// ErrProtocol is returned when a client names no protocol that is served.
var ErrProtocol = errors.New("the client names no protocol that is served here")

// Endpoint makes the TLS configurations of a site. Its fields do not change once one
// was made; all are safe for use by several goroutines.
type Endpoint struct {
	Keys    *Keys
	Trusted *Set
	Now     func() time.Time
	// JoinOpen reports whether an invitation is open; nil for never.
	JoinOpen func() bool
}

// base is what all configurations have in common.
func (e *Endpoint) base(alpn string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, Time: e.Now,
		// Resumption skips the certificate: a removed site could come back.
		SessionTicketsDisabled: true,
	}
}

// ServerTLS returns the configuration of the port. A connection that comes out of the
// handshake has negotiated one of the protocols above, and one that is not of users
// has shown a certificate that [Set.Verify], or [SelfMade] for joining, accepts.
func (e *Endpoint) ServerTLS() *tls.Config {
	c := e.base(ALPNUsers)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return e.configFor(hello.SupportedProtos) }
	return c
}

// configFor returns the configuration for the first protocol of the client's list
// that is served, and for that one alone.
func (e *Endpoint) configFor(offered []string) (*tls.Config, error) {
	i := slices.IndexFunc(offered, e.serves)
	if i < 0 {
		return nil, ErrProtocol
	}
	c := e.base(offered[i])
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return e.Keys.Leaf(), nil }
	switch offered[i] {
	case ALPNUsers:
	case ALPNJoin:
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = func(s tls.ConnectionState) error {
			_, _, err := SelfMade(s.PeerCertificates, e.Now())
			return err
		}
	default:
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = func(s tls.ConnectionState) error {
			_, err := e.Trusted.verify(s.PeerCertificates, e.Now())
			return err
		}
	}
	return c, nil
}

func (e *Endpoint) serves(alpn string) bool {
	switch alpn {
	case ALPNUsers, ALPNPeer, ALPNGossip:
		return true
	case ALPNJoin:
		return e.JoinOpen != nil && e.JoinOpen()
	}
	return false
}

// ClientTLS returns the configuration to call a known site with, by [ALPNPeer] or
// [ALPNGossip]. Any other site that answers is refused.
func (e *Endpoint) ClientTLS(site job.SiteID, alpn string) *tls.Config {
	return e.client(string(site), alpn, func(certs []*x509.Certificate) error {
		got, err := e.Trusted.verify(certs, e.Now())
		if err == nil && got != site {
			return fmt.Errorf("site %s was called, it is %s: %w", site, got, ErrOtherSite)
		}
		return err
	})
}

// JoinTLS returns the configuration to redeem an invitation with. check says why a
// site with that CA is not the one that invited, nil if it is.
func (e *Endpoint) JoinTLS(check func(site job.SiteID, ca *x509.Certificate) error) *tls.Config {
	return e.client("", ALPNJoin, func(certs []*x509.Certificate) error {
		site, ca, err := SelfMade(certs, e.Now())
		if err != nil {
			return err
		}
		return check(site, ca)
	})
}

func (e *Endpoint) client(name, alpn string, check func([]*x509.Certificate) error) *tls.Config {
	c := e.base(alpn)
	c.ServerName = name
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return e.Keys.Leaf(), nil }
	// The names in the certificate are no host names: check takes the place of the
	// library's own verification.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != alpn {
			return fmt.Errorf("%s was asked for, %q negotiated: %w", alpn, s.NegotiatedProtocol, ErrProtocol)
		}
		return check(s.PeerCertificates)
	}
	return c
}

// PeerSite returns the site whose certificate a connection has shown; it was verified
// in the handshake of [Endpoint.ServerTLS] or [Endpoint.ClientTLS].
func PeerSite(s tls.ConnectionState) (job.SiteID, error) { return claimedSite(s.PeerCertificates) }
