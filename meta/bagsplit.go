package meta

import (
	"slices"

	"kith/cluster"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// The stage ahead of the placement of a bag that says so (`site.split` in its policy `sites`): of
// all sites that could run its tasks those are chosen among which what is left of them would best
// be divided, by what their owners leave and by when they could begin (spec 003 section 2.7). Hosts
// go on to ask for as many tasks as they use up: which sites take part is decided here, not how
// many tasks each gets.

// bagSplit is the split of one bag, made when it is first asked for.
type bagSplit struct {
	bo   *bagOrigin
	work *bags.Work
	left int // tasks that have not ended
	// without are sites that the bag is not offered to in any case.
	without []job.SiteID
	now     job.Time

	made  bool
	steps int // that it took, as those of policies
	sites []job.SiteID
}

// left is how many tasks of a bag have not ended.
func left(b *store.Bag) int { return int(b.Tasks()) - b.EndedCount() }

// at is what policies read of one site, see [bags.Scene].
func (s *bagSplit) at(site job.SiteID) func() (in, known bool) {
	return func() (in, known bool) {
		if !s.made {
			s.made = true
			s.choose()
		}
		return slices.Contains(s.sites, site), len(s.sites) > 0
	}
}

// stepsOfSet is what looking at a set of sites counts, for each of them: some 10 us.
const stepsOfSet = 500

// choose makes the split; no sites if none can run a task.
func (s *bagSplit) choose() {
	var places []harvest.Place
	var sites []job.SiteID
	for _, site := range s.bo.knownSites() {
		if d := s.digest(site); d != nil {
			sites, places = append(sites, site), append(places, s.place(d, s.has(site)))
		}
	}
	policy := harvest.DefaultPolicy()
	split, err := policy.SplitBisection(places, harvest.Bag{Tasks: max(1, s.left), Each: max(s.work.Each().Seconds(), 1e-3)})
	s.steps = stepsOfSet * len(sites) * max(1, split.Evaluated)
	if err != nil {
		return // nobody has time for guests, or somebody says what cannot be
	}
	for _, i := range split.Places {
		s.sites = append(s.sites, sites[i])
	}
}

// digest is what is known of a site that could run a task now, else nil.
func (s *bagSplit) digest(site job.SiteID) *cluster.Digest {
	if slices.Contains(s.without, site) {
		return nil
	}
	var d *cluster.Digest
	switch {
	case site == s.bo.self:
		if !s.bo.host.takesTasks() {
			return nil
		}
		own := s.bo.jobs.host.describe(s.now)
		d = &own
	case !s.bo.peers.knowsTasks(site):
		return nil
	default:
		p := s.bo.peers.view.Get(site)
		if p == nil || !p.Known || p.Digest.NotStarting {
			return nil
		}
		d = &p.Digest
	}
	if d.Draining || d.MemoryBytes > 0 && s.work.Shape.MemoryBytes > d.MemoryBytes {
		return nil
	}
	return d
}

// has reports whether a site has tasks of the bag.
func (s *bagSplit) has(site job.SiteID) bool {
	o := s.bo.byID[s.work.Bag]
	if o == nil {
		return false
	}
	for b := range o.rec.Bundles {
		if b.Site == site {
			return true
		}
	}
	return false
}

// place is a site as tasks find it: a new one begins when what is there has drained, unless
// processors are free; where tasks of the bag are already they are what is there.
func (s *bagSplit) place(d *cluster.Digest, has bool) harvest.Place {
	after, width := 0.0, s.work.Shape.Processors
	if !has && d.Load.Free < width {
		after = max(0, d.Load.Work)
	}
	var loads []harvest.Load
	if d.Owner != nil {
		loads = d.Owner.Loads[:]
	}
	return harvest.PlaceOf(loads, speedOf(d), d.Processors, width, after)
}
