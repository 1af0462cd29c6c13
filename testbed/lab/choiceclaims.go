package lab

import (
	"fmt"
	"slices"
	"time"

	"kith/meta"
	"kith/testbed/metrics"
)

const ourOwn = "no paper says"

// choiceQuestions are the claims of the study.
func choiceQuestions() []choiceQuestion {
	return slices.Concat(choiceGains(), choiceCosts(), choiceRanks(), choiceRobust())
}

// choiceGains are about what users get.
func choiceGains() []choiceQuestion {
	c := busySites
	var everyone []choiceTrial
	for _, set := range choiceLoads {
		everyone = append(everyone, set.alone())
		for _, k := range allCopies {
			everyone = append(everyone, set.copies(k))
		}
	}
	return []choiceQuestion{{
		Claim: Claim{
			ID: "K1", Kind: Ours, Statement: "Every site gains by joining, the least loaded one, too.",
			Source: ourOwn, Band: "K-Dual by load, K = 2 to 5, at each of three loads: mean wait of the jobs of each site below that alone",
		},
		needs: everyone, judge: judgeEveryone,
	}, {
		Claim: Claim{
			ID: "K2", Kind: Ours, Statement: "The second copy brings most of the gain, the third takes away a good part of what is left, the fifth next to nothing.",
			Source: "K = 2 has most of the gain (spec 001 sections 3.1 and 4)",
			Band:   "mean wait, K-Dual by load: K = 2 leaves at most 0.5 of that alone; K = 3 ÷ K = 2 at most 0.8; K = 5 ÷ K = 4 at least 0.8",
		},
		needs: append([]choiceTrial{c.alone()}, c.copies(2), c.copies(3), c.copies(4), c.copies(5)),
		judge: func(a *choiceAnswers) Finding {
			return finding("K2",
				within("K = 2 ÷ alone", a.left(c.copies(2), meanWait), 0, 0.5),
				within("K = 3 ÷ K = 2", a.ratio(c.copies(3), c.copies(2), meanWait), 0, 0.8),
				shown("K = 4 ÷ K = 3", a.ratio(c.copies(4), c.copies(3), meanWait), ""),
				within("K = 5 ÷ K = 4", a.ratio(c.copies(5), c.copies(4), meanWait), 0.8, infinite))
		},
	}, {
		Claim: Claim{
			ID: "K3", Kind: Ours, Statement: "All classes of jobs gain, short and narrow ones most.",
			Source: ourOwn, Band: "mean bounded slowdown, K-Dual by load, K = 3: below that alone in each class, and the least part of it is left for short-narrow jobs",
		},
		needs: []choiceTrial{c.alone(), c.copies(3)},
		judge: func(a *choiceAnswers) Finding {
			var parts []reading
			least := a.left(c.copies(3), classBounded(metrics.ShortNarrow)).mean()
			for k := range metrics.Class(metrics.Classes) {
				v := a.left(c.copies(3), classBounded(k))
				parts = append(parts, reading{name: k.String(), v: v, met: v.mean() < 1 && v.mean() >= least})
			}
			return finding("K3", parts...)
		},
	}}
}

// judgeEveryone looks for a site that loses.
func judgeEveryone(a *choiceAnswers) Finding {
	var parts []reading
	for _, set := range choiceLoads {
		worst, at, k := 0.0, 0, int32(0)
		for _, n := range allCopies {
			for i, v := range a.sites(set.copies(n)) {
				if v > worst {
					worst, at, k = v, i, n
				}
			}
		}
		name := fmt.Sprintf("load 0.%02d: worst site%d at K = %d, ÷ alone", set.load, at+1, k)
		parts = append(parts, reading{name: name, v: spread{worst}, met: worst < 1})
	}
	return finding("K1", parts...)
}

