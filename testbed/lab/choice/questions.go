package choice

import (
	"fmt"
	"slices"
	"time"

	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/metrics"
)

const ourOwn = "no paper says"

// questions are the statements of the study.
func questions() []question {
	return slices.Concat(gains(), costs(), ranks(), robust())
}

// gains are about what users get.
func gains() []question {
	c := busySites
	var everyone []trial
	for _, set := range threeLoads {
		everyone = append(everyone, set.alone())
		for _, k := range allCopies {
			everyone = append(everyone, set.copies(k))
		}
	}
	return []question{{
		ID: "K1", Kind: lab.Ours, Text: "Every site gains by joining, the least loaded one, too.",
		Source: ourOwn, Band: "K-Dual by load, K = 2 to 5, at each of three loads: mean wait of the jobs of each site below that alone",
		Needs: everyone, Judge: judgeEveryone,
	}, {
		ID: "K2", Kind: lab.Ours, Text: "The second copy brings most of the gain, the third takes away a good part of what is left, the fifth next to nothing.",
		Source: "K = 2 has most of the gain (spec 001 sections 3.1 and 4)",
		Band:   "mean wait, K-Dual by load: K = 2 leaves at most 0.5 of that alone; K = 3 ÷ K = 2 at most 0.8; K = 5 ÷ K = 4 at least 0.8",
		Needs:  append([]trial{c.alone()}, c.copies(2), c.copies(3), c.copies(4), c.copies(5)),
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K = 2 ÷ alone", a.left(c.copies(2), meanWait), 0, 0.5),
				lab.Within("K = 3 ÷ K = 2", a.ratio(c.copies(3), c.copies(2), meanWait), 0, 0.8),
				lab.Shown("K = 4 ÷ K = 3", a.ratio(c.copies(4), c.copies(3), meanWait), ""),
				lab.Within("K = 5 ÷ K = 4", a.ratio(c.copies(5), c.copies(4), meanWait), 0.8, lab.Unbounded))
		},
	}, {
		ID: "K3", Kind: lab.Ours, Text: "All classes of jobs gain, short and narrow ones most.",
		Source: ourOwn, Band: "mean bounded slowdown, K-Dual by load, K = 3: below that alone in each class, and the least part of it is left for short-narrow jobs",
		Needs: []trial{c.alone(), c.copies(3)},
		Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			least := a.left(c.copies(3), classBounded(metrics.ShortNarrow)).Mean()
			for k := range metrics.Class(metrics.Classes) {
				v := a.left(c.copies(3), classBounded(k))
				parts = append(parts, lab.Reading{Name: k.String(), V: v, Met: v.Mean() < 1 && v.Mean() >= least})
			}
			return lab.Conclude(parts...)
		},
	}}
}

// judgeEveryone looks for a site that loses.
func judgeEveryone(a *answers) lab.Finding {
	var parts []lab.Reading
	for _, set := range threeLoads {
		worst, at, k := 0.0, 0, int32(0)
		for _, n := range allCopies {
			for i, v := range a.sites(set.copies(n)) {
				if v > worst {
					worst, at, k = v, i, n
				}
			}
		}
		name := fmt.Sprintf("load 0.%02d: worst site%d at K = %d, ÷ alone", set.load, at+1, k)
		parts = append(parts, lab.Reading{Name: name, V: lab.Spread{worst}, Met: worst < 1})
	}
	return lab.Conclude(parts...)
}

