package ghs

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"kith/internal/harvest"
	"kith/testbed/lab"
)

// runSampled measures an owner whose jobs are as long as the source's for a day, and then one whose
// jobs last 0.1 s, by the share of the last 10 s, as often as the sampler asks for.
func runSampled(_ context.Context, _ trial, b *bench) (outcome, error) {
	const rho, brief, window = 0.4, 0.1, 10
	var s harvest.Sampler
	o := make(outcome)
	n := harvest.MostSamples
	for part, w := range []*owner{
		livelyOwner(random(b.seed, sampled, 0), livelyMachine(rho, 1)),
		steady(random(b.seed, sampled, 1), harvest.Machine{Lambda: rho / brief, Rho: rho, Sigma: brief, Speed: 1}),
	} {
		var served []visit // when he was there, in order
		w.tell = func(_, took, end float64) { served = append(served, visit{end - took, end}) }
		for h := range 24 {
			for k := range n {
				at := hour*float64(h+1) + hour*(float64(k)+1)/float64(n)
				w.until(at)
				busy := 0.0
				for i := len(served) - 1; i >= 0 && served[i].end > at-window; i-- {
					busy += max(0, min(served[i].end, at)-max(served[i].at, at-window))
				}
				s.Add(busy / window)
			}
			served = served[max(0, len(served)-1000):]
			n = s.EndHour()
			o[sampleName(24*part+h)] = float64(n)
		}
	}
	return o, nil
}

func sampleName(h int) string { return fmt.Sprintf("hour %d", h) }

// The sizes of the source's third table.
var nodeCounts = []int{4, 8, 16, 32, 64, 128, 256, 512, 1024}

// least is the least processor time of f over several tries, in ms.
func least(clock func() time.Duration, tries int, f func() error) (float64, error) {
	best := math.Inf(1)
	for range tries {
		began, n := clock(), 0
		for n == 0 || clock()-began < 2*time.Millisecond { // several times, if it is quick
			if err := f(); err != nil {
				return 0, err
			}
			n++
		}
		best = min(best, float64(clock()-began)/float64(n)/1e6)
	}
	return best, nil
}

