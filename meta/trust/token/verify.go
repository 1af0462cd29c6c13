package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"kith/internal/job"
)

// MaxKeys is how many keys a site's tokens may be signed with at a time.
const MaxKeys = 8

// clockSlack is how far in the future a token's beginning may lie: a site's clock may
// have been set back a little since it made the token.
const clockSlack = time.Minute

// Refusals of a token. Each is wrapped with what is wrong.
var (
	// ErrMalformed: the text is no signed token as this site makes them.
	ErrMalformed = errors.New("this is not a token of this site; copy the whole text that kith token create printed")
	// ErrUnknownKey: no key of this site has its kid.
	ErrUnknownKey = errors.New("no key of this site made this token; ask the operator for a new one")
	// ErrBadSignature: it was changed, or somebody else signed it.
	ErrBadSignature = errors.New("the signature of the token is wrong; copy the whole text, or ask the operator for a new one")
	// ErrBadClaims: what it says is not what a token of this site says.
	ErrBadClaims = errors.New("the token does not say what a token of this site says; ask the operator for a new one")
	// ErrExpired: its end has come.
	ErrExpired = errors.New("the token has expired; ask the operator for a new one")
	// ErrRevoked: the operator took it back.
	ErrRevoked = errors.New("the token is revoked; ask the operator for a new one")
)

// Revocations knows which tokens were taken back. It is safe for concurrent use.
type Revocations interface {
	// Revoked reports whether the token with this jti was taken back.
	Revoked(id string) bool
}

// A Verifier checks the tokens of a site.
type Verifier struct {
	site    job.SiteID
	revoked Revocations
	keys    atomic.Pointer[keyring]
}

// NewVerifier returns a verifier of the tokens that a site signed with one of keys, see
// [Verifier.SetKeys].
func NewVerifier(site job.SiteID, revoked Revocations, keys ...*ecdsa.PublicKey) (*Verifier, error) {
	v := &Verifier{site: site, revoked: revoked}
	return v, v.SetKeys(keys...)
}

// SetKeys replaces the keys that tokens may be signed with, at most [MaxKeys]. A key that
// is rotated stays among them until the last token that it signed has ended, or is left
// out, which ends all its tokens at once. On an error the keys stay as they were.
func (v *Verifier) SetKeys(keys ...*ecdsa.PublicKey) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("%d token keys, at most %d; remove the oldest", len(keys), MaxKeys)
	}
	byID := make(map[string]*ecdsa.PublicKey, len(keys))
	for _, key := range keys {
		kid, err := KeyID(key)
		if err != nil {
			return err
		}
		byID[kid] = key
	}
	v.keys.Store(&keyring{byID: byID})
	return nil
}

// Verify checks a token and returns what it says. The error wraps one of the refusals
// above and can be shown to the caller: it has nothing of the token but its times and,
// quoted and cut, names.
func (v *Verifier) Verify(text string, now time.Time) (Token, error) {
	if err := checkShape(text); err != nil {
		return Token{}, err
	}
	keys := v.keys.Load()
	sum := sha256.Sum256([]byte(text))
	s, known := keys.signed(sum)
	if !known {
		var err error
		if s, err = keys.read(text); err != nil {
			return Token{}, err
		}
	}
	t, err := v.checkClaims(s.claims, now)
	if err != nil {
		return Token{}, err
	}
	if !known {
		keys.remember(sum, s)
	}
	t.Key = s.kid
	return t, nil
}

