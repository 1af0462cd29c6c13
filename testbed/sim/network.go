package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// NetworkConfig says how messages travel between sites.
type NetworkConfig struct {
	// Latency is one way, Jitter adds up to as much again at random.
	Latency, Jitter time.Duration
	// Loss and Duplication are probabilities of a message on a stream that is
	// up; Reorder is that of a message that overtakes and is overtaken. A real
	// stream does none of these; the protocol survives them.
	Loss, Duplication, Reorder float64
	// Detect is how long a site takes to notice that a stream is dead. Default 15 s.
	Detect time.Duration
	// Reconnect is how long two sites take to find each other again. Default 1 s.
	Reconnect time.Duration
}

// network carries messages. Between every two sites there is at most one
// stream; each side has its own idea of whether it is up.
type network struct {
	w     *World
	cfg   NetworkConfig
	pairs map[[2]job.SiteID]*pair
	// Carried and Dropped count messages.
	carried, dropped int64
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
	// cut says that nothing gets through from an end to the other.
	cut [2]bool
	// last is when the latest message to an end arrives: a stream keeps order.
	last [2]job.Time
}

func (n *network) init(w *World) {
	n.w, n.cfg = w, w.cfg.Network
	if n.cfg.Detect <= 0 {
		n.cfg.Detect = 15 * time.Second
	}
	if n.cfg.Reconnect <= 0 {
		n.cfg.Reconnect = time.Second
	}
	n.pairs = make(map[[2]job.SiteID]*pair)
	for i, a := range w.sites {
		for _, b := range w.sites[i+1:] {
			n.pairs[[2]job.SiteID{a.cfg.ID, b.cfg.ID}] = &pair{ends: [2]*Site{a, b}}
		}
	}
}

func (n *network) pair(a, b *Site) (p *pair, from int) {
	if a.cfg.ID < b.cfg.ID {
		return n.pairs[[2]job.SiteID{a.cfg.ID, b.cfg.ID}], 0
	}
	return n.pairs[[2]job.SiteID{b.cfg.ID, a.cfg.ID}], 1
}

// each calls f for every pair in the order of names.
func (n *network) each(f func(*pair)) {
	for i, a := range n.w.sites {
		for _, b := range n.w.sites[i+1:] {
			p, _ := n.pair(a, b)
			f(p)
		}
	}
}

func (n *network) connectAll() { n.each(n.connect) }

// connect brings a stream up if both sites can be reached.
func (n *network) connect(p *pair) {
	if p.up || p.cut[0] || p.cut[1] || !p.ends[0].Up() || !p.ends[1].Up() {
		return
	}
	p.epoch++
	p.up = true
	n.w.trace("%s and %s: stream %d is up", p.ends[0].cfg.ID, p.ends[1].cfg.ID, p.epoch)
	for i := range p.ends {
		if p.known[i] { // the old stream had not been missed yet
			p.known[i] = false
			p.ends[i].feed(meta.PeerDown{Site: p.ends[1-i].cfg.ID})
		}
		p.known[i] = true
		p.last[i] = n.w.now
	}
	for i := range p.ends {
		other := p.ends[1-i]
		p.ends[i].feed(meta.PeerUp{Site: other.cfg.ID, Generation: other.generation})
	}
}

// breakStream ends the stream; end i notices after notice[i].
func (n *network) breakStream(p *pair, notice [2]time.Duration) {
	if !p.up {
		return
	}
	p.up = false
	epoch := p.epoch
	for i := range p.ends {
		n.w.agenda.add(n.w.now.Add(notice[i]), message, func() {
			if p.known[i] && (p.epoch == epoch && !p.up) {
				p.known[i] = false
				p.ends[i].feed(meta.PeerDown{Site: p.ends[1-i].cfg.ID})
			}
		})
	}
}

// reconnectLater tries again until the sites are connected or cannot be.
func (n *network) reconnectLater(p *pair) {
	n.w.agenda.add(n.w.now.Add(n.cfg.Reconnect), message, func() { n.connect(p) })
}

func (n *network) siteDown(s *Site) {
	n.each(func(p *pair) {
		for i := range p.ends {
			if p.ends[i] == s {
				p.known[i] = false
				var notice [2]time.Duration
				notice[1-i] = n.cfg.Latency // the kernel says so
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
		return
	}
	p, i := n.pair(from, to)
	if !p.known[i] {
		return
	}
	n.carried++
	if !p.up || p.cut[i] {
		n.dropped++
		return
	}
	c := &n.cfg
	if c.Loss > 0 && n.w.rng.Float64() < c.Loss {
		n.dropped++
		n.w.trace("%s -> %s: lost: %T %+v", from.cfg.ID, f.To, f.Message, f.Message)
		return
	}
	n.deliver(p, i, from, to, f.Message)
	if c.Duplication > 0 && n.w.rng.Float64() < c.Duplication {
		n.deliver(p, i, from, to, f.Message)
	}
}

func (n *network) deliver(p *pair, i int, from, to *Site, m meta.Message) {
	at := n.w.now.Add(n.cfg.Latency)
	if n.cfg.Jitter > 0 {
		at = at.Add(time.Duration(n.w.rng.Int64N(int64(n.cfg.Jitter))))
	}
	if n.cfg.Reorder == 0 || n.w.rng.Float64() >= n.cfg.Reorder {
		at = max(at, p.last[1-i])
		p.last[1-i] = at
	}
	epoch := p.epoch
	n.w.agenda.add(at, message, func() {
		if p.epoch != epoch || !p.up || !p.known[1-i] || p.cut[i] {
			n.dropped++
			return
		}
		n.w.trace("%s -> %s: %T %+v", from.cfg.ID, to.cfg.ID, m, m)
		to.feed(meta.Receive{From: from.cfg.ID, Message: m})
	})
}

// Cut lets nothing through from one site to the other; both notice after a
// while, and the stream is gone.
func (w *World) Cut(from, to job.SiteID) {
	p, i := w.net.pair(w.byID[from], w.byID[to])
	w.trace("cut %s -> %s", from, to)
	p.cut[i] = true
	w.net.breakStream(p, [2]time.Duration{w.net.detect(), w.net.detect()})
}

func (n *network) detect() time.Duration {
	return n.cfg.Detect/2 + time.Duration(n.w.rng.Int64N(int64(n.cfg.Detect)))
}

// Heal ends the cuts between two sites; they connect again after a while.
func (w *World) Heal(a, b job.SiteID) {
	p, _ := w.net.pair(w.byID[a], w.byID[b])
	w.trace("heal %s <-> %s", a, b)
	p.cut = [2]bool{}
	w.net.reconnectLater(p)
}

// Cuts reports whether anything is cut between two sites.
func (w *World) Cuts(a, b job.SiteID) bool {
	p, _ := w.net.pair(w.byID[a], w.byID[b])
	return p.cut[0] || p.cut[1]
}

// Messages returns how many messages were sent and how many of them were lost.
func (w *World) Messages() (sent, lost int64) { return w.net.carried, w.net.dropped }
