package bags

import "kith/internal/job"

// Answers tells a new claim of a host from one that it repeats, by the host's stamp, which
// grows with each claim. A repeated claim gets the bundles that it got before and that are
// live ([kith/store.State.BundlesOfClaim]), and no others: even if it got none, or all
// their tasks have ended since, as the host does not wait for it any more. The zero value
// has seen nothing.
//
// It is volatile. After a restart of the origin [Answers.Restore] learns of the claims
// that have live bundles. An older claim that comes after that may get bundles that its
// host does not want; the host gives them back.
type Answers struct {
	sites map[job.SiteID]claimed
}

type claimed struct {
	generation uint32
	stamp      uint64
}

// New reports whether a claim is a new one, and takes note of it. A host's data folder is
// a new one when its generation is another: its stamps begin anew.
func (a *Answers) New(site job.SiteID, generation uint32, stamp uint64) bool {
	last, known := a.sites[site]
	if known && last.generation == generation && stamp <= last.stamp {
		return false
	}
	a.note(site, claimed{generation, stamp})
	return true
}

// Restore takes note of the claim of a live bundle.
func (a *Answers) Restore(site job.SiteID, generation uint32, stamp uint64) {
	if last, known := a.sites[site]; !known || last.generation != generation || last.stamp < stamp {
		a.note(site, claimed{generation, stamp})
	}
}

func (a *Answers) note(site job.SiteID, c claimed) {
	if a.sites == nil {
		a.sites = make(map[job.SiteID]claimed)
	}
	a.sites[site] = c
}

// Forget lets go of a site that is no peer any more.
func (a *Answers) Forget(site job.SiteID) { delete(a.sites, site) }