// costs are about what copies cost.
func costs() []question {
	c := busySites
	all := []trial{c.alone(), c.one(), c.mct()}
	for _, k := range allCopies {
		all = append(all, c.copies(k), c.place(meta.KDual, k, meta.RankStart))
	}
	all = append(all, c.spread(2), c.spread(3), c.spread(5), c.copies(3).onesAsked(50), c.copies(5).ruled(byDrain))
	return []question{{
		ID: "K4", Kind: lab.Ours, Enforced: true, Text: "A job with K copies costs one claim and K − 1 withdrawals, whichever the scheme, the ranking and the K of others; what crosses between sites is never more.",
		Source: "K messages (spec 001 section 2.5)", Band: "logical messages equal to the sum over jobs of min(K, sites wide enough), in each run; wire messages at most as many",
		Needs: all,
		Judge: func(a *answers) lab.Finding {
			exact, fewer := true, true
			var parts []lab.Reading
			for _, t := range all {
				for _, o := range a.Outcomes[t] {
					exact = exact && o.logical == o.expected
					fewer = fewer && o.wire <= o.logical
				}
			}
			for _, k := range allCopies {
				parts = append(parts, lab.Shown(fmt.Sprintf("wire per job, K-Dual, K = %d", k), a.Of(c.copies(k), wireSent), ""))
			}
			return lab.Conclude(append([]lab.Reading{
				{Name: fmt.Sprintf("exact in all runs of %d trials", len(all)), Met: exact}, {Name: "never more on the wire", Met: fewer},
			}, parts...)...)
		},
	}, {
		ID: "K5", Kind: lab.Ours, Text: "More copies make queues hardly longer: they leave sooner.",
		Source: ourOwn, Band: "copies that wait at a site, mean over sites and time, K-Dual by load: K = 3 ÷ K = 2 at most 1.25; K = 5 at most as many as alone",
		Needs: []trial{c.alone(), c.copies(2), c.copies(3), c.copies(5)},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K = 3 ÷ K = 2", a.ratio(c.copies(3), c.copies(2), meanQueue), 0, 1.25),
				lab.Within("K = 5 ÷ alone", a.left(c.copies(5), meanQueue), 0, 1),
				lab.Shown("copies waiting at a site with K = 3", a.Of(c.copies(3), meanQueue), ""))
		},
	}, {
		ID: "K6", Kind: lab.Ours, Text: "Users who ask for one copy wait less when others ask for more; those who ask for more wait less still.",
		Source: "more requests of some may harm the others, a worry of the literature", Band: "K-Dual by load, K = 3, 10 % of the jobs ask for one copy: their mean wait ÷ that if nobody asks for more below 1, and above that of the others",
		Needs: []trial{c.alone(), c.copies(3), c.copies(3).onesAsked(10), c.one(), c.spread(3).onesAsked(10)},
		Judge: func(a *answers) lab.Finding {
			t, q := c.copies(3).onesAsked(10), c.spread(3).onesAsked(10)
			ones := a.asks(t, 10, true)
			f := lab.Conclude(
				lab.Below("one copy ÷ if all ask for one", overEach(ones, a.asks(c.alone(), 10, true)), 1),
				lab.Above("one copy ÷ the others", overEach(ones, a.asks(t, 10, false)), 1),
				lab.Shown("÷ if these jobs asked for three, too", overEach(ones, a.asks(c.copies(3), 10, true)), ""),
				lab.Shown("K-Distributed in one queue: one copy ÷ if all ask for one", overEach(a.asks(q, 10, true), a.asks(c.one(), 10, true)), ""))
			return f
		},
	}}
}

