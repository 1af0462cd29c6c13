package trust

import (
	"crypto/ecdsa"
	"crypto/x509"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/job"
)

// noon is when tests happen.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// memoryKeys are keys without a folder; they cannot be renewed.
func memoryKeys(t testing.TB, site job.SiteID) *Keys {
	t.Helper()
	caKey, ca, err := newCA(site, noon)
	if err != nil {
		t.Fatal(err)
	}
	key, leaf, err := newLeaf(site, ca, caKey, time.Time{}, noon, leafLife)
	if err != nil {
		t.Fatal(err)
	}
	return &Keys{site: site, ca: ca, caKey: caKey, leaf: certificate(key, leaf, ca), bundle: Bundle{Site: site, Sequence: 1, CAs: []*x509.Certificate{ca}}}
}

func makeKeys(t testing.TB, site job.SiteID, now time.Time) *Keys {
	t.Helper()
	k, err := Init(filepath.Join(t.TempDir(), "keys"), site, Options{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// known returns a set that knows the sites of keys.
func known(t testing.TB, of ...*Keys) *Set {
	t.Helper()
	s := new(Set)
	for _, k := range of {
		if err := s.Put(k.Bundle()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// forged is a certificate of a site with something wrong, and the key that made it.
type forged struct {
	key *ecdsa.PrivateKey
	der [][]byte
}

// forge makes a leaf of alpha's CA after change has had its way with the template.
func forge(t testing.TB, k *Keys, change func(*x509.Certificate)) forged {
	t.Helper()
	template := leafTemplate(k.site, noon, leafLife)
	change(template)
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := issue(template, k.ca, &key.PublicKey, k.caKey)
	if err != nil {
		t.Fatal(err)
	}
	return forged{key, [][]byte{leaf.Raw, k.ca.Raw}}
}
