package hierarchy

import (
	"math"
	"time"

	"kith/sitesched"
	"kith/sitesched/level"
)

// queue is a queue of the hierarchy and the grid that it is connected to.
type queue struct {
	name   string
	limits level.Limits
	grid   int
	// guest says that its sub-jobs give way to those of another queue of the grid.
	guest bool
	// parallel says that tasks are divided into sub-jobs of about the length sub.
	parallel bool
	sub      time.Duration
	// latency is how long the grid takes to begin with a task, in the mean, or always if steady.
	latency time.Duration
	steady  bool
	// sibling is a queue of the same level that is tried first when a task leaves, next the one below; -1 for none.
	sibling, next int
	// volatility is how often a running sub-job loses its processor, each hour.
	volatility float64
}

// grid is a pool of processors, of which owners hold some.
type grid struct {
	processors int32
	queues     sitesched.Queues
	// owners is the mean share that owners hold, swing its deviation.
	owners, swing float64
}

// system is what tasks run on.
type system struct {
	queues []queue
	grids  []grid
}

const (
	flowControl = 4 * time.Second // of DAGman, each time a task is handed to a grid
	migration   = 5 * time.Second // a checkpoint of the master, and its way
	share       = level.DefaultBound
	ownersMove  = 10 * time.Minute
)

// The queues of the source.
const (
	q1 = iota
	q2
	q3
	q4
)

// drawnShare is the share of sub-jobs of a queue that lose their processors at random. Owners and the queue
// above evict, too; together they are to come near 1, 7 and 14 % (Table 3).
var drawnShare = [4]float64{0, 0.002, 0.045, 0.09}

// rate is how often an hour something happens that happens to a share of all sub-jobs.
func rate(share float64, length time.Duration) float64 {
	return -math.Log(1-share) / length.Hours()
}

// limits are those of a row of Table 2. The reference processor does one operation a second.
func limits(rank uint8, queueMinutes, runMinutes time.Duration, n int32, kflops float64) level.Limits {
	return level.Limits{
		Rank: rank, Queue: queueMinutes * time.Minute, Run: runMinutes * time.Minute, Processors: n,
		Speed: kflops * 1000, Bound: share, EstimateShare: level.DefaultEstimateShare,
	}
}

// production is the system of the source.
func production() system {
	const minute = time.Minute
	subs := [4]time.Duration{0, 564 * time.Second, 798 * time.Second, 918 * time.Second}
	return system{
		queues: []queue{
			{name: "Q1", limits: limits(1, 6, 3, 2, 817477), grid: 0, sibling: -1, next: q2},
			{name: "Q2", limits: limits(2, 320, 160, 100, 775251), grid: 1, parallel: true, sub: subs[q2], latency: 20 * time.Second, sibling: q3, next: q4, volatility: rate(drawnShare[q2], subs[q2])},
			{name: "Q3", limits: limits(2, 160, 160, 500, 649505), grid: 2, parallel: true, sub: subs[q3], latency: 4 * minute, sibling: -1, next: q4, volatility: rate(drawnShare[q3], subs[q3])},
			{name: "Q4", limits: limits(3, 2880, 2880, 500, 649505), grid: 2, guest: true, parallel: true, sub: subs[q4], latency: 6 * minute, sibling: -1, next: -1, volatility: rate(drawnShare[q4], subs[q4])},
		},
		grids: []grid{
			{processors: 2, queues: sitesched.Single},
			{processors: 100, queues: sitesched.Single, owners: 0.3, swing: 0.04},
			{processors: 500, queues: sitesched.DualPreempt, owners: 0.5, swing: 0.05},
		},
	}
}
