package invite

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

// Bounds of an invitation.
const (
	MaxText      = 200              // characters of its text
	MaxAddresses = 4                // of the inviter, in the text
	MinLifetime  = time.Minute      // from its making to its end
	Lifetime     = 30 * time.Minute // if nothing else is said
	MaxLifetime  = 24 * time.Hour
	maxInput     = 1024 // characters of what may be an invitation, with blanks
)

// prefix begins each text; its number is the version of the format.
const (
	prefix  = "kith1"
	anyKith = "kith"
)

// Errors of reading and writing invitations.
var (
	// ErrNotInvitation is returned for a text that does not begin like an invitation.
	ErrNotInvitation = errors.New("not an invitation: its text begins with " + prefix + "-; copy the whole text that kith site invite printed")
	// ErrOtherVersion is returned for an invitation of another version of the format.
	ErrOtherVersion = errors.New("this kith reads invitations that begin with " + prefix + "-; use the kith version of the site that invites")
	// ErrMistyped is returned when the text is not as it was printed.
	ErrMistyped = errors.New("checksum does not match: a character is mistyped or missing; copy the whole text")
	// ErrBadField is returned when a part of an invitation breaks a rule.
	ErrBadField = errors.New("invitation is not well formed")
	// ErrTooLong is returned when the addresses make the text longer than MaxText.
	ErrTooLong = fmt.Errorf("the text of the invitation would be longer than %d characters; name fewer or shorter addresses with --address", MaxText)
)

// A Pin is the SHA-256 of a CA's SubjectPublicKeyInfo.
type Pin [sha256.Size]byte

// PinOf returns the pin of a CA.
func PinOf(ca *x509.Certificate) Pin { return trust.KeyOf(ca) }

// A Secret is what an invitation is worth: 256 random bits. It does not show in what is
// printed, logged or written as JSON.
type Secret [32]byte

// Format implements [fmt.Formatter] for all verbs.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(secret)") }

// MarshalText implements [encoding.TextMarshaler].
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// An Invitation is what one operator hands to another. Its secret makes it one: nothing
// of it may be logged but its [ID], its site and its end.
type Invitation struct {
	// Site invites.
	Site job.SiteID
	// Addresses are 1 to MaxAddresses of its kithd, host:port, the host in lower case.
	Addresses []string
	// CA is the pin of the CA that signed the site's leaf.
	CA Pin
	// Secret is known to who has the text, and nobody keeps it.
	Secret Secret
	// Expires is its end, in whole seconds.
	Expires time.Time
}

// New makes an invitation that ends after lifetime. The error names the argument that is
// wrong; it wraps [ErrTooLong] if the addresses do not fit.
func New(site job.SiteID, ca Pin, addresses []string, lifetime time.Duration, now time.Time) (Invitation, error) {
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return Invitation{}, fmt.Errorf("lifetime %s: an invitation lives %s to %s; change --expires", lifetime, MinLifetime, MaxLifetime)
	}
	i := Invitation{Site: site, CA: ca, Expires: now.Add(lifetime).UTC().Truncate(time.Second)}
	_, _ = rand.Read(i.Secret[:]) // never fails
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, strings.ToLower(a))
	}
	if _, err := i.Text(); err != nil {
		return Invitation{}, err
	}
	return i, nil
}

// letters are those of Crockford's base32: no i, l, o and u.
var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the prefix, too. A CRC finds each error within 32 bits in a row for
// certain, so each mistyped letter and each swapped pair.
func checksum(body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(prefix), castagnoli), castagnoli, body)
}

