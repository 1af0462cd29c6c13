package lab

import (
	"context"
	"fmt"
	"slices"

	"kith/testbed/report"
	"kith/testbed/workload"
)

// sweptWeights are the constants a of the sweep (spec 004 section 2.4).
var sweptWeights = []float64{1, 1.1, 1.2, 1.3, 1.5, 1.7, 2}

// sweepTrials are case 1 medium, Q3 and Q4, with each of the swept weights.
func sweepTrials() []priorityTrial {
	var list []priorityTrial
	for _, k := range []int{3, 4} {
		for _, a := range sweptWeights {
			list = append(list, mct(1, medium, k).weighted(a))
		}
	}
	return list
}

// adaptiveTrials are Q4 of all pairs with weights that follow the promises.
func adaptiveTrials() []priorityTrial {
	var list []priorityTrial
	for _, c := range priorityCases() {
		list = append(list, mct(c.number, c.load, 4).adapting())
	}
	return list
}

// checkQuestions are the checks of spec 004 section 5 that an experiment can
// show, by their numbers there.
func checkQuestions() []priorityQuestion {
	return []priorityQuestion{
		{
			Claim: Claim{
				ID: "A2", Kind: Ours, Enforced: true, Statement: "On a frozen state the predicted start of every queued job, and of one that comes now, is the simulated one.",
				Source: "spec 004 section 5 no. 2", Band: "all, under single and strict dual queues, and EASY",
			},
			extra: func(_ context.Context, env *Env) (*priorityReading, error) { return judgePredictions(env) },
		},
		{
			Claim: Claim{
				ID: "A4", Kind: Ours, Enforced: true, Statement: "Weights act in exactly the (case, k) pairs of the source.",
				Source: "case 1: 3, 4; case 2: 2, 3, 4; case 3: 4", Band: "of the 18 pairs, other event logs than without weights exactly there",
			},
			extra: judgeWeightRule,
		},
		{
			Claim: Claim{
				ID: "A5", Kind: Ours, Enforced: true, Statement: "a = 1, and any a at Q0 and Q5, is plain MCT; so is the adaptive variant at Q0, where all promises are kept.",
				Source: "spec 004 section 5 no. 5", Band: "event logs are equal byte for byte",
			},
			extra: judgeSameAsMCT,
		},
		{
			Claim: Claim{
				ID: "A9", Kind: Ours, Enforced: true, Statement: "Case 1 medium: a = 1.3 lowers the standard deviation over the sites.",
				Source: "one of the good values (its figure 4.2)", Band: "at most 0.6 of that with a = 1, at Q3 and at Q4",
			},
			needs: sweepTrials(),
			judge: judgeSweep,
		},
		{
			Claim: Claim{
				ID: "A10", Kind: Ours, Enforced: true, Statement: "Case 1 heavy: the mean of all jobs is what a backlog of 44,000 s of work at the end makes of it.",
				Source: "about 22,000 s of waiting and 2,000 s of running", Band: "18,000-30,000 s for each Q",
			},
			needs: mctTrials(caseOne()[0]),
			judge: judgeFluid,
			why:   "A mean outside of the band is an error of the model.",
		},
		{
			Claim: Claim{
				ID: "A11", Kind: Ours, Statement: "Weights that follow promised against actual completion need no policy label; they also lower the largest mean.",
				Source: "future work of the source", Band: "Q4: largest mean against MCT and against a = 1.3, not enforced",
			},
			needs: append(append(adaptiveTrials(), withWeights(activeTrials(1, 2, 3))...), mctTrials()...),
			judge: judgeAdaptive, informs: true,
		},
		{
			Claim: Claim{
				ID: "A12", Kind: Ours, Enforced: true, Statement: "All configurations of a case and load run the same jobs.",
				Source: "spec 004 section 5 no. 12", Band: "equal hashes of what the records say was submitted",
			},
			needs: []priorityTrial{mct(1, heavy, 0), mct(1, heavy, 3), mct(1, heavy, 3).weighted(paperWeight)},
			judge: func(a *priorityAnswers) *priorityReading {
				f := &priorityReading{}
				f.note("streams", float64(a.streams), "")
				f.note("runs", float64(a.runs), "")
				f.must(a.strays == 0, "in %d streams some runs had other jobs", a.strays)
				f.say("%d streams of jobs, %d runs, %d streams with different jobs", a.streams, a.runs, a.strays)
				return f
			},
		},
	}
}

func judgeSweep(a *priorityAnswers) *priorityReading {
	f := &priorityReading{}
	for _, k := range []int{3, 4} {
		t := mct(1, medium, k)
		base, now := a.deviation(t), a.deviation(t.weighted(paperWeight))
		f.in(fmt.Sprintf("Q%d, sd(1.3)/sd(1)", k), now/base, 0, 0.6, "")
		f.say("Q%d %s to %s s, %s of it", k, report.Number(base), report.Number(now), report.Number(now/base))
	}
	return f
}

