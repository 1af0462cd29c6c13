package lab

import (
	"fmt"
	"math"
	"slices"

	"kith/testbed/metrics"
)

// kDistributedQuestions are the claims of spec 001 section 3.1, with its bands.
func kDistributedQuestions() []question {
	return slices.Concat(schemeQuestions(), sideQuestions(), copiesQuestions(), costQuestions())
}

var infinite = math.Inf(1)

// schemeQuestions compare schemes over all jobs (its Figures 5, 6, 8 and 9).
func schemeQuestions() []question {
	return []question{{
		Claim: Claim{
			ID: "C1", Statement: "The processors requested at a site follow the day like a sine, with a peak towards the evening and a trough in the early morning.",
			Source: "Figure 5, curve lost", Kind: Direction, Enforced: true,
			Band: "hourly means: max/min ≥ 1.5; max between 12 and 22 h, min between 0 and 8 h, local time",
		},
		needs: []trial{ind}, judge: judgeDay,
	}, {
		Claim: Claim{
			ID: "C2", Statement: "Centralized and Hierarchical have a slightly lower slowdown than Unified.",
			Source: "slightly lower", Kind: Direction, Enforced: true,
			Band: "each ÷ Unified in 0.75–1.15, both below Independent",
		},
		needs: []trial{ind, uni, cen, hier},
		judge: func(a *answers) Finding {
			return finding("C2",
				within("Centralized ÷ Unified", a.ratio(cen, uni, meanSlowdown), 0.75, 1.15),
				within("Hierarchical ÷ Unified", a.ratio(hier, uni, meanSlowdown), 0.75, 1.15),
				below("Centralized ÷ Independent", a.ratio(cen, ind, meanSlowdown), 1),
				below("Hierarchical ÷ Independent", a.ratio(hier, ind, meanSlowdown), 1)).
				differing(a.ratio(cen, uni, meanSlowdown).mean() > 1, "Centralized is not lower than Unified.").
				differing(a.ratio(hier, uni, meanSlowdown).mean() > 1, "Hierarchical is not lower than Unified.")
		},
	}, {
		Claim: Claim{
			ID: "C3", Statement: "Distributed is worse than Independent in mean slowdown.",
			Source: "> 1", Kind: Direction, Enforced: true,
			Band: "Distributed ÷ Independent grows with the age of loads and exceeds 1 at some age ≤ 6 h (site loads 0.48 to 0.78); Distributed is worse than Centralized, Hierarchical and K-Distributed(4) at every age",
		},
		needs: staleTrials(), judge: judgeStale,
	}, {
		Claim: Claim{
			ID: "C4", Statement: "Distributed hurts short, narrow jobs most.",
			Source: "much higher", Kind: Direction, Enforced: true,
			Band: "slowdown of short-narrow jobs: Distributed ≥ 1.5 × Centralized and ≥ 1.5 × Hierarchical",
		},
		needs: []trial{dist, cen, hier},
		judge: func(a *answers) Finding {
			narrow := classSlowdown(metrics.ShortNarrow)
			return finding("C4",
				within("Distributed ÷ Centralized", a.ratio(dist, cen, narrow), 1.5, infinite),
				within("Distributed ÷ Hierarchical", a.ratio(dist, hier, narrow), 1.5, infinite))
		},
	}, {
		Claim: Claim{
			ID: "C5", Statement: "Against Centralized, Unified is better for short-wide jobs and worse for long-narrow ones.",
			Source: "in words", Kind: Direction,
			Band: "long-narrow: Unified ≥ 0.95 × Centralized",
		},
		needs: []trial{uni, cen},
		judge: func(a *answers) Finding {
			var parts []reading
			for c := range metrics.Class(metrics.Classes) {
				v := a.ratio(uni, cen, classSlowdown(c))
				part := shown(c.String()+", Unified ÷ Centralized", v, "")
				if c == metrics.LongNarrow {
					part.met = v.mean() >= 0.95
				}
				parts = append(parts, part)
			}
			return finding("C5", parts...).differing(a.ratio(uni, cen, classSlowdown(metrics.ShortWide)).mean() >= 1, "Short-wide jobs are not better off under Unified.")
		},
	}, {
		Claim: Claim{
			ID: "C6", Statement: "K-Distributed with K = 4 cuts the slowdown of Distributed.",
			Source: "45 %", Kind: Exact, Band: "30–60 %", Enforced: true,
		},
		needs: []trial{dist, kd4},
		judge: func(a *answers) Finding {
			v := cut(a.ratio(kd4, dist, meanSlowdown))
			bounded := cut(a.ratio(kd4, dist, func(o *outcome) float64 { return o.bounded.Mean }))
			return finding("C6", reading{"cut by", v, "%", v.mean() >= 30 && v.mean() <= 60}, shown("bounded slowdown (10 s)", bounded, "%")).
				noted("", tooShort)
		},
	}, {
		Claim: Claim{
			ID: "C7", Statement: "It cuts the turnaround, too, but less.",
			Source: "15 %", Kind: Exact, Band: "3–25 %, always less than the slowdown", Enforced: true,
		},
		needs: []trial{dist, kd4},
		judge: func(a *answers) Finding {
			v, s := cut(a.ratio(kd4, dist, meanTurnaround)), cut(a.ratio(kd4, dist, meanSlowdown))
			less := true
			for i := range v {
				less = less && v[i] < s[i]
			}
			return finding("C7", reading{"cut by", v, "%", v.mean() >= 3 && v.mean() <= 25}, reading{name: "less than the slowdown in every stream", met: less})
		},
	}, {
		Claim: Claim{
			ID: "C8", Statement: "K-Distributed is the best of all schemes; K-Dual is slightly worse, and far better than Distributed.",
			Source: "Figures 8 and 9, bars lost", Kind: Direction, Enforced: true,
			Band: "slowdown, K = 4: K-Distributed ≤ Independent, ≤ Distributed, ≤ 1.1 × Centralized; K-Dual ÷ K-Distributed in 0.75–1.2; K-Dual ≤ 0.75 × Distributed",
		},
		needs: []trial{ind, dist, cen, kd4, dual, dualHead},
		judge: func(a *answers) Finding {
			return finding("C8",
				within("K-Distributed ÷ Independent", a.ratio(kd4, ind, meanSlowdown), 0, 1),
				within("÷ Distributed", a.ratio(kd4, dist, meanSlowdown), 0, 1),
				within("÷ Centralized", a.ratio(kd4, cen, meanSlowdown), 0, 1.1),
				within("K-Dual ÷ K-Distributed", a.ratio(dual, kd4, meanSlowdown), 0.75, 1.2),
				within("K-Dual ÷ Distributed", a.ratio(dual, dist, meanSlowdown), 0, 0.75),
				shown("scope head: K-Dual ÷ K-Distributed", a.ratio(dualHead, kd4, meanSlowdown), "")).
				noted("", tooGood).
				differing(a.ratio(dual, kd4, meanSlowdown).mean() < 1, "K-Dual is better than K-Distributed, not slightly worse.").
				differing(a.ratio(kd4, cen, meanSlowdown).mean() > 1, "K-Distributed is not the best of all: Centralized is.")
		},
	}}
}

