package lab

import (
	"context"
	"fmt"
	"time"

	"kith/meta"
)

// choice is a study that the papers lack: which K and which ranking serve
// users best, and what that costs. It is what Kith's defaults rest on (ADR 0013).
func choice() Experiment {
	e := Experiment{
		ID: "choice", Title: "Which K and which ranking serve users best",
		Source: "a study of our own, for Kith's defaults",
		Seeds:  10, UsesTrace: true, Run: runChoice,
	}
	for _, q := range choiceQuestions() {
		e.Claims = append(e.Claims, q.Claim)
	}
	return e
}

// runChoice runs the trials of all wanted claims at once.
func runChoice(ctx context.Context, env *Env) (*Report, error) {
	src, err := newChoiceSource(env)
	if err != nil {
		return nil, err
	}
	var wanted []choiceQuestion
	var trials []choiceTrial
	for _, q := range choiceQuestions() {
		if env.Wants(q.ID) {
			wanted = append(wanted, q)
			trials = append(trials, q.needs...)
		}
	}
	if env.Claims == nil {
		trials = append(trials, shownTrials()...)
	}
	a, err := answerChoice(ctx, env, src, trials)
	if err != nil {
		return nil, err
	}
	r := &Report{Workload: a.workload()}
	for _, q := range wanted {
		f := q.judge(a)
		f.ID = q.ID
		r.Find(f)
	}
	a.remarks(r)
	r.Tables, r.Plots = a.tables(), a.plots()
	return r, nil
}

// The settings of the study.
var (
	busySites  = choiceSetting{sites: 5, load: 85}
	quietSites = choiceSetting{sites: 5, load: 70}
	fullSites  = choiceSetting{sites: 5, load: 95}
)

// choiceLoads are in the order in which they are shown.
var choiceLoads = []choiceSetting{quietSites, busySites, fullSites}

// manySites returns a setting of n sites, all of them with jobs for the same time.
func manySites(n int) choiceSetting { return choiceSetting{sites: n, load: 85, brief: true} }

var choiceNumbers = []int{3, 5, 10, 20, 50}

// Trials in a setting.
func (c choiceSetting) place(s meta.Scheme, k int32, rank meta.Rank) choiceTrial {
	t := choiceTrial{choiceSetting: c, scheme: s, k: k, rank: rank, period: choicePeriod}
	if s == meta.KDistributed {
		t.queues = singleQueues
	}
	if implied, ok := s.ImpliedRank(); ok {
		t.rank = implied
	}
	return t
}

func (c choiceSetting) alone() choiceTrial { return c.place(meta.Independent, 1, meta.RankWork) }

// copies is K-Dual by load, the default scheme; asked is K-Dual by what sites
// say when the job would start.
func (c choiceSetting) copies(k int32) choiceTrial { return c.place(meta.KDual, k, meta.RankWork) }
func (c choiceSetting) asked(k int32) choiceTrial  { return c.place(meta.KDual, k, meta.RankStart) }

// one sends a job to the one least loaded site.
func (c choiceSetting) one() choiceTrial { return c.place(meta.KDistributed, 1, meta.RankWork) }

func (c choiceSetting) spread(k int32) choiceTrial {
	return c.place(meta.KDistributed, k, meta.RankWork)
}
func (c choiceSetting) mct() choiceTrial { return c.place(meta.MCT, 1, meta.RankCompletion) }

// in returns the trial with other queues, with the other changes likewise.
func (t choiceTrial) in(q choiceQueues) choiceTrial       { t.queues = q; return t }
func (t choiceTrial) weighted(a float64) choiceTrial      { t.weight = a; return t }
func (t choiceTrial) learning() choiceTrial               { t.adaptive = true; return t }
func (t choiceTrial) each(d time.Duration) choiceTrial    { t.period = d; return t }
func (t choiceTrial) younger(d time.Duration) choiceTrial { t.maxAge = d; return t }
func (t choiceTrial) onesAsked(percent int) choiceTrial   { t.ones = percent; return t }
func (t choiceTrial) ruled(r copiesRule) choiceTrial      { t.rule = r; return t }

// choicePeriods are how often sites tell their load.
var choicePeriods = []time.Duration{0, 30 * time.Second, 5 * time.Minute, time.Hour}

// oneShares are the shares of jobs that ask for one copy, in percent.
var oneShares = []int{10, 50}

// allCopies are the K of the main comparison.
var allCopies = []int32{2, 3, 4, 5}