// runSetCosts times choices among 10 and 20 machines: all sets, and bisection.
func runSetCosts(ctx context.Context, _ trial, b *bench) (outcome, error) {
	o := make(outcome)
	if b.clock == nil {
		return o, nil
	}
	runtime.LockOSThread() // the clock is that of the thread
	defer runtime.UnlockOSThread()
	policy := harvest.DefaultPolicy()
	for _, q := range []int{10, 20} {
		ms, job := generated(random(b.seed, setCosts, q), q), harvest.Divisible(workEach*float64(q))
		took, err := least(b.clock, 5, func() error { _, err := policy.Bisection(ms, job); return err })
		if err != nil {
			return nil, err
		}
		o[fmt.Sprintf("bisection, %d", q)] = took
		every, tries := 1, 5
		if q == 20 {
			every, tries = 64, 2
		}
		rough := policy
		rough.Method.Points = 24
		took, err = least(b.clock, tries, func() error {
			var set []int
			for mask := 1; mask < 1<<q; mask += every {
				if err := ctx.Err(); err != nil {
					return err
				}
				set = set[:0]
				for i := range q {
					if mask>>i&1 == 1 {
						set = append(set, i)
					}
				}
				if _, err := rough.Evaluate(ms, job, set...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		o[fmt.Sprintf("all sets, %d", q)] = took * float64(every)
	}
	return o, nil
}

// runNodeCosts times predictions on 4 to 1024 machines.
func runNodeCosts(_ context.Context, _ trial, b *bench) (outcome, error) {
	o := make(outcome)
	if b.clock == nil {
		return o, nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, n := range nodeCounts {
		ms := generated(random(b.seed, nodeCosts, n), n)
		works, err := harvest.MeanTime(ms, float64(n)*8*hour)
		if err != nil {
			return nil, err
		}
		took, err := least(b.clock, 7, func() error { _, err := harvest.NewParallel(ms, works, harvest.Method{}); return err })
		if err != nil {
			return nil, err
		}
		o[nodeName(n)] = took
	}
	return o, nil
}

func nodeName(n int) string { return fmt.Sprintf("%d nodes", n) }

// The trials of costs.
var (
	samplesTaken = trial{sampled, 1}
	setsTimed    = trial{setCosts, 1}
	nodesTimed   = trial{nodeCosts, 1}
)

// untimed is the finding of a run without a clock.
func (a *answers) untimed() (lab.Finding, bool) {
	return lab.Finding{Result: lab.Informational, Measured: "not measured: there is no clock"}, a.env.Clock == nil
}

func setCostQuestion() question {
	return question{
		ID: "S9", Kind: lab.Exact, Text: "From 10 to 20 machines the cost of looking at all sets grows two thousandfold, that of the heuristic little.",
		Source: "3.16 to 6558.75 s (× 2076); 0.07 to 0.25 s", Band: "all sets × 1500–2600; heuristic ≤ × 4, and < 0.1 s",
		Needs: []trial{setsTimed}, Judge: func(a *answers) lab.Finding {
			if f, is := a.untimed(); is {
				return f
			}
			return lab.Conclude(
				lab.Within("all sets, 20 ÷ 10", a.over(setsTimed, "all sets, 20", "all sets, 10"), 1500, 2600),
				lab.Within("heuristic, 20 ÷ 10", a.over(setsTimed, "bisection, 20", "bisection, 10"), 0, 4),
				lab.Check("heuristic, 20 machines", a.Of(setsTimed, figure("bisection, 20")), "ms", a.Of(setsTimed, figure("bisection, 20")).Mean() < 100),
				lab.Shown("all sets of 10", a.Of(setsTimed, figure("all sets, 10")), "ms")).
				Noted("", "There are 1,025 times as many sets, and a set has twice as many machines; but what it takes does not double, as the distribution of a machine is not looked at where it has ended, and some of the work is the same for each set.")
		},
	}
}

func costQuestions() []question {
	return []question{{
		ID: "S13", Kind: lab.Direction, Enforced: true, Text: "Measurements per hour fall as the utilisation becomes steady.",
		Source: "Figure 16", Band: "last hour ≤ 0.5 × first, over the day from which on it is steady",
		Needs: []trial{samplesTaken}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("last ÷ first", a.over(samplesTaken, sampleName(47), sampleName(23)), 0, 0.5),
				lab.Shown("first", a.Of(samplesTaken, figure(sampleName(23))), ""), lab.Shown("last", a.Of(samplesTaken, figure(sampleName(47))), ""))
		},
	}, {
		ID: "S14", Kind: lab.Exact, Text: "The time that a prediction takes grows in proportion to the nodes.",
		Source: "0.08 s for 128 nodes, 0.66 s for 1024", Band: "1024 ÷ 128 nodes: 4–12; 1024 nodes ≤ 0.66 s",
		Needs: []trial{nodesTimed}, Judge: func(a *answers) lab.Finding {
			if f, is := a.untimed(); is {
				return f
			}
			all := a.Of(nodesTimed, figure(nodeName(1024)))
			return lab.Conclude(
				lab.Within("1024 ÷ 128 nodes", a.over(nodesTimed, nodeName(1024), nodeName(128)), 4, 12),
				lab.Check("1024 nodes", all, "ms", all.Mean() <= 660),
				lab.Shown("128 nodes", a.Of(nodesTimed, figure(nodeName(128))), "ms"))
		},
	}, {
		ID: "S15", Kind: lab.Exact, Text: "Measuring takes less than 1 % of a processor.",
		Source: "< 1 %", Band: "< 1 %",
		Judge: func(*answers) lab.Finding {
			return lab.Finding{Result: lab.Informational, Measured: "not measured here, but of the sensor that ships: a benchmark beside it, and its figure on the page of performance"}
		},
	}}
}

// questions are the statements of the study.
func questions() []question {
	list := predictionQuestions()
	list = append(list, divisionQuestions()...)
	list = append(list, choiceQuestion(), setCostQuestion(), forecastQuestion(), phaseQuestion(), scaleQuestion())
	return append(list, costQuestions()...)
}