// Text returns the invitation as one line of at most [MaxText] characters; [Parse]
// reads it back. The error wraps [ErrTooLong], or names what breaks a rule.
func (i Invitation) Text() (string, error) {
	body := append(append([]byte(nil), i.CA[:]...), i.Secret[:]...)
	seconds := i.Expires.Unix()
	if seconds <= 0 || seconds > 1<<32-1 || i.Expires.Nanosecond() != 0 {
		return "", fmt.Errorf("end %s: not a whole second between 1970 and 2106: %w", i.Expires, ErrBadField)
	}
	body = binary.BigEndian.AppendUint32(body, uint32(seconds))
	if _, err := job.ParseSiteID(string(i.Site)); err != nil {
		return "", fmt.Errorf("%w: %w", err, ErrBadField)
	}
	body = appendName(body, string(i.Site))
	if n := len(i.Addresses); n < 1 || n > MaxAddresses {
		return "", fmt.Errorf("%d addresses, want 1 to %d; name where this site can be dialled with --address, or let the other site invite: %w", n, MaxAddresses, ErrBadField)
	}
	body = append(body, byte(len(i.Addresses)))
	for _, a := range i.Addresses {
		var err error
		if body, err = appendAddress(body, a); err != nil {
			return "", err
		}
	}
	body = binary.BigEndian.AppendUint32(body, checksum(body))
	text := prefix + "-" + letters.EncodeToString(body)
	if len(text) > MaxText {
		return "", fmt.Errorf("%d characters: %w", len(text), ErrTooLong)
	}
	return text, nil
}

// Parse reads the text of an invitation. Capitals, blanks, line breaks and hyphens
// between its letters do not matter, and i, l and o are read as 1, 1 and 0. The error
// wraps one of those above, and does not show the text. An invitation that has expired is read, too.
func Parse(text string) (Invitation, error) {
	if len(text) > maxInput {
		return Invitation{}, fmt.Errorf("it has %d characters, at most %d: %w", len(text), MaxText, ErrNotInvitation)
	}
	plain := strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n-", r) {
			return -1
		}
		return r
	}, text))
	coded, ok := strings.CutPrefix(plain, prefix)
	switch {
	case ok:
	case strings.HasPrefix(plain, anyKith) && len(plain) > len(anyKith) && plain[len(anyKith)] >= '0' && plain[len(anyKith)] <= '9':
		return Invitation{}, fmt.Errorf("it begins with %s: %w", plain[:len(prefix)], ErrOtherVersion)
	default:
		return Invitation{}, ErrNotInvitation
	}
	coded = strings.NewReplacer("i", "1", "l", "1", "o", "0").Replace(coded)
	body, err := letters.DecodeString(coded)
	// The last letter has bits to spare, which are zero.
	if err != nil || len(body) < 4 || letters.EncodeToString(body) != coded {
		return Invitation{}, ErrMistyped
	}
	body, sum := body[:len(body)-4], binary.BigEndian.Uint32(body[len(body)-4:])
	if checksum(body) != sum {
		return Invitation{}, ErrMistyped
	}
	i, err := read(body)
	if err != nil {
		return Invitation{}, err
	}
	// One invitation has one text: what no kith writes is not read.
	if again, err := i.Text(); err != nil {
		return Invitation{}, err
	} else if again != prefix+"-"+coded {
		return Invitation{}, fmt.Errorf("it has another form than kith writes: %w", ErrBadField)
	}
	return i, nil
}

func read(body []byte) (Invitation, error) {
	var i Invitation
	short := fmt.Errorf("it ends too early: %w", ErrBadField)
	if len(body) < len(i.CA)+len(i.Secret)+4 {
		return Invitation{}, short
	}
	body = body[copy(i.CA[:], body):]
	body = body[copy(i.Secret[:], body):]
	i.Expires = time.Unix(int64(binary.BigEndian.Uint32(body)), 0).UTC()
	name, body, ok := cutName(body[4:])
	if !ok || len(body) == 0 {
		return Invitation{}, short
	}
	i.Site = job.SiteID(name)
	count, body := body[0], body[1:]
	if count > MaxAddresses {
		return Invitation{}, fmt.Errorf("%d addresses, at most %d: %w", count, MaxAddresses, ErrBadField)
	}
	for range count {
		var a string
		if a, body, ok = cutAddress(body); !ok {
			return Invitation{}, short
		}
		i.Addresses = append(i.Addresses, a)
	}
	if len(body) > 0 {
		return Invitation{}, fmt.Errorf("%d bytes follow its end: %w", len(body), ErrBadField)
	}
	return i, nil
}