// mainTrials are the rows of the main comparison.
func mainTrials() []choiceTrial {
	c := busySites
	list := []choiceTrial{c.alone()}
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

// weightTrials are the rows of the comparison of weights.
func weightTrials() []choiceTrial {
	var list []choiceTrial
	for _, t := range []choiceTrial{busySites.mct(), busySites.asked(2), busySites.copies(2)} {
		t = t.in(mixedQueues)
		list = append(list, t, t.weighted(paperWeight))
		if t.rank != meta.RankWork {
			list = append(list, t.learning())
		}
	}
	return list
}

// loadTrials are K-Dual by load in each setting of five sites.
func loadTrials() []choiceTrial {
	var list []choiceTrial
	for _, c := range choiceLoads {
		list = append(list, c.alone(), c.asked(2))
		for _, k := range allCopies {
			list = append(list, c.copies(k))
		}
	}
	return list
}

// numberTrials are those over the number of sites.
func numberTrials() []choiceTrial {
	var list []choiceTrial
	for _, n := range choiceNumbers {
		list = append(list, manySites(n).alone())
		for _, line := range numberLines() {
			if t := line.of(n); int(t.k) <= n {
				list = append(list, t)
			}
		}
	}
	return list
}

// choiceLine is a series of trials.
type choiceLine struct {
	name string
	of   func(n int) choiceTrial
}

func numberLines() []choiceLine {
	return []choiceLine{
		{"one copy, least loaded site", func(n int) choiceTrial { return manySites(n).one() }},
		{"K = 2 by load", func(n int) choiceTrial { return manySites(n).copies(2) }},
		{"K = 3 by load", func(n int) choiceTrial { return manySites(n).copies(3) }},
		{"K = 5 by load", func(n int) choiceTrial { return manySites(n).copies(5) }},
		{"K = 2, sites asked for the start", func(n int) choiceTrial { return manySites(n).asked(2) }},
	}
}

// manyPeriods is the number of sites of the sweep over periods.
const manyPeriods = 20

// maxAgeShown is the age from which on production ignores loads.
var maxAgeShown = meta.Default().Placement.MaxLoadAge

// periodLines are series over the period: of is given its index.
func periodLines() []choiceLine {
	c := manySites(manyPeriods)
	line := func(name string, t choiceTrial) choiceLine {
		return choiceLine{name, func(i int) choiceTrial { return t.each(choicePeriods[i]) }}
	}
	return []choiceLine{
		line("one copy, least loaded site", c.one()),
		line("K = 2 by load", c.copies(2)),
		line("K = 3 by load", c.copies(3)),
		line(fmt.Sprintf("K = 3, none over %s", periodName(maxAgeShown)), c.copies(3).younger(maxAgeShown)),
	}
}

func periodTrials() []choiceTrial {
	list := []choiceTrial{manySites(manyPeriods).alone()}
	for _, l := range periodLines() {
		for i := range choicePeriods {
			list = append(list, l.of(i))
		}
	}
	return list
}

// fairTrials are those in which some ask for one copy only.
func fairTrials() []choiceTrial {
	c := busySites
	list := []choiceTrial{c.alone(), c.one()}
	for _, k := range []int32{2, 3, 5} {
		for _, p := range oneShares {
			list = append(list, c.copies(k).onesAsked(p), c.spread(k).onesAsked(p))
		}
	}
	return list
}

// shownTrials are all that tables and plots show.
func shownTrials() []choiceTrial {
	var list []choiceTrial
	for _, some := range [][]choiceTrial{mainTrials(), weightTrials(), loadTrials(), numberTrials(), periodTrials(), fairTrials()} {
		list = append(list, some...)
	}
	return list
}

// workload says which jobs were run.
func (a *choiceAnswers) workload() string {
	from := "generated jobs like those of the CTC log"
	if a.env.Trace != nil {
		from = "pieces of " + a.env.Trace.Name + " from random places"
	}
	return fmt.Sprintf("sites of %d and %d processors in turn, whose own jobs offer loads spread evenly up to 1.00; %s; about %d jobs submitted at a large site in %.0f days, and %.0f days in the comparisons with other than 5 sites",
		a.src.large, max(1, a.src.large/2), from, a.env.jobs(choiceJobs), a.src.span(busySites).Hours()/24, a.src.span(manySites(3)).Hours()/24)
}

// remarks says how things were read.
func (a *choiceAnswers) remarks(r *Report) {
	r.Remark("Sites use EASY and dual queues with scope all, as Kith does by default, unless a row says one queue or mixed (dual at the large sites, one at the small). Loads of others are up to %s old unless a row says otherwise; messages take no time.", periodName(choicePeriod))
	r.Remark("All trials of a setting have the same jobs. Each figure is the mean over %s of one for each seed, with the lowest and the highest in brackets or as whiskers; that of a site is over all seeds together.", countOf(len(a.env.SeedList()), "seed"))
	most := choiceNumbers[len(choiceNumbers)-1]
	r.Remark("With many sites fewer seeds do, since each is a larger sample: %d sites take %s.", most, countOf(len(a.seeds(manySites(most))), "seed"))
	if a.env.Trace != nil {
		r.Remark("Each site gets another piece of the log, with its gaps stretched or shortened to the site's load; its day changes by as much.")
	}
	r.Remark("The claims put into words what runs with other seeds and shorter ones had shown; --first-seed tests them with jobs that nobody has seen.")
	if a.env.Jobs != 0 && a.env.Jobs < choiceJobs/2 {
		r.Remark("With %d jobs a site instead of %d the bands mean little.", a.env.Jobs, choiceJobs)
	}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
