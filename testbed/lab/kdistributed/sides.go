package kdistributed

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kith/testbed/lab"
)

// sideQuestions compare light and heavy sites (its Figure 10).
func sideQuestions() []question {
	return []question{{
		ID: "C9", Text: "Independent: jobs of the light sites fare far better than those of the heavy sites.",
		Source: "significantly lower", Kind: lab.Direction, Band: "slowdown light ÷ heavy ≤ 0.5", Enforced: true,
		Needs: []trial{ind},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("light ÷ heavy", a.Of(ind, lightOverHeavy), 0, 0.5))
		},
	}, {
		ID: "C10", Text: "Distributed inverts this: jobs of the heavy sites fare better than those of the light sites.",
		Source: "inversion", Kind: lab.Direction, Band: "slowdown light ÷ heavy > 1", Enforced: true,
		Needs: []trial{dist},
		Judge: func(a *answers) lab.Finding {
			v := a.Of(dist, lightOverHeavy)
			f := lab.Conclude(lab.Check("light ÷ heavy", v, "", v.Mean() > 1))
			return f.Noted("Stretched jobs have a denominator 1.7 times as long, which alone favours the inversion.", "")
		},
	}, {
		ID: "C11", Text: "K-Distributed still inverts, by less.",
		Source: "smaller", Kind: lab.Direction, Enforced: true,
		Band:  "mean over at least 3 streams: (light − heavy) of K-Distributed(4) smaller than of Distributed",
		Needs: []trial{dist, kd4},
		Judge: func(a *answers) lab.Finding {
			gap := func(o *outcome) float64 { return o.light - o.heavy }
			d, k := a.Of(dist, gap), a.Of(kd4, gap)
			// The gap of single streams, so that opposite signs do not cancel.
			size := func(o *outcome) float64 { return math.Abs(gap(o)) }
			smaller := 0
			for i := range d {
				if math.Abs(k[i]) < math.Abs(d[i]) {
					smaller++
				}
			}
			f := lab.Conclude(
				lab.Shown("light − heavy, Distributed", d, ""),
				lab.Check("K-Distributed(4)", k, "", a.Of(kd4, size).Mean() < a.Of(dist, size).Mean()),
				lab.Shown(fmt.Sprintf("smaller in %d of %d streams", smaller, len(d)), nil, ""))
			return f
		},
	}, {
		ID: "C12", Text: "K-Dual does not invert: jobs of the light sites lose little against Independent, those of the heavy sites gain much.",
		Source: "Figure 10, bars lost", Kind: lab.Direction, Enforced: true,
		Band:  "scope all, K = 4. Shared trace, load ≥ 0.6: light < heavy. Any trace: light ÷ heavy lower than K-Distributed's; light below K-Distributed's light; heavy ≤ 0.5 × Independent's heavy",
		Needs: append(slices.Clone([]trial{ind, kd4, dual, dualHead}), ind.in(distinctMix), kd4.in(distinctMix), dual.in(distinctMix)),
		Judge: judgeDual,
	}}
}

func judgeDual(a *answers) lab.Finding {
	var parts []lab.Reading
	var better []string // mixes in which light sites gain
	if v := a.where(a.Of(dual, lightOverHeavy), loaded); len(v) > 0 {
		parts = append(parts, lab.Below(fmt.Sprintf("light ÷ heavy, shared trace, load ≥ 0.6 (%d of %d streams)", len(v), len(a.streams)), v, 1))
	} else {
		parts = append(parts, lab.Shown("light ÷ heavy, shared trace, load below 0.6, not judged", a.Of(dual, lightOverHeavy), ""))
	}
	for _, m := range []mix{sharedMix, distinctMix} {
		d, k, i := dual.in(m), kd4.in(m), ind.in(m)
		tilt := a.Of(d, lightOverHeavy)
		for n, o := range a.Outcomes[k] {
			tilt[n] /= lightOverHeavy(o)
		}
		if l := a.Ratio(d, i, lightSlowdown).Mean(); l < 1 {
			better = append(better, fmt.Sprintf("%s %.2f", m, l))
		}
		parts = append(parts,
			lab.Below(fmt.Sprintf("%s: light ÷ heavy over that of K-Distributed", m), tilt, 1),
			lab.Below("light over that of K-Distributed", a.Ratio(d, k, lightSlowdown), 1),
			lab.Within("heavy ÷ Independent", a.Ratio(d, i, heavySlowdown), 0, 0.5),
			lab.Shown("light ÷ Independent", a.Ratio(d, i, lightSlowdown), ""))
	}
	parts = append(parts, lab.Shown("scope head, shared: light ÷ heavy", a.Of(dualHead, lightOverHeavy), ""))
	return lab.Conclude(parts...).Noted("", "The stretched jobs of the heavy sites have a denominator 1.7 times as long, which alone favours the inversion (C10).").
		Differing(len(better) > 0, fmt.Sprintf("Light sites do not lose a little against Independent but gain (light ÷ Independent: %s).", strings.Join(better, ", ")))
}
