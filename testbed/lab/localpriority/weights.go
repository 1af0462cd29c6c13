package localpriority

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// weightQuestions are the statements about weights, P13 to P19.
func weightQuestions() []question {
	h3, h4 := mct(1, heavy, 3), mct(1, heavy, 4)
	two := mct(2, heavy, 4)
	both := func(list ...trial) []trial {
		for _, t := range list {
			list = append(list, t.weighted(paperWeight))
		}
		return list
	}
	cut := func(a *answers, t trial) float64 {
		return -percent(a.largest(t.weighted(paperWeight)), a.largest(t))
	}
	return []question{
		{
			ID: "P13", Kind: lab.Exact, Enforced: true, Text: "Case 1 heavy, Q3: with a = 1.3 the sites of dual and of single queues come closer.",
			Source: "A, B, C 21,657, 21,652, 23,038 s; D, E 26,203, 26,119 s", Band: "against MCT: dual +35 to +60%, single -8 to -25%, ALL at most +12%",
			Needs: both(h3),
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				old, m := a.of(h3), a.of(h3.weighted(paperWeight))
				up, down, all := percent(m.dual(3), old.dual(3)), percent(m.single(3), old.single(3)), percent(m.all, old.all)
				f.in("dual", up, 35, 60, "%")
				f.in("single", down, -25, -8, "%")
				f.note("ALL", all, "%")
				f.need(12-all, "ALL rises by %s", signed(all))
				f.say("dual %s s (%s); single %s s (%s); ALL %s", list(m.sites[:3]), signed(up), list(m.sites[3:]), signed(down), signed(all))
				return f
			}),
		},
		{
			ID: "P14", Kind: lab.Exact, Enforced: true, Text: "Q4 heavy: a = 1.3 cuts the largest mean of a site.",
			Source: "case 1 by 44%, case 2 by 35%", Band: "25-50%, 30-45%",
			Needs: both(h4, two),
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				f.in("case 1", cut(a, h4), 25, 50, "%")
				f.in("case 2", cut(a, two), 30, 45, "%")
				f.say("case 1 by %s%%, case 2 by %s%%", report.Number(cut(a, h4)), report.Number(cut(a, two)))
				return f
			}),
		},
		{
			ID: "P15", Kind: lab.Exact, Enforced: true, Text: "Case 3, Q4: the largest mean is much better under heavy load, better under medium, a little worse under light.",
			Source: "45% better, 14% better, 5% worse", Band: "better by 35 to 55%, 10 to 38%, -8 to +2%",
			Needs: both(mct(3, heavy, 4), mct(3, medium, 4), mct(3, light, 4)),
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				h, m, l := cut(a, mct(3, heavy, 4)), cut(a, mct(3, medium, 4)), cut(a, mct(3, light, 4))
				f.in("heavy", h, 35, 55, "%")
				f.in("medium", m, 10, 38, "%")
				f.in("light", l, -8, 2, "%")
				f.say("better by %s%%, %s%%, %s%%", report.Number(h), report.Number(m), report.Number(l))
				return f
			}),
		},
		{
			ID: "P16", Kind: lab.Exact, Enforced: true, Text: "The standard deviation over the sites falls wherever weights act, but for case 3 light, Q4.",
			Source: "falls everywhere; there +20 s", Band: "falls in the 17 others; there 0 to +60 s",
			Needs: activeTrials(1, 2, 3),
			Judge: judged(judgeDeviation),
		},
		{
			ID: "P17", Kind: lab.Exact, Enforced: true, Text: "Case 1 heavy, Q4: weights shrink the largest gain and, much more, the largest loss.",
			Source: "gain 37 to 12%, loss 142 to 36%", Band: "gain 30-45 to 8-20%, loss 120-165 to 30-80%",
			Needs: append(both(h4), h4.with(0)),
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				g1, l1 := a.gainLoss(h4)
				g2, l2 := a.gainLoss(h4.weighted(paperWeight))
				f.in("gain, MCT", g1, 30, 45, "%")
				f.in("gain, a = 1.3", g2, 8, 20, "%")
				f.in("loss, MCT", l1, 120, 165, "%")
				f.in("loss, a = 1.3", l2, 30, 80, "%")
				f.say("gain %s to %s%%, loss %s to %s%%", report.Number(g1), report.Number(g2), report.Number(l1), report.Number(l2))
				return f
			}),
		},
		{
			ID: "P18", Kind: lab.Exact, Enforced: true, Text: "Case 3 light, Q4: the largest loss rises a little.",
			Source: "11 to 14%", Band: "by 0 to 8 points",
			Needs: append(both(mct(3, light, 4)), mct(3, light, 0)),
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				t := mct(3, light, 4)
				_, l1 := a.gainLoss(t)
				_, l2 := a.gainLoss(t.weighted(paperWeight))
				f.note("loss, MCT", l1, "%")
				f.note("loss, a = 1.3", l2, "%")
				f.in("rise", l2-l1, 0, 8, "points")
				f.say("%s to %s%% (%s points)", report.Number(l1), report.Number(l2), report.Number(l2-l1))
				return f
			}),
		},
		{
			ID: "P19", Kind: lab.Direction, Enforced: true, Text: "In cases 1 and 2 weights never make the largest mean worse.",
			Source: "always performs better", Band: "at most 3% above MCT in each of the 15 configurations where they act",
			Needs: activeTrials(1, 2),
			Judge: judged(judgeNeverWorse),
		},
	}
}

func judgeDeviation(a *answers) *reading {
	f := &reading{}
	falls, others := 0, 0
	for _, t := range withWeights(activeTrials(1, 2, 3)) {
		d := a.deviation(t) - a.deviation(t.weighted(1))
		f.note(fmt.Sprintf("%v Q%d", t.setting, t.duals), d, "s")
		if t.number == 3 && t.load == light {
			f.need(min(d, 60-d), "case 3 light, Q4: %s s", report.Number(d))
			f.say("case 3 light, Q4 %s to %s s", report.Number(a.deviation(t.weighted(1))), report.Number(a.deviation(t)))
			continue
		}
		others++
		falls += btoi(d < 0)
		f.above(0, d, "%v, Q%d: %s s more", t.setting, t.duals, report.Number(d))
	}
	f.say("falls in %d of the %d others", falls, others)
	return f
}

func judgeNeverWorse(a *answers) *reading {
	f := &reading{}
	n, worst, where := 0, -100.0, ""
	for _, t := range withWeights(activeTrials(1, 2)) {
		d := percent(a.largest(t), a.largest(t.weighted(1)))
		n++
		f.note(fmt.Sprintf("%v Q%d", t.setting, t.duals), d, "%")
		f.need(3-d, "%v, Q%d: %s", t.setting, t.duals, signed(d))
		if d > worst {
			worst, where = d, fmt.Sprintf("%v, Q%d", t.setting, t.duals)
		}
	}
	f.say("worst of %d: %s (%s)", n, signed(worst), where)
	return f
}
