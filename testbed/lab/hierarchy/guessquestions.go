package hierarchy

import (
	"slices"

	"kith/testbed/lab"
	"kith/testbed/report"
)

// What is read of the trials of a setting, with the bands of the source's statements.

// levels is H5.
func (a *answers) levels(t trial) []lab.Reading {
	l1, l2, l3 := a.Of(t, levelShare(1)), a.Of(t, levelShare(2)), a.Of(t, levelShare(3))
	return []lab.Reading{lab.Within("level 1 (%)", l1, 0, 2), lab.Shown("level 2", l2, "%"), lab.Within("level 3 (%)", l3, 60, 100), lab.Check("increasing", nil, "", increasing(l1, l2, l3))}
}

// small is H7.
func (a *answers) small(t trial) lab.Reading {
	return lab.Within("of small tasks (%)", a.Of(t, smallBelow), 3, 25)
}

// medium is H8.
func (a *answers) medium(t trial) lab.Reading {
	return lab.Within("of tasks of level 2 (%)", a.Of(t, mediumBelow), 0, 10)
}

// answers is H9.
func (a *answers) answers(s *setting) []lab.Reading {
	mean := a.Of(s.plain, meanTime(q1))
	return []lab.Reading{lab.Check("Q1", mean, "s", mean.Mean() <= 120), lab.Within("with twice the long tasks ÷ without", a.Ratio(s.doubled, s.plain, meanTime(q1)), 0.85, 1.15)}
}

// waits is H15.
func (a *answers) waits(s *setting) []lab.Reading {
	return []lab.Reading{lab.Above("off (%)", a.Of(s.plain, behind), 50), lab.Below("on ÷ off", a.Ratio(s.potential, s.plain, behind), 1)}
}

// killed is H16.
func (a *answers) killed(t trial) lab.Reading {
	return lab.Within("killed (%)", a.Of(t, killedShare), 10, 40)
}

// ofSetting are the six of them.
func (a *answers) ofSetting(s *setting) []lab.Reading {
	parts := append(a.levels(s.plain), a.small(s.plain), a.medium(s.plain))
	return append(append(append(parts, a.answers(s)...), a.waits(s)...), a.killed(s.plain))
}

// ofGuesses are statements of our own about the bound that is guessed where nobody printed one.
func ofGuesses() []question {
	const band = "those of H5, H7, H8, H9, H15 and H16"
	judge := func(s *setting, why string) func(a *answers) lab.Finding {
		return func(a *answers) lab.Finding { return lab.Conclude(a.ofSetting(s)...).Noted("", why) }
	}
	return []question{
		on("H20", lab.Direction, "Where no task brings an estimator and each user's tasks are about as long, guesses keep what the source says of levels.", "no paper says", band, judge(&guessKindred, "Where nothing is guessed the same bands fail, by more but for H8: the guess is of nine of ten tasks, and has long ones begin at level 3 that would have ended at level 2."),
			guessKindred.trials()...),
		on("H21", lab.Direction, "So they do where lengths say nothing of users.", "no paper says", band, judge(&guessVarious, "One of eight tasks is long, so the guess often is of one of those, and short tasks begin low, where they wait behind them. It is why guesses are off unless they are asked for."),
			guessVarious.trials()...),
		on("H22", lab.Direction, "Where no task brings an estimator, guesses make tasks wait less.", "no paper says", "mean waiting with guesses ÷ without: at most 1 for both kinds of users", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Shown("without", a.Of(unknown.plain, waiting), "s"),
				lab.Within("users of one length", a.Ratio(guessKindred.plain, unknown.plain, waiting), 0, 1),
				lab.Within("users of any length", a.Ratio(guessVarious.plain, unknown.plain, waiting), 0, 1)).Noted("", "See H21.")
		}, unknown.plain, guessKindred.plain, guessVarious.plain),
	}
}

// waiting is the mean time in which no sub-job of a task ran, of those that ended with their result.
func waiting(r result) float64 {
	sum, n := 0.0, 0.0
	for q := range r.Queues {
		x := &r.Queues[q]
		sum += x.Time - x.Cost.run - x.Cost.eviction
		n += x.N
	}
	return sum / max(n, 1)
}

// settingsTable has what is judged of each setting in a column.
func (a *answers) settingsTable() report.Table {
	t := report.Table{Name: "hierarchy-bounds", Title: "What is known of the work of tasks", Caption: "Means over the seeds.", Columns: []report.Column{{Title: ""}}}
	for i := range settings {
		t.Columns = append(t.Columns, report.Column{Title: settings[i].name, Right: true})
	}
	row := func(name string, of func(s *setting) lab.Spread) {
		cells := []string{name}
		for i := range settings {
			cells = append(cells, report.Number(of(&settings[i]).Mean()))
		}
		t.Add(cells...)
	}
	plain := func(name string, of func(result) float64) {
		row(name, func(s *setting) lab.Spread { return a.Of(s.plain, of) })
	}
	plain("H5: processor time of level 1 (%)", levelShare(1))
	plain("of level 2", levelShare(2))
	plain("of level 3", levelShare(3))
	plain("H7: small tasks below level 1 (%)", smallBelow)
	plain("H8: tasks of level 2 that went to level 3 (%)", mediumBelow)
	plain("H9: mean time in Q1 (s)", meanTime(q1))
	row("with twice the long tasks ÷ without", func(s *setting) lab.Spread { return a.Ratio(s.doubled, s.plain, meanTime(q1)) })
	plain("H15: of the overhead in Q4 behind others (%)", behind)
	row("potential triggers on ÷ off", func(s *setting) lab.Spread { return a.Ratio(s.potential, s.plain, behind) })
	plain("H16: processor time of killed tasks (%)", killedShare)
	plain("tasks that ended with their result", func(r result) float64 { return r.Ended[done] })
	plain("mean waiting of these (s)", waiting)
	return t
}

// hasSettings reports whether all trials of that table were run.
func (a *answers) hasSettings() bool {
	return !slices.ContainsFunc(settings, func(s setting) bool { return !a.Has(s.trials()...) })
}
