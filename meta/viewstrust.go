package meta

import (
	"kith/internal/job"
	"kith/store"
)

// TrustedSites returns the trust table by name, sites included that were revoked. What it
// returns is never changed in place.
func (v Views) TrustedSites() []*store.TrustedSite { return v.host.st.TrustedSites() }

// Invitations returns the invitations by id, those included that are over and remembered.
func (v Views) Invitations() []*store.Invitation { return v.host.st.Invitations() }

// Invitation returns an invitation, nil if there is none of that id.
func (v Views) Invitation(id string) *store.Invitation { return v.host.st.Invitation(id) }

// TrustedSite returns the record of a site in the trust table, nil if there is none.
func (v Views) TrustedSite(site job.SiteID) *store.TrustedSite { return v.host.st.TrustedSite(site) }

// Tokens returns the tokens of this site by id, revoked ones included.
func (v Views) Tokens() []*store.Token { return v.host.st.Tokens() }

// Dealings is what this site and another one hold of each other's.
type Dealings struct {
	// Held is how many jobs of this site the other one holds the claim of, Overdue how many of
	// those should have ended overdueAfter ago or more, counted from the grant by this
	// site's clock; GivenUp how many went on without it since this daemon started, as it did
	// not end them. Oldest is when the oldest was granted.
	Held, Overdue, GivenUp int
	Oldest                 job.Time
	// Copies is how many copies of the other site's jobs are here.
	Copies int
}

// Dealings returns those with each other site that there are any with. It looks at the
// jobs that others hold, not at those that wait.
func (v Views) Dealings(now job.Time) map[job.SiteID]Dealings {
	all := make(map[job.SiteID]Dealings)
	for _, o := range v.origin.away {
		if !v.origin.isAway(o) {
			continue
		}
		j := o.rec
		d := all[j.Holder]
		d.Held++
		if at := grantedAt(j); at != 0 && (d.Oldest == 0 || at < d.Oldest) {
			d.Oldest = at
		}
		if now > v.origin.dueAt(o) {
			d.Overdue++
		}
		all[j.Holder] = d
	}
	for site, n := range v.origin.overdue.given {
		d := all[site]
		d.GivenUp = n
		all[site] = d
	}
	for site, n := range v.host.remote {
		d := all[site]
		d.Copies = n
		all[site] = d
	}
	return all
}

// grantedAt returns when the claim of a job's attempt was granted, 0 if that is forgotten.
func grantedAt(j *store.Job) (at job.Time) {
	for _, e := range j.Events {
		if e.Kind == store.ClaimGranted && e.Attempt == j.Attempt {
			at = e.Time
		}
	}
	return at
}
