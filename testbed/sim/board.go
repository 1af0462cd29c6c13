package sim

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
)

// LoadConfig says how sites learn of each other's load.
type LoadConfig struct {
	// Shared puts all digests on one board that every site reads when it
	// decides, instead of a message from each to each. The board knows no
	// partitions and no lost messages: it is for networks that have none.
	Shared bool
	// Period is how often a site puts its load on the board. At zero, readers
	// see loads as they are at that very moment.
	Period time.Duration
	// Delay is how much later readers see it.
	Delay time.Duration
	// Staggered spreads the instants at which sites do so over the period, by
	// their place among the names. Else all do at once.
	Staggered bool
}

// board is one table of digests for all sites. It is lazy: a digest is made
// when it is read, or before something changes at a site whose time to
// make one has come.
type board struct {
	w       *World
	cfg     LoadConfig
	entries []posted // by the order of sites
	// making says that a digest is being made: for that a level looks at those of others, which show what
	// they showed before.
	making bool
}

// posted is what one site has put on the board.
type posted struct {
	due job.Time // the next time to make a digest
	// made are digests that have not been read yet, oldest first.
	made []digestAt
	// shown is what readers see.
	shown digestAt
	// steps is the site's count of steps when shown was made.
	steps int64
}

type digestAt struct {
	at     job.Time
	digest cluster.Digest
}

func (b *board) init(w *World) {
	b.w, b.cfg = w, w.cfg.Loads
	b.entries = make([]posted, len(w.sites))
	for i := range b.entries {
		e := &b.entries[i]
		e.due = Start
		if b.cfg.Staggered {
			e.due = Start.Add(b.cfg.Period * time.Duration(i) / time.Duration(len(w.sites)))
		}
		e.shown.at = -1
	}
}

// before makes the digest whose time has come, before anything changes at s.
func (b *board) before(s *Site) {
	if e := &b.entries[s.index]; b.cfg.Period > 0 && b.w.now >= e.due {
		b.make(e, s)
	}
}

// make makes the digests that are due: the latest that readers see by now, and
// those that they will see later. One before these would never be read. Nothing
// has changed at s since the first was due, so that none is too late.
func (b *board) make(e *posted, s *Site) {
	at := e.due
	if seen := b.w.now.Add(-b.cfg.Delay); seen > at {
		at = at.Add(seen.Sub(at) / b.cfg.Period * b.cfg.Period)
	}
	for ; at <= b.w.now; at = at.Add(b.cfg.Period) {
		e.made = append(e.made, b.digest(s, at))
	}
	e.due = at
	// Of those that readers see only the latest is ever read.
	old := 0
	for old+1 < len(e.made) && e.made[old+1].at.Add(b.cfg.Delay) <= b.w.now {
		old++
	}
	e.made = append(e.made[:0], e.made[old:]...)
}

// digest makes that of a site.
func (b *board) digest(s *Site, at job.Time) digestAt {
	was := b.making
	b.making = true
	d := s.engine.Digest(at)
	b.making = was
	return digestAt{at: at, digest: d}
}

// Refresh implements [cluster.Board].
func (b *board) Refresh(now job.Time, peers []*cluster.Peer) {
	if b.making {
		return
	}
	i := 0
	for _, p := range peers {
		for i < len(b.w.sites) && b.w.sites[i].cfg.ID < p.Site {
			i++
		}
		if i == len(b.w.sites) {
			return
		}
		s := b.w.sites[i]
		if s.cfg.ID != p.Site || s.engine == nil {
			continue
		}
		e := &b.entries[i]
		b.show(now, e, s)
		b.read(p, &e.shown)
	}
}

// read copies what readers see into an entry of a view. Of a daemon that it has
// read of before, only the load can have changed.
func (b *board) read(p *cluster.Peer, d *digestAt) {
	switch {
	case d.at < 0:
		return
	case !p.Known || p.Digest.Incarnation != d.digest.Incarnation:
		p.Digest = d.digest
	case p.Digest.Sequence == d.digest.Sequence:
		return
	default:
		p.Digest.Sequence, p.Digest.Load, p.Digest.Draining, p.Digest.Time = d.digest.Sequence, d.digest.Load, d.digest.Draining, d.digest.Time
		p.Digest.NotStarting, p.Digest.Level = d.digest.NotStarting, d.digest.Level
	}
	p.Known, p.SeenAt = true, d.at.Add(b.cfg.Delay)
}

// show brings up what readers see at now.
func (b *board) show(now job.Time, e *posted, s *Site) {
	if b.cfg.Period == 0 {
		if e.shown.at != now || e.steps != s.steps {
			e.shown = b.digest(s, now)
			e.steps = s.steps
		}
		return
	}
	if now >= e.due {
		b.make(e, s)
	}
	n := 0
	for n < len(e.made) && e.made[n].at.Add(b.cfg.Delay) <= now {
		n++
	}
	if n > 0 {
		e.shown = e.made[n-1]
		e.made = append(e.made[:0], e.made[n:]...)
	}
}

// StartAt implements [meta.Starts] where messages take no time. The query and
// its answer count as sent.
func (b *board) StartAt(now job.Time, site, from job.SiteID, q *meta.StartQuery) (meta.StartAnswer, bool) {
	n, s := &b.w.net, b.w.byID[site]
	if s == nil || s.engine == nil {
		return meta.StartAnswer{}, false
	}
	p, i := n.pair(b.w.byID[from], s)
	if !p.up || !p.known[0] || !p.known[1] || p.cut[0] || p.cut[1] || p.last[i] > now || p.last[1-i] > now {
		return meta.StartAnswer{}, false
	}
	n.carried += 2
	n.kinds[meta.StartQuery{}.Word()]++
	n.kinds[meta.StartAnswer{}.Word()]++
	return s.engine.AnswerStart(now, from, q), true
}
