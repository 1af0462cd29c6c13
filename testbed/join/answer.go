package join

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// Answer is what came of a study. Times are in seconds, changes in percent:
// below zero is better.
type Answer struct {
	Title string `json:"title"`
	// Seed is that of made-up jobs.
	Seed  uint64     `json:"seed"`
	Sites []SiteInfo `json:"sites"`
	// Asks is the site that the verdict is about, "" for all alike.
	Asks string `json:"asks,omitempty"`
	// Alone is every site by itself, Plans the federation for each K.
	Alone Outcome   `json:"alone"`
	Plans []Outcome `json:"plans"`
	// Best is the plan to choose, as an index of Plans.
	Best int `json:"best"`
	// Join says whether to join at all.
	Join Advice `json:"join"`
	// Sentences say it in words.
	Sentences []string `json:"sentences"`
	// ElapsedSeconds is how long the replay took, if the caller says so.
	ElapsedSeconds float64 `json:"elapsed_seconds"`

	study    *Study
	outcomes []outcome
}

// SiteInfo is a site of the question.
type SiteInfo struct {
	Name        string  `json:"name"`
	Processors  int32   `json:"processors"`
	Policy      string  `json:"policy"`
	Speed       float64 `json:"speed"`
	Workload    string  `json:"workload"`
	Jobs        int     `json:"jobs"`
	OfferedLoad float64 `json:"offered_load"`
	// LeftOut counts jobs outside of the time that all logs cover.
	LeftOut int             `json:"left_out"`
	Notes   []workload.Note `json:"notes"`
}

// Outcome is what came of one plan.
type Outcome struct {
	Name   string      `json:"name"`
	Scheme meta.Scheme `json:"scheme"`
	Copies int32       `json:"copies"`
	// Sites are by origin: the users of each site, wherever their jobs ran.
	Sites []SiteOutcome `json:"sites"`
	All   Figures       `json:"all"`
	// Classes are those of all jobs.
	Classes  [metrics.Classes]Figures `json:"classes"`
	Fairness Fairness                 `json:"fairness"`
	// MessagesPerJob are all that crossed between sites.
	MessagesPerJob float64 `json:"messages_per_job"`
	// Winners and Losers count sites.
	Winners int `json:"winners"`
	Losers  int `json:"losers"`
}

// Fairness says how alike sites fare, by the mean bounded slowdown of the jobs of
// each that has any.
type Fairness struct {
	// Users are the jobs submitted at each site, wherever they ran; Machines those
	// that each site ran, whosever they were.
	Users    metrics.Fairness `json:"users"`
	Machines metrics.Fairness `json:"machines"`
}

// fairness compares the sites by their records.
func fairness(records []metrics.Record) Fairness {
	between := func(key func(*metrics.Record) string) metrics.Fairness {
		var means []float64
		for _, g := range metrics.GroupBy(records, key) {
			sum := 0.0
			for i := range g.Records {
				sum += g.Records[i].BoundedSlowdown(metrics.Floor)
			}
			means = append(means, sum/float64(len(g.Records)))
		}
		return metrics.FairnessOf(means)
	}
	return Fairness{Users: between(metrics.ByOrigin), Machines: between(metrics.BySite)}
}

// SiteOutcome is a site under a plan.
type SiteOutcome struct {
	Site string `json:"site"`
	Figures
	Classes [metrics.Classes]Figures `json:"classes"`
	// Utilisation of its processors up to the last submission anywhere.
	Utilisation float64 `json:"utilisation"`
	// Elsewhere is the share of its users' jobs that ran at other sites, Guests
	// how many jobs of others it ran.
	Elsewhere float64 `json:"elsewhere"`
	Guests    int     `json:"guests"`
	// WorkElsewhere are the processor-hours that other sites spent on its users,
	// WorkForOthers those that it spent on theirs.
	WorkElsewhere float64 `json:"work_elsewhere_processor_hours"`
	WorkForOthers float64 `json:"work_for_others_processor_hours"`
	// Harm is what guests cost; nil for a site alone, which has none.
	Harm *Harm `json:"harm,omitempty"`
}

