package forecasts

import (
	"fmt"
	"slices"
	"strings"

	"kith/internal/forecast"
	"kith/testbed/lab"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

const ourOwn = "no paper says"

// What we think where a band is not met.
const (
	whyNoUsers    = "Run times of generated jobs are drawn without regard to users: the last ones of a user say nothing, and the jobs of one user do not go together as the scenarios take them to."
	whyNewUsers   = "Ranges for new users of generated jobs are too wide: their own few jobs say nothing about the next. Why the recalibration does not make up for it there has not been found out."
	whyRegression = "A method that is better than similar jobs on both logs and holds its ranges may replace it."
	whyBursts     = "Bursts of jobs of one user all miss on the same side before the first of them has started or ended."
)

// enough is how many forecasts a class needs for its share to mean something.
const enough = 500

// questions are the statements of the study.
func questions() []question {
	one := easy.trials()
	runTimes := []trial{{easy, 0}}
	return []question{{
		ID: "F1", Kind: lab.Ours, Text: "Four of five starts lie within the range that was told at submission.",
		Source: ourOwn, Band: "jobs that wait, EASY: 78 to 82 % held", Needs: one,
		Judge: func(a *answers) lab.Finding { return a.heldWithin(a.starts[easy], 78, 82).Noted("", whyBursts) },
	}, {
		ID: "F2", Kind: lab.Ours, Text: "So it is in every class of waits.",
		Source: ourOwn, Band: "each class of at least 500: 75 to 85 % held", Needs: one,
		Judge: func(a *answers) lab.Finding {
			return classes(a.starts[easy], forecast.StartClasses, forecast.StartClassName, 75, 85)
		},
	}, {
		ID: "F3", Kind: lab.Ours, Text: "So it is at any time.",
		Source: ourOwn, Band: "windows of 1,000: 75 to 85 % held in nine of ten", Needs: one,
		Judge: func(a *answers) lab.Finding { return judgeWindows(a.starts[easy]).Noted("", whyBursts) },
	}, {
		ID: "F4", Kind: lab.Ours, Text: "Scenarios beat what WhatIf says times what starts were of it before.",
		Source: ourOwn, Band: "pinball loss: at most 0.75 on the CTC log, 0.88 elsewhere", Needs: one,
		Judge: func(a *answers) lab.Finding {
			bound := 0.88
			if a.env.Trace != nil && strings.HasPrefix(a.env.Trace.Name, "CTC") {
				bound = 0.75
			}
			return lab.Conclude(lab.Within("ours ÷ WhatIf × past ratio", spread(a.starts[easy], lossOver(byLimits)), 0, bound)).Noted("", a.whyLoss())
		},
	}, {
		ID: "F5", Kind: lab.Ours, Text: "Scenarios beat past waits of jobs as wide.",
		Source: ourOwn, Band: "pinball loss: at most 0.75", Needs: one,
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("ours ÷ past waits by width", spread(a.starts[easy], lossOver(byWaits)), 0, 0.75))
		},
	}, {
		ID: "F6", Kind: lab.Ours, Text: "Ranges of starts hold under conservative backfill, too.",
		Source: ourOwn, Band: "78 to 82 % held", Needs: conservative.trials(),
		Judge: func(a *answers) lab.Finding {
			if a.src.leavesOut(conservative) {
				return onlyShown("not run: the log has too many jobs for it")
			}
			return a.heldWithin(a.starts[conservative], 78, 82).Noted("", whyBursts)
		},
	}, {
		ID: "F7", Kind: lab.Ours, Text: "Four of five run times lie within the range that was told at submission.",
		Source: ourOwn, Band: "78 to 82 % held", Needs: runTimes,
		Judge: func(a *answers) lab.Finding { return a.heldWithin(a.runs, 78, 82) },
	}, {
		ID: "F8", Kind: lab.Ours, Text: "So it is in each of four classes of jobs.",
		Source: ourOwn, Band: "each class of at least 500: 76 to 84 % held", Needs: runTimes,
		Judge: func(a *answers) lab.Finding {
			return classes(a.runs, forecast.RunClasses, forecast.RunClassName, 76, 84).Noted("", a.whyClasses())
		},
	}, {
		ID: "F9", Kind: lab.Ours, Text: "Similar jobs beat the user's last two times what run times were of that before.",
		Source: ourOwn, Band: "pinball loss: at most 0.88", Needs: runTimes,
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("ours ÷ last two × past ratio", spread(a.runs, lossOver(byWaits)), 0, 0.88)).Noted("", a.whyLoss())
		},
	}, {
		ID: "F10", Kind: lab.Ours, Text: "No simpler method for run times is better.",
		Source: ourOwn, Band: "pinball loss: at most that of the limit × past ratio, and of quantile regression", Needs: runTimes,
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("ours ÷ limit × past ratio", spread(a.runs, lossOver(byLimits)), 0, 1),
				lab.Within("ours ÷ quantile regression", spread(a.runs, lossOver(byRegression)), 0, 1),
			).Noted("", a.whyLoss()+" "+whyRegression)
		},
	}, {
		ID: "F11", Kind: lab.Ours, Text: "Ranges of starts hold in a federation whose jobs may start anywhere.",
		Source: ourOwn, Band: "three sites, K-Dual, K = 3: 78 to 82 % held", Needs: federated.trials(),
		Judge: func(a *answers) lab.Finding { return a.heldWithin(a.starts[federated], 78, 82).Noted("", whyBursts) },
	}, {
		ID: "F12", Kind: lab.Ours, Text: "There they beat the least of what the sites' WhatIf say.",
		Source: ourOwn, Band: "pinball loss ÷ that of the least WhatIf × past ratio: at most 0.85", Needs: federated.trials(),
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("ours ÷ least WhatIf × past ratio", spread(a.starts[federated], lossOver(byLimits)), 0, 0.85)).Noted("", a.whyLoss())
		},
	}, {
		ID: "F13", Kind: lab.Ours, Text: "What the other sites say is worth asking for.",
		Source: ourOwn, Band: "pinball loss ÷ that of the origin's scenarios alone: less than 1", Needs: federated.trials(),
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Below("ours ÷ the origin alone", spread(a.starts[federated], lossOver(atOrigin)), 1))
		},
	}}
}

