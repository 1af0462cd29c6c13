package lab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kith/meta"
	"kith/testbed/metrics"
)

// kDistributedQuestions are the claims of spec 001 section 3.1, with its bands.
func kDistributedQuestions() []question {
	return slices.Concat(schemeQuestions(), fairnessQuestions(), copiesQuestions(), costQuestions())
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
				below("Hierarchical ÷ Independent", a.ratio(hier, ind, meanSlowdown), 1))
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
			return finding("C5", parts...)
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
				noted("", tooGood)
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

func staleTrials() []trial {
	list := []trial{ind, cen, hier}
	for _, p := range periods {
		list = append(list, dist.aged(p), kd4.aged(p))
	}
	for _, l := range siteLoads {
		list = append(list, ind.loaded(l))
		for _, p := range periods {
			list = append(list, dist.aged(p).loaded(l))
		}
	}
	return list
}

// judgeStale sweeps the age of loads at the load of the main comparison and at
// the ends of the range of site loads that the band is from. It asks for growth
// at each and for a ratio above 1 at one of them.
func judgeStale(a *answers) Finding {
	var parts []reading
	highest := 0.0
	for _, l := range append([]float64{0}, siteLoads...) {
		where := fmt.Sprintf("site load %.2f", l)
		if l == 0 {
			where = "main comparison"
		}
		var means []float64
		text := where + ": Distributed ÷ Independent"
		for _, p := range periods {
			v := a.ratio(dist.aged(p).loaded(l), ind.loaded(l), meanSlowdown)
			means = append(means, v.mean())
			text += fmt.Sprintf(" %.2f at %s,", v.mean(), hours(p))
		}
		slope := trend(periods, means)
		highest = max(highest, slices.Max(means))
		parts = append(parts, reading{name: fmt.Sprintf("%s growing by %.3f an hour", text, slope), met: slope > 0 && means[len(means)-1] > means[0]})
	}
	parts = append(parts, reading{"highest", spread{highest}, "", highest > 1})
	worse := reading{name: "main comparison: worse than Centralized, Hierarchical and K-Distributed(4) at every age", met: true}
	for _, p := range periods {
		for _, other := range []trial{cen, hier, kd4.aged(p)} {
			if r := a.ratio(dist.aged(p), other, meanSlowdown); !(r.mean() > 1) {
				worse.met = false
				worse.name += fmt.Sprintf(" (÷ %s %.2f at %s)", other.scheme, r.mean(), hours(p))
			}
		}
	}
	return finding("C3", append(parts, worse)...).noted(
		"Whether old loads make Distributed worse than Independent depends on how loaded the sites are, so that ages are swept at the load of the main comparison and at the ends of the range of the band: "+
			"a line is fitted to each sweep and must rise, and one of them must exceed 1. A site ranks itself by its present load, as kithd does; only what it knows of others is old.",
		"")
}

// trend returns the slope of the line through values at times, an hour, by
// least squares.
func trend(times []time.Duration, values []float64) float64 {
	var x []float64
	for _, t := range times {
		x = append(x, t.Hours())
	}
	mx, my := metrics.Mean(x), metrics.Mean(values)
	sxy, sxx := 0.0, 0.0
	for i := range x {
		sxy += (x[i] - mx) * (values[i] - my)
		sxx += (x[i] - mx) * (x[i] - mx)
	}
	return sxy / sxx
}

