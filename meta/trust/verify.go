package trust

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"kith/internal/job"
)

// Reasons to refuse a certificate. Errors of this package wrap one of them.
var (
	// ErrNoCertificate is returned when none was shown.
	ErrNoCertificate = errors.New("no certificate of a site was shown")
	// ErrUnknownSite is returned for the certificate of a site that is not known here.
	ErrUnknownSite = errors.New("the site is not known here")
	// ErrCertificate is returned when a certificate does not prove the name in it.
	ErrCertificate = errors.New("the certificate does not prove its name")
	// ErrBelowFloor is returned for a leaf that its site has declared void.
	ErrBelowFloor = errors.New("the certificate is older than its site allows")
	// ErrOtherSite is returned when a site proves its name and another one was asked for.
	ErrOtherSite = errors.New("another site answers")
	// ErrSignature is returned when a message was not signed by the key of its chain.
	ErrSignature = errors.New("the signature does not fit the message")
)

// Rule names, in a word, the rule that an error of a handshake or of [Set.Verify] says was
// broken: for the audit log.
func Rule(err error) string {
	for _, r := range []struct {
		err  error
		word string
	}{
		{ErrNoCertificate, "no-certificate"}, {ErrUnknownSite, "unknown-site"}, {ErrBelowFloor, "below-floor"}, {ErrOtherSite, "other-site"},
		{ErrSignature, "signature"}, {ErrCertificate, "certificate"}, {ErrProtocol, "protocol"},
	} {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return "handshake"
}

// maxChain bounds a chain, in certificates.
const maxChain = 4

// Verify returns the site that a chain of certificates proves at a time: the leaf
// first, in DER. The leaf carries exactly one URI, spiffe://SITE/kithd, may sign and be
// used on both ends of TLS, was signed by a CA of that site's bundle and no other, and
// is not older than the bundle's floor.
func (s *Set) Verify(chain [][]byte, now time.Time) (job.SiteID, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return "", err
	}
	return s.verify(certs, now)
}

func parseChain(chain [][]byte) ([]*x509.Certificate, error) {
	total := 0
	for _, der := range chain {
		total += len(der)
	}
	switch {
	case len(chain) == 0:
		return nil, ErrNoCertificate
	case len(chain) > maxChain || total > MaxBundleBytes:
		return nil, fmt.Errorf("%d certificates of %d bytes, the most is %d of %d: %w", len(chain), total, maxChain, MaxBundleBytes, ErrCertificate)
	}
	certs := make([]*x509.Certificate, len(chain))
	for i, der := range chain {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is unreadable: %w", i+1, ErrCertificate)
		}
		certs[i] = c
	}
	return certs, nil
}

func (s *Set) verify(certs []*x509.Certificate, now time.Time) (job.SiteID, error) {
	site, err := claimedSite(certs)
	if err != nil {
		return "", err
	}
	e, ok := s.entry(site)
	if !ok {
		return "", fmt.Errorf("site %s: %w", site, ErrUnknownSite)
	}
	return site, e.verify(site, certs, now)
}

// claimedID returns the name that a leaf has. Nothing is proved by it.
func claimedID(certs []*x509.Certificate) (id spiffeid.ID, err error) {
	if len(certs) == 0 {
		return id, ErrNoCertificate
	}
	if len(certs) > maxChain {
		return id, fmt.Errorf("%d certificates, the most is %d: %w", len(certs), maxChain, ErrCertificate)
	}
	if id, err = x509svid.IDFromCert(certs[0]); err != nil {
		return id, fmt.Errorf("%w: %w", err, ErrCertificate)
	}
	return id, nil
}

// claimedSite returns the site that a leaf says it is of. Nothing is proved by it.
func claimedSite(certs []*x509.Certificate) (job.SiteID, error) {
	id, err := claimedID(certs)
	if err != nil {
		return "", err
	}
	site, err := siteOf(id)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, ErrCertificate)
	}
	return site, nil
}

// siteOf returns the site that a SPIFFE ID names.
func siteOf(id spiffeid.ID) (job.SiteID, error) {
	if id.Path() != idPath {
		return "", fmt.Errorf("the path of its SPIFFE ID is not %s", idPath)
	}
	return job.ParseSiteID(id.TrustDomain().Name())
}

// verify says why certs do not prove that they are of site, nil if they do.
func (e entry) verify(site job.SiteID, certs []*x509.Certificate, now time.Time) error {
	leaf := certs[0]
	_, _, err := x509svid.Verify(certs, e.authorities, x509svid.WithTime(now))
	if err != nil {
		return fmt.Errorf("site %s: %w: %w", site, err, ErrCertificate)
	}
	switch {
	case !isP256(leaf):
		return fmt.Errorf("site %s: its key is not ECDSA P-256: %w", site, ErrCertificate)
	case leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return fmt.Errorf("site %s: its key may not sign: %w", site, ErrCertificate)
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		// The library allows any use.
		return fmt.Errorf("site %s: it is not for both ends of TLS: %w", site, ErrCertificate)
	case leaf.NotBefore.Before(e.bundle.Floor):
		return fmt.Errorf("site %s: made before %s: %w", site, e.bundle.Floor.Format(time.RFC3339), ErrBelowFloor)
	}
	return nil
}

// VerifyMessage returns the site that signed msg, see [Keys.Sign].
func (s *Set) VerifyMessage(msg, sig []byte, chain [][]byte, now time.Time) (job.SiteID, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return "", err
	}
	site, err := s.verify(certs, now)
	if err != nil {
		return "", err
	}
	if !ecdsa.VerifyASN1(certs[0].PublicKey.(*ecdsa.PublicKey), messageSum(msg), sig) {
		return "", fmt.Errorf("site %s: %w", site, ErrSignature)
	}
	return site, nil
}

// messageSum is what is signed of a message. The prefix keeps it apart from what TLS
// signs with the same key.
func messageSum(msg []byte) []byte {
	h := sha256.New()
	h.Write([]byte("kith signed message 1\x00"))
	h.Write(msg)
	return h.Sum(nil)
}

// SelfMade returns the site that a chain of a leaf and its CA names and that CA. The
// two fit each other and the rules; that the CA is the right one for the name is for
// the caller to find out, by a pin or by asking a person.
func SelfMade(certs []*x509.Certificate, now time.Time) (job.SiteID, *x509.Certificate, error) {
	site, err := claimedSite(certs)
	if err != nil {
		return "", nil, err
	}
	if len(certs) != 2 {
		return "", nil, fmt.Errorf("site %s: %d certificates, must be a leaf and its CA: %w", site, len(certs), ErrCertificate)
	}
	ca := certs[1]
	if err := checkCA(site, ca); err != nil {
		return "", nil, fmt.Errorf("site %s: CA: %w: %w", site, err, ErrCertificate)
	}
	b := Bundle{Site: site, Sequence: 1, CAs: []*x509.Certificate{ca}}
	authorities, err := authoritiesOf(b)
	if err != nil {
		return "", nil, err
	}
	if err := (entry{b, authorities}).verify(site, certs, now); err != nil {
		return "", nil, err
	}
	return site, ca, nil
}
