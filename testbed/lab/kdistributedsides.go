package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// sideQuestions compare light and heavy sites (its Figure 10).
func sideQuestions() []question {
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
			// The gap of single streams, so that opposite signs do not cancel.
			size := func(o *outcome) float64 { return math.Abs(gap(o)) }
			smaller := 0
			for i := range d {
				if math.Abs(k[i]) < math.Abs(d[i]) {
					smaller++
				}
			}
			f := finding("C11",
				shown("light − heavy, Distributed", d, ""),
				reading{"K-Distributed(4)", k, "", a.of(kd4, size).mean() < a.of(dist, size).mean()},
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
	var better []string // mixes in which light sites gain
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
		if l := a.ratio(d, i, lightSlowdown).mean(); l < 1 {
			better = append(better, fmt.Sprintf("%s %.2f", m, l))
		}
		parts = append(parts,
			below(fmt.Sprintf("%s: light ÷ heavy over that of K-Distributed", m), tilt, 1),
			below("light over that of K-Distributed", a.ratio(d, k, lightSlowdown), 1),
			within("heavy ÷ Independent", a.ratio(d, i, heavySlowdown), 0, 0.5),
			shown("light ÷ Independent", a.ratio(d, i, lightSlowdown), ""))
	}
	parts = append(parts, shown("scope head, shared: light ÷ heavy", a.of(dualHead, lightOverHeavy), ""))
	return finding("C12", parts...).noted("", "The stretched jobs of the heavy sites have a denominator 1.7 times as long, which alone favours the inversion (C10).").
		differing(len(better) > 0, fmt.Sprintf("Light sites do not lose a little against Independent but gain (light ÷ Independent: %s).", strings.Join(better, ", ")))
}