// fairnessQuestions compare light and heavy sites (its Figure 10).
func fairnessQuestions() []question {
	return []question{{
		Claim: Claim{
			ID: "C9", Statement: "Independent: jobs of the light sites fare far better than those of the heavy sites.",
			Source: "significantly lower", Kind: Direction, Band: "slowdown light ÷ heavy ≤ 0.5", Enforced: true,
		},
		needs: []trial{ind},
		judge: func(a *answers) Finding {
			return finding("C9", within("light ÷ heavy", a.of(ind, lightOverHeavy), 0, 0.5))
		},
	}, {
		Claim: Claim{
			ID: "C10", Statement: "Distributed inverts this: jobs of the heavy sites fare better than those of the light sites.",
			Source: "inversion", Kind: Direction, Band: "slowdown light ÷ heavy > 1", Enforced: true,
		},
		needs: []trial{dist},
		judge: func(a *answers) Finding {
			v := a.of(dist, lightOverHeavy)
			f := finding("C10", reading{"light ÷ heavy", v, "", v.mean() > 1})
			return f.noted("Stretched jobs have a denominator 1.7 times as long, which alone favours the inversion.", "")
		},
	}, {
		Claim: Claim{
			ID: "C11", Statement: "K-Distributed still inverts, by less.",
			Source: "smaller", Kind: Direction, Enforced: true,
			Band: "mean over at least 3 streams: (light − heavy) of K-Distributed(4) smaller than of Distributed",
		},
		needs: []trial{dist, kd4},
		judge: func(a *answers) Finding {
			gap := func(o *outcome) float64 { return o.light - o.heavy }
			d, k := a.of(dist, gap), a.of(kd4, gap)
			smaller := 0
			for i := range d {
				if math.Abs(k[i]) < math.Abs(d[i]) {
					smaller++
				}
			}
			f := finding("C11",
				shown("light − heavy, Distributed", d, ""),
				reading{"K-Distributed(4)", k, "", math.Abs(k.mean()) < math.Abs(d.mean())},
				shown(fmt.Sprintf("smaller in %d of %d streams", smaller, len(d)), nil, ""))
			return f
		},
	}, {
		Claim: Claim{
			ID: "C12", Statement: "K-Dual does not invert: jobs of the light sites lose little against Independent, those of the heavy sites gain much.",
			Source: "Figure 10, bars lost", Kind: Direction, Enforced: true,
			Band: "scope all, K = 4. Shared trace, load ≥ 0.6: light < heavy. Any trace: light ÷ heavy lower than K-Distributed's; light below K-Distributed's light; heavy ≤ 0.5 × Independent's heavy",
		},
		needs: append(slices.Clone([]trial{ind, kd4, dual, dualHead}), ind.in(distinctMix), kd4.in(distinctMix), dual.in(distinctMix)),
		judge: judgeDual,
	}}
}

func judgeDual(a *answers) Finding {
	var parts []reading
	if v := a.where(a.of(dual, lightOverHeavy), loaded); len(v) > 0 {
		parts = append(parts, below(fmt.Sprintf("light ÷ heavy, shared trace, load ≥ 0.6 (%d of %d streams)", len(v), len(a.streams)), v, 1))
	} else {
		parts = append(parts, shown("light ÷ heavy, shared trace, load below 0.6, not judged", a.of(dual, lightOverHeavy), ""))
	}
	for _, m := range []mix{sharedMix, distinctMix} {
		d, k, i := dual.in(m), kd4.in(m), ind.in(m)
		tilt := a.of(d, lightOverHeavy)
		for n, o := range a.trials[k] {
			tilt[n] /= lightOverHeavy(o)
		}
		parts = append(parts,
			below(fmt.Sprintf("%s: light ÷ heavy over that of K-Distributed", m), tilt, 1),
			below("light over that of K-Distributed", a.ratio(d, k, lightSlowdown), 1),
			within("heavy ÷ Independent", a.ratio(d, i, heavySlowdown), 0, 0.5),
			shown("light ÷ Independent", a.ratio(d, i, lightSlowdown), ""))
	}
	parts = append(parts, shown("scope head, shared: light ÷ heavy", a.of(dualHead, lightOverHeavy), ""))
	return finding("C12", parts...).noted("", "The stretched jobs of the heavy sites have a denominator 1.7 times as long, which alone favours the inversion (C10).")
}

