package ghs

import (
	"context"
	"fmt"

	"kith/internal/harvest"
	"kith/testbed/lab"
)

// workEach is the work for each machine that is to be had, as in the source's second table.
const workEach = 545

// scanName is the figure of the other heuristic, which production uses.
const scanName = "GHS, prefix scan"

// Sizes of what is chosen from: all sets of these, and the source's second table with its works.
var (
	setSizes   = []int{10, 15, 20}
	randomOnes = []int{5, 10, 15}
	scaleSizes = []int{25, 50, 100, 200, 400}
	scaleWorks = map[int]float64{25: 13801.7, 50: 27619.2, 100: 53779.5, 200: 108642.5, 400: 215141.0}
)

// runChosen runs work on the best of all sets, on prefixes and on random sets, 100 times each. A
// small try looks at fewer machines.
func runChosen(ctx context.Context, t trial, b *bench) (outcome, error) {
	q := t.size
	if b.runs < runsOf {
		q = min(q, 8)
	}
	rng := random(b.seed, t.what, t.size)
	ms, job := generated(rng, q), harvest.Divisible(workEach*float64(q))
	policy := harvest.DefaultPolicy()
	choices := map[string]func() (harvest.Choice, error){
		"optimal":   func() (harvest.Choice, error) { return policy.Exhaustive(ms, job) },
		"bisection": func() (harvest.Choice, error) { return policy.Bisection(ms, job) },
		scanName:    func() (harvest.Choice, error) { return policy.PrefixScan(ms, job) },
	}
	for _, p := range randomOnes {
		set := rng.Perm(q)[:min(p, q)]
		choices[randomName(p)] = func() (harvest.Choice, error) { return policy.Evaluate(ms, job, set...) }
	}
	o := make(outcome)
	for name, choose := range choices {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := choose()
		if err != nil {
			return nil, err
		}
		o[name], o[name+", machines"], o[name+", cost"] = playChoice(ms, c, b.seed, b.runs), float64(len(c.Machines)), c.Cost
	}
	return o, nil
}

func randomName(p int) string { return fmt.Sprintf("random %d", p) }

// playChoice is the mean time of a choice over runs.
func playChoice(ms []harvest.Machine, c harvest.Choice, seed uint64, runs int) float64 {
	picked := make([]harvest.Machine, len(c.Machines))
	for i, k := range c.Machines {
		picked[i] = ms[k]
	}
	sum := 0.0
	for r := range runs {
		sum += play(picked, c.Works, seed, r, steady)
	}
	return sum / float64(runs)
}

// runScaled runs the works of the source's second table on the machines that GHS chooses, and on
// all of them, as AppLeS does.
func runScaled(ctx context.Context, t trial, b *bench) (outcome, error) {
	ms := generated(random(b.seed, t.what, t.size), t.size)
	job := harvest.Divisible(scaleWorks[t.size])
	policy := harvest.DefaultPolicy()
	all := make([]int, t.size)
	for i := range all {
		all[i] = i
	}
	ghs, err := policy.Bisection(ms, job)
	if err != nil {
		return nil, err
	}
	scan, err := policy.PrefixScan(ms, job)
	if err != nil {
		return nil, err
	}
	apples, err := policy.Evaluate(ms, job, all...)
	if err != nil {
		return nil, err
	}
	o := make(outcome)
	for name, c := range map[string]harvest.Choice{"GHS": ghs, scanName: scan, "AppLeS": apples} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o[name], o[name+", machines"] = playChoice(ms, c, b.seed, max(1, b.runs/5)), float64(len(c.Machines))
	}
	return o, nil
}

// table2 is the source's second table: times and machines.
var table2 = map[int][4]float64{
	25: {496.4, 13, 547.4, 25}, 50: {557.7, 26, 637.4, 50}, 100: {712.8, 57, 818.3, 100}, 200: {874.5, 99, 1022.7, 200}, 400: {1140.4, 113, 1266, 400},
}

func choiceQuestion() question {
	return question{
		ID: "S8", Kind: lab.Exact, Text: "20 machines: the heuristic is nearly as good as the best of all sets, and both are better than random ones.",
		Source: "464.9 s on 14 and 486.4 s on 13 (+ 4.6 %)", Band: "heuristic ≤ 1.15 × optimal on average over 10 runs, each ≤ 1.5; random 5, 10 and 15 worse than both on average",
		Enforced: true, Needs: trialsOf(chosen, setSizes...), Judge: func(a *answers) lab.Finding {
			t := trial{chosen, 20}
			ratio := a.over(t, "bisection", "optimal")
			worst := 0.0
			for _, r := range ratio {
				worst = max(worst, r)
			}
			parts := []lab.Reading{
				lab.Shown("optimal", a.Of(t, figure("optimal")), "s"), lab.Shown("machines", a.Of(t, figure("optimal, machines")), ""),
				lab.Shown("heuristic", a.Of(t, figure("bisection")), "s"), lab.Shown("machines", a.Of(t, figure("bisection, machines")), ""),
				lab.Within("heuristic ÷ optimal", ratio, 0, 1.15), lab.Check("worst run", lab.Spread{worst}, "", worst <= 1.5),
			}
			better := max(a.Of(t, figure("optimal")).Mean(), a.Of(t, figure("bisection")).Mean())
			for _, p := range randomOnes {
				v := a.Of(t, figure(randomName(p)))
				parts = append(parts, lab.Check(randomName(p), v, "s", v.Mean() > better))
			}
			parts = append(parts, lab.Shown("prefix scan ÷ optimal", a.over(t, scanName, "optimal"), ""))
			return lab.Conclude(parts...)
		},
	}
}

func scaleQuestion() question {
	return question{
		ID: "S12", Kind: lab.Exact, Text: "25 to 400 machines, the same prediction: GHS is faster than AppLeS, which takes all machines, and uses about half of them.",
		Source: "9.3 to 14.5 % less time; 13 of 25 to 113 of 400 machines", Band: "saving 5–25 % and machines ≤ 0.7 × at each size",
		Needs: trialsOf(scaled, scaleSizes...), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, q := range scaleSizes {
				t := trial{scaled, q}
				parts = append(parts,
					lab.Within(fmt.Sprintf("%d machines, saving (%%)", q), a.saved(t, "GHS", "AppLeS"), 5, 25),
					lab.Within("of the machines", a.over(t, "GHS, machines", "AppLeS, machines"), 0, 0.7))
			}
			return lab.Conclude(parts...).Noted("", "The machines of the source's table are not known. Those of the specification's generator are busier: owners take up to 0.9 of a machine, in jobs of 30 s that vary up to three times as much as their mean. A machine that an owner nearly fills ends late at times, and with all machines one of them decides; so leaving it out saves more here.")
		},
	}
}
