package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Trouble is what stands between this site and another one, for people.
type Trouble struct {
	// Why says why there is no stream, Since since when that is so. Empty while
	// there is one, and while nothing is known.
	Why   string
	Since time.Time
	// Clash says that two daemons connect under the site's name, and from where.
	// Under this site's own name, it is what a peer says. Empty if none was seen
	// lately.
	Clash string
	// Load says why the load that the site tells is not believed. Empty if it is.
	Load string
}

// patientTries is how many tries may fail before the log says that a site cannot
// be reached: sites that start together do not find each other at once.
const patientTries = 3

// troubles is what is known of troubles with all sites.
type troubles struct {
	log *slog.Logger

	mu      sync.Mutex
	failing map[job.SiteID]*failure
	clashes clashes
	loads   map[job.SiteID]string // why those are not believed
	lives   lives
	lines   sieve
	refusal pacer // of lines about refused sites
}

// failure is why a site that is dialled has no stream.
type failure struct {
	why   string
	since time.Time
	tries int
	told  bool
}

// failed notes that dialling came to nothing, and logs each cause once.
func (t *troubles) failed(d *dialer, err error) {
	why, answered := explain(d.site, d.address, err)
	why = shown(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failing[d.site]
	if f == nil || f.why != why {
		f = &failure{why: why, since: time.Now()}
		t.failing[d.site] = f
	}
	f.tries++
	if !f.told && (answered || f.tries >= patientTries) {
		f.told = true
		t.log.Warn("peer not connected", "peer_id", string(d.site), "address", d.address, "cause", why, "error", shown(err.Error()))
	}
}

// meet is [lives.meet].
func (t *troubles) meet(h *kithv1.Hello) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.lives.meet(h)
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrFolder) {
		if more, ok := t.lines.pass(err.Error(), time.Now()); ok {
			t.log.Error("peer is not what it was", "peer_id", h.GetSiteId(), "meaning", err.Error(), "seen_since_last_line", more)
		}
	}
	return err
}

// toldOfFolder notes that a peer refuses this site for its data folder.
func (t *troubles) toldOfFolder(peer job.SiteID, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if more, ok := t.lines.pass("own folder "+string(peer), time.Now()); ok {
		t.log.Error("a peer refuses this site for its data folder", "peer_id", string(peer), "meaning", text, "seen_since_last_line", more)
	}
}

// connected notes that a stream to a site is up.
func (t *troubles) connected(site job.SiteID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, site)
}

// refused logs that a site was refused, each cause at growing intervals and all
// together at most once a second: whoever is refused may invent causes.
func (t *troubles) refused(first *kithv1.Frame, address string, err error) {
	claimed := ""
	if m := first.GetMessages(); len(m) > 0 {
		if site, err := job.ParseSiteID(m[0].GetHello().GetSiteId()); err == nil {
			claimed = string(site)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, why := time.Now(), shown(err.Error())
	more, ok := t.lines.pass(claimed+" "+why, now)
	if !ok {
		return
	}
	if others, ok := t.refusal.pass(now, refusedEvery); ok {
		t.log.Warn("peer refused", "peer_id", claimed, "address", address, "error", why, "refused_since_last_line", more+others)
	}
}

// Trouble returns the sites with which something is wrong.
func (l *Links) Trouble() map[job.SiteID]Trouble {
	t := &l.troubles
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[job.SiteID]Trouble)
	for site, f := range t.failing {
		all[site] = Trouble{Why: f.why, Since: f.since}
	}
	for site, text := range t.loads {
		tr := all[site]
		tr.Load = text
		all[site] = tr
	}
	for site, text := range t.clashes.now(time.Now()) {
		tr := all[site]
		tr.Clash = text
		all[site] = tr
	}
	return all
}

// explain says in a sentence why dialling a site failed and what to look at, and
// whether a program answered there.
func explain(site job.SiteID, address string, err error) (why string, answered bool) {
	text := err.Error()
	if s := (interface{ GRPCStatus() *status.Status })(nil); errors.As(err, &s) {
		text = s.GRPCStatus().Message()
	}
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	code := status.Code(err)
	switch {
	case errors.Is(err, ErrOtherSite), has(ErrOtherSite.Error()):
		if inner := errors.Unwrap(err); inner != nil && errors.Is(err, ErrOtherSite) {
			text = inner.Error()
		}
		return fmt.Sprintf("another site answers at %s: %s; correct peers.site or peers.address here",
			address, strings.TrimSuffix(text, ": "+ErrOtherSite.Error())), true
	case code == codes.PermissionDenied:
		return fmt.Sprintf("site %s does not expect this site: its operator must add it to [[peers]] there", site), true
	case code == codes.FailedPrecondition, code == codes.InvalidArgument, code == codes.AlreadyExists:
		return fmt.Sprintf("refused at %s: %s", address, text), true
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrMessage), errors.Is(err, job.ErrBadSiteID):
		return fmt.Sprintf("what answers at %s cannot be talked to: %v", address, err), true
	case code == codes.Unimplemented, has("unexpected HTTP status", "content-type", "server preface", "malformed HTTP", "frame too large"):
		return fmt.Sprintf("what answers at %s is no kithd: correct peers.address here", address), true
	case has("lookup ", "no such host", "missing port", "too many colons", "invalid port", "unknown port"):
		return fmt.Sprintf("address %s cannot be resolved: correct peers.address here, or look at the name service", address), false
	case has("connection refused"):
		return fmt.Sprintf("nothing listens at %s: kithd is down there, or peers.address here is wrong", address), false
	case code == codes.Canceled, errors.Is(err, context.Canceled), has("i/o timeout", "deadline exceeded"):
		return fmt.Sprintf("nothing answers at %s: the machine is down or a firewall drops what is sent", address), false
	case has("no route to host", "network is unreachable"):
		return fmt.Sprintf("there is no route to %s", address), false
	}
	return fmt.Sprintf("%s cannot be reached", address), false
}

// Bounds of a sieve.
const (
	firstSilence = time.Minute
	lastSilence  = time.Hour
	mostLines    = 1024
)

// sieve lets a line into the log when it is new, and then at growing intervals.
type sieve map[string]*repeat

type repeat struct {
	next    time.Time
	silence time.Duration
	held    int
}

// pass reports whether a line may pass, and how many like it were held back since
// the last one.
func (s *sieve) pass(line string, now time.Time) (held int, ok bool) {
	if *s == nil || len(*s) >= mostLines {
		*s = make(sieve)
	}
	r := (*s)[line]
	if r == nil {
		(*s)[line] = &repeat{next: now.Add(firstSilence), silence: firstSilence}
		return 0, true
	}
	if now.Before(r.next) {
		r.held++
		return 0, false
	}
	held, r.held = r.held, 0
	r.silence = min(2*r.silence, lastSilence)
	r.next = now.Add(r.silence)
	return held, true
}