// copiesQuestions are about K (its Figures 11 to 14).
func copiesQuestions() []question {
	user, perfect := sweep(sharedMix, meta.RankWork), sweep(perfectMix, meta.RankWork)
	equalStart, equalWork := sweep(equalMix, meta.RankStart), sweep(equalMix, meta.RankWork)
	return []question{{
		Claim: Claim{
			ID: "C13", Statement: "The second copy gains much, the third little, the fourth about nothing.",
			Source: "Figure 11, bars lost", Kind: Direction, Enforced: true,
			Band: "slowdown, in points of K = 1: gain(1→2) > gain(2→3) ≥ gain(3→4) − 5; K2 ÷ K1 in 0.55–0.88, K4 ÷ K1 in 0.40–0.75",
		},
		needs: user,
		judge: func(a *answers) Finding {
			k := a.sweepRatios(user)
			g12, g23, g34 := 100*(1-k[1].mean()), 100*(k[1].mean()-k[2].mean()), 100*(k[2].mean()-k[3].mean())
			return finding("C13",
				within("K2 ÷ K1", k[1], 0.55, 0.88), shown("K3 ÷ K1", k[2], ""), within("K4 ÷ K1", k[3], 0.40, 0.75),
				reading{"gain 1→2", spread{g12}, "points", g12 > g23}, reading{"2→3", spread{g23}, "points", g23 >= g34-5}, shown("3→4", spread{g34}, "points")).
				noted("", tooShort)
		},
	}, {
		Claim: Claim{
			ID: "C14", Statement: "With perfect estimates, K = 2 is below 65 % of K = 1 and K = 3 below 45 %.",
			Source: "< 0.65, < 0.45", Kind: Exact, Band: "K2 ÷ K1 ≤ 0.75, K3 ÷ K1 ≤ 0.65", Enforced: true,
		},
		needs: slices.Concat(perfect, perfectSchemes()),
		judge: func(a *answers) Finding {
			k := a.sweepRatios(perfect)
			return finding("C14", within("K2 ÷ K1", k[1], 0, 0.75), within("K3 ÷ K1", k[2], 0, 0.65), shown("K4 ÷ K1", k[3], ""))
		},
	}, {
		Claim: Claim{
			ID: "C15", Statement: "Copies help more with perfect estimates than with users'.",
			Source: "even more significant", Kind: Direction, Band: "K2 ÷ K1 (perfect) < K2 ÷ K1 (users)", Enforced: true,
		},
		needs: append(slices.Clone(user[:2]), perfect[:2]...),
		judge: func(a *answers) Finding {
			p, u := a.ratio(perfect[1], perfect[0], meanSlowdown), a.ratio(user[1], user[0], meanSlowdown)
			return finding("C15", reading{"perfect", p, "", p.mean() < u.mean()}, shown("users'", u, "")).
				noted("", "The two ratios are near each other; which is smaller depends on how loose the users' estimates of short jobs are.")
		},
	}, {
		Claim: Claim{
			ID: "C16", Statement: "With jobs of equal width and perfect estimates, K changes nothing.",
			Source: "virtually unchanged", Kind: Direction, Enforced: true,
			Band: "rank start: start instants of K = 1 and K = 4 identical as a multiset; load work, load ≥ 0.6: K4 ÷ K1 ≥ 0.8",
		},
		needs: append(equalWork, equalStart[0], equalStart[3]),
		judge: func(a *answers) Finding {
			same := 0
			for i, o := range a.trials[equalStart[0]] {
				if o.starts == a.trials[equalStart[3]][i].starts {
					same++
				}
			}
			n := len(a.streams)
			parts := []reading{{name: fmt.Sprintf("rank start: identical in %d of %d streams", same, n), met: same == n}}
			v := a.ratio(equalWork[3], equalWork[0], meanSlowdown)
			if judged := a.where(v, loaded); len(judged) > 0 {
				parts = append(parts, within("load work: K4 ÷ K1", judged, 0.8, infinite))
			} else {
				parts = append(parts, shown("load work, below a load of 0.6, not judged: K4 ÷ K1", v, ""))
			}
			return finding("C16", parts...)
		},
	}}
}