// choiceCosts are about what copies cost.
func choiceCosts() []choiceQuestion {
	c := busySites
	all := []choiceTrial{c.alone(), c.one(), c.mct()}
	for _, k := range allCopies {
		all = append(all, c.copies(k), c.place(meta.KDual, k, meta.RankStart))
	}
	all = append(all, c.spread(2), c.spread(3), c.spread(5), c.copies(3).onesAsked(50), c.copies(5).ruled(byDrain))
	return []choiceQuestion{{
		Claim: Claim{
			ID: "K4", Kind: Ours, Enforced: true, Statement: "A job with K copies costs one claim and K − 1 withdrawals, whichever the scheme, the ranking and the K of others; what crosses between sites is never more.",
			Source: "K messages (spec 001 section 2.5)", Band: "logical messages equal to the sum over jobs of min(K, sites wide enough), in each run; wire messages at most as many",
		},
		needs: all,
		judge: func(a *choiceAnswers) Finding {
			exact, fewer := true, true
			var parts []reading
			for _, t := range all {
				for _, o := range a.trials[t] {
					exact = exact && o.logical == o.expected
					fewer = fewer && o.wire <= o.logical
				}
			}
			for _, k := range allCopies {
				parts = append(parts, shown(fmt.Sprintf("wire per job, K-Dual, K = %d", k), a.of(c.copies(k), wireSent), ""))
			}
			return finding("K4", append([]reading{
				{name: fmt.Sprintf("exact in all runs of %d trials", len(all)), met: exact}, {name: "never more on the wire", met: fewer},
			}, parts...)...)
		},
	}, {
		Claim: Claim{
			ID: "K5", Kind: Ours, Statement: "More copies make queues hardly longer: they leave sooner.",
			Source: ourOwn, Band: "copies that wait at a site, mean over sites and time, K-Dual by load: K = 3 ÷ K = 2 at most 1.25; K = 5 at most as many as alone",
		},
		needs: []choiceTrial{c.alone(), c.copies(2), c.copies(3), c.copies(5)},
		judge: func(a *choiceAnswers) Finding {
			return finding("K5",
				within("K = 3 ÷ K = 2", a.ratio(c.copies(3), c.copies(2), meanQueue), 0, 1.25),
				within("K = 5 ÷ alone", a.left(c.copies(5), meanQueue), 0, 1),
				shown("copies waiting at a site with K = 3", a.of(c.copies(3), meanQueue), ""))
		},
	}, {
		Claim: Claim{
			ID: "K6", Kind: Ours, Statement: "Users who ask for one copy wait less when others ask for more; those who ask for more wait less still.",
			Source: "more requests of some may harm the others, a worry of the literature", Band: "K-Dual by load, K = 3, 10 % of the jobs ask for one copy: their mean wait ÷ that if nobody asks for more below 1, and above that of the others",
		},
		needs: []choiceTrial{c.alone(), c.copies(3), c.copies(3).onesAsked(10), c.one(), c.spread(3).onesAsked(10)},
		judge: func(a *choiceAnswers) Finding {
			t, q := c.copies(3).onesAsked(10), c.spread(3).onesAsked(10)
			ones := a.asks(t, 10, true)
			f := finding("K6",
				below("one copy ÷ if all ask for one", ones.over(a.asks(c.alone(), 10, true)), 1),
				above("one copy ÷ the others", ones.over(a.asks(t, 10, false)), 1),
				shown("÷ if these jobs asked for three, too", ones.over(a.asks(c.copies(3), 10, true)), ""),
				shown("K-Distributed in one queue: one copy ÷ if all ask for one", a.asks(q, 10, true).over(a.asks(c.one(), 10, true)), ""))
			return f
		},
	}}
}

// above is a reading that must be more than a bound in the mean.
func above(name string, v spread, bound float64) reading {
	return reading{name: name, v: v, met: v.mean() > bound}
}

