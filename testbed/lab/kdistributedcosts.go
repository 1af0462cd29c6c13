package lab

import (
	"fmt"

	"kith/meta"
)

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
				shown("K-Dual", a.of(movedDual, moved), "s")).
				differing(a.ratio(movedKd, uni, meanSlowdown).mean() > 1, "K-Distributed does not beat Unified, which moves nothing.").
				differing(a.ratio(movedDual, uni, meanSlowdown).mean() > 1, "K-Dual does not beat Unified, which moves nothing.")
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
