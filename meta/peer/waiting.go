package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"kith/internal/job"
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

// waiting counts the streams that have not said hello, by address.
type waiting struct {
	mu    sync.Mutex
	of    map[string]int
	all   int
	lines pacer
}

// enter takes a place for a stream from an address; leave gives it back.
func (w *waiting) enter(host string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.all >= mostWaiting:
		return fmt.Errorf("%w: %d of them; try again in %v", ErrManyWaiting, w.all, HelloWait)
	case w.of[host] >= mostWaitingOne:
		return fmt.Errorf("%w: %d of them from %s; try again in %v", ErrManyWaiting, w.of[host], host, HelloWait)
	}
	w.all++
	w.of[host]++
	return nil
}

func (w *waiting) leave(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.of[host]--; w.of[host] == 0 {
		delete(w.of, host)
	}
}

// pass reports whether a line about a bound may go into the log.
func (w *waiting) pass(now time.Time) (held int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.pass(now, boundEvery)
}

// hostOf is the host of host:port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// firstFrame returns the first frame of a stream that another site dialled, within
// [HelloWait].
func (l *Links) firstFrame(ctx context.Context, w duplex, address string) (*kithv1.Frame, error) {
	host := hostOf(address)
	if err := l.waiting.enter(host); err != nil {
		l.tellBound(address, err)
		return nil, err
	}
	defer l.waiting.leave(host)
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
	if more, ok := l.waiting.pass(time.Now()); ok {
		l.log.Warn("peer stream closed before it said hello", "address", address, "error", err.Error(), "closed_since_last_line", more)
	}
}

// shown cuts a text from outside to what goes into a line of the log. The log
// escapes its control characters.
func shown(text string) string {
	if len(text) <= shownBytes {
		return text
	}
	return strings.ToValidUTF8(text[:shownBytes-len("…")], "") + "…"
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
