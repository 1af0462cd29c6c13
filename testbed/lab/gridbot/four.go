package gridbot

import (
	"fmt"

	"kith/testbed/lab"
)

// Statements about four bags with priorities (the source's Figure 10).

// four is these bags, with R4 as it stands or otherwise.
func (r reading) four(rules string) trial {
	return trial{work: "four", rules: rules, by: r.by, alike: r.alike}
}

const asItStands, later, dynamic = "R", "R4 4000", "R4 dynamic"

func fours(rules ...string) (list []trial) {
	for _, r := range []reading{first, second} {
		for _, x := range rules {
			list = append(list, r.four(x))
		}
	}
	return list
}

// of returns a figure of bag n of R1 to R4.
func of(n int, figure func(*bagOutcome) float64) func(*outcome) float64 {
	return func(o *outcome) float64 { return figure(&o.bags[n-1]) }
}

func bagReplicas(b *bagOutcome) float64 { return percent(b.replicas, b) }
func bagWaste(b *bagOutcome) float64    { return percent(b.wasted, b) }
func bagOwn(b *bagOutcome) float64      { return b.own() }

const tableR = "replicas 188, 129, 49, 35 %; waste 105, 75, 25, 21 %"

func fourQuestions() []question {
	return []question{{
		ID: "G20", Kind: lab.Exact, Enforced: true, Text: "Four bags with priorities, the community added: the less a bag replicates, the fewer replicas and the less waste (R1 to R4).",
		Source: tableR, Band: "strictly decreasing R1 > R2 > R3 > R4",
		Needs: fours(asItStands), Judge: func(a *answers) lab.Finding {
			return a.both(func(r reading) lab.Finding {
				var parts []lab.Reading
				for _, f := range []struct {
					name   string
					figure func(*bagOutcome) float64
				}{{"replicas", bagReplicas}, {"waste", bagWaste}} {
					before := lab.Unbounded
					for n := 1; n <= 4; n++ {
						v := a.Of(r.four(asItStands), of(n, f.figure))
						parts = append(parts, lab.Check(fmt.Sprintf("R%d, %s", n, f.name), v, "%", v.Mean() < before))
						before = v.Mean()
					}
				}
				return lab.Conclude(parts...)
			}).Noted("", whyStragglers)
		},
	}, {
		ID: "G21", Kind: lab.Exact, Enforced: true, Text: "Each has more replicas and waste than the like of it on collaborative grids.",
		Source: "R1 > P1, R3 > P2", Band: "R1 ≥ P1, R3 ≥ P2",
		Needs: append(fours(asItStands), singles(1, 2)...), Judge: func(a *answers) lab.Finding {
			return a.both(func(r reading) lab.Finding {
				more := func(n int, bag func(*bagOutcome) float64, p int, single func(*outcome) float64, name string) lab.Reading {
					v, w := a.Of(r.four(asItStands), of(n, bag)), a.Of(r.single(p), single)
					return lab.Check(fmt.Sprintf("R%d less P%d, %s", n, p, name), lab.Spread{v.Mean() - w.Mean()}, "%", v.Mean() >= w.Mean())
				}
				return lab.Conclude(
					more(1, bagReplicas, 1, replicas, "replicas"), more(1, bagWaste, 1, waste, "waste"),
					more(3, bagReplicas, 2, replicas, "replicas"), more(3, bagWaste, 2, waste, "waste"))
			}).Noted("", whyStragglers)
		},
	}, {
		ID: "G22", Kind: lab.Direction, Enforced: true, Text: "R1, which replicates most, takes longest by itself.", Source: "gaps between the ends shrink", Band: "the own span of R1 is the longest",
		Needs: fours(asItStands), Judge: func(a *answers) lab.Finding {
			return a.both(func(r reading) lab.Finding {
				longest := a.Of(r.four(asItStands), of(1, bagOwn))
				parts := []lab.Reading{lab.Shown("R1", longest, "h")}
				for n := 2; n <= 4; n++ {
					v := a.Of(r.four(asItStands), of(n, bagOwn))
					parts = append(parts, lab.Check(fmt.Sprintf("R%d", n), v, "h", v.Mean() < longest.Mean()))
				}
				return lab.Conclude(parts...)
			}).Noted("", whyStragglers)
		},
	}, {
		ID: "G23", Kind: lab.Direction, Enforced: true, Text: "R4 is faster with its tail from 4000 incomplete tasks than from 2000; and faster with a tail that begins when few are unsent.",
		Source: "R4 with 4000 in place of 2000 took 80 min", Band: "own span: R4(4000) < R4(2000); dynamic < R4(2000)",
		Needs: fours(asItStands, later, dynamic), Judge: func(a *answers) lab.Finding {
			return a.both(func(r reading) lab.Finding {
				stands := a.Of(r.four(asItStands), of(4, bagOwn))
				l, d := a.Of(r.four(later), of(4, bagOwn)), a.Of(r.four(dynamic), of(4, bagOwn))
				return lab.Conclude(lab.Shown("R4(2000)", stands, "h"),
					lab.Check("R4(4000)", l, "h", l.Mean() < stands.Mean()), lab.Check("dynamic", d, "h", d.Mean() < stands.Mean()))
			}).Noted("", whyLater)
		},
	}}
}

// What we think where a band is not met.
const (
	whyStragglers = "R3 hangs on single tasks at slow community hosts with a clean record: without a failure there it makes no replica, and the deadline is three days. So it makes fewer replicas than R4, which replicates whatever is left. The source's R3 may have meant hosts without recent success, too."
	whyLater      = "We think that the later threshold costs hosts: from there on the community gets no more tasks of R4, and replicas take places of the others while tasks still wait. The source gives one run."
)
