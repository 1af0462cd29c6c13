package place_test

import (
	"fmt"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
)

// A new stage is one function, here one that keeps jobs off sites far away,
// and one line that names it.
func Example_stage() {
	distance := map[job.SiteID]int{"near": 10, "far": 9000} // km
	within := func(km int) place.Filter {
		return func(r *place.Round) {
			for i := range r.Sites {
				if c := &r.Sites[i]; c.Eligible && distance[c.Site] > km {
					c.Refuse(job.Unreachable)
				}
			}
		}
	}

	options := place.Default()
	policy := options.Policy()
	policy.Filters = append(policy.Filters, within(1000)) // the line

	view := place.View{Own: cluster.Digest{Site: "home", Processors: 8, Load: job.Load{Work: 60}}}
	for _, site := range []job.SiteID{"far", "near"} {
		view.Peers = append(view.Peers, &cluster.Peer{
			Site: site, Connected: true, Known: true, Digest: cluster.Digest{Site: site, Processors: 8, Load: job.Load{Work: 30}},
		})
	}
	var round place.Round
	round.Begin(place.Job{Request: &job.Request{Processors: 4}}, view, 0, &policy)
	for _, v := range round.Decide().Sites {
		fmt.Printf("%s chosen=%v reason=%q\n", v.Site, v.Chosen, v.Reason.String())
	}
	// Output:
	// near chosen=true reason=""
	// home chosen=true reason=""
	// far chosen=false reason="unreachable"
}