// Figures are what users feel.
type Figures struct {
	Jobs            int     `json:"jobs"`
	Wait            float64 `json:"mean_wait_seconds"`
	WaitP50         float64 `json:"wait_p50_seconds"`
	WaitP95         float64 `json:"wait_p95_seconds"`
	Turnaround      float64 `json:"mean_turnaround_seconds"`
	BoundedSlowdown float64 `json:"mean_bounded_slowdown"`
	// Change is that of the mean turnaround against being alone, in percent; by
	// it sites win and lose. The other changes are those of their means.
	Change         float64 `json:"turnaround_change_percent"`
	WaitChange     float64 `json:"wait_change_percent"`
	SlowdownChange float64 `json:"bounded_slowdown_change_percent"`
	Effect         Effect  `json:"effect"`
}

// FiguresOf sums up jobs, all of them and each kind.
func FiguresOf(records []metrics.Record) (all Figures, kinds [metrics.Classes]Figures) {
	sum := metrics.Summarise(records, metrics.Options{})
	return figures(sum.Jobs, &sum.Wait, &sum.Turnaround, &sum.BoundedSlowdown), classes(&sum)
}

// Effect is what a plan does to a site.
type Effect string

// The effects.
const (
	Wins  Effect = "wins"
	Loses Effect = "loses"
	Even  Effect = "even"
)

// EvenWithin is the change of the mean turnaround that counts as none, in
// percent: another month would differ by more.
const EvenWithin = 1.0

func figures(jobs int, wait, turnaround, bounded *metrics.Distribution) Figures {
	return Figures{
		Jobs: jobs, Wait: wait.Mean, WaitP50: wait.P50, WaitP95: wait.P95, Turnaround: turnaround.Mean, BoundedSlowdown: bounded.Mean, Effect: Even,
	}
}

// Against fills in what changed from what was, and what that is to users.
func (f *Figures) Against(alone *Figures) {
	f.Change = percent(f.Turnaround, alone.Turnaround)
	f.WaitChange = percent(f.Wait, alone.Wait)
	f.SlowdownChange = percent(f.BoundedSlowdown, alone.BoundedSlowdown)
	switch {
	case f.Change < -EvenWithin:
		f.Effect = Wins
	case f.Change > EvenWithin:
		f.Effect = Loses
	default:
		f.Effect = Even
	}
}

// percent returns how much more v is than base, in percent; 0 without a base.
func percent(v, base float64) float64 {
	if base == 0 {
		return 0
	}
	return 100 * (v/base - 1)
}

// answer compares the outcomes, of which the first is that of being alone.
func (s *Study) answer(outcomes []outcome) (*Answer, error) {
	a := &Answer{Title: s.cfg.Title, Seed: s.cfg.Seed, Asks: s.cfg.Asks, study: s, outcomes: outcomes}
	for i := range s.sites {
		a.Sites = append(a.Sites, s.info(i))
	}
	a.Alone = s.outcome(&outcomes[0], nil)
	for i := range outcomes[1:] {
		o := s.outcome(&outcomes[1+i], &a.Alone)
		for k := range o.Sites {
			site := &s.sites[k]
			h, err := HarmOf(&metrics.HarmQuestion{Site: site.ID, Config: site.Scheduler(), Speed: site.Speed}, outcomes[1+i].result.Records)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Name, err)
			}
			o.Sites[k].Harm = &h
		}
		a.Plans = append(a.Plans, o)
	}
	a.decide()
	return a, nil
}

