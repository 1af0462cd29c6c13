package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"kith/cluster"
	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// Class is a kind of messages that a peer may send at a rate of its own.
type Class uint8

// The classes. What is beyond the rate is answered, dropped or waited for, as it can be.
const (
	// Queries about starts are told to ask later.
	Queries Class = iota
	// Dealings are about copies, claims and results. None is ever dropped: the stream is
	// not read for a while, and its sender waits.
	Dealings
	// Loads are dropped: the next one replaces them.
	Loads
	// Files are requests for pieces, which are answered as busy.
	Files
	// Comparisons are of what two sites hold of each other: summaries, requests for lists
	// and lists; and claims for tasks. Each makes the site look at all that it has, so few
	// are taken. They are waited for like dealings.
	Comparisons
	// Bundles are dropped: reading one costs signatures, and the sender repeats what is
	// not confirmed.
	Bundles
	// Streams that begin: each makes both sides tell each other all that is open between
	// them. They wait, see [Links.paceStream].
	Streams
	classes
)

// Rate is how many messages of a class are taken.
type Rate struct {
	// PerSecond is how many, in the long run; AtOnce how many may come together.
	PerSecond, AtOnce int
}

// Rates has a rate for each class.
type Rates [classes]Rate

// DealingsTogether is the part of a second whose dealings may come together. They lose
// nothing by waiting, and what comes together everybody else waits for.
const DealingsTogether = 5

// StreamsAtOnce is how many streams of a site may begin together: two that dial each other
// at once, and a line that fails soon after it is back, are none that flood.
const StreamsAtOnce = 8

// streamPatience is how long a stream that begins too soon waits. Its site waits for twice
// as long for an answer to its hello.
const streamPatience = HelloWait / 2

// DefaultRates are far beyond what honest sites need: with 10 messages a job, a peer that
// starts 1,000 jobs a second of this site sends less.
func DefaultRates() Rates {
	return Rates{Queries: {1000, 2000}, Dealings: {10_000, 10_000 / DealingsTogether}, Loads: {50, 100}, Files: {2000, 4000}, Comparisons: {50, 100}, Bundles: {1, 4}, Streams: {1, StreamsAtOnce}}
}

// String returns the name of the class, as rule of a refusal.
func (c Class) String() string {
	return [...]string{"queries", "protocol", "loads", "files", "comparisons", "bundles", "streams"}[c]
}

// ErrRate is why something of a peer is not taken, or not yet.
var ErrRate = errors.New("more than this site takes of a peer in a second")

// limits are the token buckets of a peer. They outlast its streams: connecting anew fills
// none of them.
type limits [classes]*rate.Limiter

func newLimits(r Rates) *limits {
	var l limits
	for c := range l {
		l[c] = rate.NewLimiter(rate.Limit(r[c].PerSecond), max(1, r[c].AtOnce))
	}
	return &l
}

// ClassOf returns the class of a message, false for one that is not counted: what this site
// has asked for.
func ClassOf(p *kithv1.PeerMessage) (c Class, counted bool) {
	switch p.GetMessage().(type) {
	case *kithv1.PeerMessage_StartQuery:
		return Queries, true
	case *kithv1.PeerMessage_LoadDigest:
		return Loads, true
	case *kithv1.PeerMessage_FileRequest:
		return Files, true
	case *kithv1.PeerMessage_FileReply:
		return 0, false
	case *kithv1.PeerMessage_CopySummary, *kithv1.PeerMessage_DigestRequest, *kithv1.PeerMessage_CopyDigest, *kithv1.PeerMessage_TaskClaim:
		return Comparisons, true
	case *kithv1.PeerMessage_SiteBundle:
		return Bundles, true
	}
	return Dealings, true
}

// allows reports whether a message of a class that is not waited for may pass.
func (l *limits) allows(c Class, now time.Time) bool { return l[c].AllowN(now, 1) }

// pace returns how many messages to take next, at least one if there are any, how long
// to wait before, and for the rate of which class. What has to wait is taken together,
// but for comparisons, which are taken one at a time then.
func (l *limits) pace(messages []*kithv1.PeerMessage, now time.Time) (n int, wait time.Duration, of Class) {
	for i, p := range messages {
		c, counted := ClassOf(p)
		if !counted || c != Dealings && c != Comparisons {
			continue
		}
		r := l[c].ReserveN(now, 1)
		d := r.DelayFrom(now)
		if c == Comparisons && d > 0 && i > 0 {
			r.CancelAt(now)
			return i, wait, of
		}
		if d > wait {
			wait, of = d, c
		}
	}
	return len(messages), wait, of
}

// limitsOf returns the buckets of a site.
func (l *Links) limitsOf(site job.SiteID) *limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.limits[site]; known != nil {
		return known
	}
	fresh := newLimits(l.cfg.Rates)
	if len(l.limits) < cluster.MaxSites {
		l.limits[site] = fresh
	}
	return fresh
}

// overRate tells that a peer sends more than is taken.
func (l *Links) overRate(s *session, c Class) {
	l.tellRefusal(Refusal{What: WhatRate, Rule: c.String(), Site: s.site, Err: ErrRate})
}

// pace waits until the next messages of a frame may be taken, and returns how many. It
// keeps the stream up meanwhile: that nothing is read is this site's doing.
func (l *Links) pace(s *session, messages []*kithv1.PeerMessage) (n int) {
	n, wait, of := s.limits.pace(messages, time.Now())
	if wait <= 0 {
		return n
	}
	l.overRate(s, of)
	for until := time.Now().Add(wait); wait > 0; wait = time.Until(until) {
		poke(s.heard)
		select {
		case <-time.After(min(wait, time.Second)):
		case <-s.ctx.Done():
			return n
		}
	}
	return n
}

// paceStream waits until a stream of a site that has said hello may begin. One that would
// wait for longer than streamPatience is refused, before anything was done for it.
func (l *Links) paceStream(ctx context.Context, site job.SiteID) error {
	now := time.Now()
	r := l.limitsOf(site)[Streams].ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	l.tellRefusal(Refusal{What: WhatRate, Rule: Streams.String(), Site: site, Err: ErrRate})
	if wait > streamPatience {
		r.CancelAt(now)
		return fmt.Errorf("site %s: streams: %w; try again in %v", site, ErrRate, streamPatience)
	}
	if !pause.For(ctx, wait) {
		return context.Cause(ctx)
	}
	return nil
}
