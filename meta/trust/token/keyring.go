package token

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"sync"

	"github.com/go-jose/go-jose/v4/jwt"
)

// mostSigned is of how many tokens it is remembered that their signature is right. One of a
// site's own tokens comes with each call of its user, and checking it is most of what a small call costs.
const mostSigned = 1024

// keyring is the keys of a site's tokens, and which tokens they have signed: those that
// were seen of late, by their sum. What a token says is checked each time.
type keyring struct {
	byID map[string]*ecdsa.PublicKey

	mu   sync.RWMutex
	seen map[[sha256.Size]byte]signed
}

// signed is what a token says that a key of the site has signed, and the kid of that.
type signed struct {
	kid    string
	claims jwt.Claims
}

// signed returns what the token with a sum says, if it is remembered.
func (k *keyring) signed(sum [sha256.Size]byte) (signed, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	s, ok := k.seen[sum]
	return s, ok
}

// remember keeps a good token in mind. Where there are too many all are forgotten: they
// are checked anew when they come again.
func (k *keyring) remember(sum [sha256.Size]byte, s signed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= mostSigned {
		k.seen = make(map[[sha256.Size]byte]signed)
	}
	k.seen[sum] = s
}