// choiceRanks are about rankings.
func choiceRanks() []choiceQuestion {
	c := busySites
	rank := func(r meta.Rank, k int32) choiceTrial { return c.place(meta.KDual, k, r) }
	mixed := c.mct().in(mixedQueues)
	return []choiceQuestion{{
		Claim: Claim{
			ID: "K7", Kind: Ours, Statement: "Two copies where sites say that the job would start first serve as well as three by load, with shorter queues, for more messages.",
			Source: "better estimates allow a smaller K (spec 999 section 5)", Band: "mean wait, start K = 2 ÷ load K = 3 at most 1; queue below; messages above",
		},
		needs: []choiceTrial{c.alone(), rank(meta.RankStart, 2), rank(meta.RankCompletion, 2), c.copies(3)},
		judge: func(a *choiceAnswers) Finding {
			return finding("K7",
				within("wait, start ÷ load", a.ratio(rank(meta.RankStart, 2), c.copies(3), meanWait), 0, 1),
				below("queue", a.ratio(rank(meta.RankStart, 2), c.copies(3), meanQueue), 1),
				above("messages", a.ratio(rank(meta.RankStart, 2), c.copies(3), allMessages), 1),
				shown("wait, completion ÷ load", a.ratio(rank(meta.RankCompletion, 2), c.copies(3), meanWait), ""))
		},
	}, {
		Claim: Claim{
			ID: "K8", Kind: Ours, Statement: "The two loads, work and procs, rank equally well.",
			Source: ourOwn, Band: "mean wait, procs ÷ work, K = 2 and 3: 0.8–1.25",
		},
		needs: []choiceTrial{rank(meta.RankProcs, 2), rank(meta.RankProcs, 3), c.copies(2), c.copies(3)},
		judge: func(a *choiceAnswers) Finding {
			return finding("K8",
				within("K = 2", a.ratio(rank(meta.RankProcs, 2), c.copies(2), meanWait), 0.8, 1.25),
				within("K = 3", a.ratio(rank(meta.RankProcs, 3), c.copies(3), meanWait), 0.8, 1.25))
		},
	}, {
		Claim: Claim{
			ID: "K9", Kind: Ours, Statement: "Local jobs first costs the federation nothing: K-Dual serves at least as well as K-Distributed with the same K, and one copy at the least loaded site makes a site lose.",
			Source: "K-Dual slightly worse (claim C8)", Band: "mean wait, K-Dual ÷ K-Distributed, K = 2 and 3: at most 1; worst site with one copy at the least loaded site: above 1 of alone",
		},
		needs: []choiceTrial{c.alone(), c.copies(2), c.copies(3), c.spread(2), c.spread(3), c.one()},
		judge: func(a *choiceAnswers) Finding {
			return finding("K9",
				within("K = 2", a.ratio(c.copies(2), c.spread(2), meanWait), 0, 1),
				within("K = 3", a.ratio(c.copies(3), c.spread(3), meanWait), 0, 1),
				above("worst site with one copy", spread{slices.Max(a.sites(c.one()))}, 1),
				shown("worst site with K-Dual, K = 3", spread{slices.Max(a.sites(c.copies(3)))}, ""))
		},
	}, {
		Claim: Claim{
			ID: "K10", Kind: Ours, Statement: "Weights do not shorten waits where sites backfill and estimates are rough; weights learnt from completions make them longer.",
			Source: "a = 1.3 evens sites out (spec 004 section 2.4)", Band: "mean wait, large sites with dual queues, small ones with one: MCT with a = 1.3 ÷ MCT at least 0.95; learning ÷ MCT above 1",
		},
		needs: []choiceTrial{c.alone(), mixed, mixed.weighted(paperWeight), mixed.learning()},
		judge: func(a *choiceAnswers) Finding {
			return finding("K10",
				within("a = 1.3", a.ratio(mixed.weighted(paperWeight), mixed, meanWait), 0.95, infinite),
				above("learning", a.ratio(mixed.learning(), mixed, meanWait), 1)).
				noted("A site's promise of completion contains the user's estimate. Jobs that end early make a site look reliable, so what is learnt is which jobs it had.", "")
		},
	}, {
		Claim: Claim{
			ID: "K11", Kind: Ours, Statement: "Adapting K gains little: K that follows the load of the origin saves few copies, as a job that can start at once keeps its copies at home anyway; more copies for short jobs serve worse than the same number for all.",
			Source: "K may be an expression (spec 999 section 3)",
			Band: fmt.Sprintf("one copy more for each %.0f h to drain, at most 5, against K = 5: copies sent at least 0.8, mean wait at most 1.15; 5 copies for estimates up to %.0f h and 2 for others, against K = 3: copies sent at least 1, mean wait at least 1",
				drainStep.Hours(), shortEstimate.Hours()),
		},
		needs: []choiceTrial{c.alone(), c.copies(5), c.copies(3), c.copies(5).ruled(byDrain), c.copies(5).ruled(byLength)},
		judge: func(a *choiceAnswers) Finding {
			drain, length := c.copies(5).ruled(byDrain), c.copies(5).ruled(byLength)
			return finding("K11",
				within("by load: copies sent", a.ratio(drain, c.copies(5), copiesSent), 0.8, infinite),
				within("by load: mean wait", a.ratio(drain, c.copies(5), meanWait), 0, 1.15),
				within("by length: copies sent", a.ratio(length, c.copies(3), copiesSent), 1, infinite),
				within("by length: mean wait", a.ratio(length, c.copies(3), meanWait), 1, infinite),
				shown("copies sent per job with K = 3", a.of(c.copies(3), copiesSent), ""))
		},
	}}
}

