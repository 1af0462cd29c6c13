package choice

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// setting is a federation without its policies: how many sites there are
// and how busy they are.
type setting struct {
	sites int
	// load is the mean offered load of a processor, in percent.
	load int
	// brief makes it briefPart times as long: for many sites.
	brief bool
}

// The federations of the study. Every second site, by load, has half the
// processors: then the whole is equally loaded however many sites there are.
const (
	siteJobs  = 3000
	briefPart = 0.4
	// largeProcessors is the size of a large site where jobs are generated, that
	// of the CTC log's machine. On a log it is that of the log's machine.
	largeProcessors = 338
	// zones is how many zones, an hour apart, the sites lie in.
	zones = 4
)

// String names the setting for people.
func (c setting) String() string {
	s := fmt.Sprintf("%d sites, load 0.%02d", c.sites, c.load)
	if c.brief {
		s += ", shorter"
	}
	return s
}

// member is a site of a setting.
type member struct {
	setting
	index int
}

func (s member) id() job.SiteID { return job.SiteID(fmt.Sprintf("site%d", s.index+1)) }

// offered is the offered load of the site's own jobs.
func (s member) offered() float64 { return lab.Offered(s.load, s.index, s.sites) }

func (s member) processors(large int32) int32 { return lab.SiteSize(large, s.index) }

func (s member) zone() time.Duration { return time.Duration(s.index%zones) * time.Hour }

// source is where jobs come from.
type source struct{ *lab.Source }

func newSource(env *lab.Env) (*source, error) {
	src, err := lab.NewSource(env, largeProcessors, siteJobs)
	if err != nil {
		return nil, err
	}
	return &source{src}, nil
}

// span is how long jobs are submitted.
func (src *source) span(c setting) time.Duration {
	if c.brief {
		return src.Span(c.load, briefPart)
	}
	return src.Span(c.load, 1)
}

// firstStream keeps the random numbers of a site's jobs apart from others.
const firstStream = 100

// workloads returns the jobs of all sites with a seed.
func (src *source) workloads(c setting, seed uint64) ([]*workload.Workload, error) {
	list := make([]*workload.Workload, c.sites)
	for i := range list {
		s, rng := member{c, i}, workload.NewRand(seed, firstStream+uint64(i)) //nolint:gosec // A small index.
		var err error
		if list[i], err = src.Workload(s.processors(src.Large), s.offered(), src.span(c), rng); err != nil {
			return nil, err
		}
	}
	return list, nil
}
