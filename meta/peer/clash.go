package peer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// ErrClash is the cause of closing a stream because another daemon connects under
// the same name.
var ErrClash = errors.New("two daemons connect under one site's name")

// Bounds of what is remembered of the daemons of a site.
const (
	mostDaemons = 8
	// clashShown is how long after its last sign a clash is told.
	clashShown = time.Minute
)

// clashes finds sites whose name two daemons use at a time. A site's daemon is
// told by its incarnation and what it drew at its start. A restart brings new ones,
// and the old ones never come back; two daemons take turns.
type clashes map[job.SiteID]*namesakes

// namesakes are the daemons that connected under one name, the latest last.
type namesakes struct {
	daemons []daemon
	seen    time.Time // the last sign of two at a time
	text    string
}

type daemon struct {
	incarnation uint64
	run         uint64 // 0 for a version that does not say
	generation  uint32
	address     string
}

func daemonOf(h *kithv1.Hello, address string) daemon {
	return daemon{h.GetIncarnation(), h.GetDaemon(), h.GetGeneration(), address}
}

func (d daemon) same(o daemon) bool { return d.incarnation == o.incarnation && d.run == o.run }

// note takes down which daemon connects, and reports whether that shows two at a
// time.
func (c *clashes) note(h *kithv1.Hello, address string, now time.Time) (text string, clash bool) {
	site := job.SiteID(h.GetSiteId())
	if *c == nil {
		*c = make(clashes)
	}
	n := (*c)[site]
	if n == nil {
		n = &namesakes{}
		(*c)[site] = n
	}
	d := daemonOf(h, address)
	at := slices.IndexFunc(n.daemons, func(o daemon) bool { return o.same(d) })
	last := len(n.daemons) - 1
	if at >= 0 && at < last {
		n.seen, n.text, clash = now, clashText(site, n.daemons[last], d), true
	}
	if at >= 0 {
		n.daemons = slices.Delete(n.daemons, at, at+1)
	}
	n.daemons = append(n.daemons, d)
	if len(n.daemons) > mostDaemons {
		n.daemons = slices.Delete(n.daemons, 0, 1)
	}
	return n.text, clash
}

// set notes what a peer says about two daemons of a site.
func (c *clashes) set(site job.SiteID, text string, now time.Time) {
	if *c == nil {
		*c = make(clashes)
	}
	n := (*c)[site]
	if n == nil {
		n = &namesakes{}
		(*c)[site] = n
	}
	n.seen, n.text = now, text
}

// now returns the clashes that were seen lately.
func (c clashes) now(now time.Time) map[job.SiteID]string {
	texts := make(map[job.SiteID]string)
	for site, n := range c {
		if n.text != "" && now.Sub(n.seen) < clashShown {
			texts[site] = n.text
		}
	}
	return texts
}

func clashText(site job.SiteID, a, b daemon) string {
	if b.generation < a.generation || (b.generation == a.generation && b.address < a.address) { // the same words in either order
		a, b = b, a
	}
	folders := "with copies of one data folder"
	if a.generation != b.generation {
		folders = fmt.Sprintf("with the data folders of generations %s and %s", job.GenerationText(a.generation), job.GenerationText(b.generation))
	}
	return fmt.Sprintf("two daemons connect as site %s, from %s and %s, %s: stop one of them, its jobs may run twice", site, a.address, b.address, folders)
}

// met notes which daemon a stream is with. While two take turns it returns the
// error that tells them, else nil.
func (t *troubles) met(h *kithv1.Hello, address string) error {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	site := job.SiteID(h.GetSiteId())
	text, clash := t.clashes.note(h, address, now)
	if clash {
		if more, ok := t.lines.pass("clash "+string(site), now); ok {
			t.log.Error("two daemons under one name", "peer_id", string(site), "meaning", text, "seen_since_last_line", more)
		}
	}
	if n := t.clashes[site]; n.text != "" && now.Sub(n.seen) < clashShown {
		return fmt.Errorf("%w: %s", ErrClash, text)
	}
	return nil
}

// toldOfClash notes that a peer says that this site's name is used twice.
func (t *troubles) toldOfClash(self, peer job.SiteID, text string) {
	now := time.Now()
	text = shown(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clashes.set(self, text, now)
	if more, ok := t.lines.pass("own clash", now); ok {
		t.log.Error("another daemon has this site's name", "peer_id", string(peer), "meaning", text, "seen_since_last_line", more)
	}
}
