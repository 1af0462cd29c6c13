package conserve

import (
	"fmt"

	"kith/testbed/lab"
)

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

const ourOwn = "no paper says"

// What we think where a band is not met.
const (
	whyLonger   = "We think that it is chance in a few streams, or that with one queue a copy that moves to the end of another queue can lose more than it wins; with queues of their own for remote copies it does not happen."
	whyWasted   = "The fuller the sites, the less there is to waste, and the more of it is a hole that a waiting job fits by its width but not by its time limit."
	whyMessages = "Most of it are copies that move, four messages each; the fuller the sites and the fewer the copies, the more of them do. With K = 3, the default, it is a few."
)

// The figures that the study is about.
func meanWait(o *outcome) float64  { return o.wait }
func worstWait(o *outcome) float64 { return o.worst }
func idleShare(o *outcome) float64 { return 100 * o.idle }
func wasteRate(o *outcome) float64 { return 100 * o.wasted }
func sent(o *outcome) float64      { return o.messages }
func loadsSent(o *outcome) float64 { return o.loads }
func placed(o *outcome) float64    { return o.placed }

// questions are the statements of the study.
func questions() []question {
	return []question{{
		ID: "W1", Kind: lab.Ours, Text: "Jobs wait no longer in the mean with any scheme, K and load.",
		Source: ourOwn, Band: "mean wait, on ÷ off: at most 1.02 in each of the 30 pairs",
		Needs: allTrials(), Judge: func(a *answers) lab.Finding { return a.atMost(meanWait, 1.02, schemes, copies).Noted("", whyLonger) },
	}, {
		ID: "W2", Kind: lab.Ours, Text: "The jobs that wait longest wait no longer.",
		Source: ourOwn, Band: "mean wait of the worst tenth, on ÷ off: at most 1.05 in each of the 30 pairs",
		Needs: allTrials(), Judge: func(a *answers) lab.Finding { return a.atMost(worstWait, 1.05, schemes, copies) },
	}, {
		ID: "W3", Kind: lab.Ours, Text: "Fewer processors are wasted: idle at a site where a waiting job would fit.",
		Source: ourOwn, Band: "wasted processors, on ÷ off: at most 0.5 with K = 1, at most 1.02 with K = 2 and 3, in each pair",
		Needs: allTrials(), Judge: func(a *answers) lab.Finding {
			f, g := a.atMost(wasteRate, 0.5, schemes, copies[:1]), a.atMost(wasteRate, 1.02, schemes, copies[1:])
			f.Measured += "; " + g.Measured
			f.Values = append(f.Values, g.Values...)
			f.Result = lab.ResultOf(f.Result == lab.Holds && g.Result == lab.Holds)
			return f.Noted("", whyWasted)
		},
	}, {
		ID: "W4", Kind: lab.Ours, Text: "One copy that can be moved does what two do that cannot.",
		Source: ourOwn, Band: "K-Dual, mean wait with K = 1 on ÷ K = 2 off: at most 1.2 at each load",
		Needs: onlyDual(1, 2), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, load := range loads {
				parts = append(parts, lab.Within(fmt.Sprintf("load 0.%02d", load), a.over(dual(load, 1).conserved(), dual(load, 2), meanWait), 0, 1.2))
			}
			return lab.Conclude(parts...)
		},
	}, {
		ID: "W5", Kind: lab.Ours, Text: "K matters less: a third copy brings little where copies are moved.",
		Source: ourOwn, Band: "K-Dual, on, mean wait with K = 3 ÷ K = 1: at least 0.6 at each load",
		Needs: onlyDual(1, 3), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, load := range loads {
				parts = append(parts, lab.Within(fmt.Sprintf("load 0.%02d", load), a.over(dual(load, 3).conserved(), dual(load, 1).conserved(), meanWait), 0.6, lab.Unbounded))
			}
			return lab.Conclude(parts...)
		},
	}, {
		ID: "W6", Kind: lab.Ours, Text: "It costs a few messages a job.",
		Source: ourOwn, Band: "messages of all kinds but loads, on less off: at most 10 a job in each of the 30 pairs",
		Needs: allTrials(), Judge: judgeMessages,
	}, {
		ID: "W7", Kind: lab.Ours, Text: "No site pays for it: the jobs of each wait no longer, but for a tenth or a minute.",
		Source: ourOwn, Band: "K-Dual: mean wait of the jobs of each site over all seeds, on: at most 1.1 × off or 60 s more, at each K and load",
		Needs: onlyDual(1, 2, 3), Judge: judgeSites,
	}}
}

// onlyDual are the trials of K-Dual with each of these K.
func onlyDual(ks ...int32) []trial {
	var list []trial
	for _, k := range ks {
		for _, load := range loads {
			list = append(list, dual(load, k), dual(load, k).conserved())
		}
	}
	return list
}

// over returns a figure of one trial over that of another, each the mean over the seeds:
// in a single quiet stream hardly a job waits.
func (a *answers) over(t, base trial, figure func(*outcome) float64) lab.Spread {
	const little = 1e-6
	return lab.Spread{(a.Of(t, figure).Mean() + little) / (a.Of(base, figure).Mean() + little)}
}

// atMost looks whether a figure grows by more than a factor where the switch is
// on; it reports the worst pair for each scheme and K.
func (a *answers) atMost(figure func(*outcome) float64, bound float64, of []func(int, int32) trial, ks []int32) lab.Finding {
	var parts []lab.Reading
	for _, scheme := range of {
		for _, k := range ks {
			least, worst, at := lab.Unbounded, 0.0, 0
			for _, load := range loads {
				v := a.over(scheme(load, k).conserved(), scheme(load, k), figure).Mean()
				least = min(least, v)
				if v > worst {
					worst, at = v, load
				}
			}
			parts = append(parts,
				lab.Shown(scheme(0, k).String()+", least", lab.Spread{least}, ""),
				lab.Check(fmt.Sprintf("most (load 0.%02d)", at), lab.Spread{worst}, "", worst <= bound))
		}
	}
	return lab.Conclude(parts...)
}

func judgeMessages(a *answers) lab.Finding {
	var parts []lab.Reading
	for _, scheme := range schemes {
		for _, k := range copies {
			worst, at := -lab.Unbounded, 0
			for _, load := range loads {
				t := scheme(load, k)
				if v := a.Of(t.conserved(), sent).Mean() - a.Of(t, sent).Mean(); v > worst {
					worst, at = v, load
				}
			}
			parts = append(parts, lab.Check(fmt.Sprintf("%v, most (load 0.%02d)", scheme(0, k), at), lab.Spread{worst}, "", worst <= 10))
		}
	}
	return lab.Conclude(parts...).Noted("", whyMessages)
}

func judgeSites(a *answers) lab.Finding {
	var parts []lab.Reading
	for _, k := range copies {
		longer, pairs, worst := 0, 0, 0.0
		for _, load := range loads {
			for i := range siteCount {
				of := func(o *outcome) float64 { return o.sites[i] }
				on, off := a.Of(dual(load, k).conserved(), of).Mean(), a.Of(dual(load, k), of).Mean()
				pairs++
				if on > max(1.1*off, off+60) {
					longer++
				}
				worst = max(worst, on-off)
			}
		}
		parts = append(parts, lab.Check(fmt.Sprintf("K = %d: sites that wait longer, of %d", k, pairs), lab.Spread{float64(longer)}, "", longer == 0),
			lab.Shown("longer by at most", lab.Spread{worst}, "s"))
	}
	return lab.Conclude(parts...)
}