// tooShort is why gains may be above a band.
const tooShort = "Where the gain is above the band we think of the mix of jobs: slowdown divides by the run time, so that the shortest jobs carry most of its mean, " +
	"and those are the jobs that a further queue helps most."

// tooGood is why K-Dual may come out better than a band allows.
const tooGood = "Where K-Dual is better than the band allows: with scope all a remote copy may move the plan of no local job, which keeps the jobs of the light sites, " +
	"whose run times are not stretched and whose slowdowns weigh more, out of the queues of others."

// below is a reading that must be less than a bound in the mean.
func below(name string, v spread, bound float64) reading {
	return reading{name: name, v: v, met: v.mean() < bound}
}

// cut turns ratios into percentages saved.
func cut(ratio spread) spread {
	var s spread
	for _, r := range ratio {
		s = append(s, 100*(1-r))
	}
	return s
}

func judgeDay(a *answers) Finding {
	var swing, top, bottom spread
	var mean [24]float64
	for _, o := range a.trials[ind] {
		for h, v := range o.demand {
			mean[h] += v / float64(len(a.trials[ind]))
		}
		swing = append(swing, slices.Max(o.demand[:])/slices.Min(o.demand[:]))
		top = append(top, hourOf(o.demand, slices.Max(o.demand[:])))
		bottom = append(bottom, hourOf(o.demand, slices.Min(o.demand[:])))
	}
	high, low := hourOf(mean, slices.Max(mean[:])), hourOf(mean, slices.Min(mean[:]))
	ratio := slices.Max(mean[:]) / slices.Min(mean[:])
	f := finding("C1",
		reading{fmt.Sprintf("mean over the streams: max/min %.2f", ratio), nil, "", ratio >= 1.5},
		reading{fmt.Sprintf("max at %.0f h", high), nil, "", high >= 12 && high < 22},
		reading{fmt.Sprintf("min at %.0f h", low), nil, "", low < 8})
	f.Values = []Value{{"max/min", ratio, ""}, {"hour of max", high, "h"}, {"hour of min", low, "h"}}
	f.Measured += fmt.Sprintf("; single streams: max/min %s, max at %s, min at %s", swing.text(""), top.text("h"), bottom.text("h"))
	return f
}

// hourOf returns the hour of a value.
func hourOf(day [24]float64, v float64) float64 { return float64(slices.Index(day[:], v)) }
