package kdistributed

import (
	"fmt"
	"slices"

	"kith/meta"
	"kith/testbed/lab"
)

// copiesQuestions are about K (its Figures 11 to 14).
func copiesQuestions() []question {
	user, perfect := sweep(sharedMix, meta.RankWork), sweep(perfectMix, meta.RankWork)
	equalStart, equalWork := sweep(equalMix, meta.RankStart), sweep(equalMix, meta.RankWork)
	return []question{{
		ID: "C13", Text: "The second copy gains much, the third little, the fourth about nothing.",
		Source: "Figure 11, bars lost", Kind: lab.Direction, Enforced: true,
		Band:  "slowdown, in points of K = 1: gain(1→2) > gain(2→3) ≥ gain(3→4) − 5; K2 ÷ K1 in 0.55–0.88, K4 ÷ K1 in 0.40–0.75",
		Needs: user,
		Judge: func(a *answers) lab.Finding {
			k := a.sweepRatios(user)
			g12, g23, g34 := 100*(1-k[1].Mean()), 100*(k[1].Mean()-k[2].Mean()), 100*(k[2].Mean()-k[3].Mean())
			return lab.Conclude(
				lab.Within("K2 ÷ K1", k[1], 0.55, 0.88), lab.Shown("K3 ÷ K1", k[2], ""), lab.Within("K4 ÷ K1", k[3], 0.40, 0.75),
				lab.Check("gain 1→2", lab.Spread{g12}, "points", g12 > g23), lab.Check("2→3", lab.Spread{g23}, "points", g23 >= g34-5), lab.Shown("3→4", lab.Spread{g34}, "points")).
				Noted("", tooShort)
		},
	}, {
		ID: "C14", Text: "With perfect estimates, K = 2 is below 65 % of K = 1 and K = 3 below 45 %.",
		Source: "< 0.65, < 0.45", Kind: lab.Exact, Band: "K2 ÷ K1 ≤ 0.75, K3 ÷ K1 ≤ 0.65", Enforced: true,
		Needs: slices.Concat(perfect, perfectSchemes()),
		Judge: func(a *answers) lab.Finding {
			k := a.sweepRatios(perfect)
			return lab.Conclude(lab.Within("K2 ÷ K1", k[1], 0, 0.75), lab.Within("K3 ÷ K1", k[2], 0, 0.65), lab.Shown("K4 ÷ K1", k[3], "")).
				Differing(k[1].Mean() >= 0.65, "K = 2 is not below 65 % of K = 1.").
				Differing(k[2].Mean() >= 0.45, "K = 3 is not below 45 % of K = 1.")
		},
	}, {
		ID: "C15", Text: "Copies help more with perfect estimates than with users'.",
		Source: "even more significant", Kind: lab.Direction, Band: "K2 ÷ K1 (perfect) < K2 ÷ K1 (users)", Enforced: true,
		Needs: append(slices.Clone(user[:2]), perfect[:2]...),
		Judge: func(a *answers) lab.Finding {
			p, u := a.Ratio(perfect[1], perfect[0], meanSlowdown), a.Ratio(user[1], user[0], meanSlowdown)
			return lab.Conclude(lab.Check("perfect", p, "", p.Mean() < u.Mean()), lab.Shown("users'", u, "")).
				Noted("", "The two ratios are near each other; which is smaller depends on how loose the users' estimates of short jobs are.")
		},
	}, {
		ID: "C16", Text: "With jobs of equal width and perfect estimates, K changes nothing.",
		Source: "virtually unchanged", Kind: lab.Direction, Enforced: true,
		Band:  "rank start: start instants of K = 1 and K = 4 identical as a multiset; load work, load ≥ 0.6: K4 ÷ K1 ≥ 0.8",
		Needs: append(equalWork, equalStart[0], equalStart[3]),
		Judge: func(a *answers) lab.Finding {
			same := 0
			for i, o := range a.Outcomes[equalStart[0]] {
				if o.starts == a.Outcomes[equalStart[3]][i].starts {
					same++
				}
			}
			n := len(a.streams)
			parts := []lab.Reading{{Name: fmt.Sprintf("rank start: identical in %d of %d streams", same, n), Met: same == n}}
			v := a.Ratio(equalWork[3], equalWork[0], meanSlowdown)
			if judged := a.where(v, loaded); len(judged) > 0 {
				parts = append(parts, lab.Within("load work: K4 ÷ K1", judged, 0.8, lab.Unbounded))
			} else {
				parts = append(parts, lab.Shown("load work, below a load of 0.6, not judged: K4 ÷ K1", v, ""))
			}
			return lab.Conclude(parts...)
		},
	}}
}

// sweepRatios returns the slowdowns of trials over that of the first.
func (a *answers) sweepRatios(list []trial) []lab.Spread {
	var k []lab.Spread
	for _, t := range list {
		k = append(k, a.Ratio(t, list[0], meanSlowdown))
	}
	return k
}
