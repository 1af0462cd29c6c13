package choice

import (
	"fmt"
	"time"

	"kith/meta"
	"kith/testbed/lab"
)

// Experiment is a study that the papers lack: which K and which ranking serve
// users best, and what that costs. It is what Kith's defaults rest on (ADR 0013).
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Shown: shownTrials(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "choice", Title: "Which K and which ranking serve users best",
		Source: "a study of our own, for Kith's defaults",
		Jobs:   siteJobs, Seeds: 10, UsesTrace: true,
	})
}

// The settings of the study.
var (
	busySites  = setting{sites: 5, load: 85}
	quietSites = setting{sites: 5, load: 70}
	fullSites  = setting{sites: 5, load: 95}
)

// threeLoads are in the order in which they are shown.
var threeLoads = []setting{quietSites, busySites, fullSites}

// manySites returns a setting of n sites, all of them with jobs for the same time.
func manySites(n int) setting { return setting{sites: n, load: 85, brief: true} }

var siteCounts = []int{3, 5, 10, 20, 50}

// Trials in a setting.
func (c setting) place(s meta.Scheme, k int32, rank meta.Rank) trial {
	t := trial{setting: c, scheme: s, k: k, rank: rank, period: usualPeriod}
	if s == meta.KDistributed {
		t.queues = singleQueues
	}
	if implied, ok := s.ImpliedRank(); ok {
		t.rank = implied
	}
	return t
}

func (c setting) alone() trial { return c.place(meta.Independent, 1, meta.RankWork) }

// copies is K-Dual by load, the default scheme; asked is K-Dual by what sites
// say when the job would start.
func (c setting) copies(k int32) trial { return c.place(meta.KDual, k, meta.RankWork) }
func (c setting) asked(k int32) trial  { return c.place(meta.KDual, k, meta.RankStart) }

// one sends a job to the one least loaded site.
func (c setting) one() trial { return c.place(meta.KDistributed, 1, meta.RankWork) }

func (c setting) spread(k int32) trial {
	return c.place(meta.KDistributed, k, meta.RankWork)
}
func (c setting) mct() trial { return c.place(meta.MCT, 1, meta.RankCompletion) }

// in returns the trial with other queues, with the other changes likewise.
func (t trial) in(q queueing) trial           { t.queues = q; return t }
func (t trial) weighted(a float64) trial      { t.weight = a; return t }
func (t trial) learning() trial               { t.adaptive = true; return t }
func (t trial) each(d time.Duration) trial    { t.period = d; return t }
func (t trial) younger(d time.Duration) trial { t.maxAge = d; return t }
func (t trial) onesAsked(percent int) trial   { t.ones = percent; return t }
func (t trial) ruled(r copiesRule) trial      { t.rule = r; return t }

// periods are how often sites tell their load.
var periods = []time.Duration{0, 30 * time.Second, 5 * time.Minute, time.Hour}

// oneShares are the shares of jobs that ask for one copy, in percent.
var oneShares = []int{10, 50}

// allCopies are the K of the main comparison.
var allCopies = []int32{2, 3, 4, 5}

// mainTrials are the rows of the main comparison.
func mainTrials() []trial {
	c := busySites
	list := []trial{c.alone()}
	for _, k := range allCopies {
		list = append(list, c.copies(k))
	}
	for _, rank := range []meta.Rank{meta.RankProcs, meta.RankStart, meta.RankCompletion} {
		for _, k := range []int32{2, 3, 5} {
			list = append(list, c.place(meta.KDual, k, rank))
		}
	}
	list = append(list, c.one())
	for _, k := range []int32{2, 3, 5} {
		list = append(list, c.spread(k))
	}
	return append(list, c.mct().in(singleQueues), c.mct(),
		c.copies(5).ruled(byDrain), c.copies(5).ruled(byLength))
}

// evenWeight is the constant of spec 004 that evens sites out.
const evenWeight = 1.3

// weightTrials are the rows of the comparison of weights.
func weightTrials() []trial {
	var list []trial
	for _, t := range []trial{busySites.mct(), busySites.asked(2), busySites.copies(2)} {
		t = t.in(mixedQueues)
		list = append(list, t, t.weighted(evenWeight))
		if t.rank != meta.RankWork {
			list = append(list, t.learning())
		}
	}
	return list
}

