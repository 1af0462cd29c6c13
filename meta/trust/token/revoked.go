package token

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// MaxRevoked is how many tokens a [List] holds.
const MaxRevoked = 10_000

// ErrListFull is returned when a list has no room for another revocation.
var ErrListFull = errors.New("the list of revoked tokens is full: rotate the token key, which ends all tokens, and hand out new ones")

// A Revocation is a token that was taken back, until its end.
type Revocation struct {
	// ID is the token's jti.
	ID string
	// Expires is when the token ends by itself.
	Expires time.Time
}

// A List holds the revoked tokens of a site in memory, at most [MaxRevoked] of them. Its
// owner keeps the [Revocation] on disk. The zero List is empty.
type List struct {
	mu    sync.RWMutex
	until map[string]time.Time
}

var _ Revocations = (*List)(nil)

// Revoke adds a token, which ends at expires; a token that has ended is not kept.
// Again is no error. What has ended by now makes room; without room the error is
// [ErrListFull].
func (l *List) Revoke(r Revocation, now time.Time) error {
	if r.ID == "" || len(r.ID) > maxID {
		return fmt.Errorf("token id %.64q: has %d bytes, want 1 to %d; kith token list shows ids", r.ID, len(r.ID), maxID)
	}
	// A token ends within its longest life, whoever says otherwise: so that nothing
	// stays in the list for good.
	if most := now.Add(MaxLifetime); r.Expires.After(most) {
		r.Expires = most
	}
	if !r.Expires.After(now) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, again := l.until[r.ID]; again {
		l.until[r.ID] = later(old, r.Expires)
		return nil
	}
	if len(l.until) >= MaxRevoked {
		l.prune(now)
	}
	if len(l.until) >= MaxRevoked {
		return ErrListFull
	}
	if l.until == nil {
		l.until = make(map[string]time.Time)
	}
	l.until[r.ID] = r.Expires
	return nil
}

// Revoked implements [Revocations].
func (l *List) Revoked(id string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, revoked := l.until[id]
	return revoked
}

// prune drops the tokens that have ended by now: they are refused for that. The mutex is
// held.
func (l *List) prune(now time.Time) {
	for id, expires := range l.until {
		if !expires.After(now) {
			delete(l.until, id)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
