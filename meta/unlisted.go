package meta

import (
	"maps"
	"slices"

	"kith/internal/job"
)

// Unlisted says that the configuration does not name a site which has to do with
// copies or jobs here. They stay as they are until the site connects, which it may
// be kept from, or until it is forgotten.
type Unlisted struct {
	Site job.SiteID
	// Copies are those of its jobs here. Held are the jobs of this site that it has
	// the claim of, Waiting those that have a copy there.
	Copies, Held, Waiting int
}

func (Unlisted) effect()      {}
func (Unlisted) Word() string { return "unlisted" }

// tellUnlisted tells of the sites that the configuration should perhaps name, and
// lists those that no stream is up to.
func (e *Engine) tellUnlisted(now job.Time, configured []job.SiteID) {
	found := make(map[job.SiteID]*Unlisted)
	at := func(site job.SiteID) *Unlisted {
		u := found[site]
		if u == nil {
			u = &Unlisted{Site: site}
			found[site] = u
		}
		return u
	}
	for site, n := range e.host.remote {
		at(site).Copies = n
	}
	for _, o := range e.origin.jobs {
		switch {
		case o.ended:
		case o.rec.Holder != "":
			at(o.rec.Holder).Held++
		default:
			for _, site := range o.rec.Sites {
				at(site).Waiting++
			}
		}
	}
	delete(found, e.self)
	for _, site := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(configured, site) && e.stranger(site) == "" && e.st.TrustedSite(site) == nil {
			e.peers.view.Expect(now, site)
			e.emit(*found[site])
		}
	}
}

// names reports whether a record here names a site.
func (e *Engine) names(site job.SiteID) bool {
	bundles := func() bool {
		for _, h := range e.bags.st.HeldBundles() {
			if h.ID.Job.Origin == site {
				return true
			}
		}
		for b := range e.bags.st.Bags {
			for t := range b.Bundles {
				if t.Site == site {
					return true
				}
			}
		}
		return false
	}
	return e.host.remote[site] > 0 || bundles() || slices.ContainsFunc(e.origin.jobs, func(o *openJob) bool {
		return !o.ended && (o.rec.Holder == site || slices.Contains(o.rec.Sites, site) || earlierAt(o, site))
	})
}

// earlierAt reports whether a site may still run an earlier attempt of a job.
func earlierAt(o *openJob, site job.SiteID) bool {
	for _, h := range o.rec.Earlier {
		if h.Site == site {
			return true
		}
	}
	return false
}
