package kdistributed

import (
	"fmt"

	"kith/meta"
	"kith/testbed/lab"
)

// costQuestions are about transfers and messages (its section 7), and levels.
func costQuestions() []question {
	movedCen, movedKd, movedDual := cen.moving(), kd4.moving(), dual.moving()
	return []question{{
		ID: "C17", Text: "With data to be moved, K-Distributed and K-Dual still beat Unified and Centralized.",
		Source: "Figure 15, bars lost", Kind: lab.Direction, Enforced: true,
		Band:  "slowdown, K = 4: both ≤ Centralized; K-Dual ≤ 1.05 × Unified; K-Distributed ≤ 1.35 × Unified",
		Needs: []trial{ind, uni, movedCen, hier.moving(), dist.moving(), movedKd, movedDual},
		Judge: func(a *answers) lab.Finding {
			moved := func(o *outcome) float64 { return o.transfer }
			return lab.Conclude(
				lab.Within("K-Distributed ÷ Centralized", a.Ratio(movedKd, movedCen, meanSlowdown), 0, 1),
				lab.Within("K-Dual ÷ Centralized", a.Ratio(movedDual, movedCen, meanSlowdown), 0, 1),
				lab.Within("K-Dual ÷ Unified", a.Ratio(movedDual, uni, meanSlowdown), 0, 1.05),
				lab.Within("K-Distributed ÷ Unified", a.Ratio(movedKd, uni, meanSlowdown), 0, 1.35),
				lab.Shown("mean transfer of a remote job, K-Distributed", a.Of(movedKd, moved), "s"),
				lab.Shown("K-Dual", a.Of(movedDual, moved), "s")).
				Differing(a.Ratio(movedKd, uni, meanSlowdown).Mean() > 1, "K-Distributed does not beat Unified, which moves nothing.").
				Differing(a.Ratio(movedDual, uni, meanSlowdown).Mean() > 1, "K-Dual does not beat Unified, which moves nothing.")
		},
	}, {
		ID: "C18", Text: "A job costs K messages.",
		Source: "K", Kind: lab.Exact, Band: "exactly K logical messages a job, at most K on the wire; K = 1 to 4, K-Distributed and K-Dual", Enforced: true,
		Needs: messageTrials(), Judge: judgeMessages,
	}, {
		ID: "C19", Text: "Absolute levels under Independent.",
		Source: "turnaround ≈ 25,000 s, slowdown ≈ 25, if the axes of its Figures 9 and 15 share their grid lines", Kind: lab.AxisRead,
		Band:  "none; on a log they choose the windows",
		Needs: []trial{ind},
		Judge: func(a *answers) lab.Finding {
			f := lab.Conclude(
				lab.Shown("turnaround", a.Of(ind, meanTurnaround), "s"), lab.Shown("slowdown", a.Of(ind, meanSlowdown), ""),
				lab.Shown("utilisation", a.Of(ind, func(o *outcome) float64 { return 100 * o.utilisation }), "%"))
			f.Result = lab.Informational
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

func judgeMessages(a *answers) lab.Finding {
	var parts []lab.Reading
	for _, t := range messageTrials() {
		logical := a.Of(t, func(o *outcome) float64 { return float64(o.logical) / float64(o.jobs) })
		wire := a.Of(t, func(o *outcome) float64 { return float64(o.wire) / float64(o.jobs) })
		ok := true
		for _, o := range a.Outcomes[t] {
			ok = ok && o.logical == int64(t.k)*int64(o.jobs) && o.wire <= int64(t.k)*int64(o.jobs)
		}
		name := fmt.Sprintf("%s(%d)", t.scheme, t.k)
		parts = append(parts, lab.Check(fmt.Sprintf("%s: %.6g logical, %.2f on the wire", name, logical.Mean(), wire.Mean()), nil, "", ok))
	}
	return lab.Conclude(parts...)
}
