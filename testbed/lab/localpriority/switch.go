package localpriority

import (
	"slices"

	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// switchQuestions are the statements about what a switch to dual queues does,
// P6 to P11.
func switchQuestions() []question {
	return []question{
		{
			ID: "P6", Kind: lab.Direction, Enforced: true,
			Text:   "A site that goes over to dual queues lowers its own mean and raises that of the others, above all of those with a single queue.",
			Source: "said of all; its own site A falls from Q2 to Q3", Band: "case 1, each k and load: its own falls, each single-queue site rises, the other dual-queue sites stay within 10%",
			Needs: mctTrials(caseOne()...),
			Judge: judged(judgeSwitch, "At Q5 the 10% cannot hold. The step from Q4 takes from the other sites the only one that had no jobs of its own to prefer: "+
				"as the mean of all stays (P5) and that of the last site falls by half (P4, P10), they must rise by as much. The source says only that all others rise."),
		},
		{
			ID: "P7", Kind: lab.Direction, Enforced: true,
			Text:   "The difference between sites of single and of dual queues grows with k and with load; the last one with a single queue suffers most.",
			Source: "the difference gets larger", Band: "case 1, k = 1 to 4: strictly",
			Needs: mctTrials(caseOne()...),
			Judge: judged(judgeDifference, "Under light load few jobs wait, and from Q1 to Q2 the difference hardly changes: with --seeds 400 it is 92 and 106 s, as claimed."),
		},
		{
			ID: "P8", Kind: lab.Direction, Enforced: true, Text: "Sites with a single queue have nearly the same mean, in all cases and loads.",
			Source: "nearly equal", Band: "highest less lowest at most 6% of their mean (heavy), 8% (others)",
			Needs: mctTrials(),
			Judge: judged(judgeSingleSpread),
		},
		{
			ID: "P9", Kind: lab.Direction, Enforced: true, Text: "Sites with dual queues are in the order of their speed in cases 2 and 3, medium and light.",
			Source: "case 2 ascending, case 3 descending", Band: "strictly at Q5; at Q2 to Q4 a faster site is at most 3% behind",
			Needs: mctTrials(mediumAndLight()...),
			Judge: judged(judgeSpeedOrder, "One seed with a long queue at one site can turn round two sites of neighbouring speeds; with --seeds 400 they are in order."),
		},
		{
			ID: "P10", Kind: lab.Direction, Enforced: true, Text: "The largest mean of a site rises from Q0 to Q4; that of Q5 is below Q4 in all heavy cases and above it in case 3 light.",
			Source: "increases from Q0 to Q4", Band: "as stated, in all nine pairs",
			Needs: mctTrials(),
			Judge: judged(func(a *answers) *reading {
				f := judgeRise(a.largest)
				l4, l5 := a.largest(mct(3, light, 4)), a.largest(mct(3, light, 5))
				f.say("case 3 light %s s at Q4, %s s at Q5", report.Number(l4), report.Number(l5))
				return f
			}, "In case 2 light the step from Q3 to Q4 is small: with --seeds 400 it is from 2,904 to 2,930 s, as claimed."),
		},
		{
			ID: "P11", Kind: lab.Direction, Enforced: true, Text: "The standard deviation over the sites behaves like their largest mean.",
			Source: "in the same manner", Band: "as P10",
			Needs: mctTrials(),
			Judge: judged(func(a *answers) *reading {
				f := judgeRise(a.deviation)
				l4, l5 := a.deviation(mct(3, light, 4)), a.deviation(mct(3, light, 5))
				f.say("case 3 light %s s at Q4, %s s at Q5", report.Number(l4), report.Number(l5))
				return f
			}, "In case 2 light it does not hold with --seeds 400 either (352 s at Q3, 342 s at Q4): jobs hardly wait there, so that a site's mean goes with its speed; "+
				"the second slowest site gains by going over and comes closer to the others."),
		},
	}
}

// mediumAndLight are the pairs of cases 2 and 3 that are not heavy.
func mediumAndLight() []setting {
	return slices.DeleteFunc(settings(), func(c setting) bool { return c.number == 1 || c.load == heavy })
}

func judgeSwitch(a *answers) *reading {
	f := &reading{}
	falls, rises := 0, 0
	var low, high, last float64 // changes of the others: up to Q4, and at Q5
	for _, c := range caseOne() {
		for k := 1; k <= siteCount; k++ {
			before, after := a.of(mct(c.number, c.load, k-1)), a.of(mct(c.number, c.load, k))
			for i := range before.sites {
				d := percent(after.sites[i], before.sites[i])
				switch {
				case i == k-1:
					falls += btoi(d < 0)
					f.above(0, d, "%v, Q%d: site %c, which goes over, changes by %s", c, k, 'A'+i, signed(d))
				case i >= k:
					rises += btoi(d > 0)
					f.above(d, 0, "%v, Q%d: site %c, with a single queue, changes by %s", c, k, 'A'+i, signed(d))
				default:
					if k < siteCount {
						low, high = min(low, d), max(high, d)
					}
					last = max(last, d)
					f.need(min(d+10, 10-d), "%v, Q%d: site %c, with dual queues before, changes by %s", c, k, 'A'+i, signed(d))
				}
			}
		}
	}
	f.note("own mean falls", float64(falls), "of 15")
	f.note("a single-queue site rises", float64(rises), "of 30")
	f.note("other dual-queue sites up to Q4, lowest", low, "%")
	f.note("other dual-queue sites up to Q4, highest", high, "%")
	f.note("other dual-queue sites, highest", last, "%")
	f.say("its own falls in %d of 15, single-queue sites rise in %d of 30, the other dual-queue sites %s to %s up to Q4, at most %s at Q5",
		falls, rises, signed(low), signed(high), signed(last))
	return f
}

func judgeDifference(a *answers) *reading {
	f := &reading{}
	gap := func(c setting, k int) float64 {
		m := a.of(mct(c.number, c.load, k))
		return m.single(k) - m.dual(k)
	}
	for i, c := range caseOne() {
		var gaps []float64
		worst := 0.0 // the largest mean of Q0 to Q3
		for k := 1; k < siteCount; k++ {
			g := gap(c, k)
			gaps = append(gaps, g)
			f.note(c.String()+" Q"+string(rune('0'+k)), g, "s")
			if k > 1 {
				f.above(g, gap(c, k-1), "%v: %s s at Q%d, not above Q%d", c, report.Number(g), k, k-1)
			}
			if i > 0 {
				heavier := caseOne()[i-1]
				f.above(gap(heavier, k), g, "Q%d: %v is not above %v", k, heavier, c)
			}
			before := a.of(mct(c.number, c.load, k-1))
			worst = max(worst, before.max())
		}
		f.say("%v %s s", c, list(gaps))
		last := a.of(mct(c.number, c.load, 4))
		f.must(last.sites[4] == last.max() && last.max() > worst, "%v: the last site with a single queue has not the largest mean of Q0 to Q4", c)
	}
	return f
}

func judgeSingleSpread(a *answers) *reading {
	f := &reading{}
	most := map[bool]float64{}
	for _, c := range settings() {
		bound := 8.0
		if c.load == heavy {
			bound = 6
		}
		for k := range siteCount - 1 {
			m := a.of(mct(c.number, c.load, k))
			s := m.sites[k:]
			spread := 100 * (slices.Max(s) - slices.Min(s)) / metrics.Mean(s)
			most[c.load == heavy] = max(most[c.load == heavy], spread)
			f.note(c.String()+" Q"+string(rune('0'+k)), spread, "%")
			f.need(bound-spread, "%v, Q%d: %s%%", c, k, report.Number(spread))
		}
	}
	f.say("at most %s%% (heavy), %s%% (medium and light)", report.Number(most[true]), report.Number(most[false]))
	return f
}

func judgeSpeedOrder(a *answers) *reading {
	f := &reading{}
	behind := 0.0
	for _, c := range mediumAndLight() {
		for k := 2; k <= siteCount; k++ {
			m := a.of(mct(c.number, c.load, k))
			s := slices.Clone(m.sites[:k])
			if c.number == 3 {
				slices.Reverse(s) // the fastest first
			}
			for i := 1; i < k; i++ {
				d := percent(s[i-1], s[i]) // above 0: the faster site is behind
				if k == siteCount {
					f.above(0, d, "%v, Q5: the sites are not in order: %s s, the fastest first", c, list(s))
					continue
				}
				behind = max(behind, d)
				f.need(3-d, "%v, Q%d: a faster site is %s behind", c, k, signed(d))
			}
			if k == siteCount {
				f.say("%v Q5 %s s, the fastest first", c, list(s))
			}
		}
	}
	f.note("furthest that a faster site is behind at Q2 to Q4", behind, "%")
	f.say("at Q2 to Q4 a faster site is at most %s%% behind", report.Number(behind))
	return f
}

// judgeRise checks that a figure rises from Q0 to Q4 in all pairs, and how Q5
// compares with Q4.
func judgeRise(figure func(trial) float64) *reading {
	f := &reading{}
	rises := 0
	for _, c := range settings() {
		var v [siteCount + 1]float64
		for k := range v {
			v[k] = figure(mct(c.number, c.load, k))
			f.note(c.String()+" Q"+string(rune('0'+k)), v[k], "s")
		}
		ok := true
		for k := 1; k <= 4; k++ {
			f.above(v[k], v[k-1], "%v: %s s at Q%d, %s s at Q%d", c, report.Number(v[k-1]), k-1, report.Number(v[k]), k)
			ok = ok && v[k] > v[k-1]
		}
		rises += btoi(ok)
		if c.load == heavy {
			f.above(v[4], v[5], "%v: Q5 is not below Q4: %s and %s s", c, report.Number(v[5]), report.Number(v[4]))
		}
		if c.number == 3 && c.load == light {
			f.above(v[5], v[4], "%v: Q5 is not above Q4: %s and %s s", c, report.Number(v[5]), report.Number(v[4]))
		}
	}
	f.say("rises at each step from Q0 to Q4 in %d of 9 pairs", rises)
	return f
}