func (s *Study) info(i int) SiteInfo {
	site, w := &s.sites[i], s.jobs[i]
	return SiteInfo{
		Name: string(site.ID), Processors: site.Processors, Policy: policyOf(site), Speed: site.Speed, Workload: w.Name, Jobs: len(w.Jobs),
		OfferedLoad: w.OfferedLoad(site.Processors) / site.Speed, LeftOut: s.left[i], Notes: w.Report.Notes(),
	}
}

// outcome sums up a run; alone is nil for that of being alone itself.
func (s *Study) outcome(o *outcome, alone *Outcome) Outcome {
	all := metrics.Summarise(o.result.Records, metrics.Options{})
	out := Outcome{
		Name: o.String(), Scheme: o.scheme, Copies: o.copies, All: figures(all.Jobs, &all.Wait, &all.Turnaround, &all.BoundedSlowdown),
		Classes: classes(&all), Fairness: fairness(o.result.Records),
	}
	if alone != nil { // else the few are those of sites that meet
		messages := int64(0)
		for _, n := range o.result.Messages.ByKind {
			messages += n
		}
		out.MessagesPerJob = float64(messages) / float64(max(all.Jobs, 1))
	}
	byHost := make(map[job.SiteID][]metrics.Record)
	for _, g := range metrics.GroupBy(o.result.Records, metrics.BySite) {
		byHost[job.SiteID(g.Key)] = g.Records
	}
	for i := range s.sites {
		out.Sites = append(out.Sites, s.siteOutcome(o, i, byHost[s.sites[i].ID]))
	}
	if alone == nil {
		return out
	}
	out.All.Against(&alone.All)
	for c := range out.Classes {
		out.Classes[c].Against(&alone.Classes[c])
	}
	for i := range out.Sites {
		x := &out.Sites[i]
		x.Against(&alone.Sites[i].Figures)
		for c := range x.Classes {
			x.Classes[c].Against(&alone.Sites[i].Classes[c])
		}
		switch x.Effect {
		case Wins:
			out.Winners++
		case Loses:
			out.Losers++
		case Even:
		}
	}
	return out
}

func classes(s *metrics.Summary) (list [metrics.Classes]Figures) {
	for c := range list {
		k := &s.Classes[c]
		list[c] = figures(k.Jobs, &k.Wait, &k.Turnaround, &k.BoundedSlowdown)
	}
	return list
}

// siteOutcome sums up what became of the jobs of site i, and what it ran.
func (s *Study) siteOutcome(o *outcome, i int, ran []metrics.Record) SiteOutcome {
	own := s.recordsOf(o, i)
	x := SiteOutcome{Site: string(s.sites[i].ID), Utilisation: s.utilisation(i, ran)}
	x.Figures, x.Classes = FiguresOf(own)
	for k := range own {
		if r := &own[k]; r.Site != r.Origin {
			x.Elsewhere += 1 / float64(len(own))
			x.WorkElsewhere += r.Work() / time.Hour.Seconds()
		}
	}
	for k := range ran {
		if r := &ran[k]; r.Site != r.Origin {
			x.Guests++
			x.WorkForOthers += r.Work() / time.Hour.Seconds()
		}
	}
	return x
}

// utilisation is that of site i until the last submission anywhere: what comes
// later is the sites running dry.
func (s *Study) utilisation(i int, ran []metrics.Record) float64 {
	until := s.lastSubmission()
	busy := 0.0
	for k := range ran {
		r := &ran[k]
		if r.Start < until {
			busy += float64(r.Procs) * min(r.End, until).Sub(r.Start).Seconds()
		}
	}
	first := s.jobs[0].Jobs[0].Submit
	for _, w := range s.jobs {
		first = min(first, w.Jobs[0].Submit)
	}
	if span := until.Sub(first).Seconds(); span > 0 {
		return busy / (span * float64(s.sites[i].Processors))
	}
	return 0
}

func (s *Study) lastSubmission() job.Time {
	last := job.Time(0)
	for _, w := range s.jobs {
		last = max(last, w.Jobs[len(w.Jobs)-1].Submit)
	}
	return last
}
