package localpriority

import (
	"kith/testbed/lab"
	"kith/testbed/report"
)

// mctQuestions are the statements with numbers about plain MCT, P1 to P5.
func mctQuestions() []question {
	h := func(k int) trial { return mct(1, heavy, k) }
	return []question{
		{
			ID: "P1", Kind: lab.Exact, Enforced: true,
			Text:   "Case 1 heavy, Q2: the jobs of the two sites with dual queues are done in about half the time of the others.",
			Source: "A, B 14,308, 15,027 s; C, D, E 27,572, 27,989, 27,187 s", Band: "dual 12,500-18,500 s, single 25,000-35,000 s, single/dual 1.6-2.4",
			Needs: []trial{h(2)},
			Judge: judged(func(a *answers) *reading {
				m := a.of(h(2))
				f := groups(m, 2, 25_000, 35_000)
				f.in("single/dual", m.single(2)/m.dual(2), 1.6, 2.4, "")
				f.say("ratio %s", report.Number(m.single(2)/m.dual(2)))
				return f
			}),
		},
		{
			ID: "P2", Kind: lab.Exact, Enforced: true, Text: "Case 1 heavy, Q3: the same with three sites of dual queues.",
			Source: "A, B, C 14,283, 15,196, 14,718 s; D, E 33,775, 33,371 s", Band: "dual 12,500-18,500 s, single 31,000-44,000 s",
			Needs: []trial{h(3)},
			Judge: judged(func(a *answers) *reading {
				return groups(a.of(h(3)), 3, 31_000, 44_000)
			}),
		},
		{
			ID: "P3", Kind: lab.Exact, Enforced: true, Text: "Case 1 heavy: site C halves its time by going over to dual queues, from Q2 to Q3.",
			Source: "27,572 to 14,718 s (-47%)", Band: "-40 to -55%",
			Needs: []trial{h(2), h(3)},
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				from, to := a.of(h(2)).sites[2], a.of(h(3)).sites[2]
				f.note("from", from, "s")
				f.note("to", to, "s")
				f.in("change", percent(to, from), -55, -40, "%")
				f.say("%s to %s s (%s)", report.Number(from), report.Number(to), signed(percent(to, from)))
				return f
			}),
		},
		{
			ID: "P4", Kind: lab.Exact, Enforced: true, Text: "Case 1 heavy, Q4: site E, the last with a single queue, needs more than twice the mean of all.",
			Source: "E 52,899 s, 133% above ALL", Band: "48,000-66,000 s, +100 to +160%",
			Needs: []trial{h(4)},
			Judge: judged(func(a *answers) *reading {
				f := &reading{}
				m := a.of(h(4))
				f.in("site E", m.sites[4], 48_000, 66_000, "s")
				f.in("above ALL", percent(m.sites[4], m.all), 100, 160, "%")
				f.say("E %s s, %s above ALL of %s s", report.Number(m.sites[4]), signed(percent(m.sites[4], m.all)), report.Number(m.all))
				return f
			}),
		},
		{
			ID: "P5", Kind: lab.Direction, Enforced: true, Text: "The mean over all jobs changes little from Q0 to Q5.",
			Source: "changed very little", Band: "case 1: within 10% of Q0 under each load; cases 2 and 3 are only reported",
			Needs: mctTrials(),
			Judge: judged(judgeOverall),
		},
	}
}

// gainQuestions is the statement about gains and losses under plain MCT, P12.
func gainQuestions() []question {
	return []question{
		{
			ID: "P12", Kind: lab.Exact, Enforced: true, Text: "The most that a site loses is more than the most that one gains; case 1 medium gives the numbers.",
			Source: "case 1 medium: gain 16.5% at Q1, loss 43.5% at Q4", Band: "gain 12-25%, loss 35-60%; peak loss above peak gain in all nine pairs",
			Needs: mctTrials(),
			Judge: judged(judgeGainLoss, "At 95% load a run of 4400 jobs is short against the time in which queues come and go, so that the mean over 40 seeds still varies: "+
				"in ten lots of 40 seeds (--first-seed 0, 40, 80 ...) the loss at Q4 was 41 to 68%, 53% on average."),
		},
	}
}

// groups checks the means over the first k sites, and over the others
// against a band.
func groups(m siteMeans, k int, low, high float64) *reading {
	f := &reading{}
	f.in("dual", m.dual(k), 12_500, 18_500, "s")
	f.in("single", m.single(k), low, high, "s")
	f.say("dual %s s; single %s s", list(m.sites[:k]), list(m.sites[k:]))
	return f
}

func judgeOverall(a *answers) *reading {
	f := &reading{remark: "In cases 2 and 3 the mean does change under heavy load, as slow and fast sites are given different amounts to do; the band says nothing about them."}
	for _, c := range settings() {
		base, low, high := a.of(mct(c.number, c.load, 0)).all, 0.0, 0.0
		for k := 1; k <= siteCount; k++ {
			d := percent(a.of(mct(c.number, c.load, k)).all, base)
			low, high = min(low, d), max(high, d)
		}
		f.note(c.String()+" lowest", low, "%")
		f.note(c.String()+" highest", high, "%")
		if c.number == 1 {
			f.need(min(low+10, 10-high), "%v: %s to %s", c, signed(low), signed(high))
		}
		if c.number == 1 || c.load == heavy {
			f.say("%v %s to %s", c, signed(low), signed(high))
		}
		if c.number > 1 && max(-low, high) > 10 {
			f.differ("In %v the mean changes by %s to %s, not very little.", c, signed(low), signed(high))
		}
	}
	return f
}

func judgeGainLoss(a *answers) *reading {
	f := &reading{}
	gain, _ := a.gainLoss(mct(1, medium, 1))
	_, loss := a.gainLoss(mct(1, medium, 4))
	f.in("case 1 medium, gain at Q1", gain, 12, 25, "%")
	f.in("case 1 medium, loss at Q4", loss, 35, 60, "%")
	f.say("gain %s%% at Q1, loss %s%% at Q4", report.Number(gain), report.Number(loss))
	above := 0
	for _, c := range settings() {
		var most, worst float64
		for k := range siteCount + 1 {
			g, l := a.gainLoss(mct(c.number, c.load, k))
			most, worst = max(most, g), max(worst, l)
		}
		f.note(c.String()+" peak gain", most, "%")
		f.note(c.String()+" peak loss", worst, "%")
		f.above(worst, most, "%v: peak loss %s%%, peak gain %s%%", c, report.Number(worst), report.Number(most))
		if worst > most {
			above++
		}
	}
	f.say("peak loss above peak gain in %d of 9 pairs", above)
	return f
}
