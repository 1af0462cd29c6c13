package place

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// viewOf returns the view of an origin of some other sites, all in reach.
func viewOf(own cluster.Digest, others ...cluster.Digest) View {
	v := View{Own: own}
	for _, d := range others {
		v.Peers = append(v.Peers, &cluster.Peer{Site: d.Site, Known: true, Digest: d, Connected: true})
	}
	return v
}

// manySites returns a view of n sites that differ in load and width, with the
// answer of each.
func manySites(n int) View {
	rng := rand.New(rand.NewPCG(1, 2))
	v := viewOf(cluster.Digest{Site: "s000", Processors: 64, Speed: 1, HomeJobs: cluster.HomeJobsFirst, Load: job.Load{Work: 500, Procs: 2}})
	v.Answers = []Answer{{Site: "s000", Known: true}}
	for i := 1; i < n; i++ {
		d := cluster.Digest{
			Site: job.SiteID(fmt.Sprintf("s%03d", i)), Incarnation: 1, Sequence: 1, Processors: int32(8 + 8*rng.IntN(16)), Speed: 1,
			HomeJobs: cluster.HomeJobsOf(i%2 != 0), Load: job.Load{Work: rng.Float64() * 1000, Procs: rng.Float64()},
		}
		v.Peers = append(v.Peers, &cluster.Peer{Site: d.Site, Known: true, Digest: d, Connected: true})
		v.Answers = append(v.Answers, Answer{Site: d.Site, Known: true, Wait: time.Duration(rng.IntN(1000)) * time.Second})
	}
	return v
}

// policyOf returns the policy of valid options; what is not named is the default.
func policyOf(o Options) Policy {
	d := Default()
	o.Copies, o.MaxLoadAge, o.QueryTimeout = max(o.Copies, 1), d.MaxLoadAge, d.QueryTimeout
	if err := wrong(&o); err != nil {
		panic(err)
	}
	return o.Policy()
}

// decide returns what p makes of the job at now.
func decide(j Job, v View, now job.Time, p *Policy) *store.Decision {
	var r Round
	r.Begin(j, v, now, p)
	return r.Decide()
}

// wrong returns all that is wrong with options, joined.
func wrong(o *Options) error {
	var errs []error
	o.Check(func(key string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("%s %v: %s", key, value, remedy))
	})
	return errors.Join(errs...)
}
