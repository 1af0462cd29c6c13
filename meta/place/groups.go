package place

import (
	"kith/cluster"
	"kith/internal/job"
)

// groups weighs by policy groups (spec 004 section 2.3). A site that starts
// its own jobs first cannot keep what it promises to others, as it does not
// know of the local jobs that will come. If the sites that do so have more
// computing power than the others, the sites of the other group than the
// origin's get weight a. On a tie they do not.
func groups(a float64) Weight {
	return func(r *Round) {
		homeFirst, alike := 0.0, 0.0
		for i := range r.Sites {
			c := &r.Sites[i]
			if c.Reason == job.Unreachable || c.Digest == nil {
				continue
			}
			power := float64(c.Digest.Processors) * c.Speed()
			if startsHomeFirst(c.Digest) {
				homeFirst += power
			} else {
				alike += power
			}
		}
		if alike >= homeFirst {
			return
		}
		own := startsHomeFirst(&r.View.Own)
		for i := range r.Sites {
			if c := &r.Sites[i]; c.Eligible && startsHomeFirst(c.Digest) != own {
				c.Weight *= a
			}
		}
	}
}

// startsHomeFirst reports whether a site starts its own jobs before those of
// others. A site that does not say runs an older version: it is taken to do so,
// because that is how kithd has been set up by default from its first version on.
func startsHomeFirst(d *cluster.Digest) bool { return d.HomeJobs != cluster.HomeJobsAlike }
