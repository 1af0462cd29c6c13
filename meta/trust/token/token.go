package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"kith/internal/identity"
	"kith/internal/job"
)

// Bounds of a token.
const (
	MaxLength   = 4 << 10             // bytes of its text
	MaxLifetime = 30 * 24 * time.Hour // from its making to its end
	maxID       = 64                  // bytes of its jti
)

const tokenType jose.ContentType = "JWT"

// Errors of making a token.
var (
	// ErrBadUser is returned for a user name that a token cannot carry.
	ErrBadUser = fmt.Errorf("a user name is 1 to %d bytes of valid UTF-8 without control or other invisible characters, and not %q", identity.MaxLength, identity.Anonymous)
	// ErrBadLifetime is returned for a lifetime that a token cannot have.
	ErrBadLifetime = fmt.Errorf("a token lives at least 1 s and at most %s", MaxLifetime)
	// ErrBadKey is returned for a key that is not on the curve P-256.
	ErrBadKey = errors.New("a token key is an ECDSA key on the curve P-256")
)

// A Token is what a checked token says.
type Token struct {
	// ID is its jti, 1 to 64 bytes.
	ID string
	// User is whom it is for, see [CheckUser].
	User string
	// Issued and Expires are its iat and exp, in whole seconds.
	Issued, Expires time.Time
	// Key is the kid of the key that signed it.
	Key string
}

// CheckUser returns an error wrapping [ErrBadUser] if a token cannot carry the name.
func CheckUser(name string) error {
	bad := name == "" || len(name) > identity.MaxLength || !utf8.ValidString(name) || name == string(identity.Anonymous)
	for _, r := range name {
		bad = bad || !unicode.IsPrint(r)
	}
	if bad {
		return fmt.Errorf("user %.64q: %w", name, ErrBadUser)
	}
	return nil
}

// Issuer returns the iss of a site's tokens.
func Issuer(site job.SiteID) string { return "spiffe://" + string(site) }

// KeyID returns the kid of a key: its JWK thumbprint, 43 letters. The error wraps
// [ErrBadKey].
func KeyID(key *ecdsa.PublicKey) (string, error) {
	if key == nil || key.Curve != elliptic.P256() {
		return "", ErrBadKey
	}
	sum, err := thumbprint(key)
	if err != nil {
		return "", errors.Join(ErrBadKey, err)
	}
	return sum, nil
}

// A Signer makes the tokens of a site with one key.
type Signer struct {
	site   job.SiteID
	kid    string
	signer jose.Signer
}

// NewSigner returns the signer of a site. The error wraps [ErrBadKey].
func NewSigner(site job.SiteID, key *ecdsa.PrivateKey) (*Signer, error) {
	if key == nil {
		return nil, ErrBadKey
	}
	kid, err := KeyID(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}},
		(&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return nil, fmt.Errorf("signer of tokens: %w", err)
	}
	return &Signer{site: site, kid: kid, signer: signer}, nil
}

// Create makes a token for a user that ends after lifetime, a whole number of seconds
// (what is more is cut off). The text is a secret; whoever has it is the user. The error wraps
// [ErrBadUser] or [ErrBadLifetime] if an argument is wrong.
func (s *Signer) Create(user string, lifetime time.Duration, now time.Time) (text string, t Token, err error) {
	if err := CheckUser(user); err != nil {
		return "", Token{}, err
	}
	if lifetime = lifetime.Truncate(time.Second); lifetime < time.Second || lifetime > MaxLifetime {
		return "", Token{}, fmt.Errorf("lifetime %s: %w", lifetime, ErrBadLifetime)
	}
	now = now.UTC().Truncate(time.Second)
	t = Token{ID: rand.Text(), User: user, Issued: now, Expires: now.Add(lifetime), Key: s.kid}
	text, err = jwt.Signed(s.signer).Claims(jwt.Claims{
		Issuer:   Issuer(s.site),
		Subject:  user,
		Audience: jwt.Audience{string(s.site)},
		IssuedAt: jwt.NewNumericDate(t.Issued),
		Expiry:   jwt.NewNumericDate(t.Expires),
		ID:       t.ID,
	}).Serialize()
	if err != nil {
		return "", Token{}, fmt.Errorf("sign a token for %.64q: %w", user, err)
	}
	return text, t, nil
}
