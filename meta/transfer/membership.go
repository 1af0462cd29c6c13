package transfer

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kith/internal/job"
	"kith/store/blobstore"
)

// denyAfter is how old a kept answer may be that a request is denied on: an
// attempt's files grow once, when it ends, and the origin asks at once.
const denyAfter = time.Second

// memberships keeps which chunks a peer may read of an attempt. Answers are
// kept for a while, because a fetch asks thousands of times, and refusals are
// not kept.
type memberships struct {
	ask     func(context.Context, job.SiteID, job.AttemptID) (Set, error)
	keepFor time.Duration

	mu      sync.Mutex
	entries *lru[memberKey, *membership]
}

// A memberKey names an answer.
type memberKey struct {
	peer    job.SiteID
	attempt job.AttemptID
}

// A membership is an answer, on its way until known is closed.
type membership struct {
	key   memberKey
	asked time.Time
	known chan struct{}
	sums  []blobstore.Sum // sorted
	err   error
}

// newMemberships returns a cache of up to most answers of ask.
func newMemberships(ask func(context.Context, job.SiteID, job.AttemptID) (Set, error), most int, keepFor time.Duration) *memberships {
	return &memberships{ask: ask, keepFor: keepFor, entries: newLRU[memberKey, *membership](most, nil)}
}

// has reports whether peer may read a chunk of attempt.
func (c *memberships) has(ctx context.Context, peer job.SiteID, attempt job.AttemptID, sum blobstore.Sum) (bool, error) {
	key := memberKey{peer, attempt}
	maxAge := c.keepFor
	for {
		m, err := c.get(ctx, key, maxAge)
		if err != nil {
			return false, err
		}
		if m.contains(sum) {
			return true, nil
		}
		if time.Since(m.asked) <= denyAfter || maxAge == denyAfter {
			return false, nil
		}
		maxAge = min(denyAfter, c.keepFor)
	}
}

// contains reports whether a chunk is among those of the answer.
func (m *membership) contains(sum blobstore.Sum) bool {
	_, ok := slices.BinarySearchFunc(m.sums, sum, compareSums)
	return ok
}

// compareSums orders chunks by name.
func compareSums(a, b blobstore.Sum) int { return bytes.Compare(a[:], b[:]) }

// get returns an answer that is no older than maxAge, a kept one or a new one.
// Callers that want the same one share it.
func (c *memberships) get(ctx context.Context, key memberKey, maxAge time.Duration) (*membership, error) {
	for {
		m, mine := c.find(key, maxAge)
		if mine {
			c.fill(ctx, m)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-m.known:
		}
		cancelled := errors.Is(m.err, context.Canceled) || errors.Is(m.err, context.DeadlineExceeded)
		if cancelled && !mine {
			continue // The one who asked went away; that says nothing.
		}
		return m, m.err
	}
}

// find returns the answer kept for key; mine says that there is none young
// enough, and the caller has to fill this one.
func (c *memberships) find(key memberKey, maxAge time.Duration) (m *membership, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.entries.get(key); ok {
		if time.Since(m.asked) <= maxAge {
			return m, false
		}
		c.entries.remove(key)
	}
	m = &membership{key: key, asked: time.Now(), known: make(chan struct{})}
	c.entries.put(key, m)
	return m, true
}

// fill asks for an answer and makes it known; a refusal is not kept.
func (c *memberships) fill(ctx context.Context, m *membership) {
	set, err := c.ask(ctx, m.key.peer, m.key.attempt)
	if err == nil {
		m.sums = set.Sums()
		slices.SortFunc(m.sums, compareSums)
		m.sums = slices.Clip(slices.Compact(m.sums))
	}
	m.err = err
	close(m.known)
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.entries.get(m.key); ok && kept == m {
		c.entries.remove(m.key)
	}
}

// forget drops the answers about the attempts that are meant.
func (c *memberships) forget(meant func(job.AttemptID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.entries.entries {
		if meant(key.attempt) {
			c.entries.remove(key)
		}
	}
}