func judgeFluid(a *priorityAnswers) *priorityReading {
	f := &priorityReading{}
	var all []float64
	for k := range prioritySites + 1 {
		all = append(all, a.of(mct(1, heavy, k)).all)
		f.in(fmt.Sprintf("ALL at Q%d", k), all[k], 18_000, 30_000, "s")
	}
	f.say("%s s at Q0 to Q5", list(all))
	return f
}

func judgeAdaptive(a *priorityAnswers) *priorityReading {
	f := &priorityReading{}
	better, close := 0, 0
	a = a.few()
	for _, t := range adaptiveTrials() {
		plain := a.largest(mct(t.number, t.load, 4))
		weighted, adaptive := a.largest(mct(t.number, t.load, 4).weighted(paperWeight)), a.largest(t)
		f.note(t.priorityCase.String()+", a = 1.3", percent(weighted, plain), "%")
		f.note(t.priorityCase.String()+", adaptive", percent(adaptive, plain), "%")
		better += btoi(adaptive < plain)
		close += btoi(adaptive <= weighted)
		if t.load == heavy {
			f.say("%v: adaptive %s, a = 1.3 %s", t.priorityCase, signed(percent(adaptive, plain)), signed(percent(weighted, plain)))
		}
	}
	f.say("better than MCT in %d of 9 pairs, not behind a = 1.3 in %d", better, close)
	return f
}

// smallJobs is how many jobs a site has in checks that compare event logs.
const smallJobs = 80

// smallLogs returns the fingerprints of the event logs of trials with few jobs
// of the first seed.
func smallLogs(ctx context.Context, env *Env, trials []priorityTrial) (map[priorityTrial]string, error) {
	small := &Env{Jobs: smallJobs}
	logs, err := Map(ctx, env, len(trials), func(ctx context.Context, i int) (string, error) {
		t := trials[i]
		m, err := t.model(small)
		if err != nil {
			return "", err
		}
		jobs, err := m.Generate(workload.NewRand(env.FirstSeed, 0))
		if err != nil {
			return "", err
		}
		o, err := t.run(ctx, &m, jobs, true)
		if err != nil {
			return "", err
		}
		return o.log, nil
	})
	if err != nil {
		return nil, err
	}
	byTrial := make(map[priorityTrial]string, len(trials))
	for i, t := range trials {
		byTrial[t] = logs[i]
	}
	return byTrial, nil
}

// judgeWeightRule compares event logs with and without weights.
func judgeWeightRule(ctx context.Context, env *Env) (*priorityReading, error) {
	var trials []priorityTrial
	for number := 1; number <= 3; number++ {
		for k := range prioritySites + 1 {
			t := mct(number, heavy, k)
			trials = append(trials, t, t.weighted(paperWeight))
		}
	}
	logs, err := smallLogs(ctx, env, trials)
	if err != nil {
		return nil, err
	}
	f := &priorityReading{}
	for number := 1; number <= 3; number++ {
		var acts []int
		for k := range prioritySites + 1 {
			t := mct(number, heavy, k)
			if logs[t] != logs[t.weighted(paperWeight)] {
				acts = append(acts, k)
			}
		}
		f.say("case %d: %s", number, configurations(acts))
		f.must(slices.Equal(acts, weightsAct[number-1]), "case %d: %s, not %s", number, configurations(acts), configurations(weightsAct[number-1]))
	}
	return f, nil
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

// judgeSameAsMCT compares event logs that should be equal.
func judgeSameAsMCT(ctx context.Context, env *Env) (*priorityReading, error) {
	type pair struct{ plain, other priorityTrial }
	var pairs []pair
	var trials []priorityTrial
	for number := 1; number <= 3; number++ {
		for k := range prioritySites + 1 {
			plain := mct(number, heavy, k).weighted(0) // no weight stage at all
			pairs = append(pairs, pair{plain, plain.weighted(1)})
			if k == 0 || k == prioritySites {
				pairs = append(pairs, pair{plain, plain.weighted(paperWeight)})
			}
			if k == 0 {
				pairs = append(pairs, pair{plain, plain.adapting()})
			}
		}
	}
	for _, p := range pairs {
		trials = append(trials, p.plain, p.other)
	}
	logs, err := smallLogs(ctx, env, trials)
	if err != nil {
		return nil, err
	}
	f := &priorityReading{}
	same := 0
	for _, p := range pairs {
		same += btoi(logs[p.plain] == logs[p.other])
		f.must(logs[p.plain] == logs[p.other], "%v differs from MCT", p.other)
	}
	f.say("%d of %d event logs are equal", same, len(pairs))
	return f, nil
}
