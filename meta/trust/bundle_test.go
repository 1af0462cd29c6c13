package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBundle(t *testing.T) {
	alpha, next := memoryKeys(t, "alpha"), memoryKeys(t, "alpha")
	b := Bundle{Site: "alpha", Sequence: 7, CAs: []*x509.Certificate{alpha.ca, next.ca}, Floor: noon}
	raw := b.Marshal()
	got, err := ParseBundle(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got.Site != "alpha" || got.Sequence != 7 || !got.Floor.Equal(noon) || !got.Holds(alpha.ca) || !got.Holds(next.ca) || len(got.CAs) != 2 {
		t.Errorf("read back: %+v", got)
	}
	b.CAs[0], b.CAs[1] = b.CAs[1], b.CAs[0]
	if !bytes.Equal(b.Marshal(), raw) {
		t.Error("the order of the CAs changes the bytes")
	}
	if !got.Expires().Equal(noon.AddDate(caYears, 0, 0)) {
		t.Errorf("expires at %v", got.Expires())
	}
}

func TestBundleRefused(t *testing.T) {
	alpha, beta := memoryKeys(t, "alpha"), memoryKeys(t, "beta")
	good := alpha.Bundle()
	with := func(change func(*Bundle)) []byte {
		b := good
		change(&b)
		return b.Marshal()
	}
	authority := func(change func(*x509.Certificate)) []byte {
		template := caTemplate("alpha", noon)
		change(template)
		ca, err := issue(template, nil, &alpha.caKey.PublicKey, alpha.caKey)
		if err != nil {
			t.Fatal(err)
		}
		return with(func(b *Bundle) { b.CAs = []*x509.Certificate{ca} })
	}
	raw := good.Marshal()
	var nine []*x509.Certificate
	for range MaxCAs + 1 {
		nine = append(nine, memoryKeys(t, "alpha").ca)
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"nothing":            {nil, "unreadable"},
		"cut":                {raw[:len(raw)-1], "unreadable"},
		"more behind it":     {append(bytes.Clone(raw), 0), "unreadable"},
		"too large":          {make([]byte, MaxBundleBytes+1), "bytes"},
		"another form":       {longForm(raw), "unreadable"},
		"another text":       {bytes.Replace(raw, []byte("\x0c\x05alpha"), []byte("\x13\x05alpha"), 1), "one form"},
		"no site":            {with(func(b *Bundle) { b.Site = "" }), "site name"},
		"bad name":           {with(func(b *Bundle) { b.Site = "Al/pha" }), "site name"},
		"no sequence":        {with(func(b *Bundle) { b.Sequence = 0 }), "sequence"},
		"huge sequence":      {with(func(b *Bundle) { b.Sequence = 1<<62 + 1 }), "sequence"},
		"floor before 1970":  {with(func(b *Bundle) { b.Floor = time.Unix(-1, 0) }), "floor"},
		"floor in year 9999": {with(func(b *Bundle) { b.Floor = time.Unix(maxTime+1, 0) }), "floor"},
		"no CA":              {with(func(b *Bundle) { b.CAs = nil }), "0 CAs"},
		"nine CAs":           {with(func(b *Bundle) { b.CAs = nine }), "9 CAs"},
		"a CA twice":         {with(func(b *Bundle) { b.CAs = []*x509.Certificate{alpha.ca, alpha.ca} }), "not in order"},
		"another site's CA":  {with(func(b *Bundle) { b.CAs = []*x509.Certificate{beta.ca} }), "spiffe://alpha"},
		"a leaf":             {with(func(b *Bundle) { b.CAs = []*x509.Certificate{alpha.Leaf().Leaf} }), "not a certificate authority"},
		"unusable key":       {authority(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), "may not sign"},
		"two names":          {authority(func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) }), "one URI"},
		"signed by another":  {with(func(b *Bundle) { b.CAs = []*x509.Certificate{crossSigned(t, alpha, beta)} }), "signed by itself"},
	} {
		_, err := ParseBundle(c.raw)
		if !errors.Is(err, ErrBundle) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// longForm writes the length of a DER value with a byte more than it needs.
func longForm(raw []byte) []byte {
	return append([]byte{raw[0], 0x83, 0}, raw[2:]...)
}

// crossSigned is an authority for alpha that beta has signed.
func crossSigned(t *testing.T, alpha, beta *Keys) *x509.Certificate {
	ca, err := issue(caTemplate("alpha", noon), beta.ca, &alpha.caKey.PublicKey, beta.caKey)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestFingerprint(t *testing.T) {
	alpha, beta := memoryKeys(t, "alpha"), memoryKeys(t, "beta")
	f := Fingerprint(alpha.ca)
	if len(f) != 13*4+12 || strings.Count(f, "-") != 12 {
		t.Errorf("%q is not 13 groups of 4", f)
	}
	if f != Fingerprint(alpha.CA()) || f == Fingerprint(beta.ca) {
		t.Error("it does not tell CAs apart")
	}
}

func FuzzParseBundle(f *testing.F) {
	alpha := memoryKeys(f, "alpha")
	f.Add(alpha.Bundle().Marshal())
	f.Add(Bundle{Site: "alpha", Sequence: 1}.Marshal())
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := ParseBundle(raw)
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		if again := b.Marshal(); !bytes.Equal(again, raw) {
			t.Errorf("two forms of one bundle:\n%x\n%x", raw, again)
		}
		if err := new(Set).Put(b); err != nil {
			t.Error(err)
		}
	})
}
