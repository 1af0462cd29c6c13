package bags

import (
	"cmp"
	"slices"

	"kith/internal/job"
)

// Offer is an origin's word to a site that it has tasks of a shape: about so many, none
// withdraws it. It binds nobody, and neither keeps it beyond the connection.
type Offer struct {
	Site  job.SiteID
	Shape Shape
	Tasks int
}

// Board is what an origin has last told each site. The zero value has told nobody
// anything.
type Board struct {
	rows  map[Shape]map[job.SiteID]*word
	again bool // all of it is to be told again
}

// word is what a site was told of a shape, and how many tasks there are for it now.
type word struct{ told, now int }

// Due returns the offers that sites have to be told, by site and shape, and takes them as
// told: of a shape of which there were none or are none, or of which there are twice as
// many as was told, or half; of all after [Board.Repeat]. Each bag counts at the sites that it is offered to, which
// connected says are there; those that are not must have been forgotten.
func (b *Board) Due(works []Work, connected func(job.SiteID) bool) []Offer {
	if b.rows == nil {
		b.rows = make(map[Shape]map[job.SiteID]*word)
	}
	for i := range works {
		b.count(&works[i], connected)
	}
	var due []Offer
	for shape, row := range b.rows {
		for site, w := range row {
			switch n, told := w.now, w.told; {
			case n == 0:
				due = append(due, Offer{site, shape, 0})
				delete(row, site)
			case b.again || n >= 2*told || 2*n <= told:
				due = append(due, Offer{site, shape, n})
				w.told = n
			}
			w.now = 0
		}
		if len(row) == 0 {
			delete(b.rows, shape)
		}
	}
	b.again = false
	slices.SortFunc(due, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), a.Shape.Compare(b.Shape))
	})
	return due
}

// count adds the tasks of a bag to those that there are now, at each of its sites.
func (b *Board) count(w *Work, connected func(job.SiteID) bool) {
	n := w.Offered()
	if n <= 0 {
		return
	}
	row := b.rows[w.Shape]
	if row == nil {
		row = make(map[job.SiteID]*word)
		b.rows[w.Shape] = row
	}
	for _, site := range w.Sites {
		if !connected(site) {
			continue
		}
		at := row[site]
		if at == nil {
			at = new(word)
			row[site] = at
		}
		at.now += n
	}
}

// Repeat has all sites told again how things stand: also those that there is nothing for any
// more, if they were told of something.
func (b *Board) Repeat() { b.again = true }

// Forget takes a site for one that was told nothing: its connection is gone.
func (b *Board) Forget(site job.SiteID) {
	for _, row := range b.rows {
		delete(row, site)
	}
}
