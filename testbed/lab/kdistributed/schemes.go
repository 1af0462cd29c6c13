package kdistributed

import (
	"fmt"
	"slices"

	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// questions are the statements of spec 001 section 3.1, with its bands.
func questions() []question {
	return slices.Concat(schemeQuestions(), sideQuestions(), copiesQuestions(), costQuestions())
}

// schemeQuestions compare schemes over all jobs (its Figures 5, 6, 8 and 9).
func schemeQuestions() []question {
	return []question{{
		ID: "C1", Text: "The processors requested at a site follow the day like a sine, with a peak towards the evening and a trough in the early morning.",
		Source: "Figure 5, curve lost", Kind: lab.Direction, Enforced: true,
		Band:  "hourly means: max/min ≥ 1.5; max between 12 and 22 h, min between 0 and 8 h, local time",
		Needs: []trial{ind}, Judge: judgeDay,
	}, {
		ID: "C2", Text: "Centralized and Hierarchical have a slightly lower slowdown than Unified.",
		Source: "slightly lower", Kind: lab.Direction, Enforced: true,
		Band:  "each ÷ Unified in 0.75–1.15, both below Independent",
		Needs: []trial{ind, uni, cen, hier},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("Centralized ÷ Unified", a.Ratio(cen, uni, meanSlowdown), 0.75, 1.15),
				lab.Within("Hierarchical ÷ Unified", a.Ratio(hier, uni, meanSlowdown), 0.75, 1.15),
				lab.Below("Centralized ÷ Independent", a.Ratio(cen, ind, meanSlowdown), 1),
				lab.Below("Hierarchical ÷ Independent", a.Ratio(hier, ind, meanSlowdown), 1)).
				Differing(a.Ratio(cen, uni, meanSlowdown).Mean() > 1, "Centralized is not lower than Unified.").
				Differing(a.Ratio(hier, uni, meanSlowdown).Mean() > 1, "Hierarchical is not lower than Unified.")
		},
	}, {
		ID: "C3", Text: "Distributed is worse than Independent in mean slowdown.",
		Source: "> 1", Kind: lab.Direction, Enforced: true,
		Band:  "Distributed ÷ Independent grows with the age of loads and exceeds 1 at some age ≤ 6 h (site loads 0.48 to 0.78); Distributed is worse than Centralized, Hierarchical and K-Distributed(4) at every age",
		Needs: staleTrials(), Judge: judgeStale,
	}, {
		ID: "C4", Text: "Distributed hurts short, narrow jobs most.",
		Source: "much higher", Kind: lab.Direction, Enforced: true,
		Band:  "slowdown of short-narrow jobs: Distributed ≥ 1.5 × Centralized and ≥ 1.5 × Hierarchical",
		Needs: []trial{dist, cen, hier},
		Judge: func(a *answers) lab.Finding {
			narrow := classSlowdown(metrics.ShortNarrow)
			return lab.Conclude(
				lab.Within("Distributed ÷ Centralized", a.Ratio(dist, cen, narrow), 1.5, lab.Unbounded),
				lab.Within("Distributed ÷ Hierarchical", a.Ratio(dist, hier, narrow), 1.5, lab.Unbounded))
		},
	}, {
		ID: "C5", Text: "Against Centralized, Unified is better for short-wide jobs and worse for long-narrow ones.",
		Source: "in words", Kind: lab.Direction,
		Band:  "long-narrow: Unified ≥ 0.95 × Centralized",
		Needs: []trial{uni, cen},
		Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for c := range metrics.Class(metrics.Classes) {
				v := a.Ratio(uni, cen, classSlowdown(c))
				part := lab.Shown(c.String()+", Unified ÷ Centralized", v, "")
				if c == metrics.LongNarrow {
					part.Met = v.Mean() >= 0.95
				}
				parts = append(parts, part)
			}
			return lab.Conclude(parts...).Differing(a.Ratio(uni, cen, classSlowdown(metrics.ShortWide)).Mean() >= 1, "Short-wide jobs are not better off under Unified.")
		},
	}, {
		ID: "C6", Text: "K-Distributed with K = 4 cuts the slowdown of Distributed.",
		Source: "45 %", Kind: lab.Exact, Band: "30–60 %", Enforced: true,
		Needs: []trial{dist, kd4},
		Judge: func(a *answers) lab.Finding {
			v := cut(a.Ratio(kd4, dist, meanSlowdown))
			bounded := cut(a.Ratio(kd4, dist, func(o *outcome) float64 { return o.bounded.Mean }))
			return lab.Conclude(lab.Check("cut by", v, "%", v.Mean() >= 30 && v.Mean() <= 60), lab.Shown("bounded slowdown (10 s)", bounded, "%")).
				Noted("", tooShort)
		},
	}, {
		ID: "C7", Text: "It cuts the turnaround, too, but less.",
		Source: "15 %", Kind: lab.Exact, Band: "3–25 %, always less than the slowdown", Enforced: true,
		Needs: []trial{dist, kd4},
		Judge: func(a *answers) lab.Finding {
			v, s := cut(a.Ratio(kd4, dist, meanTurnaround)), cut(a.Ratio(kd4, dist, meanSlowdown))
			less := true
			for i := range v {
				less = less && v[i] < s[i]
			}
			return lab.Conclude(lab.Check("cut by", v, "%", v.Mean() >= 3 && v.Mean() <= 25), lab.Reading{Name: "less than the slowdown in every stream", Met: less})
		},
	}, {
		ID: "C8", Text: "K-Distributed is the best of all schemes; K-Dual is slightly worse, and far better than Distributed.",
		Source: "Figures 8 and 9, bars lost", Kind: lab.Direction, Enforced: true,
		Band:  "slowdown, K = 4: K-Distributed ≤ Independent, ≤ Distributed, ≤ 1.1 × Centralized; K-Dual ÷ K-Distributed in 0.75–1.2; K-Dual ≤ 0.75 × Distributed",
		Needs: []trial{ind, dist, cen, kd4, dual, dualHead},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K-Distributed ÷ Independent", a.Ratio(kd4, ind, meanSlowdown), 0, 1),
				lab.Within("÷ Distributed", a.Ratio(kd4, dist, meanSlowdown), 0, 1),
				lab.Within("÷ Centralized", a.Ratio(kd4, cen, meanSlowdown), 0, 1.1),
				lab.Within("K-Dual ÷ K-Distributed", a.Ratio(dual, kd4, meanSlowdown), 0.75, 1.2),
				lab.Within("K-Dual ÷ Distributed", a.Ratio(dual, dist, meanSlowdown), 0, 0.75),
				lab.Shown("scope head: K-Dual ÷ K-Distributed", a.Ratio(dualHead, kd4, meanSlowdown), "")).
				Noted("", tooGood).
				Differing(a.Ratio(dual, kd4, meanSlowdown).Mean() < 1, "K-Dual is better than K-Distributed, not slightly worse.").
				Differing(a.Ratio(kd4, cen, meanSlowdown).Mean() > 1, "K-Distributed is not the best of all: Centralized is.")
		},
	}}
}

