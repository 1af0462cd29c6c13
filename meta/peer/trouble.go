package peer

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"kith/internal/job"
	"kith/internal/loglines"
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
	refusal loglines.Pacer[struct{}] // of lines about refused sites
	comings comings
}

// failure is why a site that is dialled has no stream.
type failure struct {
	why   string
	since time.Time
	tries int
	told  bool
}

// failed notes that dialling a site came to nothing at each of its addresses, and logs each
// cause once.
func (t *troubles) failed(site job.SiteID, misses []miss, r remedies) {
	why, answered := explainAll(site, misses, r)
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failing[site]
	if f == nil || f.why != why {
		f = &failure{why: why, since: time.Now()}
		t.failing[site] = f
	}
	f.tries++
	if !f.told && (answered || f.tries >= patientTries) {
		f.told = true
		addresses := make([]string, len(misses))
		for i := range misses {
			addresses[i] = misses[i].address
		}
		t.log.Warn("peer not connected", "peer_id", string(site), "address", shown(strings.Join(addresses, " ")), "cause", why, "error", shown(misses[0].err.Error()))
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

// toldOfFolder notes that a peer refuses this site for its data folder. The peer's text
// is cut; what to do about it this site knows itself.
func (t *troubles) toldOfFolder(peer job.SiteID, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if more, ok := t.lines.pass("own folder "+string(peer), time.Now()); ok {
		t.log.Error("a peer refuses this site for its data folder", "peer_id", string(peer), "meaning", shown(text),
			"remedy", "start this site with the latest state of its data folder or with an empty one; or have it as it is: kith site forget at every other site",
			"seen_since_last_line", more)
	}
}

// connected notes that a stream to a site is up.
func (t *troubles) connected(site job.SiteID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, site)
}

// claimedIn returns the name that a first frame claims, if it is one.
func claimedIn(first *kithv1.Frame) job.SiteID {
	if m := first.GetMessages(); len(m) > 0 {
		if site, err := job.ParseSiteID(m[0].GetHello().GetSiteId()); err == nil {
			return site
		}
	}
	return ""
}

// refused logs that a site was refused, each cause at growing intervals and all
// together at most once a second: a site that is refused may invent causes.
func (t *troubles) refused(first *kithv1.Frame, address string, err error) {
	claimed := string(claimedIn(first))
	t.mu.Lock()
	defer t.mu.Unlock()
	now, why := time.Now(), shown(err.Error())
	more, ok := t.lines.pass(claimed+" "+why, now)
	if !ok {
		return
	}
	if others, ok := t.refusal.Pass(struct{}{}, now, refusedEvery); ok {
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
