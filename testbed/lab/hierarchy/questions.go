package hierarchy

import (
	"fmt"

	"kith/testbed/lab"
)

// The figures that the study is about.
func levelShare(l int) func(result) float64 {
	return func(r result) float64 { return 100 * r.Levels[l] / (r.Levels[1] + r.Levels[2] + r.Levels[3]) }
}

func taskShare(levels ...int) func(result) float64 {
	return func(r result) float64 {
		sum := 0.0
		for _, l := range levels {
			sum += r.Tasks[l]
		}
		return 100 * sum / (r.Tasks[1] + r.Tasks[2] + r.Tasks[3])
	}
}

func meanTime(q int) func(result) float64 {
	return func(r result) float64 { return r.Queues[q].Time / max(r.Queues[q].N, 1) }
}

func expected(q int) func(result) float64 {
	return func(r result) float64 { return r.Queues[q].Expected / max(r.Queues[q].N, 1) }
}

// overheadShare is the part of the accumulated time, without waiting behind others if local is false.
func overheadShare(q int, local bool) func(result) float64 {
	return func(r result) float64 {
		x := r.Queues[q]
		sum := x.Cost.sum()
		if !local {
			sum -= x.Cost.local
		}
		return 100 * sum / max(x.Time, 1)
	}
}

func part(q int, of func(*overheads) float64) func(result) float64 {
	return func(r result) float64 { return of(&r.Queues[q].Cost) / max(r.Queues[q].N, 1) }
}

func estimation(o *overheads) float64 { return o.estimation }
func migrations(o *overheads) float64 { return o.migration }
func flow(o *overheads) float64       { return o.flow }
func local(o *overheads) float64      { return o.local }
func gridQueue(o *overheads) float64  { return o.grid }
func evictions(o *overheads) float64  { return o.eviction }
func running(o *overheads) float64    { return o.run }

func behind(r result) float64 {
	return 100 * r.Queues[q4].Cost.local / max(r.Queues[q4].Cost.sum(), 1)
}

func lightShare(r result) float64 {
	c := r.Queues[q4].Cost
	return 100 * (c.estimation + c.grid) / max(c.run, 1)
}

func killedShare(r result) float64 {
	return 100 * r.Hours[killed] / (r.Hours[done] + r.Hours[killed] + r.Hours[rejected])
}

func smallBelow(r result) float64  { return 100 * r.SmallBelow / max(r.Small, 1) }
func mediumBelow(r result) float64 { return 100 * r.MediumBelow / max(r.Medium, 1) }
func longTime(r result) float64    { return r.long / 3600 }
func shortTime(r result) float64   { return r.short }
func shortOfLong(r result) float64 { return r.short / r.long }

func inQueue(q int, of func(r *perQueue) float64) func(result) float64 {
	return func(r result) float64 { return of(&r.Queues[q]) }
}

func lostRun(x *perQueue) float64 { return 100 * x.Parallel.Lost / max(x.Parallel.Ran, 1) }
func evicted(x *perQueue) float64 { return 100 * x.Parallel.Evicted / max(x.Parallel.Sub, 1) }
func held(x *perQueue) float64    { return x.Parallel.Held / max(x.Parallel.N, 1) }
func heldOf(x *perQueue) float64  { return 100 * x.Parallel.OfAll / max(x.Parallel.N, 1) }
func perTask(x *perQueue) float64 { return x.Parallel.Sub / max(x.Parallel.N, 1) }
func subLength(x *perQueue) float64 {
	return (x.Parallel.Ran - x.Parallel.Lost) / max(x.Parallel.Sub, 1) / 60
}

// told makes a finding informational.
func told(f lab.Finding) lab.Finding {
	f.Result = lab.Informational
	return f
}

type question = lab.Question[trial, *answers]

// on asks something of one trial.
func on(id string, kind lab.Kind, text, source, band string, judge func(a *answers) lab.Finding, needs ...trial) question {
	return question{ID: id, Text: text, Source: source, Kind: kind, Band: band, Enforced: false, Needs: needs, Judge: judge}
}

// increasing is met if the means of spreads rise.
func increasing(list ...lab.Spread) bool {
	for i := 1; i < len(list); i++ {
		if !(list[i].Mean() > list[i-1].Mean()) {
			return false
		}
	}
	return true
}

func questions() []question {
	return append(ofTheSource(), ofGuesses()...)
}

