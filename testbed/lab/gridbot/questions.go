package gridbot

import (
	"fmt"
	"slices"

	"kith/testbed/lab"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

// The trials.
var (
	naive    = trial{work: "all", rules: "naive", by: byPlain}
	policies = trial{work: "all", rules: "policies", by: byEngine}
	short    = trial{work: "madison", rules: "short", by: byEngine}
	queued   = trial{work: "madison", rules: "none", by: byQueue}
)

// The figures that the study is about, of the first bag of a trial.
func hours(o *outcome) float64    { return o.bags[0].span() }
func minutes(o *outcome) float64  { return 60 * hours(o) }
func replicas(o *outcome) float64 { return percent(o.bags[0].replicas, &o.bags[0]) }
func waste(o *outcome) float64    { return percent(o.bags[0].wasted, &o.bags[0]) }

func percent(n int, b *bagOutcome) float64 { return 100 * float64(n) / float64(len(b.ends)) }

// tailPart is the part of the span after the last task was sent.
func tailPart(o *outcome) float64 { return 1 - o.bags[0].allSent/o.bags[0].span() }

// both judges under both readings; the first one counts.
func (a *answers) both(judge func(r reading) lab.Finding) lab.Finding {
	f, g := judge(first), judge(second)
	f.Measured += fmt.Sprintf(". Second reading: %s, %s", g.Measured, g.Result)
	for _, v := range g.Values {
		v.Name += ", second reading"
		f.Values = append(f.Values, v)
	}
	return f
}

// questions are the statements of the study.
func questions() []question {
	return slices.Concat(
		wholeQuestions(), longQuestions(), costQuestions(), rankQuestions(), loadQuestions(), []question{bundleQuestion()}, singleQuestions(), fourQuestions(), ourQuestions())
}

// wholeQuestions compare whole dispatchers.
func wholeQuestions() []question {
	return []question{{
		ID: "G1", Kind: lab.Exact, Enforced: true, Text: "All grids: the same bag ends many times sooner under policies than with the naive server, which spends its time on a tail.",
		Source: "280 h and 8 h (35 ×)", Band: "naive ÷ policies ≥ 5; tail of the naive server ≥ 50 % of its time",
		Needs: []trial{naive, policies}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Shown("naive", a.Of(naive, hours), "h"), lab.Shown("policies", a.Of(policies, hours), "h"),
				lab.Within("naive ÷ policies", a.Ratio(naive, policies, hours), 5, lab.Unbounded),
				lab.Within("tail of the naive server", a.Of(naive, tailPart), 0.5, 1))
		},
	}, {
		ID: "G2", Kind: lab.Exact, Enforced: true, Text: "Madison only, 3000 tasks of 0.5 to 5 min: sooner than with a job for each task in the queue.",
		Source: "53 ± 10 min and 170 ± 41 min (3.2 ×)", Band: "queue ÷ policies ≥ 1.5",
		Needs: []trial{short, queued}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Shown("policies", a.Of(short, minutes), "min"), lab.Shown("a job for each task", a.Of(queued, minutes), "min"),
				lab.Within("ratio", a.Ratio(queued, short, minutes), 1.5, lab.Unbounded))
		},
	}, {
		ID: "G3", Kind: lab.Exact, Enforced: true, Text: "There, few tasks are replicated.", Source: "< 1 %", Band: "replicas ≤ 5 % of the tasks",
		Needs: []trial{short}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("replicas (%)", a.Of(short, replicas), 0, 5))
		},
	}}
}
