package lab

import (
	"fmt"
	"slices"

	"kith/meta"
)

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
			return finding("C14", within("K2 ÷ K1", k[1], 0, 0.75), within("K3 ÷ K1", k[2], 0, 0.65), shown("K4 ÷ K1", k[3], "")).
				differing(k[1].mean() >= 0.65, "K = 2 is not below 65 % of K = 1.").
				differing(k[2].mean() >= 0.45, "K = 3 is not below 45 % of K = 1.")
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
