package localpriority

import (
	"fmt"
	"slices"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// sweptWeights are the constants a of the sweep (spec 004 section 2.4).
var sweptWeights = []float64{1, 1.1, 1.2, 1.3, 1.5, 1.7, 2}

// sweepTrials are case 1 medium, Q3 and Q4, with each of the swept weights.
func sweepTrials() []trial {
	var list []trial
	for _, k := range []int{3, 4} {
		for _, a := range sweptWeights {
			list = append(list, mct(1, medium, k).weighted(a))
		}
	}
	return list
}

// adaptiveTrials are Q4 of all pairs with weights that follow the promises.
func adaptiveTrials() []trial {
	var list []trial
	for _, c := range settings() {
		list = append(list, mct(c.number, c.load, 4).adapting())
	}
	return list
}

// checkQuestions are the checks of spec 004 section 5 that an experiment can
// show, by their numbers there.
func checkQuestions() []question {
	return []question{
		{
			ID: "A2", Kind: lab.Ours, Enforced: true, Text: "On a frozen state the predicted start of every queued job, and of one that comes now, is the simulated one.",
			Source: "spec 004 section 5 no. 2", Band: "all, under single and strict dual queues, and EASY",
			Judge: judged(judgePredictions),
		},
		{
			ID: "A4", Kind: lab.Ours, Enforced: true, Text: "Weights act in exactly the (case, k) pairs of the source.",
			Source: "case 1: 3, 4; case 2: 2, 3, 4; case 3: 4", Band: "of the 18 pairs, other event logs than without weights exactly there",
			Needs: ruleTrials(),
			Judge: judged(judgeWeightRule),
		},
		{
			ID: "A5", Kind: lab.Ours, Enforced: true, Text: "a = 1, and any a at Q0 and Q5, is plain MCT; so is the adaptive variant at Q0, where all promises are kept.",
			Source: "spec 004 section 5 no. 5", Band: "event logs are equal byte for byte",
			Needs: sameTrials(),
			Judge: judged(judgeSameAsMCT),
		},
		{
			ID: "A9", Kind: lab.Ours, Enforced: true, Text: "Case 1 medium: a = 1.3 lowers the standard deviation over the sites.",
			Source: "one of the good values (its figure 4.2)", Band: "at most 0.6 of that with a = 1, at Q3 and at Q4",
			Needs: sweepTrials(),
			Judge: judged(judgeSweep),
		},
		{
			ID: "A10", Kind: lab.Ours, Enforced: true, Text: "Case 1 heavy: the mean of all jobs is what a backlog of 44,000 s of work at the end makes of it.",
			Source: "about 22,000 s of waiting and 2,000 s of running", Band: "18,000-30,000 s for each Q",
			Needs: mctTrials(caseOne()[0]),
			Judge: judged(judgeFluid, "A mean outside of the band is an error of the model."),
		},
		{
			ID: "A11", Kind: lab.Ours, Text: "Weights that follow promised against actual completion need no policy label; they also lower the largest mean.",
			Source: "future work of the source", Band: "Q4: largest mean against MCT and against a = 1.3, not enforced",
			Needs: append(append(adaptiveTrials(), withWeights(activeTrials(1, 2, 3))...), mctTrials()...),
			Judge: judged(judgeAdaptive),
		},
		{
			ID: "A12", Kind: lab.Ours, Enforced: true, Text: "All configurations of a case and load run the same jobs.",
			Source: "spec 004 section 5 no. 12", Band: "equal hashes of what the records say was submitted",
			Needs: []trial{mct(1, heavy, 0), mct(1, heavy, 3), mct(1, heavy, 3).weighted(paperWeight)},
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				streams, runs, strays := a.sameJobs()
				f.note("streams", float64(streams), "")
				f.note("runs", float64(runs), "")
				f.must(strays == 0, "in %d streams some runs had other jobs", strays)
				f.say("%d streams of jobs, %d runs, %d streams with different jobs", streams, runs, strays)
				return f
			}),
		},
	}
}

