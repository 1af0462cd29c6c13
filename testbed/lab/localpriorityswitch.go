package lab

import (
	"slices"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// switchQuestions are the claims about what a switch to dual queues does,
// P6 to P11.
func switchQuestions() []priorityQuestion {
	return []priorityQuestion{
		{
			Claim: Claim{
				ID: "P6", Kind: Direction, Enforced: true,
				Statement: "A site that goes over to dual queues lowers its own mean and raises that of the others, above all of those with a single queue.",
				Source:    "said of all; its own site A falls from Q2 to Q3", Band: "case 1, each k and load: its own falls, each single-queue site rises, the other dual-queue sites stay within 10%",
			},
			needs: mctTrials(caseOne()...),
			judge: judgeSwitch,
		},
		{
			Claim: Claim{
				ID: "P7", Kind: Direction, Enforced: true,
				Statement: "The difference between sites of single and of dual queues grows with k and with load; the last one with a single queue suffers most.",
				Source:    "the difference gets larger", Band: "case 1, k = 1 to 4: strictly",
			},
			needs: mctTrials(caseOne()...),
			judge: judgeDifference,
		},
		{
			Claim: Claim{
				ID: "P8", Kind: Direction, Enforced: true, Statement: "Sites with a single queue have nearly the same mean, in all cases and loads.",
				Source: "nearly equal", Band: "highest less lowest at most 6% of their mean (heavy), 8% (others)",
			},
			needs: mctTrials(),
			judge: judgeSingleSpread,
		},
		{
			Claim: Claim{
				ID: "P9", Kind: Direction, Enforced: true, Statement: "Sites with dual queues are in the order of their speed in cases 2 and 3, medium and light.",
				Source: "case 2 ascending, case 3 descending", Band: "strictly at Q5; at Q2 to Q4 a faster site is at most 3% behind",
			},
			needs: mctTrials(mediumAndLight()...),
			judge: judgeSpeedOrder,
		},
		{
			Claim: Claim{
				ID: "P10", Kind: Direction, Enforced: true, Statement: "The largest mean of a site rises from Q0 to Q4; that of Q5 is below Q4 in all heavy cases and above it in case 3 light.",
				Source: "increases from Q0 to Q4", Band: "as stated, in all nine pairs",
			},
			needs: mctTrials(),
			judge: func(a *priorityAnswers) Finding {
				f := judgeRise(a, siteMeans.max)
				l4, l5 := a.of(mct(3, light, 4)).max(), a.of(mct(3, light, 5)).max()
				f.say("case 3 light %s s at Q4, %s s at Q5", report.Number(l4), report.Number(l5))
				return f.finding("")
			},
		},
		{
			Claim: Claim{
				ID: "P11", Kind: Direction, Enforced: true, Statement: "The standard deviation over the sites behaves like their largest mean.",
				Source: "in the same manner", Band: "as P10",
			},
			needs: mctTrials(),
			judge: func(a *priorityAnswers) Finding {
				f := judgeRise(a, siteMeans.sd)
				l4, l5 := a.of(mct(3, light, 4)).sd(), a.of(mct(3, light, 5)).sd()
				f.say("case 3 light %s s at Q4, %s s at Q5", report.Number(l4), report.Number(l5))
				return f.finding("")
			},
		},
	}
}

// mediumAndLight are the pairs of cases 2 and 3 that are not heavy.
func mediumAndLight() []priorityCase {
	return slices.DeleteFunc(priorityCases(), func(c priorityCase) bool { return c.number == 1 || c.load == heavy })
}

func judgeSwitch(a *priorityAnswers) Finding {
	var f findings
	falls, rises, low, high := 0, 0, 0.0, 0.0
	for _, c := range caseOne() {
		for k := 1; k <= prioritySites; k++ {
			before, after := a.of(mct(c.number, c.load, k-1)), a.of(mct(c.number, c.load, k))
			for i := range before.sites {
				d := percent(after.sites[i], before.sites[i])
				switch {
				case i == k-1:
					falls += btoi(d < 0)
					f.want(d < 0, "%v, Q%d: site %c, which goes over, changes by %s", c, k, 'A'+i, signed(d))
				case i >= k:
					rises += btoi(d > 0)
					f.want(d > 0, "%v, Q%d: site %c, with a single queue, changes by %s", c, k, 'A'+i, signed(d))
				default:
					low, high = min(low, d), max(high, d)
					f.want(d >= -10 && d <= 10, "%v, Q%d: site %c, with dual queues before, changes by %s", c, k, 'A'+i, signed(d))
				}
			}
		}
	}
	f.note("own mean falls", float64(falls), "of 15")
	f.note("a single-queue site rises", float64(rises), "of 30")
	f.note("other dual-queue sites, lowest", low, "%")
	f.note("other dual-queue sites, highest", high, "%")
	f.say("its own falls in %d of 15, single-queue sites rise in %d of 30, other dual-queue sites %s to %s", falls, rises, signed(low), signed(high))
	return f.finding("The step from Q4 to Q5 takes from the other sites the only one that had no jobs of its own to prefer; as the mean of all stays, they must rise by what it gains. " +
		"The source says that all others rise; the 10% cannot hold there together with P4 and P5.")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func judgeDifference(a *priorityAnswers) Finding {
	var f findings
	gap := func(c priorityCase, k int) float64 {
		m := a.of(mct(c.number, c.load, k))
		return m.single(k) - m.dual(k)
	}
	for i, c := range caseOne() {
		var gaps []float64
		worst := 0.0 // the largest mean of Q0 to Q3
		for k := 1; k < prioritySites; k++ {
			g := gap(c, k)
			gaps = append(gaps, g)
			f.note(c.String()+" Q"+string(rune('0'+k)), g, "s")
			if k > 1 {
				f.want(g > gap(c, k-1), "%v: %s s at Q%d, not above Q%d", c, report.Number(g), k, k-1)
			}
			if i > 0 {
				heavier := caseOne()[i-1]
				f.want(gap(heavier, k) > g, "Q%d: %v is not above %v", k, heavier, c)
			}
			worst = max(worst, a.of(mct(c.number, c.load, k-1)).max())
		}
		f.say("%v %s s", c, list(gaps))
		last := a.of(mct(c.number, c.load, 4))
		f.want(last.sites[4] == last.max() && last.max() > worst, "%v: the last site with a single queue has not the largest mean of Q0 to Q4", c)
	}
	return f.finding("")
}

func judgeSingleSpread(a *priorityAnswers) Finding {
	var f findings
	most := map[bool]float64{}
	for _, c := range priorityCases() {
		bound := 8.0
		if c.load == heavy {
			bound = 6
		}
		for k := range prioritySites - 1 {
			m := a.of(mct(c.number, c.load, k))
			s := m.sites[k:]
			spread := 100 * (slices.Max(s) - slices.Min(s)) / metrics.Mean(s)
			most[c.load == heavy] = max(most[c.load == heavy], spread)
			f.note(c.String()+" Q"+string(rune('0'+k)), spread, "%")
			f.want(spread <= bound, "%v, Q%d: %s%%", c, k, report.Number(spread))
		}
	}
	f.say("at most %s%% (heavy), %s%% (medium and light)", report.Number(most[true]), report.Number(most[false]))
	return f.finding("")
}

func judgeSpeedOrder(a *priorityAnswers) Finding {
	var f findings
	behind := 0.0
	for _, c := range mediumAndLight() {
		for k := 2; k <= prioritySites; k++ {
			m := a.of(mct(c.number, c.load, k))
			s := slices.Clone(m.sites[:k])
			if c.number == 3 {
				slices.Reverse(s) // the fastest first
			}
			for i := 1; i < k; i++ {
				d := percent(s[i-1], s[i]) // above 0: the faster site is behind
				if k == prioritySites {
					f.want(d < 0, "%v, Q5: the sites are not in order: %s s, the fastest first", c, list(s))
					continue
				}
				behind = max(behind, d)
				f.want(d <= 3, "%v, Q%d: a faster site is %s behind", c, k, signed(d))
			}
			if k == prioritySites {
				f.say("%v Q5 %s s, the fastest first", c, list(s))
			}
		}
	}
	f.note("furthest that a faster site is behind at Q2 to Q4", behind, "%")
	f.say("at Q2 to Q4 a faster site is at most %s%% behind", report.Number(behind))
	return f.finding("")
}

// judgeRise checks that a figure rises from Q0 to Q4 in all pairs, and how Q5
// compares with Q4.
func judgeRise(a *priorityAnswers, figure func(siteMeans) float64) *findings {
	f := &findings{}
	rises := 0
	for _, c := range priorityCases() {
		var v [prioritySites + 1]float64
		for k := range v {
			v[k] = figure(a.of(mct(c.number, c.load, k)))
			f.note(c.String()+" Q"+string(rune('0'+k)), v[k], "s")
		}
		ok := true
		for k := 1; k <= 4; k++ {
			f.want(v[k] > v[k-1], "%v: %s s at Q%d, %s s at Q%d", c, report.Number(v[k-1]), k-1, report.Number(v[k]), k)
			ok = ok && v[k] > v[k-1]
		}
		rises += btoi(ok)
		if c.load == heavy {
			f.want(v[5] < v[4], "%v: Q5 is not below Q4: %s and %s s", c, report.Number(v[5]), report.Number(v[4]))
		}
		if c.number == 3 && c.load == light {
			f.want(v[5] > v[4], "%v: Q5 is not above Q4: %s and %s s", c, report.Number(v[5]), report.Number(v[4]))
		}
	}
	f.say("rises at each step from Q0 to Q4 in %d of 9 pairs", rises)
	return f
}
