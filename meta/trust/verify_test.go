package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
)

// forgeries are certificates that prove nothing, by name. Each differs from a good one
// in one thing.
func forgeries(t testing.TB, alpha, beta *Keys) map[string]struct {
	forged
	want error
} {
	t.Helper()
	type row = struct {
		forged
		want error
	}
	alone := func() forged {
		key, _ := newKey()
		template := leafTemplate("alpha", noon, leafLife)
		leaf, err := issue(template, nil, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return forged{key, [][]byte{leaf.Raw}}
	}
	uri := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	free := &Keys{site: "alpha", caKey: alpha.caKey} // a CA without the constraint on names, as other software makes it
	template := caTemplate("alpha", noon)
	template.PermittedDNSDomains, template.PermittedURIDomains = nil, nil
	ca, err := issue(template, nil, &alpha.caKey.PublicKey, alpha.caKey)
	if err != nil {
		t.Fatal(err)
	}
	free.ca = ca
	p384 := func() forged {
		key, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		leaf, err := issue(leafTemplate("alpha", noon, leafLife), alpha.ca, &key.PublicKey, alpha.caKey)
		if err != nil {
			t.Fatal(err)
		}
		return forged{key, [][]byte{leaf.Raw}}
	}
	return map[string]row{
		"self-signed":   {alone(), ErrCertificate},
		"expired":       {forge(t, alpha, func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) }), ErrCertificate},
		"not yet valid": {forge(t, alpha, func(c *x509.Certificate) { c.NotBefore = noon.Add(time.Minute) }), ErrCertificate},
		"servers only": {forge(t, alpha, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), ErrCertificate},
		"clients only": {forge(t, alpha, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), ErrCertificate},
		"for mail": {forge(t, alpha, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}), ErrCertificate},
		"key that may not sign": {forge(t, alpha, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }), ErrCertificate},
		"an authority":          {forge(t, alpha, func(c *x509.Certificate) { c.IsCA = true }), ErrCertificate},
		"another curve":         {p384(), ErrCertificate},
		"two URIs": {forge(t, alpha, func(c *x509.Certificate) {
			c.URIs = append(c.URIs, uri("spiffe://alpha/other"))
		}), ErrCertificate},
		"two names": {forge(t, free, func(c *x509.Certificate) {
			c.URIs = append(c.URIs, uri("spiffe://beta/kithd"))
		}), ErrCertificate},
		"a DNS name only": {forge(t, alpha, func(c *x509.Certificate) { c.URIs = nil }), ErrCertificate},
		"another path":    {forge(t, alpha, func(c *x509.Certificate) { c.URIs[0] = uri("spiffe://alpha/job") }), ErrCertificate},
		"beta's name from alpha's CA": {forge(t, free, func(c *x509.Certificate) {
			c.URIs[0] = uri("spiffe://beta/kithd")
		}), ErrCertificate},
		"name outside of its CA's": {forge(t, alpha, func(c *x509.Certificate) { c.DNSNames = []string{"example.org"} }), ErrCertificate},
		"below the floor": {forge(t, alpha, func(c *x509.Certificate) {
			c.NotBefore = alpha.bundle.Floor.Add(-time.Second)
		}), ErrBelowFloor},
		"unknown site": {forge(t, memoryKeys(t, "gamma"), func(*x509.Certificate) {}), ErrUnknownSite},
		"none":         {forged{beta.caKey, nil}, ErrNoCertificate},
	}
}

func twoSites(t testing.TB) (alpha, beta *Keys) {
	alpha, beta = memoryKeys(t, "alpha"), memoryKeys(t, "beta")
	alpha.bundle.Floor = noon.Add(-time.Hour)
	return alpha, beta
}

func TestVerify(t *testing.T) {
	alpha, beta := twoSites(t)
	s := known(t, alpha, beta)
	if site, err := s.Verify(alpha.Leaf().Certificate, noon); site != "alpha" || err != nil {
		t.Fatalf("a good certificate: %q, %v", site, err)
	}
	if site, err := s.Verify(forge(t, alpha, func(*x509.Certificate) {}).der, noon); site != "alpha" || err != nil {
		t.Fatalf("what the forgeries change is not good itself: %q, %v", site, err)
	}
	for name, f := range forgeries(t, alpha, beta) {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Verify(f.der, noon); !errors.Is(err, f.want) {
				t.Errorf("error %v, want %v", err, f.want)
			}
		})
	}
	s.Remove("alpha")
	if _, err := s.Verify(alpha.Leaf().Certificate, noon); !errors.Is(err, ErrUnknownSite) {
		t.Errorf("after its removal: %v", err)
	}
}

