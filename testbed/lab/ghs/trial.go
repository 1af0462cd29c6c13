package ghs

import (
	"context"
	"math"
	"time"

	"kith/testbed/lab"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

// trial is something that is measured, at one size. Equal trials are run once.
type trial struct {
	what string
	size int
}

// outcome is figures by name.
type outcome map[string]float64

// bench is what a trial runs on.
type bench struct {
	seed  uint64
	runs  int
	clock func() time.Duration // nil if nothing is timed
}

// kinds are how trials are run, by what they are, with a guess at what they take.
var kinds = map[string]struct {
	run     func(ctx context.Context, t trial, b *bench) (outcome, error)
	expense func(size int) int
}{
	predicted:  {runPredicted, func(n int) int { return 50 * n }},
	noisy:      {runPredicted, func(n int) int { return 50 * n }},
	single:     {runSingle, func(int) int { return 500 }},
	divided:    {runDivided, func(int) int { return 50 }},
	equalNodes: {runEqualNodes, func(int) int { return 200 }},
	chosen:     {runChosen, func(n int) int { return 1 << n / 100 }},
	phases:     {runPhases, func(n int) int { return n / 10 }},
	scaled:     {runScaled, func(n int) int { return n }},
	sampled:    {runSampled, func(int) int { return 20 }},
	setCosts:   {runSetCosts, func(int) int { return 5000 }},
	nodeCosts:  {runNodeCosts, func(int) int { return 100 }},
}

// The kinds of trials.
const (
	predicted  = "predicted tasks"          // on size machines
	noisy      = "tasks that communicate"   // on size machines
	single     = "tasks on one machine"     // of 1 to 24 h
	divided    = "divisions of two"         // size: which of the two is fast
	equalNodes = "divisions of equal nodes" // of size hours in all
	chosen     = "chosen sets"              // of size machines
	phases     = "subtasks"                 // size of them
	scaled     = "chosen machines"          // of size
	sampled    = "samples"
	setCosts   = "costs of choices"
	nodeCosts  = "costs of predictions"
)

func (t trial) run(ctx context.Context, b *bench) (outcome, error) {
	return kinds[t.what].run(ctx, t, b)
}

func (t trial) expense() int { return kinds[t.what].expense(t.size) }

// timed reports whether the trial measures time, which one seed is enough for.
func (t trial) timed() bool { return t.what == setCosts || t.what == nodeCosts }

// trialsOf are the trials of a kind with these sizes.
func trialsOf(what string, sizes ...int) []trial {
	var list []trial
	for _, n := range sizes {
		list = append(list, trial{what, n})
	}
	return list
}

// figure reads a figure.
func figure(name string) func(outcome) float64 {
	return func(o outcome) float64 { return o[name] }
}

// percent reads a figure in percent.
func percent(name string) func(outcome) float64 {
	return func(o outcome) float64 { return 100 * o[name] }
}

// off is the error of a prediction.
func off(predicted, measured float64) float64 { return math.Abs(predicted-measured) / measured }

// spread is a mean and a variance under way.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(x float64) {
	s.n++
	s.sum += x
	s.squares += x * x
}

func (s *spread) mean() float64     { return s.sum / s.n }
func (s *spread) variance() float64 { return s.squares/s.n - s.mean()*s.mean() }

// falling reports whether each value is at most a tenth more than the one before, and the last
// less than the first.
func falling(values []lab.Spread) bool {
	for i := 1; i < len(values); i++ {
		if values[i].Mean() > 1.1*values[i-1].Mean() {
			return false
		}
	}
	return values[len(values)-1].Mean() < values[0].Mean()
}

// saved is by how much the mean of one figure of a trial over all runs is less than that of
// another, in percent.
func (a *answers) saved(t trial, less, more string) lab.Spread {
	return lab.Spread{100 * (1 - a.Of(t, figure(less)).Mean()/a.Of(t, figure(more)).Mean())}
}
