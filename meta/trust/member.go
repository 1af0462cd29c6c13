package trust

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"kith/internal/job"
)

// The application protocols that the members of one site speak on the port: who names one
// must show the certificate of a member of that site.
const (
	// ALPNRaft is raft's.
	ALPNRaft = "kith-raft/1"
	// ALPNMember is for what clients brought to another member, and for files.
	ALPNMember = "kith-member/1"
)

// memberPath begins the path of the SPIFFE ID of a member: /member/NAME.
const memberPath = "/member/"

// Member proves that a machine is one of those that keep a site's facts. Its certificate has
// the SPIFFE ID spiffe://SITE/member/NAME and is made with the key of the site's CA, in memory
// alone. It proves nothing to users and to other sites, as theirs prove nothing to members. A
// Member is safe for use by several goroutines.
type Member struct {
	keys *Keys
	name string
	now  func() time.Time

	mu  sync.Mutex
	own *tls.Certificate
}

// Member returns a member of the site of that name. It returns [ErrOffline] where the operator
// keeps the key of the CA.
func (k *Keys) Member(name string, now func() time.Time) (*Member, error) {
	m := &Member{keys: k, name: name, now: now}
	_, err := m.certificate()
	return m, err
}

// certificate returns the present certificate. There is a new one at half of its life, and
// when the CA or the floor of the site has changed.
func (m *Member) certificate() (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys
	k.mu.RLock()
	defer k.mu.RUnlock()
	now := m.now()
	if c := m.own; c != nil {
		leaf := c.Leaf
		half := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
		if now.Before(half) && !leaf.NotBefore.Before(k.bundle.Floor) && leaf.CheckSignatureFrom(k.ca) == nil {
			return c, nil
		}
	}
	if k.caKey == nil {
		return nil, fmt.Errorf("certificate of member %s of site %s: %w", m.name, k.site, ErrOffline)
	}
	t := memberTemplate(k.site, m.name, now)
	key, leaf, err := sign(t, k.site, k.ca, k.caKey, k.bundle.Floor, now)
	if err != nil {
		return nil, fmt.Errorf("certificate of member %s of site %s: %w", m.name, k.site, err)
	}
	m.own = certificate(key, leaf, k.ca)
	return m.own, nil
}

// memberBackdated is how long before it was made the certificate of a member is valid: for others whose clocks
// are a day behind. They make all that they keep together without one, and a site must not stop for it.
const memberBackdated = 48 * time.Hour

// memberTemplate is the certificate of a member that is made now. It has no DNS name: a user
// who trusts the CA of the site must not take a member's certificate for the site's.
func memberTemplate(site job.SiteID, name string, now time.Time) *x509.Certificate {
	t := leafTemplate(site, now, leafLife)
	t.NotBefore = now.Add(-memberBackdated)
	t.Subject.CommonName = string(site) + " member " + name
	t.DNSNames = nil
	t.URIs = []*url.URL{{Scheme: "spiffe", Host: string(site), Path: memberPath + name}}
	return t
}

// ServerTLS returns the configuration of the port for the protocols of members.
func (m *Member) ServerTLS() *tls.Config {
	c := m.base()
	c.NextProtos = []string{ALPNRaft, ALPNMember}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.certificate() }
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol == "" { // the library lets clients in that name none
			return ErrProtocol
		}
		_, err := m.verify(s.PeerCertificates)
		return err
	}
	return c
}

// ClientTLS returns the configuration to call another member with, by [ALPNRaft] or
// [ALPNMember]. Whoever is not a member of the same site is refused.
func (m *Member) ClientTLS(alpn string) *tls.Config {
	c := m.base()
	c.NextProtos = []string{alpn}
	c.ServerName = string(m.keys.site)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return m.certificate() }
	// The names in the certificate are no host names, see [Endpoint.ClientTLS].
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != alpn {
			return fmt.Errorf("%s was asked for, %q negotiated: %w", alpn, s.NegotiatedProtocol, ErrProtocol)
		}
		_, err := m.verify(s.PeerCertificates)
		return err
	}
	return c
}

func (m *Member) base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Time: m.now, SessionTicketsDisabled: true}
}

// verify returns the member that a chain proves: of this site, by its own CAs, not older than
// the floor.
func (m *Member) verify(certs []*x509.Certificate) (string, error) {
	id, err := claimedID(certs)
	if err != nil {
		return "", err
	}
	site := m.keys.site
	if got := id.TrustDomain().Name(); got != string(site) {
		return "", fmt.Errorf("a member of site %s was asked for, it is of %s: %w", site, got, ErrOtherSite)
	}
	name, ok := strings.CutPrefix(id.Path(), memberPath)
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("the path of its SPIFFE ID is not %sNAME: %w", memberPath, ErrCertificate)
	}
	bundle := m.keys.Bundle()
	authorities, err := authoritiesOf(bundle)
	if err != nil {
		return "", err
	}
	return name, entry{bundle, authorities}.verify(site, certs, m.now())
}

// MemberName returns the member whose certificate a connection has shown; it was verified in
// the handshake of [Member.ServerTLS] or [Member.ClientTLS].
func MemberName(s tls.ConnectionState) string {
	if len(s.PeerCertificates) == 0 || len(s.PeerCertificates[0].URIs) == 0 {
		return ""
	}
	return strings.TrimPrefix(s.PeerCertificates[0].URIs[0].Path, memberPath)
}

// sign makes a key and a certificate for it by a template, signed by ca. It is not older than
// floor and does not outlive ca.
func sign(t *x509.Certificate, site job.SiteID, ca *x509.Certificate, signer *ecdsa.PrivateKey, floor, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	if t.NotBefore.Before(floor) {
		t.NotBefore = floor
	}
	if t.NotAfter.After(ca.NotAfter) {
		t.NotAfter = ca.NotAfter
	}
	if !now.Before(ca.NotAfter) {
		return nil, nil, fmt.Errorf("the CA of site %s ended at %s", site, ca.NotAfter.UTC().Format(time.RFC3339))
	}
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	leaf, err := issue(t, ca, &key.PublicKey, signer)
	return key, leaf, err
}