func TestVerifyBounds(t *testing.T) {
	alpha, _ := twoSites(t)
	s := known(t, alpha)
	long := append([][]byte{}, alpha.Leaf().Certificate...)
	for len(long) <= maxChain {
		long = append(long, alpha.ca.Raw)
	}
	for name, c := range map[string]struct {
		chain [][]byte
		says  string
	}{
		"long": {long, "the most is"}, "large": {[][]byte{alpha.Leaf().Certificate[0], make([]byte, MaxBundleBytes)}, "the most is"},
		"unreadable": {[][]byte{{1, 2, 3}}, "unreadable"},
	} {
		if _, err := s.Verify(c.chain, noon); !errors.Is(err, ErrCertificate) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s chain: %v", name, err)
		}
	}
}

// A CA is taken over: old and new are valid together, then the new one alone.
func TestVerifyNextCA(t *testing.T) {
	old, next := memoryKeys(t, "alpha"), memoryKeys(t, "alpha")
	s := new(Set)
	both := Bundle{Site: "alpha", Sequence: 2, CAs: []*x509.Certificate{old.ca, next.ca}}
	verify := func(b Bundle, k *Keys) error {
		b, err := ParseBundle(b.Marshal())
		if err == nil {
			err = s.Put(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Verify(k.Leaf().Certificate, noon)
		return err
	}
	if err := errors.Join(verify(both, old), verify(both, next)); err != nil {
		t.Error(err)
	}
	if err := verify(next.Bundle(), old); !errors.Is(err, ErrCertificate) {
		t.Errorf("the old CA after its removal: %v", err)
	}
}

func TestMessages(t *testing.T) {
	alpha, beta := twoSites(t)
	s := known(t, alpha, beta)
	msg := []byte("kith digest 1: alpha is idle")
	sig, chain := alpha.Sign(msg)
	if site, err := s.VerifyMessage(msg, sig, chain, noon); site != "alpha" || err != nil {
		t.Fatalf("%q, %v", site, err)
	}
	_, others := beta.Sign(msg)
	for name, c := range map[string]struct {
		msg, sig []byte
		chain    [][]byte
		want     error
	}{
		"other message":   {[]byte("kith digest 1: alpha is full"), sig, chain, ErrSignature},
		"other key":       {msg, sig, others, ErrSignature},
		"cut":             {msg, sig[:len(sig)-1], chain, ErrSignature},
		"empty":           {msg, nil, chain, ErrSignature},
		"without a chain": {msg, sig, nil, ErrNoCertificate},
	} {
		if _, err := s.VerifyMessage(c.msg, c.sig, c.chain, noon); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

func TestSelfMade(t *testing.T) {
	alpha, beta := twoSites(t)
	parse := func(der ...[]byte) (certs []*x509.Certificate) {
		for _, d := range der {
			c, err := x509.ParseCertificate(d)
			if err != nil {
				t.Fatal(err)
			}
			certs = append(certs, c)
		}
		return certs
	}
	site, ca, err := SelfMade(parse(alpha.Leaf().Certificate...), noon)
	if site != "alpha" || err != nil || !ca.Equal(alpha.CA()) {
		t.Fatalf("%q, %v", site, err)
	}
	leaf := alpha.Leaf().Certificate[0]
	for name, der := range map[string][][]byte{
		"another site's CA": {leaf, beta.ca.Raw}, "another CA of the name": {leaf, memoryKeys(t, "alpha").ca.Raw},
		"no CA": {leaf}, "itself": {leaf, leaf}, "more": {leaf, alpha.ca.Raw, alpha.ca.Raw},
	} {
		if _, _, err := SelfMade(parse(der...), noon); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := SelfMade(parse(alpha.Leaf().Certificate...), noon.Add(leafLife+time.Second)); !errors.Is(err, ErrCertificate) {
		t.Error("an expired one was taken")
	}
	if _, _, err := SelfMade(nil, noon); !errors.Is(err, ErrNoCertificate) {
		t.Error("none was taken")
	}
}

func BenchmarkSign(b *testing.B) {
	alpha, _ := twoSites(b)
	for b.Loop() {
		alpha.Sign([]byte("kith digest 1"))
	}
}

func BenchmarkVerify(b *testing.B) {
	alpha, beta := twoSites(b)
	s := known(b, alpha, beta)
	for b.Loop() {
		if _, err := s.Verify(alpha.Leaf().Certificate, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyMessage(b *testing.B) {
	alpha, beta := twoSites(b)
	s, msg := known(b, alpha, beta), []byte("kith digest 1")
	sig, chain := alpha.Sign(msg)
	for b.Loop() {
		if _, err := s.VerifyMessage(msg, sig, chain, noon); err != nil {
			b.Fatal(err)
		}
	}
}
