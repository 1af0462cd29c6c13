package gridbot

import (
	"fmt"

	"kith/testbed/lab"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

// The trials.
var (
	naive    = trial{work: "all", rules: "naive", by: byPlain}
	policies = trial{work: "all", rules: "policies", by: byEngine}
	short    = trial{work: "madison", rules: "short", by: byEngine}
	queued   = trial{work: "madison", rules: "none", by: byQueue}
)

// reading is one of the two readings of what the source leaves open.
type reading struct {
	by    serverKind
	alike bool
}

var first, second = reading{byPlain, false}, reading{byEngine, true}

// single is the single bag under one of the rules P1 to P5.
func (r reading) single(n int) trial {
	return trial{work: "single", rules: fmt.Sprintf("P%d", n), by: r.by, alike: r.alike}
}

// singles are these of both readings.
func singles(ns ...int) (list []trial) {
	for _, r := range []reading{first, second} {
		for _, n := range ns {
			list = append(list, r.single(n))
		}
	}
	return list
}

// The figures that the study is about, of the first bag of a trial.
func hours(o *outcome) float64    { return o.bags[0].span() }
func minutes(o *outcome) float64  { return 60 * hours(o) }
func replicas(o *outcome) float64 { return percent(o.bags[0].replicas, &o.bags[0]) }
func waste(o *outcome) float64    { return percent(o.bags[0].wasted, &o.bags[0]) }

func percent(n int, b *bagOutcome) float64 { return 100 * float64(n) / float64(len(b.ends)) }

// tailPart is the part of the span after the last task was sent.
func tailPart(o *outcome) float64 { return 1 - o.bags[0].allSent/o.bags[0].span() }

// both judges under both readings; the first one counts.
func (a *answers) both(judge func(r reading) lab.Finding) lab.Finding {
	f, g := judge(first), judge(second)
	f.Measured += fmt.Sprintf(". Second reading: %s, %s", g.Measured, g.Result)
	for _, v := range g.Values {
		v.Name += ", second reading"
		f.Values = append(f.Values, v)
	}
	return f
}

// notBuilt is a question for which there is no trial yet.
func notBuilt(id string, kind lab.Kind, text, source, band string) question {
	return question{ID: id, Kind: kind, Text: text, Source: source, Band: band, Judge: func(*answers) lab.Finding {
		return lab.Finding{Result: lab.Informational, Measured: "not built: nothing was measured"}
	}}
}

const tableP = "P1 4.1 h, P2 3.2 h, P3 4.2 h, P4 5.1 h, P5 5.8 h"

// What we think where a band is not met.
const (
	whyTail  = "We think that the last task decides: a host that vanished is found out at its deadline only, 75 min later, so that when the tail begins little is known of the hosts that are to be avoided, and a task that is lost twice takes longest under either rule. The source does not say how its hosts were told apart."
	whyWaste = "P1 and P3 are within a few percent of each other: with fewer hosts in the tail P3 sends fewer replicas, and nearly all that are sent come back when the task has a result. The source does not say how many of its own were never sent, cancelled or lost."
)

// questions are the statements of the study.
func questions() []question {
	return []question{{
		ID: "G1", Kind: lab.Exact, Enforced: true, Text: "All grids: the same bag ends many times sooner under policies than with the naive server, which spends its time on a tail.",
		Source: "280 h and 8 h (35 ×)", Band: "naive ÷ policies ≥ 5; tail of the naive server ≥ 50 % of its time",
		Needs: []trial{naive, policies}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Shown("naive", a.Of(naive, hours), "h"), lab.Shown("policies", a.Of(policies, hours), "h"),
				lab.Within("naive ÷ policies", a.Ratio(naive, policies, hours), 5, lab.Unbounded),
				lab.Within("tail of the naive server", a.Of(naive, tailPart), 0.5, 1))
		},
	}, {
		ID: "G2", Kind: lab.Exact, Enforced: true, Text: "Madison only, 3000 tasks of 0.5 to 5 min: sooner than with a job for each task in the queue.",
		Source: "53 ± 10 min and 170 ± 41 min (3.2 ×)", Band: "queue ÷ policies ≥ 1.5",
		Needs: []trial{short, queued}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Shown("policies", a.Of(short, minutes), "min"), lab.Shown("a job for each task", a.Of(queued, minutes), "min"),
				lab.Within("ratio", a.Ratio(queued, short, minutes), 1.5, lab.Unbounded))
		},
	}, {
		ID: "G3", Kind: lab.Exact, Enforced: true, Text: "There, few tasks are replicated.", Source: "< 1 %", Band: "replicas ≤ 5 % of the tasks",
		Needs: []trial{short}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("replicas (%)", a.Of(short, replicas), 0, 5))
		},
	},
		notBuilt("G4", lab.Exact, "2.2 million tasks of 20 to 40 min: the incomplete ones fall in a line before the tail.", "15 days, 115 CPU-years, 2300 CPUs, 9 grids", "R² ≥ 0.97 before the tail"),
		notBuilt("G5", lab.Exact, "Its tail begins with all tasks sent.", "some 60,000 incomplete", "unsent = 0 where the tail starts"),
		notBuilt("G6", lab.Direction, "After an outage of the network results come faster for a while.", "a spike in Figure 6", "rate after an outage of 6 h ≥ 1.3 × mean"),
		notBuilt("G7", lab.Exact, "What an ask costs hangs on the bags, not on the tasks in the buffer.", "optimised is as plain on collaborative grids, at 3 jobs/s; plain fails with the community", "optimised flat in the size of the buffer, plain linear"),
		notBuilt("G8", lab.Direction, "A queue of millions of tasks slows nothing down.", "no slowdown", "dispatch p99 at 10⁶ queued ≤ 1.2 × that at 10³"),
		notBuilt("G9", lab.Exact, "50 bags of distinct ranks are run one after another.", "in the order of ranks; deviations below 100 left", "Kendall τ(rank, time of 500 left) ≥ 0.95; no lower bag starts before a higher one's 1000-left mark"),
		notBuilt("G10", lab.Direction, "The turnaround of a bag does not depend on how many are queued.", "unaffected", "slope over the queue within ± 10 %"),
		notBuilt("G11", lab.Exact, "42,200 tasks of 10 to 50 min: tasks a second are asks a second times the concurrency.", "4 × 5 = 20 tasks/s; peak 3700 CPUs", "tasks/s ÷ asks/s = concurrency ± 10 %"),
		notBuilt("G12", lab.Exact, "Split in five, nothing of the throughput is lost.", "18 asks/s, 93 tasks/s", "≥ 93 tasks/s; throughput ≥ 95 % of G11"),
		notBuilt("G13", lab.Exact, "The limit was the network.", "30 to 40 asks/s", "informational"),
		notBuilt("G14", lab.Direction, "Larger bundles make the tail longer; the policy for reliable hosts is best.", "Figure 8", "turnaround grows with the concurrency from 1 to 5; B4 within 5 % of the best or better; dynamic between static and none"),
		{
			ID: "G15", Kind: lab.Exact, Enforced: true, Text: "30,000 tasks of 10 to 15 min: restrictive replication with restrictive scheduling (P2) is fastest.",
			Source: tableP, Band: "P2 below each other; P2 ÷ P1 ≤ 0.9",
			Needs: singles(1, 2, 3, 4, 5), Judge: func(a *answers) lab.Finding {
				return a.both(func(r reading) lab.Finding {
					var parts []lab.Reading
					best := a.Of(r.single(2), hours)
					for n := 1; n <= 5; n++ {
						v := a.Of(r.single(n), hours)
						parts = append(parts, lab.Check(fmt.Sprintf("P%d", n), v, "h", n == 2 || best.Mean() < v.Mean()))
					}
					return lab.Conclude(append(parts, lab.Within("P2 ÷ P1", a.Ratio(r.single(2), r.single(1), hours), 0, 0.9))...)
				})
			},
		}, {
			ID: "G16", Kind: lab.Exact, Enforced: true, Text: "Without replication, restrictive scheduling (P4) is faster than permissive (P5), and P2 faster than either.",
			Source: "P5 ÷ P2 1.81", Band: "P4 < P5; P5 ÷ P2 in 1.2–2.5",
			Needs: singles(2, 4, 5), Judge: func(a *answers) lab.Finding {
				return a.both(func(r reading) lab.Finding {
					return lab.Conclude(
						lab.Below("P4 ÷ P5", a.Ratio(r.single(4), r.single(5), hours), 1),
						lab.Within("P5 ÷ P2", a.Ratio(r.single(5), r.single(2), hours), 1.2, 2.5))
				}).Noted("", whyTail)
			},
		}, {
			ID: "G17", Kind: lab.Exact, Enforced: true, Text: "Restrictive replication (P2) makes far fewer replicas than permissive (P1).",
			Source: "P1 58 %, P2 11 %, P3 73 %", Band: "P2 ÷ P1 ≤ 0.4",
			Needs: singles(1, 2, 3), Judge: func(a *answers) lab.Finding {
				return a.both(func(r reading) lab.Finding {
					p1, p2 := a.Of(r.single(1), replicas), a.Of(r.single(2), replicas)
					return lab.Conclude(lab.Shown("P1", p1, "%"), lab.Shown("P2", p2, "%"), lab.Shown("P3", a.Of(r.single(3), replicas), "%"),
						lab.Within("P2 ÷ P1", lab.Spread{p2.Mean() / p1.Mean()}, 0, 0.4))
				})
			},
		}, {
			ID: "G18", Kind: lab.Exact, Enforced: true, Text: "Permissive replication wastes most, above all with restrictive scheduling (P3).",
			Source: "P1 30 %, P2 7 %, P3 57 %", Band: "P3 ≥ P1 > P2 > 0",
			Needs: singles(1, 2, 3), Judge: func(a *answers) lab.Finding {
				return a.both(func(r reading) lab.Finding {
					p1, p2, p3 := a.Of(r.single(1), waste), a.Of(r.single(2), waste), a.Of(r.single(3), waste)
					return lab.Conclude(lab.Check("P1", p1, "%", p1.Mean() > p2.Mean()), lab.Check("P2", p2, "%", p2.Mean() > 0), lab.Check("P3", p3, "%", p3.Mean() >= p1.Mean()))
				}).Noted("", whyWaste)
			},
		}, {
			ID: "G19", Kind: lab.Exact, Enforced: true, Text: "Without replication there are no replicas and no waste.",
			Source: "P4 and P5: 0 %", Band: "exactly 0, without what was sent again at a deadline",
			Needs: singles(4, 5), Judge: func(a *answers) lab.Finding {
				return a.both(func(r reading) lab.Finding {
					var parts []lab.Reading
					for _, n := range []int{4, 5} {
						v := a.Of(r.single(n), replicas)
						parts = append(parts, lab.Check(fmt.Sprintf("P%d, replicas", n), v, "%", v.Mean() == 0), lab.Shown("results after a resend", a.Of(r.single(n), waste), "%"))
					}
					return lab.Conclude(parts...)
				})
			},
		},
		notBuilt("G20", lab.Exact, "Four bags with priorities, the community added: the less a bag replicates, the fewer replicas and the less waste (R1 to R4).", "replicas 188, 129, 49, 35 %; waste 105, 75, 25, 21 %", "strictly decreasing R1 > R2 > R3 > R4"),
		notBuilt("G21", lab.Exact, "Each has more replicas and waste than the like of it on collaborative grids.", "R1 > P1, R3 > P2", "R1 ≥ P1, R3 ≥ P2"),
		notBuilt("G22", lab.Direction, "R1, which replicates most, takes longest by itself.", "gaps between the ends shrink", "the own span of R1 is the longest"),
		notBuilt("G23", lab.Direction, "A later threshold of the tail is slower, and that of the queue better than a fixed one.", "R4 with 4000 in place of 2000 took 80 min", "R4(4000) faster than R4(2000); dynamic better than the static 2000"),
	}
}