// sweepRatios returns the slowdowns of trials over that of the first.
func (a *answers) sweepRatios(list []trial) []spread {
	var k []spread
	for _, t := range list {
		k = append(k, a.ratio(t, list[0], meanSlowdown))
	}
	return k
}

// costQuestions are about transfers and messages (its section 7), and levels.
func costQuestions() []question {
	movedCen, movedKd, movedDual := cen.moving(), kd4.moving(), dual.moving()
	return []question{{
		Claim: Claim{
			ID: "C17", Statement: "With data to be moved, K-Distributed and K-Dual still beat Unified and Centralized.",
			Source: "Figure 15, bars lost", Kind: Direction, Enforced: true,
			Band: "slowdown, K = 4: both ≤ Centralized; K-Dual ≤ 1.05 × Unified; K-Distributed ≤ 1.35 × Unified",
		},
		needs: []trial{ind, uni, movedCen, hier.moving(), dist.moving(), movedKd, movedDual},
		judge: func(a *answers) Finding {
			moved := func(o *outcome) float64 { return o.transfer }
			return finding("C17",
				within("K-Distributed ÷ Centralized", a.ratio(movedKd, movedCen, meanSlowdown), 0, 1),
				within("K-Dual ÷ Centralized", a.ratio(movedDual, movedCen, meanSlowdown), 0, 1),
				within("K-Dual ÷ Unified", a.ratio(movedDual, uni, meanSlowdown), 0, 1.05),
				within("K-Distributed ÷ Unified", a.ratio(movedKd, uni, meanSlowdown), 0, 1.35),
				shown("mean transfer of a remote job, K-Distributed", a.of(movedKd, moved), "s"),
				shown("K-Dual", a.of(movedDual, moved), "s"))
		},
	}, {
		Claim: Claim{
			ID: "C18", Statement: "A job costs K messages.",
			Source: "K", Kind: Exact, Band: "exactly K logical messages a job, at most K on the wire; K = 1 to 4, K-Distributed and K-Dual", Enforced: true,
		},
		needs: messageTrials(), judge: judgeMessages,
	}, {
		Claim: Claim{
			ID: "C19", Statement: "Absolute levels under Independent.",
			Source: "turnaround ≈ 25,000 s, slowdown ≈ 25, if the axes of its Figures 9 and 15 share their grid lines", Kind: AxisRead,
			Band: "none; on a log they choose the windows",
		},
		needs: []trial{ind},
		judge: func(a *answers) Finding {
			f := finding("C19",
				shown("turnaround", a.of(ind, meanTurnaround), "s"), shown("slowdown", a.of(ind, meanSlowdown), ""),
				shown("utilisation", a.of(ind, func(o *outcome) float64 { return 100 * o.utilisation }), "%"))
			f.Verdict = Informational
			return f
		},
	}}
}

func messageTrials() []trial {
	list := sweep(sharedMix, meta.RankWork)
	for k := range int32(4) {
		list = append(list, at(kDual, k+1))
	}
	return list
}

func judgeMessages(a *answers) Finding {
	var parts []reading
	for _, t := range messageTrials() {
		logical := a.of(t, func(o *outcome) float64 { return float64(o.logical) / float64(o.jobs) })
		wire := a.of(t, func(o *outcome) float64 { return float64(o.wire) / float64(o.jobs) })
		ok := true
		for _, o := range a.trials[t] {
			ok = ok && o.logical == int64(t.k)*int64(o.jobs) && o.wire <= int64(t.k)*int64(o.jobs)
		}
		name := fmt.Sprintf("%s(%d)", t.scheme, t.k)
		parts = append(parts, reading{fmt.Sprintf("%s: %.6g logical, %.2f on the wire", name, logical.mean(), wire.mean()), nil, "", ok})
	}
	return finding("C18", parts...)
}

func hours(d time.Duration) string { return fmt.Sprintf("%.3g h", d.Hours()) }
