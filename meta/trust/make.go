package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"time"

	"kith/internal/job"
)

// Lives of certificates.
const (
	caYears = 10
	// leafLife is that of a leaf that the site renews by itself.
	leafLife = 7 * 24 * time.Hour
	// offlineLeafLife is that of a leaf whose CA key is not at the site.
	offlineLeafLife = 90 * 24 * time.Hour
	// backdated is how long before it was made a certificate is valid, for sites
	// whose clocks are behind.
	backdated = 5 * time.Minute
)

// idPath is the path of the SPIFFE ID of a site's daemon.
const idPath = "/kithd"

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newSerial() (*big.Int, error) {
	// 127 bits: positive, and within the 20 bytes of RFC 5280.
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// caTemplate is the certificate of an authority of site that is made now. It may
// speak for the name of the site only, also to a user who trusts its file.
func caTemplate(site job.SiteID, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Kith site " + string(site)},
		NotBefore: now.Add(-backdated), NotAfter: now.AddDate(caYears, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		URIs:                        []*url.URL{{Scheme: "spiffe", Host: string(site)}},
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{string(site)}, PermittedURIDomains: []string{string(site)},
	}
}

// leafTemplate is the certificate of the daemon of site that is made now. The DNS
// name is for clients that know no SPIFFE IDs, such as grpcurl.
func leafTemplate(site job.SiteID, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: string(site)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{{Scheme: "spiffe", Host: string(site), Path: idPath}},
		DNSNames:    []string{string(site)}, BasicConstraintsValid: true,
	}
}

// issue signs a certificate for a key; a nil parent makes it sign itself.
func issue(template, parent *x509.Certificate, key *ecdsa.PublicKey, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// newCA makes a key and its authority.
func newCA(site job.SiteID, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	ca, err := issue(caTemplate(site, now), nil, &key.PublicKey, key)
	return key, ca, err
}

// newLeaf makes a key and its leaf, signed by ca. The leaf is not older than floor and
// does not outlive ca.
func newLeaf(site job.SiteID, ca *x509.Certificate, signer *ecdsa.PrivateKey, floor, now time.Time, life time.Duration) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	return sign(leafTemplate(site, now, life), site, ca, signer, floor, now)
}