// ofTheSource are the statements of the source.
func ofTheSource() []question {
	return []question{
		on("H1", lab.Exact, "A long task takes as long under each of the four schemes.", "6.2, 6.4, 6.1, 6.3 h", "longest ÷ shortest: at most 1.10", func(a *answers) lab.Finding {
			var parts []lab.Reading
			least, most := lab.Unbounded, 0.0
			for _, t := range scenarios {
				s := a.Of(t, longTime)
				parts = append(parts, lab.Shown(string(t), s, "h"))
				least, most = min(least, s.Mean()), max(most, s.Mean())
			}
			return lab.Conclude(append(parts, lab.Within("longest ÷ shortest", lab.Spread{most / least}, 1, 1.10))...)
		}, scenarios...),
		on("H2", lab.Exact, "Under FCFS a short task behind a long one waits for hours, also on a hierarchy.", "4.7 and 4.2 h", "each 0.3 to 1 of the long task's time", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("FCFS", a.Of(fcfs, shortOfLong), 0.3, 1), lab.Within("FCFS+H", a.Of(fcfsHierarchy, shortOfLong), 0.3, 1))
		}, fcfs, fcfsHierarchy),
		on("H3", lab.Exact, "Two priorities make it minutes, and the hierarchy halves that at least.", "3.5 min; 4.8 times", "60 to 600 s; at least 2 times", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Check("MQ", a.Of(mq, shortTime), "s", a.Of(mq, shortTime).Mean() >= 60 && a.Of(mq, shortTime).Mean() <= 600),
				lab.Within("MQ ÷ MQ+H", a.Ratio(mq, mqHierarchy, shortTime), 2, lab.Unbounded))
		}, mq, mqHierarchy),
		on("H4", lab.Exact, "On the hierarchy a short task has its answer in less than a minute.", "44 s", "30 s run and at most 20 s", func(a *answers) lab.Finding {
			s := a.Of(mqHierarchy, shortTime)
			return lab.Conclude(lab.Check("MQ+H", s, "s", s.Mean() >= 30 && s.Mean() <= 50))
		}, mqHierarchy),
		on("H5", lab.Exact, "Level 1 takes next to no processor time, level 3 most of it.", "0.3, 17.7 and 82 %", "level 1 at most 2 %, level 3 at least 60 %, increasing", func(a *answers) lab.Finding {
			return lab.Conclude(a.levels(production7)...).
				Differing(a.Of(production7, levelShare(1)).Mean() < 0.1, "The source's 0.3 % of level 1 cannot come from its own limits, see the remarks.")
		}, production7),
		on("H6", lab.Direction, "Most tasks end at levels 1 and 2.", "significantly more than at level 3", "at least 75 %", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("levels 1 and 2 (%)", a.Of(production7, taskShare(1, 2)), 75, 100))
		}, production7),
		on("H7", lab.Exact, "A part of the tasks that are small enough for level 1 run below it: by overload, or a loose bound.", "about 11 %", "3 to 25 %", func(a *answers) lab.Finding {
			return lab.Conclude(a.small(production7))
		}, production7),
		on("H8", lab.Direction, "Few tasks of level 2 go to level 3, only through outages.", "few", "at most 10 %", func(a *answers) lab.Finding {
			return lab.Conclude(a.medium(production7)).
				Noted("", "We think that the specification's estimator is to blame: its bound of a large task stays loose by more than an order of magnitude in a part of the cases, and the rules of potential overdue go by the bound; and Q2 is overloaded in bursts.")
		}, production7),
		on("H9", lab.Exact, "Level 1 answers in a minute or so, whatever the load elsewhere.", "72 s", "at most 120 s; within 15 % with twice the long tasks", func(a *answers) lab.Finding {
			return lab.Conclude(a.answers(&printed)...)
		}, production7, doubled),
		on("H10", lab.Direction, "The lower the queue, the longer tasks take.", "Q2 < Q3 ≪ Q4", "strictly in this order", func(a *answers) lab.Finding {
			x, y, z := a.Of(production7, meanTime(q2)), a.Of(production7, meanTime(q3)), a.Of(production7, meanTime(q4))
			return lab.Conclude(lab.Shown("Q2", x, "s"), lab.Shown("Q3", y, "s"), lab.Shown("Q4", z, "s"), lab.Check("in order", nil, "", increasing(x, y, z)))
		}, production7),
		on("H11", lab.Exact, "Overhead is a small part of the time in each queue.", "at most 20 %", "at most 30 % in Q1, 25 % in the others (Q4 without waiting behind other tasks)", func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("Q1 (%)", a.Of(production7, overheadShare(q1, true)), 0, 30), lab.Within("Q2 (%)", a.Of(production7, overheadShare(q2, true)), 0, 25),
				lab.Within("Q3 (%)", a.Of(production7, overheadShare(q3, true)), 0, 25), lab.Within("Q4 (%)", a.Of(production7, overheadShare(q4, false)), 0, 25)).
				Noted("", "Estimates below level 1 take 576 s each time they do not come below the limit.")
		}, production7),
		on("H12", lab.Exact, "In Q1 estimation is the largest item.", "11 s; flow control 4 s", "told only: both are inputs", func(a *answers) lab.Finding {
			return told(lab.Conclude(lab.Shown("estimation", a.Of(production7, part(q1, estimation)), "s"), lab.Shown("flow control", a.Of(production7, part(q1, flow)), "s"),
				lab.Shown("waiting", a.Of(production7, part(q1, local)), "s")))
		}, production7),
		on("H13", lab.Exact, "Grids take a while to begin.", "Q2 20 s, Q3 several minutes", "told only: an input", func(a *answers) lab.Finding {
			return told(lab.Conclude(lab.Shown("Q2", a.Of(production7, part(q2, gridQueue)), "s"), lab.Shown("Q3", a.Of(production7, part(q3, gridQueue)), "s"), lab.Shown("Q4", a.Of(production7, part(q4, gridQueue)), "s")))
		}, production7),
		on("H14", lab.Exact, "In Q4 estimation and the grid's queue are small against the execution.", "3.5 %", "at most 8 %", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("Q4 (%)", a.Of(production7, lightShare), 0, 8)).
				Noted("", "A task of Q4 was estimated at up to three levels, for 2 h 53 min, which is α·T_e, at the last one if its bound was above the limit there, too; the source does not say how long its estimates below level 1 take.")
		}, production7),
		on("H15", lab.Exact, "Most overhead in Q4 is waiting behind other tasks; the potential triggers make it less.", "more than 70 %", "more than 50 % with them off; less with them on", func(a *answers) lab.Finding {
			return lab.Conclude(a.waits(&printed)...).
				Noted("", "What takes the place of waiting is estimation, see H14.")
		}, production7, potential),
		on("H16", lab.Exact, "A good part of the processor time is of tasks that reach the limit of Q4.", "killed 27 %", "10 to 40 %", func(a *answers) lab.Finding {
			return lab.Conclude(a.killed(production7)).Noted("The tail was fitted to it.", "")
		}, production7),
		on("H17", lab.Direction, "Without estimates at level 1 short tasks are slower in bursts.", "slower", "Q1's mean time rises", func(a *answers) lab.Finding {
			return lab.Conclude(lab.Shown("with", a.Of(production7, meanTime(q1)), "s"), lab.Shown("without", a.Of(unestimated, meanTime(q1)), "s"), lab.Above("without ÷ with", a.Ratio(unestimated, production7, meanTime(q1)), 1))
		}, production7, unestimated),
		on("H18", lab.Exact, "Table 3: the lower the queue, the more run time is lost to evictions, the more processors are held and the more sub-jobs a task has; of those asked for, Q4 gets the least.",
			"lost 1, 4.5, 7 %; held 55, 81.7, 141, which is 50, 54, 9 %; 93, 194, 1,600 sub-jobs", "each in this order; Q4's part the least", func(a *answers) lab.Finding {
				row := func(name string, of func(*perQueue) float64) lab.Reading {
					var s []lab.Spread
					for q := q2; q <= q4; q++ {
						s = append(s, a.Of(production7, inQueue(q, of)))
					}
					return lab.Check(fmt.Sprintf("%s %.3g, %.3g, %.3g", name, s[0].Mean(), s[1].Mean(), s[2].Mean()), nil, "", increasing(s...))
				}
				least := a.Of(production7, inQueue(q4, heldOf)).Mean()
				return lab.Conclude(row("lost (%)", lostRun), row("held", held), row("sub-jobs", perTask), lab.Check(fmt.Sprintf("part held in Q4 %.3g %%", least), nil, "",
					least < a.Of(production7, inQueue(q2, heldOf)).Mean() && least < a.Of(production7, inQueue(q3, heldOf)).Mean()))
			}, production7),
		on("H19", lab.Exact, "Table 3: sub-jobs evicted, and their length.", "1, 7, 14 %; 9.4, 13.3, 15.3 min", "told only: inputs", func(a *answers) lab.Finding {
			var parts []lab.Reading
			for q := q2; q <= q4; q++ {
				parts = append(parts, lab.Shown(fmt.Sprintf("Q%d evicted", q+1), a.Of(production7, inQueue(q, evicted)), "%"), lab.Shown("length", a.Of(production7, inQueue(q, subLength)), "min"))
			}
			return told(lab.Conclude(parts...))
		}, production7),
	}
}