// loadTrials are K-Dual by load in each setting of five sites.
func loadTrials() []trial {
	var list []trial
	for _, c := range threeLoads {
		list = append(list, c.alone(), c.asked(2))
		for _, k := range allCopies {
			list = append(list, c.copies(k))
		}
	}
	return list
}

// numberTrials are those over the number of sites.
func numberTrials() []trial {
	var list []trial
	for _, n := range siteCounts {
		list = append(list, manySites(n).alone())
		for _, line := range numberLines() {
			if t := line.of(n); int(t.k) <= n {
				list = append(list, t)
			}
		}
	}
	return list
}

// trialLine is a series of trials.
type trialLine struct {
	name string
	of   func(n int) trial
}

func numberLines() []trialLine {
	return []trialLine{
		{"one copy, least loaded site", func(n int) trial { return manySites(n).one() }},
		{"K = 2 by load", func(n int) trial { return manySites(n).copies(2) }},
		{"K = 3 by load", func(n int) trial { return manySites(n).copies(3) }},
		{"K = 5 by load", func(n int) trial { return manySites(n).copies(5) }},
		{"K = 2, sites asked for the start", func(n int) trial { return manySites(n).asked(2) }},
	}
}

// manyPeriods is the number of sites of the sweep over periods.
const manyPeriods = 20

// maxAgeShown is the age from which on production ignores loads.
var maxAgeShown = meta.Default().Placement.MaxLoadAge

// periodLines are series over the period: of is given its index.
func periodLines() []trialLine {
	c := manySites(manyPeriods)
	line := func(name string, t trial) trialLine {
		return trialLine{name, func(i int) trial { return t.each(periods[i]) }}
	}
	return []trialLine{
		line("one copy, least loaded site", c.one()),
		line("K = 2 by load", c.copies(2)),
		line("K = 3 by load", c.copies(3)),
		line(fmt.Sprintf("K = 3, none over %s", periodName(maxAgeShown)), c.copies(3).younger(maxAgeShown)),
	}
}

func periodTrials() []trial {
	list := []trial{manySites(manyPeriods).alone()}
	for _, l := range periodLines() {
		for i := range periods {
			list = append(list, l.of(i))
		}
	}
	return list
}

// fairTrials are those in which some ask for one copy only.
func fairTrials() []trial {
	c := busySites
	list := []trial{c.alone(), c.one()}
	for _, k := range []int32{2, 3, 5} {
		for _, p := range oneShares {
			list = append(list, c.copies(k).onesAsked(p), c.spread(k).onesAsked(p))
		}
	}
	return list
}

// shownTrials are all that tables and plots show.
func shownTrials() []trial {
	var list []trial
	for _, some := range [][]trial{mainTrials(), weightTrials(), loadTrials(), numberTrials(), periodTrials(), fairTrials()} {
		list = append(list, some...)
	}
	return list
}

// Workload says which jobs were run.
func (a *answers) Workload() string {
	from := "generated jobs like those of the CTC log"
	if a.env.Trace != nil {
		from = "pieces of " + a.env.Trace.Name + " from random places"
	}
	return fmt.Sprintf("sites of %d and %d processors in turn, whose own jobs offer loads spread evenly up to 1.00; %s; about %d jobs submitted at a large site in %.0f days, and %.0f days in the comparisons with other than 5 sites",
		a.src.Large, a.src.Small(), from, a.env.JobsOr(siteJobs), a.src.span(busySites).Hours()/24, a.src.span(manySites(3)).Hours()/24)
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	r.Remark("Sites use EASY and dual queues with scope all, as Kith does by default, unless a row says one queue or mixed (dual at the large sites, one at the small). Loads of others are up to %s old unless a row says otherwise; messages take no time.", periodName(usualPeriod))
	r.Remark("All trials of a setting have the same jobs. Each figure is the mean over %s of one for each seed, with the lowest and the highest in brackets or as whiskers; that of a site is over all seeds together.", countOf(len(a.env.SeedList()), "seed"))
	most := siteCounts[len(siteCounts)-1]
	r.Remark("With many sites fewer seeds do, since each is a larger sample: %d sites take %s.", most, countOf(len(a.seeds(manySites(most))), "seed"))
	if a.env.Trace != nil {
		r.Remark("Each site gets another piece of the log, with its gaps stretched or shortened to the site's load; its day changes by as much.")
	}
	r.Remark("The claims put into words what runs with other seeds and shorter ones had shown; --first-seed tests them with jobs that nobody has seen.")
}

func countOf(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
