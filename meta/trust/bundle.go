package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base32"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
)

// Bounds of a bundle, in bytes and certificates.
const (
	MaxBundleBytes = 16 << 10
	MaxCAs         = 8
)

// Bundle says which certificates may speak for one site. Who holds one does not
// change its slice.
type Bundle struct {
	Site job.SiteID
	// Sequence counts the versions of a site's bundle, from 1. A later one replaces
	// an earlier one, never the other way round.
	Sequence uint64
	// CAs are 1 to MaxCAs authorities of the site, in the order of their bytes.
	CAs []*x509.Certificate
	// Floor is the time before which no leaf may have been made, in whole seconds;
	// zero for none. A site sets it when a leaf was stolen.
	Floor time.Time
}

// ErrBundle is returned for a bundle that breaks a rule of the format.
var ErrBundle = errors.New("not a bundle of a site")

// bundleDER is a bundle as bytes: DER, which has one form for one value.
type bundleDER struct {
	Version  int
	Site     string `asn1:"utf8"`
	Sequence int64
	Floor    int64 // seconds since 1970; 0 for none
	CAs      [][]byte
}

const bundleVersion = 1

// Marshal returns the one form of b as bytes; [ParseBundle] reads it back. A bundle that
// ParseBundle did not make may break its rules, and is then refused there.
func (b Bundle) Marshal() []byte {
	d := bundleDER{Version: bundleVersion, Site: string(b.Site), Sequence: int64(min(b.Sequence, math.MaxInt64))}
	if !b.Floor.IsZero() {
		d.Floor = b.Floor.Unix()
	}
	for _, ca := range b.CAs {
		d.CAs = append(d.CAs, ca.Raw)
	}
	slices.SortFunc(d.CAs, bytes.Compare)
	raw, err := asn1.Marshal(d)
	if err != nil { // a name that is not UTF-8
		return nil
	}
	return raw
}

// ParseBundle reads what [Bundle.Marshal] wrote. Any other bytes are refused with an
// error that wraps [ErrBundle], also another form of the same bundle. The signatures of
// the CAs over themselves are checked, their expiry is not.
func ParseBundle(raw []byte) (Bundle, error) {
	if len(raw) > MaxBundleBytes {
		return Bundle{}, fmt.Errorf("%d bytes, the most is %d: %w", len(raw), MaxBundleBytes, ErrBundle)
	}
	var d bundleDER
	if rest, err := asn1.Unmarshal(raw, &d); err != nil || len(rest) > 0 {
		return Bundle{}, fmt.Errorf("unreadable: %w", ErrBundle)
	}
	if again, err := asn1.Marshal(d); err != nil || !bytes.Equal(again, raw) {
		return Bundle{}, fmt.Errorf("not in its one form: %w", ErrBundle)
	}
	site, err := job.ParseSiteID(d.Site)
	switch {
	case d.Version != bundleVersion:
		return Bundle{}, fmt.Errorf("version %d, this kithd reads %d: %w", d.Version, bundleVersion, ErrBundle)
	case err != nil:
		return Bundle{}, fmt.Errorf("%w: %w", err, ErrBundle)
	case d.Sequence < 1 || d.Sequence > 1<<62:
		return Bundle{}, fmt.Errorf("site %s: sequence %d, must be 1 to 2^62: %w", site, d.Sequence, ErrBundle)
	case d.Floor < 0 || d.Floor > maxTime:
		return Bundle{}, fmt.Errorf("site %s: floor %d, must be 0 to %d: %w", site, d.Floor, int64(maxTime), ErrBundle)
	case len(d.CAs) < 1 || len(d.CAs) > MaxCAs:
		return Bundle{}, fmt.Errorf("site %s: %d CAs, must be 1 to %d: %w", site, len(d.CAs), MaxCAs, ErrBundle)
	}
	b := Bundle{Site: site, Sequence: uint64(d.Sequence)}
	if d.Floor != 0 {
		b.Floor = time.Unix(d.Floor, 0).UTC()
	}
	for i, der := range d.CAs {
		if i > 0 && bytes.Compare(d.CAs[i-1], der) >= 0 {
			return Bundle{}, fmt.Errorf("site %s: CAs are not in order: %w", site, ErrBundle)
		}
		ca, err := x509.ParseCertificate(der)
		if err != nil {
			return Bundle{}, fmt.Errorf("site %s: CA %d is unreadable: %w", site, i+1, ErrBundle)
		}
		if err := checkCA(site, ca); err != nil {
			return Bundle{}, fmt.Errorf("site %s: CA %d: %w: %w", site, i+1, err, ErrBundle)
		}
		b.CAs = append(b.CAs, ca)
	}
	return b, nil
}

// maxTime is the end of the year 9999, the last that a certificate can name.
const maxTime = 253402300799

// checkCA says why ca cannot be an authority of site, nil if it can.
func checkCA(site job.SiteID, ca *x509.Certificate) error {
	switch {
	case !ca.IsCA || !ca.BasicConstraintsValid:
		return errors.New("it is not a certificate authority")
	case ca.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its key may not sign certificates")
	case len(ca.URIs) != 1 || ca.URIs[0].String() != "spiffe://"+string(site):
		return fmt.Errorf("it does not carry the one URI spiffe://%s", site)
	case !isP256(ca):
		return errors.New("its key is not ECDSA P-256")
	case ca.CheckSignature(ca.SignatureAlgorithm, ca.RawTBSCertificate, ca.Signature) != nil:
		return errors.New("it is not signed by itself")
	}
	return nil
}

func isP256(c *x509.Certificate) bool {
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Curve == elliptic.P256()
}

func onP256(key *ecdsa.PrivateKey) bool { return key.Curve == elliptic.P256() }

// Expires returns when the last CA of b ends: from then on nothing speaks for the site.
func (b Bundle) Expires() time.Time {
	var last time.Time
	for _, ca := range b.CAs {
		if ca.NotAfter.After(last) {
			last = ca.NotAfter
		}
	}
	return last
}

// KeyOf returns the SHA-256 of a CA's public key (SubjectPublicKeyInfo).
func KeyOf(ca *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(ca.RawSubjectPublicKeyInfo) }

// CA returns the CA of a bundle whose key has that sum, see [KeyOf]; nil if it has none.
func (b Bundle) CA(key [sha256.Size]byte) *x509.Certificate {
	for _, ca := range b.CAs {
		if KeyOf(ca) == key {
			return ca
		}
	}
	return nil
}

// Holds reports whether ca is among the CAs of b.
func (b Bundle) Holds(ca *x509.Certificate) bool {
	return slices.ContainsFunc(b.CAs, ca.Equal)
}

// Fingerprint returns the SHA-256 of a CA's public key (SubjectPublicKeyInfo) for
// people to compare: 13 groups of 4 characters of base32.
func Fingerprint(ca *x509.Certificate) string {
	sum := KeyOf(ca)
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	var groups []string
	for group := range slices.Chunk([]byte(text), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}
