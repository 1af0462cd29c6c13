package gridbot

import (
	"fmt"
	"math"
	"slices"

	"kith/testbed/lab"
)

// Statements about long bags, many bags and bundles.

var (
	long   = trial{work: "long", rules: "long", by: byEngine}
	outage = trial{work: "outage", rules: "long", by: byEngine}
	ranked = trial{work: "ranks", rules: "ranks", by: byEngine}
)

// bundled is a bag under one of the rules B1 to B4.
func bundled(n int) trial { return trial{work: "bundles", rules: fmt.Sprintf("B%d", n), by: byPlain} }

func bundles() []trial { return []trial{bundled(1), bundled(2), bundled(3), bundled(4)} }

// line returns R² of a line through the number of incomplete tasks over the time, until the
// last task was sent.
func line(o *outcome) float64 {
	b := &o.bags[0]
	var n, sx, sy, sxx, syy, sxy float64
	for i, x := range b.ends {
		if x > b.allSent {
			break
		}
		y := float64(len(b.ends) - i)
		n, sx, sy, sxx, syy, sxy = n+1, sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	over := n*sxy - sx*sy
	return over * over / ((n*sxx - sx*sx) * (n*syy - sy*sy))
}

// knee returns when results came for the last time at half their mean rate or more, over half
// an hour: there the tail starts.
func knee(o *outcome) float64 {
	b := &o.bags[0]
	const window = 0.5
	bound := 0.5 * float64(len(b.ends)) / b.allSent * window
	for i := len(b.ends) - 1; i > 0; i-- {
		if from, _ := slices.BinarySearch(b.ends, b.ends[i]-window); float64(i-from) >= bound {
			return b.ends[i]
		}
	}
	return 0
}

// settled is how many hours a bag takes to reach its rate.
const settled = 3.0

// spike is the rate of results in the half hour after the outage over that before the outage.
// Half an hour is the mean run time.
func spike(o *outcome) float64 {
	from, to, after := settled, outageAt.Hours(), (outageAt + outageFor).Hours()
	return rate(o, after, after+0.5) / rate(o, from, to)
}

// rate is how many tasks of the first bag ended in an hour, between two.
func rate(o *outcome, from, to float64) float64 {
	i, _ := slices.BinarySearch(o.bags[0].ends, from)
	k, _ := slices.BinarySearch(o.bags[0].ends, to)
	return float64(k-i) / (to - from)
}

// halfLeft is how many of 1200 tasks have not ended when bags are compared, and fullLeft when
// the first ones have.
const halfLeft, fullLeft = 500.0 / 1200, 1000.0 / 1200

// leftOf returns when a part of a bag's tasks had not ended.
func leftOf(b *bagOutcome, part float64) float64 {
	return b.left(min(len(b.ends)-1, int(part*float64(len(b.ends)))))
}

// kendall is Kendall's τ of rank and time: 1 if the bag of the highest rank, the last one, is
// first, and each comes before those below it.
func kendall(o *outcome) float64 {
	sum, pairs := 0, 0
	for i := range o.bags {
		for k := range i {
			pairs++
			if leftOf(&o.bags[i], halfLeft) < leftOf(&o.bags[k], halfLeft) {
				sum++
			} else {
				sum--
			}
		}
	}
	return float64(sum) / float64(max(1, pairs))
}

// overtaken is how many pairs of bags there are of which the lower one reached its mark of 1000
// left before the higher one did.
func overtaken(o *outcome) float64 {
	n := 0
	for i := range o.bags {
		for k := range i {
			if leftOf(&o.bags[k], fullLeft) < leftOf(&o.bags[i], fullLeft) {
				n++
			}
		}
	}
	return float64(n)
}

// drift is by how much the own turnaround of bags changes from the first to the last by a
// straight line through them, in percent of their mean.
func drift(o *outcome) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range o.bags {
		x, y := float64(len(o.bags)-1-i), o.bags[i].own() // x bags came before
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return 100 * slope * (n - 1) / (sy / n)
}

// longQuestions are about a bag that takes days.
func longQuestions() []question {
	return []question{{
		ID: "G4", Kind: lab.Exact, Enforced: true, Text: "2.2 million tasks of 20 to 40 min: the incomplete ones fall in a line before the tail.",
		Source: "15 days, 115 CPU-years, 2300 CPUs, 9 grids", Band: "R² ≥ 0.97 before the tail",
		Needs: []trial{long}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("R²", a.Of(long, line), 0.97, 1), lab.Shown("all sent after", a.Of(long, allSent), "h"), lab.Shown("ended after", a.Of(long, hours), "h"))
		},
	}, {
		ID: "G5", Kind: lab.Exact, Enforced: true, Text: "Its tail begins with all tasks sent.", Source: "some 60,000 incomplete", Band: "unsent = 0 where the tail starts",
		Needs: []trial{long}, Judge: func(a *answers) lab.Finding {
			early := a.Of(long, func(o *outcome) float64 { return knee(o) - o.bags[0].allSent })
			return lab.Conclude(
				lab.Check("the tail starts after the last was sent by", early, "h", slices.Min(early) >= 0),
				lab.Shown("incomplete when the last was sent, for each client", a.Of(long, func(o *outcome) float64 { return float64(o.bags[0].open) / float64(o.slots) }), ""))
		},
	}, {
		ID: "G6", Kind: lab.Direction, Enforced: true, Text: "After an outage of the network results come faster for a while.", Source: "a spike in Figure 6",
		Band:  "rate after an outage of 6 h ≥ 1.3 × mean",
		Needs: []trial{outage}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(lab.Within("rate in the half hour after ÷ mean before", a.Of(outage, spike), 1.3, lab.Unbounded),
				lab.Shown("results that came in vain (%)", a.Of(outage, waste), "")).
				Noted("The source's hosts had prefetched tasks; these have one each.", whyLate)
		},
	}}
}

