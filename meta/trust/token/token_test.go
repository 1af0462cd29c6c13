package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"kith/internal/identity"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// site is a site with one token key.
type site struct {
	key     *ecdsa.PrivateKey
	signer  *Signer
	revoked *List
	*Verifier
}

func newSite(t testing.TB) *site {
	t.Helper()
	key := newKey(t)
	signer, err := NewSigner("uni-a", key)
	if err != nil {
		t.Fatal(err)
	}
	list := &List{}
	v, err := NewVerifier("uni-a", list, &key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return &site{key, signer, list, v}
}

func (s *site) create(t testing.TB, user string, lifetime time.Duration) (string, Token) {
	t.Helper()
	text, made, err := s.signer.Create(user, lifetime, noon)
	if err != nil {
		t.Fatal(err)
	}
	return text, made
}

func TestTokenComesBack(t *testing.T) {
	s := newSite(t)
	for _, user := range []string{"ann", "Åsa Ek", strings.Repeat("x", identity.MaxLength)} {
		text, made := s.create(t, user, 12*time.Hour)
		if len(text) > MaxLength/2 {
			t.Errorf("the token has %d bytes", len(text))
		}
		got, err := s.Verify(text, noon.Add(12*time.Hour-time.Second))
		if err != nil || got != made {
			t.Errorf("got %+v, %v, want %+v", got, err, made)
		}
		if got.User != user || !got.Expires.Equal(noon.Add(12*time.Hour)) || !got.Issued.Equal(noon) || got.Key != s.signer.kid {
			t.Errorf("got %+v", got)
		}
	}
}

func TestTokensHaveNamesOfTheirOwn(t *testing.T) {
	s := newSite(t)
	seen := make(map[string]bool)
	for range 100 {
		_, made := s.create(t, "ann", time.Hour)
		if seen[made.ID] || len(made.ID) < 26 {
			t.Errorf("id %q", made.ID)
		}
		seen[made.ID] = true
	}
}

func TestCreateRefuses(t *testing.T) {
	s := newSite(t)
	for user, want := range map[string]error{
		"": ErrBadUser, "a\nb": ErrBadUser, "a\x1b[31mb": ErrBadUser, "a\u202eb": ErrBadUser, "a\xff": ErrBadUser,
		strings.Repeat("x", identity.MaxLength+1): ErrBadUser, "anonymous": ErrBadUser,
	} {
		if _, _, err := s.signer.Create(user, time.Hour, noon); !errors.Is(err, want) || len(err.Error()) > 500 {
			t.Errorf("user %.40q: %v", user, err)
		}
	}
	for _, lifetime := range []time.Duration{-time.Hour, 0, time.Second - 1, MaxLifetime + time.Second, 1<<63 - 1} {
		if _, _, err := s.signer.Create("ann", lifetime, noon); !errors.Is(err, ErrBadLifetime) {
			t.Errorf("lifetime %s: %v", lifetime, err)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSigner("uni-a", other); !errors.Is(err, ErrBadKey) {
		t.Errorf("P-384: %v", err)
	}
	if _, err := NewSigner("uni-a", nil); !errors.Is(err, ErrBadKey) {
		t.Errorf("no key: %v", err)
	}
	if err := s.SetKeys(&s.key.PublicKey, &other.PublicKey); !errors.Is(err, ErrBadKey) {
		t.Errorf("verify with P-384: %v", err)
	}
	if err := s.SetKeys(make([]*ecdsa.PublicKey, MaxKeys+1)...); err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Errorf("too many keys: %v", err)
	}
	text, _ := s.create(t, "ann", time.Hour)
	if _, err := s.Verify(text, noon); err != nil {
		t.Errorf("after refused keys: %v", err)
	}
}

// A rotated key goes on for its tokens until it is left out.
func TestRotation(t *testing.T) {
	s := newSite(t)
	old, _ := s.create(t, "ann", time.Hour)
	next := newKey(t)
	if err := s.SetKeys(&s.key.PublicKey, &next.PublicKey); err != nil {
		t.Fatal(err)
	}
	signer, err := NewSigner("uni-a", next)
	if err != nil {
		t.Fatal(err)
	}
	fresh, _, err := signer.Create("ann", time.Hour, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{old, fresh} {
		if _, err := s.Verify(text, noon); err != nil {
			t.Error(err)
		}
	}
	if err := s.SetKeys(&next.PublicKey); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(old, noon); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a token of the key left out: %v", err)
	}
	if _, err := s.Verify(fresh, noon); err != nil {
		t.Error(err)
	}
}

func BenchmarkVerify(b *testing.B) {
	s := newSite(b)
	text, _ := s.create(b, "ann", time.Hour)
	for b.Loop() {
		if _, err := s.Verify(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

// A token whose signature was seen to be right is refused all the same when it has ended or
// is revoked, and one that differs from it in a bit has to have a right one of its own.
func TestTokenThatWasSeen(t *testing.T) {
	s := newSite(t)
	text, made := s.create(t, "ann", time.Hour)
	for range 3 {
		if got, err := s.Verify(text, noon); err != nil || got != made {
			t.Fatalf("%+v, %v, want %+v", got, err, made)
		}
	}
	forged := text[:len(text)-8] + strings.Map(func(r rune) rune {
		if r == 'A' {
			return 'B'
		}
		return 'A'
	}, text[len(text)-8:])
	if _, err := s.Verify(forged, noon); !errors.Is(err, ErrBadSignature) {
		t.Errorf("another signature: %v", err)
	}
	if _, err := s.Verify(text, noon.Add(time.Hour)); !errors.Is(err, ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
	if err := s.revoked.Revoke(Revocation{made.ID, made.Expires}, noon); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(text, noon); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
	for i := range 2*mostSigned + 1 {
		s.keys.Load().remember([32]byte{byte(i), byte(i >> 8)}, signed{})
	}
	if n := len(s.keys.Load().seen); n > mostSigned {
		t.Errorf("%d tokens are remembered", n)
	}
}

// What a call costs whose token was seen before.
func BenchmarkVerifySeen(b *testing.B) {
	s := newSite(b)
	text, _ := s.create(b, "ann", time.Hour)
	for b.Loop() {
		if _, err := s.Verify(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

// What the first call with a token costs.
func BenchmarkVerifyUnseen(b *testing.B) {
	s := newSite(b)
	text, _ := s.create(b, "ann", time.Hour)
	for b.Loop() {
		s.keys.Load().seen = nil
		if _, err := s.Verify(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}
