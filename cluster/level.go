package cluster

import (
	"time"

	"kith/internal/job"
)

// Level is what a site says of the level of a hierarchy that it is. It is not changed once it is
// made; nil stands for a site of none. Work is in processor-seconds of the reference.
type Level struct {
	// Rank is 1, the smallest level, to [job.MaxLevel].
	Rank uint8
	// Queue and Run are the longest stay there and the longest run, both above 0, Run at most
	// Queue.
	Queue, Run time.Duration
	// Work is that of the jobs of the hierarchy that wait and run there, Limit the most of it
	// that the level takes.
	Work, Limit float64
	// Shares says that the rest is told: a site of an older version tells it not.
	Shares bool
	// Available is how many processors jobs of the hierarchy have there or could have, smoothed; 0 to
	// [job.MaxProcessors]. Latency is from when one has its processors to when it runs, in the mean.
	Available float64
	Latency   time.Duration
}

// Is reports whether the site is of a level. It works on nil.
func (l *Level) Is(rank uint8) bool { return l != nil && l.Rank == rank }

// mostLevelWork is more than any site does, in processor-seconds of the reference.
const mostLevelWork = 1e18

// possible is [Digest.Possible] of a level.
func (l *Level) possible() error {
	switch {
	case l == nil:
	case l.Rank < 1 || l.Rank > job.MaxLevel:
		return impossible("level.rank", l.Rank, "1 to 16")
	case l.Queue <= 0 || l.Queue > job.MaxWalltime:
		return impossible("level.queue_limit", l.Queue, "above 0s, at most 10 years")
	case l.Run <= 0 || l.Run > l.Queue:
		return impossible("level.run_limit", l.Run, "above 0s, at most queue_limit")
	case !within(l.Work, 0, mostLevelWork):
		return impossible("level.work", l.Work, "0 to 10^18 processor-seconds")
	case !within(l.Limit, 0, mostLevelWork):
		return impossible("level.work_limit", l.Limit, "0 to 10^18 processor-seconds")
	case !within(l.Available, 0, job.MaxProcessors):
		return impossible("level.available", l.Available, "0 to 16777216")
	case l.Latency < 0 || l.Latency > job.MaxWalltime:
		return impossible("level.latency", l.Latency, "0s to 10 years")
	}
	return nil
}
