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
	told  map[key]int
	now   map[key]int // scratch
	again bool        // all of it is to be told again
}

type key struct {
	site  job.SiteID
	shape Shape
}

// Due returns the offers that sites have to be told, by site and shape, and takes them as
// told: of a shape of which there were none or are none, or of which there are twice as
// many as was told, or half; of all after [Board.Repeat]. Each bag counts at the sites that it is offered to, which
// connected says are there; those that are not must have been forgotten.
func (b *Board) Due(works []Work, connected func(job.SiteID) bool) []Offer {
	if b.told == nil {
		b.told, b.now = make(map[key]int), make(map[key]int)
	}
	clear(b.now)
	for i := range works {
		w := &works[i]
		if n := w.Offered(); n > 0 {
			for _, site := range w.Sites {
				if connected(site) {
					b.now[key{site, w.Shape}] += n
				}
			}
		}
	}
	var due []Offer
	for k, n := range b.now {
		if told := b.told[k]; b.again || n >= 2*told || 2*n <= told {
			due = append(due, Offer{k.site, k.shape, n})
			b.told[k] = n
		}
	}
	for k := range b.told {
		if b.now[k] == 0 {
			due = append(due, Offer{k.site, k.shape, 0})
			delete(b.told, k)
		}
	}
	b.again = false
	slices.SortFunc(due, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), a.Shape.Compare(b.Shape))
	})
	return due
}

// Repeat has all sites told again how things stand: also those that there is nothing for any
// more, if they were told of something.
func (b *Board) Repeat() { b.again = true }

// Forget takes a site for one that was told nothing: its connection is gone.
func (b *Board) Forget(site job.SiteID) {
	for k := range b.told {
		if k.site == site {
			delete(b.told, k)
		}
	}
}