func judgeSweep(a *answers) *reading {
	f := &reading{}
	for _, k := range []int{3, 4} {
		t := mct(1, medium, k)
		base, now := a.deviation(t), a.deviation(t.weighted(paperWeight))
		f.in(fmt.Sprintf("Q%d, sd(1.3)/sd(1)", k), now/base, 0, 0.6, "")
		f.say("Q%d %s to %s s, %s of it", k, report.Number(base), report.Number(now), report.Number(now/base))
	}
	return f
}

func judgeFluid(a *answers) *reading {
	f := &reading{}
	var all []float64
	for k := range siteCount + 1 {
		all = append(all, a.of(mct(1, heavy, k)).all)
		f.in(fmt.Sprintf("ALL at Q%d", k), all[k], 18_000, 30_000, "s")
	}
	f.say("%s s at Q0 to Q5", list(all))
	return f
}

func judgeAdaptive(a *answers) *reading {
	f := &reading{informs: true}
	better, close := 0, 0
	a = a.few()
	for _, t := range adaptiveTrials() {
		plain := a.largest(mct(t.number, t.load, 4))
		weighted, adaptive := a.largest(mct(t.number, t.load, 4).weighted(paperWeight)), a.largest(t)
		f.note(t.setting.String()+", a = 1.3", percent(weighted, plain), "%")
		f.note(t.setting.String()+", adaptive", percent(adaptive, plain), "%")
		better += btoi(adaptive < plain)
		close += btoi(adaptive <= weighted)
		if t.load == heavy {
			f.say("%v: adaptive %s, a = 1.3 %s", t.setting, signed(percent(adaptive, plain)), signed(percent(weighted, plain)))
		}
	}
	f.say("better than MCT in %d of 9 pairs, not behind a = 1.3 in %d", better, close)
	return f
}

// loggedTrial is a configuration under heavy load, as a run for its event log.
func loggedTrial(number, duals int) trial { return mct(number, heavy, duals).logged() }

// ruleTrials are the 18 pairs of a case and a configuration with weights and
// without.
func ruleTrials() []trial {
	var list []trial
	for number := 1; number <= 3; number++ {
		for k := range siteCount + 1 {
			t := loggedTrial(number, k)
			list = append(list, t, t.weighted(paperWeight))
		}
	}
	return list
}

// log returns the fingerprint of the event log of a small run.
func (a *answers) log(t trial) string { return a.Outcomes[t][0].log }

// judgeWeightRule compares event logs with and without weights.
func judgeWeightRule(a *answers) *reading {
	f := &reading{}
	for number := 1; number <= 3; number++ {
		var acts []int
		for k := range siteCount + 1 {
			t := loggedTrial(number, k)
			if a.log(t) != a.log(t.weighted(paperWeight)) {
				acts = append(acts, k)
			}
		}
		f.say("case %d: %s", number, configurations(acts))
		f.must(slices.Equal(acts, weightsAct[number-1]), "case %d: %s, not %s", number, configurations(acts), configurations(weightsAct[number-1]))
	}
	return f
}

// configurations names Qs.
func configurations(ks []int) string {
	text := ""
	for i, k := range ks {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("Q%d", k)
	}
	if text == "" {
		return "none"
	}
	return text
}

// samePairs are trials with plain MCT, which has no weight stage at all, and
// others that should be the same.
func samePairs() [][2]trial {
	var pairs [][2]trial
	for number := 1; number <= 3; number++ {
		for k := range siteCount + 1 {
			plain := loggedTrial(number, k).weighted(0)
			pairs = append(pairs, [2]trial{plain, plain.weighted(1)})
			if k == 0 || k == siteCount {
				pairs = append(pairs, [2]trial{plain, plain.weighted(paperWeight)})
			}
			if k == 0 {
				pairs = append(pairs, [2]trial{plain, plain.adapting()})
			}
		}
	}
	return pairs
}

func sameTrials() []trial {
	var list []trial
	for _, p := range samePairs() {
		list = append(list, p[0], p[1])
	}
	return list
}

// judgeSameAsMCT compares event logs that should be equal.
func judgeSameAsMCT(a *answers) *reading {
	f := &reading{}
	same := 0
	for _, p := range samePairs() {
		equal := a.log(p[0]) == a.log(p[1])
		same += btoi(equal)
		f.must(equal, "%v differs from MCT", p[1])
	}
	f.say("%d of %d event logs are equal", same, len(samePairs()))
	return f
}