// tooShort is why gains may be above a band.
const tooShort = "Where the gain is above the band we think of the mix of jobs: slowdown divides by the run time, so that the shortest jobs carry most of its mean, " +
	"and those are the jobs that a further queue helps most."

// tooGood is why K-Dual may come out better than a band allows.
const tooGood = "Where K-Dual is better than the band allows: with scope all a remote copy may move the plan of no local job, which keeps the jobs of the light sites, " +
	"whose run times are not stretched and whose slowdowns weigh more, out of the queues of others."

// cut turns ratios into percentages saved.
func cut(ratio lab.Spread) lab.Spread {
	var s lab.Spread
	for _, r := range ratio {
		s = append(s, 100*(1-r))
	}
	return s
}

func judgeDay(a *answers) lab.Finding {
	var swing, top, bottom lab.Spread
	var mean [24]float64
	for _, o := range a.Outcomes[ind] {
		for h, v := range o.demand {
			mean[h] += v / float64(len(a.Outcomes[ind]))
		}
		swing = append(swing, slices.Max(o.demand[:])/slices.Min(o.demand[:]))
		top = append(top, hourOf(o.demand, slices.Max(o.demand[:])))
		bottom = append(bottom, hourOf(o.demand, slices.Min(o.demand[:])))
	}
	high, low := hourOf(mean, slices.Max(mean[:])), hourOf(mean, slices.Min(mean[:]))
	ratio := slices.Max(mean[:]) / slices.Min(mean[:])
	f := lab.Conclude(
		lab.Check(fmt.Sprintf("mean over the streams: max/min %.2f", ratio), nil, "", ratio >= 1.5),
		lab.Check(fmt.Sprintf("max at %.0f h", high), nil, "", high >= 12 && high < 22),
		lab.Check(fmt.Sprintf("min at %.0f h", low), nil, "", low < 8))
	f.Values = []lab.Value{{Name: "max/min", Value: ratio}, {Name: "hour of max", Value: high, Unit: "h"}, {Name: "hour of min", Value: low, Unit: "h"}}
	f.Measured += fmt.Sprintf("; single streams: max/min %s, max at %s, min at %s", swing.Text(""), top.Text("h"), bottom.Text("h"))
	return f
}

// hourOf returns the hour of a value.
func hourOf(day [24]float64, v float64) float64 { return float64(slices.Index(day[:], v)) }