// whyLoss says why our loss may be no less than that of others.
func (a *answers) whyLoss() string {
	if a.src.log == nil {
		return whyNoUsers
	}
	return ""
}

// whyClasses says why run times of a class may not hold.
func (a *answers) whyClasses() string {
	if a.src.log == nil {
		return whyNewUsers
	}
	return whyBursts
}

// heldWithin judges the share of our ranges that held.
func (a *answers) heldWithin(list []methods, low, high float64) lab.Finding {
	count := spread(list, func(m *methods) float64 { return float64(len(m.scores[ours])) })
	v := spread(list, held)
	return lab.Conclude(lab.Check("held", v, "%", v.Mean() >= low && v.Mean() <= high), lab.Shown("forecasts", count, ""))
}

// classes judges the share that held in each class with enough forecasts, of all seeds together.
func classes(list []methods, n int, name func(forecast.Class) string, low, high float64) lab.Finding {
	var readings []lab.Reading
	for c := range forecast.Class(n) { //nolint:gosec // A few.
		var r forecast.Record
		for i := range list {
			x := classRecord(list[i].scores[ours], c)
			r.Forecasts, r.Held = r.Forecasts+x.Forecasts, r.Held+x.Held
		}
		v, text := 100*r.Share(), fmt.Sprintf("%s (%d)", name(c), r.Forecasts)
		if r.Forecasts < enough {
			readings = append(readings, lab.Shown(text+", too few to judge", nil, ""))
			continue
		}
		readings = append(readings, lab.Check(text, lab.Spread{v}, "%", v >= low && v <= high))
	}
	return lab.Conclude(readings...)
}

// onlyShown finds nothing that could be judged.
func onlyShown(why string) lab.Finding {
	f := lab.Conclude(lab.Shown(why, nil, ""))
	f.Result = lab.Informational
	return f
}

// judgeWindows judges the windows of all seeds.
func judgeWindows(list []methods) lab.Finding {
	var shares []float64
	for i := range list {
		shares = append(shares, windows(list[i].scores[ours])...)
	}
	if len(shares) == 0 {
		return onlyShown("there is no full window")
	}
	good := 0
	for _, x := range shares {
		if x >= 0.75 && x <= 0.85 {
			good++
		}
	}
	share := 100 * float64(good) / float64(len(shares))
	return lab.Conclude(
		lab.Check(fmt.Sprintf("within in %d of %d windows,", good, len(shares)), lab.Spread{share}, "%", share >= 90),
		lab.Shown("least", lab.Spread{100 * slices.Min(shares)}, "%"), lab.Shown("most", lab.Spread{100 * slices.Max(shares)}, "%"),
	)
}