const whyLate = "A host holds one result, and loses it if its client vanishes before the outage ends. The engine takes back the tasks whose deadline passes meanwhile; of what it has taken back it keeps 64 bundles of a bag, so that more late results than these are refused."

func allSent(o *outcome) float64 { return o.bags[0].allSent }

// rankQuestions are those about bags that wait for each other.
func rankQuestions() []question {
	return []question{{
		ID: "G9", Kind: lab.Exact, Enforced: true, Text: "50 bags of distinct ranks are run one after another.",
		Source: "in the order of ranks; deviations below 100 left", Band: "Kendall τ(rank, time of 500 left) ≥ 0.95; no lower bag starts before a higher one's 1000-left mark",
		Needs: []trial{ranked}, Judge: func(a *answers) lab.Finding {
			crossed := a.Of(ranked, overtaken)
			return lab.Conclude(lab.Within("τ", a.Of(ranked, kendall), 0.95, 1),
				lab.Check(fmt.Sprintf("of %d pairs, lower bags at the mark before higher ones", rankedBags*(rankedBags-1)/2), crossed, "", slices.Max(crossed) == 0))
		},
	}, {
		ID: "G10", Kind: lab.Direction, Enforced: true, Text: "The turnaround of a bag does not depend on how many are queued.", Source: "unaffected", Band: "slope over the queue within ± 10 %",
		Needs: []trial{ranked}, Judge: func(a *answers) lab.Finding {
			v := a.Of(ranked, drift)
			return lab.Conclude(lab.Check("from its first task, from the first bag to the last", v, "%", math.Abs(v.Mean()) <= 10),
				lab.Shown("mean", a.Of(ranked, meanOwn), "h")).Noted("", whyDrift)
		},
	}}
}

const whyDrift = "The first bags run while clients still come up: of the hours that all of them take together, the waits in the queues are a large part here."

func meanOwn(o *outcome) float64 {
	sum := 0.0
	for i := range o.bags {
		sum += o.bags[i].own()
	}
	return sum / float64(len(o.bags))
}

// bundleQuestion is about bundles of long tasks, which the engine of kithd does not give.
func bundleQuestion() question {
	return question{
		ID: "G14", Kind: lab.Direction, Enforced: true, Text: "Larger bundles make the tail longer; the policy for reliable hosts is best.", Source: "Figure 8",
		Band:  "turnaround grows with the concurrency from 1 to 5; B4 within 5 % of the best or better; dynamic between static and none",
		Needs: bundles(), Judge: func(a *answers) lab.Finding {
			var b [5]lab.Spread
			best := math.Inf(1)
			for n := 1; n <= 4; n++ {
				b[n] = a.Of(bundled(n), minutes)
				best = min(best, b[n].Mean())
			}
			return lab.Conclude(
				lab.Shown("B1, one at a time", b[1], "min"), lab.Check("B2, five", b[2], "min", b[2].Mean() > b[1].Mean()),
				lab.Check("B3, five at hosts that do not fail", b[3], "min", b[3].Mean() < b[2].Mean() && b[3].Mean() > b[1].Mean()),
				lab.Check("B4, and reliable hosts in the tail", b[4], "min", b[4].Mean() <= 1.05*best)).
				Noted("The source's server: the engine of `kithd` prefetches no more than its places use up in 2 s, which is one task here.", whyBundles)
		},
	}
}

const whyBundles = "The definitions of B1 to B3 are lost, and B4 is our guess. A bag that is smaller than the number of hosts is sent to the first that come, and nothing is known of most of these: to B3 and B4 they are all without failures."
