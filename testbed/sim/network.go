package sim

import (
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// network carries messages. Between every two sites there is at most one
// stream; each side has its own idea of whether it is up.
type network struct {
	w   *World
	cfg NetworkConfig
	// pairs are by the places of both sites among the names, nil for those that are apart, for
	// which none stands.
	pairs []*pair
	none  pair
	// instant says that messages take no time and all arrive.
	instant bool
	// carried and dropped count messages, kinds those that were sent.
	carried, dropped int64
	kinds            map[string]int64
	// spare are messages that have arrived, to be used again.
	spare []*arriving
}

// pair is two sites and the stream between them. Index 0 is the site of the
// lower name.
type pair struct {
	ends [2]*Site
	// epoch counts streams: a message of an earlier one is never delivered.
	epoch int
	// up says that the stream exists, known that an end believes so.
	up    bool
	known [2]bool
	// since is when it came up or went down.
	since job.Time
	// life is the daemon of an end that it was made with.
	life [2]int
	// lost counts messages that were lost while it was up, of all streams.
	lost int
	// cut says that nothing gets through from an end to the other.
	cut [2]bool
	// last is when the latest message to an end arrives: a stream keeps order.
	last [2]job.Time
	// way is how messages of an end travel.
	way [2]*LinkConfig
}

func (n *network) init(w *World) {
	n.kinds = make(map[string]int64)
	n.w, n.cfg = w, w.cfg.Network
	if n.cfg.Detect <= 0 {
		n.cfg.Detect = 15 * time.Second
	}
	if n.cfg.Reconnect <= 0 {
		n.cfg.Reconnect = time.Second
	}
	n.instant = true
	n.pairs = make([]*pair, len(w.sites)*len(w.sites))
	for i, a := range w.sites {
		for k, b := range w.sites[i+1:] {
			if n.apart(a, b) {
				continue
			}
			p := &pair{ends: [2]*Site{a, b}, way: [2]*LinkConfig{n.way(a, b), n.way(b, a)}}
			n.instant = n.instant && p.way[0].instant() && p.way[1].instant()
			n.pairs[i*len(w.sites)+i+1+k] = p
		}
	}
}

func (n *network) way(from, to *Site) *LinkConfig {
	if c, ok := n.cfg.Links[Way{from.cfg.ID, to.cfg.ID}]; ok {
		return &c
	}
	return &n.cfg.LinkConfig
}

func (n *network) apart(a, b *Site) bool {
	return n.cfg.Apart != nil && n.cfg.Apart(a.cfg.ID, b.cfg.ID)
}

// pair returns the pair of two sites, and which end the first of them is. That of sites that
// are apart never is up, and is not to be changed.
func (n *network) pair(a, b *Site) (p *pair, from int) {
	first, second := a, b
	if b.index < a.index {
		first, second, from = b, a, 1
	}
	if p = n.pairs[first.index*len(n.w.sites)+second.index]; p == nil {
		p = &n.none
	}
	return p, from
}

// each calls f for every pair in the order of names.
func (n *network) each(f func(*pair)) {
	for _, p := range n.pairs {
		if p != nil {
			f(p)
		}
	}
}

// feed gives the daemon of an end that the stream was made with an event.
func (p *pair) feed(i int, ev meta.Event) {
	p.ends[i].in(p.life[i], func(s *Site) { s.feed(ev) })
}

// outlived reports whether another daemon than those that made the stream runs at an end.
func (p *pair) outlived() bool {
	return p.life[0] != p.ends[0].life || p.life[1] != p.ends[1].life
}

func (n *network) connectAll() { n.each(n.connect) }

// connect brings a stream up if both sites can be reached.
func (n *network) connect(p *pair) {
	if p.up && !p.outlived() || p.cut[0] || p.cut[1] || p.ends[0].bars(p.ends[1]) || p.ends[1].bars(p.ends[0]) || !p.ends[0].Up() || !p.ends[1].Up() || p.ends[0].frozen || p.ends[1].frozen {
		return
	}
	p.epoch++
	p.up, p.since = true, n.w.now
	n.w.trace("%s and %s: stream %d is up", p.ends[0].cfg.ID, p.ends[1].cfg.ID, p.epoch)
	n.w.log.stream(p)
	for i := range p.ends {
		if p.known[i] { // the old stream had not been missed yet
			p.known[i] = false
			p.feed(i, meta.PeerDown{Site: p.ends[1-i].cfg.ID})
		}
		p.known[i], p.life[i] = true, p.ends[i].life
		p.last[i] = n.w.now
	}
	for i := range p.ends {
		other := p.ends[1-i]
		p.ends[i].feed(meta.PeerUp{Site: other.cfg.ID, Generation: other.generation, Incarnation: other.incarnation})
	}
}

// breakStream ends the stream; end i notices after notice[i].
func (n *network) breakStream(p *pair, notice [2]time.Duration) {
	if !p.up {
		return
	}
	p.up, p.since = false, n.w.now
	epoch := p.epoch
	for i := range p.ends {
		n.w.agenda.add(n.w.now.Add(notice[i]), message, 0, call(func() {
			if p.known[i] && (p.epoch == epoch && !p.up) {
				p.known[i] = false
				p.feed(i, meta.PeerDown{Site: p.ends[1-i].cfg.ID})
			}
		}))
	}
}

// reconnectLater tries again until the sites are connected or cannot be.
func (n *network) reconnectLater(p *pair) {
	n.w.agenda.add(n.w.now.Add(n.cfg.Reconnect), message, 0, call(func() { n.connect(p) }))
}

func (n *network) siteDown(s *Site) {
	n.each(func(p *pair) {
		for i := range p.ends {
			if p.ends[i] == s && p.life[i] == s.life {
				p.known[i] = false
				var notice [2]time.Duration
				// The kernel says so; where that takes hours, nothing else comes back either.
				notice[1-i] = min(p.way[i].Latency, n.cfg.Detect)
				n.breakStream(p, notice)
			}
		}
	})
}

func (n *network) siteUp(s *Site) {
	n.each(func(p *pair) {
		if p.ends[0] == s || p.ends[1] == s {
			n.reconnectLater(p)
		}
	})
}

// send puts a message on the stream, if the sender believes there is one.
func (n *network) send(from *Site, f meta.Send) {
	to := n.w.byID[f.To]
	if to == nil {
		if outside := n.w.cfg.Outside; outside != nil {
			outside(from.cfg.ID, f.To, f.Message)
		}
		return
	}
	p, i := n.pair(from, to)
	if !p.known[i] || p.life[i] != from.life {
		return
	}
	if tap := n.w.cfg.Tap; tap != nil {
		tap(from.cfg.ID, f.To, f.Message)
	}
	if m, is := f.Message.(meta.Claim); is {
		n.w.keeper.claims(from, m.Attempt)
	}
	n.carried++
	n.kinds[f.Message.Word()]++
	if !p.up || p.cut[i] {
		n.drop(p, p.epoch)
		return
	}
	c := p.way[i]
	if c.Loss > 0 && n.w.rng.Float64() < c.Loss {
		n.drop(p, p.epoch)
		if n.w.cfg.Trace != nil {
			n.w.trace("%s -> %s: lost: %s", from.cfg.ID, f.To, Describe(f.Message))
		}
		return
	}
	n.dispatch(p, i, f.Message)
	if c.Duplication > 0 && n.w.rng.Float64() < c.Duplication {
		n.dispatch(p, i, f.Message)
	}
}

// drop counts a message of a stream that is lost.
func (n *network) drop(p *pair, epoch int) {
	n.dropped++
	if p.up && p.epoch == epoch {
		p.lost++
	}
}

// dispatch puts a message of end i on its way.
func (n *network) dispatch(p *pair, i int, m meta.Message) {
	d := delivery{to: p.ends[1-i], pair: p, from: i, epoch: p.epoch, message: m}
	c := p.way[i]
	if c.instant() && p.last[1-i] <= n.w.now {
		n.w.backlog.Push(d)
		return
	}
	at := n.w.now.Add(c.delay(n.w.rng))
	if c.Reorder == 0 || n.w.rng.Float64() >= c.Reorder {
		at = max(at, p.last[1-i])
		p.last[1-i] = at
	}
	a := &arriving{n: n}
	if last := len(n.spare) - 1; last >= 0 {
		a, n.spare = n.spare[last], n.spare[:last]
	}
	a.d = d
	n.w.agenda.add(at, message, 0, a)
}

// arriving is a message that takes its time.
type arriving struct {
	n *network
	d delivery
}

func (a *arriving) act() {
	d := a.d
	a.d = delivery{}
	a.n.spare = append(a.n.spare, a)
	a.n.arrive(&d)
}

// arrive hands a message to its site if the stream is still the same.
func (n *network) arrive(d *delivery) {
	p, i := d.pair, d.from
	if p.epoch != d.epoch || !p.up || !p.known[1-i] || p.cut[i] {
		n.drop(p, d.epoch)
		return
	}
	from := p.ends[i]
	if n.w.cfg.Trace != nil {
		n.w.trace("%s -> %s: %s", from.cfg.ID, d.to.cfg.ID, Describe(d.message))
	}
	n.w.log.arrived(from, d.to, d.message)
	if _, is := d.message.(meta.PlaceCopy); is && d.to.engine != nil {
		n.w.keeper.offered(d.to, from)
		d.to.rush(hostTurn | n.w.guests)
		n.w.guests++
	}
	n.w.keeper.answers(d.to, d.message)
	p.feed(1-i, meta.Receive{From: from.cfg.ID, Message: d.message})
}

// Cut lets nothing through from one site to the other; both notice after a
// while, and the stream is gone.
func (w *World) Cut(from, to job.SiteID) {
	p, i := w.net.pair(w.byID[from], w.byID[to])
	if p == &w.net.none {
		return
	}
	w.trace("cut %s -> %s", from, to)
	w.log.cut(from, to)
	p.cut[i] = true
	// What goes the other way still arrives until an end notices that nothing
	// comes back, and gives the stream up.
	epoch, first, second := p.epoch, w.net.detect(), w.net.detect()
	notice := [2]time.Duration{max(0, first-second), max(0, second-first)}
	w.net.w.agenda.add(w.now.Add(min(first, second)), message, 0, call(func() {
		if p.epoch == epoch && (p.cut[0] || p.cut[1]) {
			w.net.breakStream(p, notice)
		}
	}))
}

func (n *network) detect() time.Duration {
	return n.cfg.Detect/2 + time.Duration(n.w.rng.Int64N(int64(n.cfg.Detect)))
}

// Heal ends the cuts between two sites; they connect again after a while.
func (w *World) Heal(a, b job.SiteID) {
	p, _ := w.net.pair(w.byID[a], w.byID[b])
	if p == &w.net.none {
		return
	}
	w.trace("heal %s <-> %s", a, b)
	w.log.heal(a, b)
	p.cut = [2]bool{}
	w.net.reconnectLater(p)
}

// Partition lets nothing through between one group of sites and all others.
func (w *World) Partition(group ...job.SiteID) {
	for _, a := range group {
		for _, b := range w.sites {
			if !slices.Contains(group, b.cfg.ID) {
				w.Cut(a, b.cfg.ID)
				w.Cut(b.cfg.ID, a)
			}
		}
	}
}

// HealAll ends all cuts.
func (w *World) HealAll() {
	w.net.each(func(p *pair) {
		if p.cut[0] || p.cut[1] {
			w.Heal(p.ends[0].cfg.ID, p.ends[1].cfg.ID)
		}
	})
}

// Cuts reports whether anything is cut between two sites.
func (w *World) Cuts(a, b job.SiteID) bool {
	p, _ := w.net.pair(w.byID[a], w.byID[b])
	return p.cut[0] || p.cut[1]
}

// Messages returns how many messages were sent and how many of them were lost.
func (w *World) Messages() (sent, lost int64) { return w.net.carried, w.net.dropped }

// MessagesByKind returns how many messages of each kind were sent.
func (w *World) MessagesByKind() map[string]int64 {
	return maps.Clone(w.net.kinds)
}