// choiceRobust are about old loads and many sites.
func choiceRobust() []choiceQuestion {
	many := manySites(manyPeriods)
	few, most := choiceNumbers[1], choiceNumbers[len(choiceNumbers)-1]
	five, hour := 5*time.Minute, time.Hour
	var further []choiceTrial // with three copies, at any load and with any number of sites
	for _, set := range choiceLoads {
		further = append(further, set.copies(3))
	}
	for _, n := range choiceNumbers {
		further = append(further, manySites(n).copies(3))
	}
	var both []choiceTrial
	for _, t := range further {
		both = append(both, t, t.copies(2))
	}
	return []choiceQuestion{{
		Claim: Claim{
			ID: "K12", Kind: Ours, Statement: "Copies make up for old loads: loads five minutes old do no harm, and three copies by loads an hour old serve better than two by fresh ones. One copy needs fresh loads.",
			Source: "one copy is hurt by old loads (claim C3)", Band: fmt.Sprintf("%d sites, mean wait: K = 2, told each 5 min ÷ each 30 s at most 1.25; K = 3, each hour ÷ K = 2, each 30 s at most 1; one copy at the least loaded site, each hour ÷ each 30 s at least 1.25", manyPeriods),
		},
		needs: []choiceTrial{
			many.copies(2), many.copies(2).each(five), many.copies(3).each(hour), many.one(), many.one().each(hour),
			many.copies(3).each(five), many.copies(3).each(five).younger(maxAgeShown),
		},
		judge: func(a *choiceAnswers) Finding {
			return finding("K12",
				within("K = 2, 5 min ÷ 30 s", a.ratio(many.copies(2).each(five), many.copies(2), meanWait), 0, 1.25),
				within("K = 3, 1 h ÷ K = 2, 30 s", a.ratio(many.copies(3).each(hour), many.copies(2), meanWait), 0, 1),
				within("one copy, 1 h ÷ 30 s", a.ratio(many.one().each(hour), many.one(), meanWait), 1.25, infinite),
				shown(fmt.Sprintf("K = 3, told each 5 min: none over %s used ÷ all used", periodName(maxAgeShown)), a.ratio(many.copies(3).each(five).younger(maxAgeShown), many.copies(3).each(five), meanWait), "")).
				noted("To leave out old loads does no harm as long as some are fresh: each site then chooses among a few that others do not see at that moment.", "")
		},
	}, {
		Claim: Claim{
			ID: "K13", Kind: Ours, Statement: "By load K = 3 serves as well with 50 sites as with 5; asking all sites serves ever better, for messages that grow with their number.",
			Source: ourOwn, Band: "what is left of the wait alone: K = 3 by load at 50 sites at most that at 5; asked, K = 2, at most half of that by load at 50 sites; messages per job, asked ÷ by load, at 50 sites at least 4",
		},
		needs: []choiceTrial{
			manySites(few).alone(), manySites(most).alone(), manySites(few).copies(3), manySites(most).copies(3), manySites(most).asked(2),
		},
		judge: func(a *choiceAnswers) Finding {
			at5, at50, asked := a.left(manySites(few).copies(3), meanWait), a.left(manySites(most).copies(3), meanWait), a.left(manySites(most).asked(2), meanWait)
			return finding("K13",
				shown("by load, 5 sites", at5, ""),
				reading{"50 sites", at50, "", at50.mean() <= at5.mean()},
				reading{"asked, 50 sites", asked, "", asked.mean() <= at50.mean()/2},
				within("messages", a.ratio(manySites(most).asked(2), manySites(most).copies(3), allMessages), 4, infinite))
		},
	}, {
		Claim: Claim{
			ID: "K14", Kind: Ours, Statement: "The third copy shortens waits at every load and with any number of sites.",
			Source: "K = 2 by default (spec 001 section 4)", Band: "mean wait, K-Dual by load, K = 3 ÷ K = 2: at most 0.9 at loads 0.70, 0.85, 0.95 and with 3, 5, 10, 20, 50 sites",
		},
		needs: both,
		judge: func(a *choiceAnswers) Finding {
			var parts []reading
			for _, t := range further {
				parts = append(parts, within(t.choiceSetting.String(), a.ratio(t, t.copies(2), meanWait), 0, 0.9))
			}
			return finding("K14", parts...)
		},
	}}
}
