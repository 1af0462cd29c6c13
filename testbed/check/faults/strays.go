package faults

import (
	"slices"
	"strings"
	"time"

	"kith/internal/job"
	"kith/store"
)

// holding is something that two sites must agree on: what site holds, or what
// the origin thinks that it holds.
type holding struct {
	site     job.SiteID
	attempt  job.AttemptID
	believed bool // the origin thinks so, the site does not
}

// lookForStrays returns a look at who holds what, repeated until all that
// differed when the faults ended has been mended.
func (x *run) lookForStrays(ended time.Duration) func() {
	var differ []holding
	first := true
	full := make(map[job.SiteID]time.Duration) // until when a job filled a disk
	var look func()
	look = func() {
		now := x.disagreements()
		for i := range x.s.Sites {
			if at := x.s.Sites[i].Name; x.filling(at) {
				full[at] = x.since()
			}
		}
		if first {
			differ, first = now, false
		} else {
			differ = slices.DeleteFunc(differ, func(h holding) bool { return !slices.Contains(now, h) })
		}
		took := x.since() - ended
		late := slices.IndexFunc(differ, func(h holding) bool {
			liar := x.w.Distrusted(h.site) || x.w.Distrusted(h.attempt.Job.Origin)
			took := x.since() - max(ended, full[h.site], full[h.attempt.Job.Origin])
			return took > settlingWithLiars || took > settling && !liar
		})
		switch {
		case len(differ) == 0:
			x.r.Agreed = took
		case late >= 0:
			h := differ[late]
			x.w.Violate("L2: %v after the last fault %s and %s still do not agree on %v", took, h.site, h.attempt.Job.Origin, h.attempt)
		default:
			x.at(x.since()+time.Second, look)
		}
	}
	return look
}

// disagreements compares what all sites hold with what the origins think.
func (x *run) disagreements() []holding {
	var list []holding
	for i := range x.s.Sites {
		s := x.w.Site(x.s.Sites[i].Name)
		if !s.Up() {
			continue
		}
		for c := range s.State().Copies() {
			origin := x.w.Site(c.ID.Job.Origin)
			if origin != nil && origin.Gone() && c.Phase != store.CopyQueued {
				continue // it runs to its end, and is forgotten after it
			}
			if origin == nil || !origin.Up() || !holds(origin.State().Job(c.ID.Job), c.ID, s.ID()) {
				list = append(list, holding{s.ID(), c.ID, false})
			}
		}
		for j := range s.State().Jobs(job.ID{}) {
			// A liar keeps what it has claimed for as long as it likes.
			if j.State.Claim() == job.ClaimTaken && j.Outcome == nil && !x.w.Distrusted(j.Holder) {
				host := x.w.Site(j.Holder)
				// What a site held that has lost its folder may run on there until the end
				// of its lease; of one that had revoked the origin nobody can tell that it
				// did not lose it.
				wasOther := host != nil && host.Up() && j.Lease != 0 && (host.State().Site().Generation != j.HolderGeneration || x.outlaws[[2]job.SiteID{j.Holder, j.ID.Origin}])
				if host != nil && host.Up() && !wasOther && host.State().Copy(j.AttemptID()) == nil {
					list = append(list, holding{j.Holder, j.AttemptID(), true})
				}
			}
			if j.State != job.Queued {
				continue
			}
			for _, at := range j.Sites {
				if host := x.w.Site(at); host != nil && host.Up() && host.State().Copy(j.AttemptID()) == nil {
					list = append(list, holding{at, j.AttemptID(), true})
				}
			}
		}
	}
	list = append(list, x.strayBundles()...)
	slices.SortFunc(list, func(a, b holding) int {
		if c := strings.Compare(string(a.site), string(b.site)); c != 0 {
			return c
		}
		return a.attempt.Compare(b.attempt)
	})
	return list
}