// ranks are about rankings.
func ranks() []question {
	c := busySites
	rank := func(r meta.Rank, k int32) trial { return c.place(meta.KDual, k, r) }
	mixed := c.mct().in(mixedQueues)
	return []question{{
		ID: "K7", Kind: lab.Ours, Text: "Two copies where sites say that the job would start first serve as well as three by load, with shorter queues, for more messages.",
		Source: "better estimates allow a smaller K (spec 999 section 5)", Band: "mean wait, start K = 2 ÷ load K = 3 at most 1; queue below; messages above",
		Needs: []trial{c.alone(), rank(meta.RankStart, 2), rank(meta.RankCompletion, 2), c.copies(3)},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("wait, start ÷ load", a.ratio(rank(meta.RankStart, 2), c.copies(3), meanWait), 0, 1),
				lab.Below("queue", a.ratio(rank(meta.RankStart, 2), c.copies(3), meanQueue), 1),
				lab.Above("messages", a.ratio(rank(meta.RankStart, 2), c.copies(3), allMessages), 1),
				lab.Shown("wait, completion ÷ load", a.ratio(rank(meta.RankCompletion, 2), c.copies(3), meanWait), ""))
		},
	}, {
		ID: "K8", Kind: lab.Ours, Text: "The two loads, work and procs, rank equally well.",
		Source: ourOwn, Band: "mean wait, procs ÷ work, K = 2 and 3: 0.8–1.25",
		Needs: []trial{rank(meta.RankProcs, 2), rank(meta.RankProcs, 3), c.copies(2), c.copies(3)},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K = 2", a.ratio(rank(meta.RankProcs, 2), c.copies(2), meanWait), 0.8, 1.25),
				lab.Within("K = 3", a.ratio(rank(meta.RankProcs, 3), c.copies(3), meanWait), 0.8, 1.25))
		},
	}, {
		ID: "K9", Kind: lab.Ours, Text: "Local jobs first costs the federation nothing: K-Dual serves at least as well as K-Distributed with the same K, and one copy at the least loaded site makes a site lose.",
		Source: "K-Dual slightly worse (claim C8)", Band: "mean wait, K-Dual ÷ K-Distributed, K = 2 and 3: at most 1; worst site with one copy at the least loaded site: above 1 of alone",
		Needs: []trial{c.alone(), c.copies(2), c.copies(3), c.spread(2), c.spread(3), c.one()},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K = 2", a.ratio(c.copies(2), c.spread(2), meanWait), 0, 1),
				lab.Within("K = 3", a.ratio(c.copies(3), c.spread(3), meanWait), 0, 1),
				lab.Above("worst site with one copy", lab.Spread{slices.Max(a.sites(c.one()))}, 1),
				lab.Shown("worst site with K-Dual, K = 3", lab.Spread{slices.Max(a.sites(c.copies(3)))}, ""))
		},
	}, {
		ID: "K10", Kind: lab.Ours, Text: "Weights do not shorten waits where sites backfill and estimates are rough; weights learnt from completions make them longer.",
		Source: "a = 1.3 evens sites out (spec 004 section 2.4)", Band: "mean wait, large sites with dual queues, small ones with one: MCT with a = 1.3 ÷ MCT at least 0.95; learning ÷ MCT above 1",
		Needs: []trial{c.alone(), mixed, mixed.weighted(evenWeight), mixed.learning()},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("a = 1.3", a.ratio(mixed.weighted(evenWeight), mixed, meanWait), 0.95, lab.Unbounded),
				lab.Above("learning", a.ratio(mixed.learning(), mixed, meanWait), 1)).
				Noted("A site's promise of completion contains the user's estimate. Jobs that end early make a site look reliable, so what is learnt is which jobs it had.", "")
		},
	}, {
		ID: "K11", Kind: lab.Ours, Text: "Adapting K gains little: K that follows the load of the origin saves few copies, as a job that can start at once keeps its copies at home anyway; more copies for short jobs serve worse than the same number for all.",
		Source: "K may be an expression (spec 999 section 3)",
		Band: fmt.Sprintf("one copy more for each %.0f h to drain, at most 5, against K = 5: copies sent at least 0.8, mean wait at most 1.15; 5 copies for estimates up to %.0f h and 2 for others, against K = 3: copies sent at least 1, mean wait at least 1",
			drainStep.Hours(), shortEstimate.Hours()),
		Needs: []trial{c.alone(), c.copies(5), c.copies(3), c.copies(5).ruled(byDrain), c.copies(5).ruled(byLength)},
		Judge: func(a *answers) lab.Finding {
			drain, length := c.copies(5).ruled(byDrain), c.copies(5).ruled(byLength)
			return lab.Conclude(
				lab.Within("by load: copies sent", a.ratio(drain, c.copies(5), copiesSent), 0.8, lab.Unbounded),
				lab.Within("by load: mean wait", a.ratio(drain, c.copies(5), meanWait), 0, 1.15),
				lab.Within("by length: copies sent", a.ratio(length, c.copies(3), copiesSent), 1, lab.Unbounded),
				lab.Within("by length: mean wait", a.ratio(length, c.copies(3), meanWait), 1, lab.Unbounded),
				lab.Shown("copies sent per job with K = 3", a.Of(c.copies(3), copiesSent), ""))
		},
	}, {
		ID: "K15", Kind: lab.Ours, Text: "Two copies where forecasts say that the job would end first serve better than two by load; they are no reason to choose another default, as limits say it nearly as well.",
		Source: "better estimates allow a smaller K (spec 999 section 5)", Band: "mean wait, K = 2: forecast ÷ load at most 1; forecast ÷ completion by limits at least 0.8",
		Needs: []trial{rank(meta.RankForecast, 2), rank(meta.RankCompletion, 2), rank(meta.RankStart, 2), c.copies(2), c.copies(3)},
		Judge: func(a *answers) lab.Finding {
			t := rank(meta.RankForecast, 2)
			return lab.Conclude(
				lab.Within("÷ load", a.ratio(t, c.copies(2), meanWait), 0, 1),
				lab.Within("÷ completion", a.ratio(t, rank(meta.RankCompletion, 2), meanWait), 0.8, lab.Unbounded),
				lab.Shown("÷ start", a.ratio(t, rank(meta.RankStart, 2), meanWait), ""),
				lab.Shown("÷ load, K = 3", a.ratio(t, c.copies(3), meanWait), ""),
				lab.Shown("messages ÷ completion", a.ratio(t, rank(meta.RankCompletion, 2), allMessages), ""))
		},
	}}
}

