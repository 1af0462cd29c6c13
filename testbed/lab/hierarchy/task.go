package hierarchy

import (
	"time"

	"kith/internal/job"
	"kith/sitesched/level"
)

// fate is what became of a task.
type fate uint8

const (
	open fate = iota
	done
	killed
	rejected
)

// task is a task and its master.
type task struct {
	submitted
	id    int
	est   estimator
	bound level.Bound

	queue   int      // where it is, -1 if nowhere
	visits  []int    // queues that it was in, in order
	came    job.Time // to the queue
	ready   job.Time // its sub-jobs may run there
	began   job.Time // its first sub-job started there, 0 if none has
	stage   int      // counts its moves, so that what was planned before is void
	settled bool     // its estimate here is made

	done   float64 // work of sub-jobs that have ended
	piece  float64 // of a sub-job here
	unsent int     // pieces not handed to the grid
	queued int     // pieces there that do not run
	n      int     // pieces here when it came
	// running sub-jobs, and the sum of their starts, for their progress.
	running int
	starts  float64
	active  activity

	end    job.Time
	fate   fate
	used   float64    // processor time in s, with what was lost
	lost   float64    // by evictions
	usedAt [4]float64 // by queue
	cost   overheads
	here   parallel // of the queue where it is
	seen   [4]parallel
}

// overheads are where the time of a task went, in s.
type overheads struct {
	estimation, migration, flow, local, grid, eviction, run float64
}

// settle divides what is left of the time of a task that has ended: while it had sub-jobs that ran, the part of processor
// time that evictions cost counts as lost; while it had none after the first, it waited behind others.
func (o *overheads) settle(t *task) {
	o.run = t.active.total.Seconds()
	if t.used > 0 {
		o.eviction = o.run * t.lost / t.used
		o.run -= o.eviction
	}
	o.local += max(t.end.Sub(t.at).Seconds()-o.sum()-o.run, 0)
}

// sum is the overhead, without the run.
func (o *overheads) sum() float64 {
	return o.estimation + o.migration + o.flow + o.local + o.grid + o.eviction
}

// activity measures how long at least one sub-job ran.
type activity struct {
	since job.Time
	total time.Duration
}

// parallel is what Table 3 says of a task in a queue.
type parallel struct {
	subjobs, evicted int
	all              int     // that there were to be
	ran, lost        float64 // s
	// held is the sum over the starts and ends of sub-jobs, as long as some wait to start, of those that run.
	held    float64
	samples int
}

// progress is the work of the running sub-jobs so far, at most what they are.
func (t *task) progress(now job.Time, speed float64) float64 {
	return min((float64(t.running)*now.Sub(0).Seconds()-t.starts)*speed, float64(t.running)*t.piece)
}

// left is the part of the task that rules may know.
func (t *task) rule(now job.Time, speed float64) level.Task {
	return t.bound.Task(level.Complexity(t.done+t.progress(now, speed)), share)
}

// remaining is what really is left of the work.
func (t *task) remaining() float64 { return max(t.work-t.done, 0) }
