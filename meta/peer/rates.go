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
const DealingsTogether = 20

// QueriesTogether is the part of a second whose questions may come together: an origin that
// is told to ask later places by loads meanwhile, and what comes together everybody else
// waits for.
const QueriesTogether = 2

// dealingsApart is how long what has to wait is gathered for at most: a peer that sends more
// than its rate has its messages taken a few at a time, and others are served in between.
const dealingsApart = 20 * time.Millisecond

// What a frame costs beyond the messages in it that are waited for, in dealings. So nothing
// that a peer sends is free, but for pieces of files that this site has asked for.
const (
	// refusedCost is for a message that is refused or dropped for its rate, or was not asked for.
	refusedCost = 4
	// bytesPerDealing is how many bytes cost one. A message that is waited for has paid for as many.
	bytesPerDealing = 2048
)

// StreamsAtOnce is how many streams of a site may begin together: two that dial each other
// at once, and a line that fails soon after it is back, are none that flood.
const StreamsAtOnce = 8

// streamPatience is how long a stream that begins too soon waits. Its site waits for twice
// as long for an answer to its hello.
const streamPatience = HelloWait / 2

// DefaultRates are far beyond what honest sites need: with 10 messages a job, a peer that
// starts 1,000 jobs a second of this site sends less.
func DefaultRates() Rates {
	return Rates{Queries: {1000, 1000 / QueriesTogether}, Dealings: {10_000, 10_000 / DealingsTogether}, Loads: {50, 100}, Files: {2000, 4000}, Comparisons: {50, 100}, Bundles: {1, 4}, Streams: {1, StreamsAtOnce}}
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
// to wait before, and for the rate of which class. Of what has to wait so much is taken
// together as comes within dealingsApart; comparisons are taken one at a time then.
func (l *limits) pace(messages []*kithv1.PeerMessage, now time.Time) (n int, wait time.Duration, of Class) {
	var first time.Duration // until the first that has to wait
	for i, p := range messages {
		c, counted := ClassOf(p)
		if !counted || c != Dealings && c != Comparisons {
			continue
		}
		r := l[c].ReserveN(now, 1)
		d := r.DelayFrom(now)
		if d > 0 && (c == Comparisons && i > 0 || first > 0 && d > first+dealingsApart) {
			r.CancelAt(now)
			return i, wait, of
		}
		if first == 0 {
			first = d
		}
		if d > wait {
			wait, of = d, c
		}
	}
	return len(messages), wait, of
}

// bill counts what of a frame costs its peer more than its messages.
type bill struct {
	paid    int // messages that were waited for
	refused int // see refusedCost
	asked   int // bytes of pieces that this site has asked for
}

// cost returns what a frame of so many bytes costs, in dealings. One without a message that
// is waited for costs at least one.
func (b bill) cost(size int) int {
	return max(refusedCost*b.refused+max(0, max(0, size-b.asked)/bytesPerDealing-b.paid), 1-b.paid)
}

// charge takes dealings, however many, and returns how long to wait for them.
func (l *limits) charge(n int, now time.Time) (wait time.Duration) {
	for most := l[Dealings].Burst(); n > 0; n -= most {
		wait = l[Dealings].ReserveN(now, min(n, most)).DelayFrom(now)
	}
	return wait
}

// Refused takes of a site what its message costs more that the engine has refused: what is
// refused here costs as much, see refusedCost.
func (l *Links) Refused(site job.SiteID) { l.limitsOf(site).charge(refusedCost-1, time.Now()) }

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

// overRate notes that a message of a peer is more than is taken of its class.
func (l *Links) overRate(s *session, c Class, b *bill) {
	b.refused++
	l.tellRate(s, c)
}

// tellRate tells that a peer sends more than is taken.
func (l *Links) tellRate(s *session, c Class) {
	l.tellRefusal(Refusal{What: WhatRate, Rule: c.String(), Site: s.site, Err: ErrRate})
}

// pace waits until the next messages of a frame may be taken, and returns how many.
func (l *Links) pace(s *session, messages []*kithv1.PeerMessage) (n int) {
	n, wait, of := s.limits.pace(messages, time.Now())
	l.hold(s, wait, of)
	return n
}

// hold waits, for the rate of a class. It keeps the stream up meanwhile: that nothing is
// read is this site's doing.
func (l *Links) hold(s *session, wait time.Duration, of Class) {
	if wait <= 0 {
		return
	}
	l.tellRate(s, of)
	for until := time.Now().Add(wait); wait > 0; wait = time.Until(until) {
		poke(s.heard)
		select {
		case <-time.After(min(wait, time.Second)):
		case <-s.ctx.Done():
			return
		}
	}
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
