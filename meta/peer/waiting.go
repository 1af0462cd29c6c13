package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/internal/places"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of streams that were opened and did not say who they are. HelloWait is
// for both sides: a site that dials gives the other as long to answer.
const (
	HelloWait      = 10 * time.Second
	mostWaiting    = 256
	mostWaitingOne = 32 // of one address
	// boundEvery is how often meeting a bound is logged.
	boundEvery = time.Minute
)

// Errors of streams without a hello.
var (
	// ErrNoHello is returned when a stream does not begin with a hello in time.
	ErrNoHello = errors.New("no hello came in time")
	// ErrManyWaiting is returned when too many streams wait for their hello.
	ErrManyWaiting = errors.New("too many streams that have not said hello")
)

// enter takes a place for a stream that has not said hello.
func (l *Links) enter(host string) error {
	switch l.waiting.Enter(host) {
	case places.InAll:
		return fmt.Errorf("%w: %d of them; try again in %v", ErrManyWaiting, mostWaiting, HelloWait)
	case places.OfOne:
		return fmt.Errorf("%w: %d of them from %s; try again in %v", ErrManyWaiting, mostWaitingOne, host, HelloWait)
	}
	return nil
}

// firstFrame returns the first frame of a stream that another site dialled, within
// [HelloWait].
func (l *Links) firstFrame(ctx context.Context, w duplex, address string) (*kithv1.Frame, error) {
	host := places.Sender(address)
	if err := l.enter(host); err != nil {
		l.tellBound(address, err)
		return nil, err
	}
	defer l.waiting.Leave(host)
	type received struct {
		frame *kithv1.Frame
		err   error
	}
	// Receiving ends with the stream, which ends when its server returns.
	first := make(chan received, 1)
	go func() {
		f, err := w.recv()
		first <- received{f, err}
	}()
	late := time.NewTimer(HelloWait)
	defer late.Stop()
	select {
	case r := <-first:
		return r.frame, r.err
	case <-late.C:
		l.tellBound(address, ErrNoHello)
		return nil, fmt.Errorf("%w: %v", ErrNoHello, HelloWait)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Links) tellBound(address string, err error) {
	l.tellRefusal(Refusal{What: WhatStream, Address: address, Err: err})
	if more, ok := l.unspoken.Pass(struct{}{}, time.Now(), boundEvery); ok {
		l.log.Warn("peer stream closed before it said hello", "address", address, "error", err.Error(), "closed_since_last_line", more)
	}
}

// shown cuts a text from outside to what goes into a line of the log. The log
// escapes its control characters.
func shown(text string) string {
	return job.ClipText(text, shownBytes)
}

// impossible notes that a site tells a load that no site can have. It is told in the
// log at growing intervals, and until the site tells a better one.
func (t *troubles) impossible(site job.SiteID, err error) {
	why := shown(err.Error())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads[site] = why
	if more, ok := t.lines.pass("load "+string(site), time.Now()); ok {
		t.log.Warn("load not believed", "peer_id", string(site), "error", why, "seen_since_last_line", more)
	}
}

// believed notes that a site tells a load that is possible.
func (t *troubles) believed(site job.SiteID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.loads, site)
}
