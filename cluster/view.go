package cluster

import (
	"slices"
	"time"

	"kith/internal/job"
)

// MaxSites bounds a view. What is beyond it is not recorded: a peer that
// invents sites must not make another's memory grow.
const MaxSites = 4096

// Peer is what a site knows of another one. Callers of [View] read it and do
// not change it; it is valid until the view's next change.
type Peer struct {
	Site job.SiteID
	// Known says that a digest was seen; Digest and SeenAt mean nothing before.
	Known  bool
	Digest Digest
	// SeenAt is when Digest arrived here, by this site's clock.
	SeenAt job.Time
	// Freed is when a digest said that copies of others could start on more processors than
	// the one before, or could have since that one; 0 for never.
	Freed job.Time
	// Connected says that a stream is up, Since when that began or ended.
	Connected bool
	Since     job.Time
	// Generation names the peer's data folder, as it said when it last
	// connected; zero if it never did.
	Generation uint32
	// Incarnation is the one that it said when it last connected; zero if it did not.
	Incarnation uint64
	Lacks
	// settings are those of the digest for which the site was last asked again, at asked.
	settings uint64
	asked    job.Time
	// another says that this is another daemon or data folder than Digest is of.
	another bool
	// Sent is kept by the origin of the copies, in this very view.
	Sent Sent
}

// Age returns how old the digest is at now, by this site's clock.
func (p *Peer) Age(now job.Time) time.Duration { return now.Sub(p.SeenAt) }

// Anew reports whether the site is to be asked again about what it refused, as it has taken up another
// configuration: once for each, and not before a pause since the latest time, as a site may say so with
// every digest. Only the origin asks.
func (p *Peer) Anew(now job.Time, pause time.Duration) bool {
	if p.Digest.Settings == p.settings || p.asked != 0 && now < p.asked.Add(pause) {
		return false
	}
	p.settings, p.asked = p.Digest.Settings, now
	return true
}

// supersedes reports whether d says something later than what is known of the site.
// While a stream is up, what the daemon at its other end says is later than what any
// other life of the site said, whatever their numbers: a site that lost its disk, or
// whose numbers came from a clock that was ahead, is heard again at once.
func (p *Peer) supersedes(d *Digest) bool {
	switch {
	case !p.Connected || p.Incarnation == 0:
	case d.Incarnation == p.Incarnation && p.another:
		return true
	case d.Incarnation != p.Incarnation && p.Digest.Incarnation == p.Incarnation:
		return false
	}
	return d.Newer(&p.Digest)
}

// View is the table of the other sites. The zero View is empty and ready.
type View struct {
	peers  []*Peer // by site
	bySite map[job.SiteID]*Peer
	board  Board
}

// Board is where views look up how loaded the other sites are, instead of
// being told with each digest: one board serves many views. Simulations of
// many sites use it; a daemon has none.
type Board interface {
	// Refresh brings the digests of peers up to now. The peers are in the
	// order of names.
	Refresh(now job.Time, peers []*Peer)
}

// Attach makes v read digests from b.
func (v *View) Attach(b Board) { v.board = b }

// Merge records d, seen at now, and reports whether it was news. A digest
// that is not newer than the one at hand changes nothing.
func (v *View) Merge(now job.Time, d Digest) bool {
	p := v.at(d.Site)
	if p == nil || (p.Known && !p.supersedes(&d)) {
		return false
	}
	p.another = p.another && d.Incarnation != p.Incarnation
	if !p.Known || d.Startable() > p.Digest.Startable() || d.TimesFreed != p.Digest.TimesFreed {
		p.Freed = now
	}
	if !p.Known {
		p.settings = d.Settings
	}
	p.Known, p.Digest, p.SeenAt = true, d, now
	p.Sent.told()
	return true
}

// Up records that a stream to site is up since now.
func (v *View) Up(now job.Time, site job.SiteID, generation uint32, incarnation uint64) *Peer {
	p := v.at(site)
	if p == nil {
		return nil
	}
	p.another = p.another || generation != p.Generation || incarnation != p.Incarnation
	p.Connected, p.Since, p.Generation, p.Incarnation = true, now, generation, incarnation
	return p
}

// Down records that the stream to site is gone since now.
func (v *View) Down(now job.Time, site job.SiteID) *Peer {
	p := v.bySite[site]
	if p != nil && p.Connected {
		p.Connected, p.Since = false, now
	}
	return p
}

// Expect adds a site that the operator's configuration names, so that it is
// listed before it is ever seen. It counts as disconnected since now.
func (v *View) Expect(now job.Time, site job.SiteID) {
	if p := v.at(site); p != nil && p.Since == 0 {
		p.Since = now
	}
}

// Remove forgets a site.
func (v *View) Remove(site job.SiteID) {
	if v.bySite[site] == nil {
		return
	}
	delete(v.bySite, site)
	v.peers = slices.DeleteFunc(v.peers, func(p *Peer) bool { return p.Site == site })
}

// Get returns what is known of site, nil if nothing is.
func (v *View) Get(site job.SiteID) *Peer { return v.bySite[site] }

// Peers returns all known sites by name. The caller must not change the slice.
func (v *View) Peers() []*Peer { return v.peers }

// PeersAt is Peers after a look at the board, if there is one.
func (v *View) PeersAt(now job.Time) []*Peer {
	if v.board != nil {
		v.board.Refresh(now, v.peers)
	}
	return v.peers
}

// at returns the entry of site, a new one if there is none, nil if the view is full.
func (v *View) at(site job.SiteID) *Peer {
	if p := v.bySite[site]; p != nil {
		return p
	}
	if len(v.peers) >= MaxSites {
		return nil
	}
	if v.bySite == nil {
		v.bySite = make(map[job.SiteID]*Peer)
	}
	p := &Peer{Site: site}
	i, _ := slices.BinarySearchFunc(v.peers, site, func(p *Peer, s job.SiteID) int {
		if p.Site < s {
			return -1
		}
		if p.Site > s {
			return 1
		}
		return 0
	})
	v.peers = slices.Insert(v.peers, i, p)
	v.bySite[site] = p
	return p
}