// robust are about old loads and many sites.
func robust() []question {
	many := manySites(manyPeriods)
	few, most := siteCounts[1], siteCounts[len(siteCounts)-1]
	five, hour := 5*time.Minute, time.Hour
	var further []trial // with three copies, at any load and with any number of sites
	for _, set := range threeLoads {
		further = append(further, set.copies(3))
	}
	for _, n := range siteCounts {
		further = append(further, manySites(n).copies(3))
	}
	var both []trial
	for _, t := range further {
		both = append(both, t, t.copies(2))
	}
	return []question{{
		ID: "K12", Kind: lab.Ours, Text: "Copies make up for old loads: loads five minutes old do no harm, and three copies by loads an hour old serve better than two by fresh ones. One copy needs fresh loads.",
		Source: "one copy is hurt by old loads (claim C3)", Band: fmt.Sprintf("%d sites, mean wait: K = 2, told each 5 min ÷ each 30 s at most 1.25; K = 3, each hour ÷ K = 2, each 30 s at most 1; one copy at the least loaded site, each hour ÷ each 30 s at least 1.25", manyPeriods),
		Needs: []trial{
			many.copies(2), many.copies(2).each(five), many.copies(3).each(hour), many.one(), many.one().each(hour),
			many.copies(3).each(five), many.copies(3).each(five).younger(maxAgeShown),
		},
		Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Within("K = 2, 5 min ÷ 30 s", a.ratio(many.copies(2).each(five), many.copies(2), meanWait), 0, 1.25),
				lab.Within("K = 3, 1 h ÷ K = 2, 30 s", a.ratio(many.copies(3).each(hour), many.copies(2), meanWait), 0, 1),
				lab.Within("one copy, 1 h ÷ 30 s", a.ratio(many.one().each(hour), many.one(), meanWait), 1.25, lab.Unbounded),
				lab.Shown(fmt.Sprintf("K = 3, told each 5 min: none over %s used ÷ all used", periodName(maxAgeShown)), a.ratio(many.copies(3).each(five).younger(maxAgeShown), many.copies(3).each(five), meanWait), "")).
				Noted("To leave out old loads does no harm as long as some are fresh: each site then chooses among a few that others do not see at that moment.", "")
		},
	}, {
		ID: "K13", Kind: lab.Ours, Text: "By load K = 3 serves as well with 50 sites as with 5; asking all sites serves ever better, for messages that grow with their number.",
		Source: ourOwn, Band: "what is left of the wait alone: K = 3 by load at 50 sites at most that at 5; asked, K = 2, at most half of that by load at 50 sites; messages per job, asked ÷ by load, at 50 sites at least 4",
		Needs: []trial{
			manySites(few).alone(), manySites(most).alone(), manySites(few).copies(3), manySites(most).copies(3), manySites(most).asked(2),
		},
		Judge: func(a *answers) lab.Finding {
			at5, at50, asked := a.left(manySites(few).copies(3), meanWait), a.left(manySites(most).copies(3), meanWait), a.left(manySites(most).asked(2), meanWait)
			return lab.Conclude(
				lab.Shown("by load, 5 sites", at5, ""),
				lab.Check("50 sites", at50, "", at50.Mean() <= at5.Mean()),
				lab.Check("asked, 50 sites", asked, "", asked.Mean() <= at50.Mean()/2),
				lab.Within("messages", a.ratio(manySites(most).asked(2), manySites(most).copies(3), allMessages), 4, lab.Unbounded))
		},
	}, {
		ID: "K14", Kind: lab.Ours, Text: "The third copy shortens waits at every load and with any number of sites.",
		Source: "K = 2 by default (spec 001 section 4)", Band: "mean wait, K-Dual by load, K = 3 ÷ K = 2: at most 0.9 at loads 0.70, 0.85, 0.95 and with 3, 5, 10, 20, 50 sites",
		Needs: both,
		Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, t := range further {
				parts = append(parts, lab.Within(t.setting.String(), a.ratio(t, t.copies(2), meanWait), 0, 0.9))
			}
			return lab.Conclude(parts...)
		},
	}}
}