// read checks form and signature of a token.
func (k *keyring) read(text string) (s signed, err error) {
	// Only ES256 is taken. The algorithm that a token names never chooses the kind of
	// key: with HS256 somebody could sign by the bytes of our public key.
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return s, ErrMalformed
	}
	if len(parsed.Headers) != 1 {
		return s, fmt.Errorf("%d signatures, want one: %w", len(parsed.Headers), ErrMalformed)
	}
	header := parsed.Headers[0]
	if err := checkHeader(header); err != nil {
		return s, err
	}
	key := k.byID[header.KeyID]
	if key == nil {
		return s, fmt.Errorf("kid %.64q: %w", header.KeyID, ErrUnknownKey)
	}
	// Not Claims(&c): that tells neither a wrong signature from claims that do not parse.
	var c jwt.Claims
	if err := parsed.Claims(key, &c); errors.Is(err, jose.ErrCryptoFailure) {
		return s, ErrBadSignature
	} else if err != nil {
		return s, fmt.Errorf("its claims do not parse: %w", ErrBadClaims)
	}
	return signed{header.KeyID, c}, nil
}

// checkShape looks at the text before anything parses it: its length, and that it has
// the letters of base64url and dots alone. Parsers skip line breaks, so one token would
// have many texts.
func checkShape(text string) error {
	if len(text) > MaxLength {
		return fmt.Errorf("it has %d bytes, at most %d: %w", len(text), MaxLength, ErrMalformed)
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("character %d is none of a token: %w", i+1, ErrMalformed)
		}
	}
	return nil
}

// checkHeader wants the header that [Signer] writes and nothing else: keys, links to
// keys and extensions in a header are what attacks on verifiers are made of.
func checkHeader(h jose.Header) error {
	if h.ExtraHeaders[jose.HeaderType] != string(tokenType) {
		return fmt.Errorf("typ is not JWT: %w", ErrMalformed)
	}
	if h.JSONWebKey != nil || h.Nonce != "" || len(h.ExtraHeaders) != 1 {
		return fmt.Errorf("its header has more than alg, kid and typ: %w", ErrMalformed)
	}
	return nil
}

func (v *Verifier) checkClaims(c jwt.Claims, now time.Time) (Token, error) {
	bad := func(format string, args ...any) (Token, error) {
		return Token{}, fmt.Errorf(format+": %w", append(args, ErrBadClaims)...)
	}
	if c.Issuer != Issuer(v.site) {
		return bad("iss %.64q, want %q", c.Issuer, Issuer(v.site))
	}
	if len(c.Audience) != 1 || c.Audience[0] != string(v.site) {
		return bad("aud %.64q, want %q alone", c.Audience, v.site)
	}
	if err := CheckUser(c.Subject); err != nil {
		return bad("sub: %w", err)
	}
	if c.ID == "" || len(c.ID) > maxID {
		return bad("jti has %d bytes, want 1 to %d", len(c.ID), maxID)
	}
	if c.Expiry == nil {
		return bad("exp is missing")
	}
	if c.IssuedAt == nil {
		return bad("iat is missing")
	}
	issued, expires := c.IssuedAt.Time(), c.Expiry.Time()
	if lifetime := int64(*c.Expiry) - int64(*c.IssuedAt); lifetime <= 0 || lifetime > int64(MaxLifetime/time.Second) {
		return bad("it lives %d s, want 1 to %d", lifetime, int64(MaxLifetime/time.Second))
	}
	if issued.After(now.Add(clockSlack)) {
		return bad("iat %s lies in the future", when(issued))
	}
	if c.NotBefore != nil && c.NotBefore.Time().After(now.Add(clockSlack)) {
		return bad("nbf %s lies in the future", when(c.NotBefore.Time()))
	}
	if !now.Before(expires) {
		return Token{}, fmt.Errorf("it ended at %s: %w", when(expires), ErrExpired)
	}
	if v.revoked.Revoked(c.ID) {
		return Token{}, ErrRevoked
	}
	return Token{ID: c.ID, User: c.Subject, Issued: issued.UTC(), Expires: expires.UTC()}, nil
}

func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func thumbprint(key *ecdsa.PublicKey) (string, error) {
	jwk := jose.JSONWebKey{Key: key}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	return base64.RawURLEncoding.EncodeToString(sum), err
}
