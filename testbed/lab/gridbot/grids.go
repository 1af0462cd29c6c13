package gridbot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// The generator: what the grids of the source are like (its Figures 1(c) and 6(c), spec 002
// section 3.1). It was written down before the first run and serves all statements.

// grid is a row of these figures.
type grid struct {
	name string
	// preempted is the share of its jobs that gave no result by their deadline, failed that of
	// those that ended with an error.
	preempted, failed float64
	// hosts is how many were seen.
	hosts int
	// community says that volunteers run it: a run takes longer there than the task needs.
	community bool
}

var grids = []grid{
	{"madison", 0.20, 0.01, 1113, false},
	{"osg", 0.10, 0.01, 1601, false},
	{"egee", 0.07, 0.02, 2895, false},
	{"technion", 0.02, 0.002, 121, false},
	{communityName, 0.002, 0.13, 4067, true},
}

const communityName = "community"

// The choices that the source leaves open.
const (
	// scale divides hosts and tasks of the source alike: the origin's view of other sites has
	// room for 4096, and each host is one.
	scale = 10
	// leastPart and mostPart bound which part of a grid's hosts serves at a time; each seed has
	// a part of its own. That is 1,600 to 2,300 hosts of the grids but the community.
	leastPart, mostPart = 0.28, 0.40
	// fragilePart of the hosts of a grid carries most of its preemptions: fragileTimes what the
	// figure says, so that the others have a quarter of it.
	fragilePart, fragileTimes = 0.2, 4.0
	// mostPreempted bounds what a host has then.
	mostPreempted = 0.95
	// Up times are log-normal. Of a host, the share in the figure is that of up times below
	// preemptedWithin.
	preemptedWithin = 40 * time.Minute
	upSigma         = 1.0
	// Waits in a grid's queue are log-normal: seconds to hours.
	waitMedian = 10 * time.Minute
	waitSigma  = 1.5
	// blackPart times the share of failures is the share of hosts that fail every task within
	// blackRun.
	blackPart = 0.2
	blackRun  = time.Second
	// A community host takes one through ratio times as long as the task needs. Ratios are
	// Beta(1, ratioBeta), mean 0.3, at least leastRatio.
	ratioBeta  = 7.0 / 3
	leastRatio = 0.01
	// poll is how often a client without work asks.
	poll = time.Minute
)

// host is a machine that runs clients, one after another.
type host struct {
	site job.SiteID
	grid *grid
	// up is the median of its up times.
	up time.Duration
	// slow is how many times as long as it needs a task takes.
	slow  float64
	fails float64
	black bool
}

// slot is a place that the overlay keeps filled: its clients wait in the grid's queue, come up
// on one of its hosts and vanish, whatever they are given to do. So one seed has the same
// comings and goings whoever dispatches.
type slot struct {
	hosts []*host
	comes *rand.Rand // waits, hosts and up times
	fate  *rand.Rand // failures
}

// newSlots makes the slots of some grids, of a divisor of the source's hosts. Alike makes the
// hosts of a grid alike (the second reading).
func newSlots(of []grid, divisor int, alike bool, seed uint64) []*slot {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // Reproducible on purpose.
	part := leastPart + (mostPart-leastPart)*rng.Float64()
	var slots []*slot
	for g := range of {
		grid := &of[g]
		hosts := max(4, grid.hosts/divisor)
		n := max(1, int(math.Round(part*float64(hosts))))
		first := len(slots)
		for i := range n {
			at := uint64(g)<<32 | uint64(i)
			slots = append(slots, &slot{
				comes: rand.New(rand.NewPCG(seed, 1<<48|at)), fate: rand.New(rand.NewPCG(seed, 2<<48|at)), //nolint:gosec // Reproducible on purpose.
			})
		}
		for i := range hosts {
			s := slots[first+i%n]
			s.hosts = append(s.hosts, newHost(grid, i, alike, rng))
		}
	}
	return slots
}

func newHost(g *grid, number int, alike bool, rng *rand.Rand) *host {
	h := &host{site: job.SiteID(fmt.Sprintf("%s-%d", g.name, number)), grid: g, slow: 1, fails: g.failed}
	preempted := g.preempted
	if fragile := rng.Float64() < fragilePart; !alike {
		if preempted *= (1 - fragilePart*fragileTimes) / (1 - fragilePart); fragile {
			preempted = min(mostPreempted, fragileTimes*g.preempted)
		}
	}
	h.up = time.Duration(float64(preemptedWithin) * math.Exp(-upSigma*normalQuantile(preempted)))
	h.black = rng.Float64() < blackPart*g.failed
	if ratio := 1 - math.Pow(1-rng.Float64(), 1/ratioBeta); g.community {
		h.slow = 1 / max(leastRatio, ratio)
	}
	return h
}

// normalQuantile returns where the standard normal distribution reaches p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// wait draws how long the next client waits in the queue.
func (s *slot) wait() time.Duration { return logNormal(s.comes, waitMedian, waitSigma) }

// client draws where the next client runs, and for how long.
func (s *slot) client() (*host, time.Duration) {
	h := s.hosts[s.comes.IntN(len(s.hosts))]
	return h, logNormal(s.comes, h.up, upSigma)
}

// longest bounds what is drawn: half a year.
const longest = 183 * 24 * time.Hour

func logNormal(rng *rand.Rand, median time.Duration, sigma float64) time.Duration {
	return time.Duration(min(float64(longest), max(1, float64(median)*math.Exp(sigma*rng.NormFloat64()))))
}

// runTime is how long a task needs: evenly drawn, the same in every run with a seed.
func runTime(seed uint64, bag int, task uint32, least, most time.Duration) time.Duration {
	rng := rand.NewPCG(seed^uint64(bag+1)<<40, uint64(task)+3<<48)
	rng.Uint64()
	return least + time.Duration(float64(most-least)*(float64(rng.Uint64()>>11)/(1<<53)))
}
