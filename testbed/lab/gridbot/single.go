package gridbot

import (
	"fmt"

	"kith/testbed/lab"
)

// Statements about a single bag under five rules (the source's Figure 9).

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

const tableP = "P1 4.1 h, P2 3.2 h, P3 4.2 h, P4 5.1 h, P5 5.8 h"

// What we think where a band is not met.
const (
	whyTail  = "We think that the last task decides: a host that vanished is found out at its deadline only, 75 min later, so that when the tail begins little is known of the hosts that are to be avoided, and a task that is lost twice takes longest under either rule. Fewer runs are preempted here than there, too. The source does not say how its hosts were told apart."
	whyWaste = "P1 and P3 are within a few percent of each other: with fewer hosts in the tail P3 sends fewer replicas, and nearly all that are sent come back when the task has a result. The source does not say how many of its own were never sent, cancelled or lost."
)

// singleQuestions are about a bag that is alone.
func singleQuestions() []question {
	return []question{{
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
	}
}
