package conserve

import (
	"fmt"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// The federation of the study. Every second site has half the processors.
const (
	siteCount = 4
	siteJobs  = 600
	// largeProcessors is the size of a large site where jobs are generated. On a
	// log it is that of the log's machine.
	largeProcessors = 128
	// firstStream keeps the random numbers of a site's jobs apart from others.
	firstStream = 700
)

func siteID(i int) job.SiteID { return job.SiteID(fmt.Sprintf("site%d", i+1)) }

// offered is the offered load of the own jobs of site i.
func offered(load, i int) float64 { return lab.Offered(load, i, siteCount) }

// source is where jobs come from.
type source struct{ *lab.Source }

func newSource(env *lab.Env) (*source, error) {
	src, err := lab.NewSource(env, largeProcessors, siteJobs)
	if err != nil {
		return nil, err
	}
	src.NotLast = true // as when docs/reproduction.md was written
	return &source{src}, nil
}

func (src *source) processors(i int) int32 { return lab.SiteSize(src.Large, i) }

// workloads returns the jobs of all sites with a seed.
func (src *source) workloads(load int, seed uint64) ([]*workload.Workload, error) {
	list := make([]*workload.Workload, siteCount)
	for i := range list {
		rng := workload.NewRand(seed, firstStream+uint64(i)) //nolint:gosec // A small index.
		var err error
		if list[i], err = src.Workload(src.processors(i), offered(load, i), src.Span(load, 1), rng); err != nil {
			return nil, err
		}
	}
	return list, nil
}
