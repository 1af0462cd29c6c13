package join

import (
	"fmt"

	"kith/sitesched"
	"kith/sitesched/harm"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Harm is what guests cost the users of one site, and what these guests got.
type Harm struct {
	Site string `json:"site"`
	HarmFigures
	// Classes are those of each kind of job.
	Classes [metrics.Classes]HarmFigures `json:"classes"`
	// Promises says that the site promises its own jobs anything: with one queue for all it does not.
	Promises bool `json:"promises"`
	// Guests are the jobs of others that ran there.
	Guests              int     `json:"guests"`
	GuestProcessorHours float64 `json:"guest_processor_hours"`
	GuestWait           float64 `json:"guest_mean_wait_seconds"`
}

// HarmFigures are those of some jobs. Times are in seconds; delays are against a schedule of the
// site's own jobs alone, and below zero where jobs started sooner.
type HarmFigures struct {
	Jobs int `json:"jobs"`
	// Compared are those that started in the schedule without guests, too: all that fit there.
	Compared int `json:"compared_jobs"`
	// Wait is the mean of what users had, Alone that in the schedule without guests and other sites.
	Wait     float64 `json:"mean_wait_seconds"`
	Alone    float64 `json:"mean_wait_alone_seconds"`
	Delay    float64 `json:"mean_delay_seconds"`
	DelayP95 float64 `json:"delay_p95_seconds"`
	// Later counts jobs that started later by more than 1, 10 and 60 minutes.
	Later1m  int `json:"later_1m_jobs"`
	Later10m int `json:"later_10m_jobs"`
	Later1h  int `json:"later_1h_jobs"`
	// Delays and Gains are the sums of what jobs lost and won.
	Delays float64 `json:"delays_seconds"`
	Gains  float64 `json:"gains_seconds"`
	// Blocked counts jobs that guests alone kept waiting at some time in the queue of their own
	// site, and for more than 10 and 60 minutes.
	Blocked        int     `json:"blocked_jobs"`
	Blocked10m     int     `json:"blocked_10m_jobs"`
	Blocked1h      int     `json:"blocked_1h_jobs"`
	BlockedSeconds float64 `json:"blocked_seconds"`
	WorstBlocked   float64 `json:"worst_blocked_seconds"`
	// PromisesMoved are guaranteed starts that guests moved back.
	PromisesMoved uint64 `json:"promises_moved"`
}

// HarmOf says what guests cost a site. The classes of both packages are the same.
func HarmOf(q *metrics.HarmQuestion, records []metrics.Record) (Harm, error) {
	r, err := q.Compare(records)
	if err != nil {
		return Harm{}, err
	}
	h := Harm{
		Site: string(q.Site), HarmFigures: harmFigures(&r.All), Promises: q.Config.Queues != sitesched.Single,
		Guests: r.Guests, GuestProcessorHours: r.GuestWork / hour, GuestWait: r.GuestWait,
	}
	for c := range h.Classes {
		h.Classes[c] = harmFigures(&r.Classes[c])
	}
	return h, nil
}

func harmFigures(f *harm.Figures) HarmFigures {
	return HarmFigures{
		Jobs: f.Jobs, Compared: f.Compared, Wait: f.Wait, Alone: f.Alone, Delay: f.Mean, DelayP95: f.P95, Later1m: f.Later[0], Later10m: f.Later[1], Later1h: f.Later[2],
		Delays: f.Delays, Gains: f.Gains, Blocked: f.Blocked, Blocked10m: f.Blocked10m, Blocked1h: f.Blocked1h, BlockedSeconds: f.BlockedSeconds,
		WorstBlocked: f.Worst, PromisesMoved: f.Moved,
	}
}

// Rows are the lines of a table of harm: each site, and below it the kinds of jobs that it has.
func (h *Harm) Rows(add func(name string, class bool, f *HarmFigures)) {
	add(h.Site, false, &h.HarmFigures)
	for c := range h.Classes {
		if f := &h.Classes[c]; f.Jobs > 0 {
			add(metrics.Class(c).String(), true, f)
		}
	}
}

// Part writes a part of some jobs in percent.
func Part(n, jobs int) string {
	switch {
	case jobs == 0:
		return "-"
	case n == 0:
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(jobs))
}

// Price says how much is lost for each hour that is gained, "-" if none is.
func (f *HarmFigures) Price() string {
	if f.Gains == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", f.Delays/f.Gains)
}

// Shift writes a delay with its sign.
func Shift(seconds float64) string {
	switch {
	case seconds <= -0.5:
		return "−" + report.Span(-seconds)
	case seconds >= 0.5:
		return "+" + report.Span(seconds)
	}
	return "0 s"
}

// sentence says in words what guests cost the users of a site.
func (h *Harm) sentence() string {
	blocked := fmt.Sprintf("%s: guests alone kept %s of its own jobs waiting at some time, %s for more than 10 min, and %s at most.",
		h.Site, Part(h.Blocked, h.Jobs), Part(h.Blocked10m, h.Jobs), report.Span(h.WorstBlocked))
	if h.Blocked == 0 {
		blocked = fmt.Sprintf("%s: guests alone kept none of its own jobs waiting.", h.Site)
	}
	return blocked + fmt.Sprintf(" Against a schedule without guests and other sites %s of them started more than 10 min later; in all they lost %s h and gained %s h.",
		Part(h.Later10m, h.Compared), report.Whole(h.Delays/hour), report.Whole(h.Gains/hour))
}

// Harms are those of all sites under a plan.
func (o *Outcome) Harms() []Harm {
	var list []Harm
	for i := range o.Sites {
		if h := o.Sites[i].Harm; h != nil {
			list = append(list, *h)
		}
	}
	return list
}

// HarmInAll says in a sentence what guests cost the users of all sites.
func HarmInAll(list []Harm) string {
	var sum HarmFigures
	for i := range list {
		f := &list[i].HarmFigures
		sum.Jobs, sum.Blocked, sum.Blocked10m = sum.Jobs+f.Jobs, sum.Blocked+f.Blocked, sum.Blocked10m+f.Blocked10m
		sum.Compared, sum.Later10m = sum.Compared+f.Compared, sum.Later10m+f.Later10m
		sum.Delays, sum.Gains, sum.PromisesMoved = sum.Delays+f.Delays, sum.Gains+f.Gains, sum.PromisesMoved+f.PromisesMoved
	}
	line := fmt.Sprintf("What guests cost: %s of the jobs waited in the queue of their own site for guests alone, %s for more than 10 min; %s started more than 10 min later than with no guests and no other sites.",
		Part(sum.Blocked, sum.Jobs), Part(sum.Blocked10m, sum.Jobs), Part(sum.Later10m, sum.Compared))
	if sum.Gains > 0 {
		line += fmt.Sprintf(" Users lose %s h of waiting for each hour that they gain.", sum.Price())
	}
	if sum.PromisesMoved > 0 {
		line += " " + promisesSentence(list)
	}
	return line
}

// promisesSentence is about guarantees of all sites.
func promisesSentence(list []Harm) string {
	moved, promise := uint64(0), false
	for i := range list {
		moved, promise = moved+list[i].PromisesMoved, promise || list[i].Promises
	}
	switch {
	case moved > 0:
		return fmt.Sprintf("Guests moved back %d promises: that must not be, and is a fault of the scheduler. Please report it.", moved)
	case !promise:
		return "Guests and home jobs have one queue, in which nothing is promised to anybody."
	}
	return "Guests moved back no promise. That is not the same as no harm: a guest that starts while nobody waits moves no promise, and who comes a minute later waits for it."
}

// HarmSection is the part of a page that says what guests cost. title names a plan, or is "".
func HarmSection(list []Harm, plan string) report.Section {
	s := report.Section{Name: "harm", Title: "What guests cost", Texts: []string{
		"Blocked is for how long guests, and nothing else, kept a job waiting in the queue of its own site: the same pass without them would have started it. " +
			"Delays compare each start, wherever it was, with that in a schedule of the site's own jobs alone, with the run times that they had. " +
			"Single jobs move both ways whatever guests do, for these change who may overtake whom; the sums tell.",
		promisesSentence(list),
	}}
	for i := range list {
		if len(list) <= mostSentences {
			s.Texts = append(s.Texts, list[i].sentence())
		}
	}
	delays := report.Table{
		Name: "delays", Title: "Starts against a schedule without guests and other sites" + plan,
		Caption: "Lost and gained are sums over all jobs, in hours of waiting. Below zero jobs started sooner.",
		Columns: report.Columns([]string{"Users of", "Kind"}, "Jobs", "Mean wait, alone → with guests", "Mean delay", "95% delayed by at most", "Later by > 1 min", "> 10 min", "> 1 h", "Lost (h)", "Gained (h)", "Lost ÷ gained"),
	}
	blocked := report.Table{
		Name: "blocked", Title: "Kept waiting by guests alone" + plan,
		Caption: "Only in the queue of the site at which the job was submitted. Promises are starts that the site guaranteed, and that guests moved back.",
		Columns: report.Columns([]string{"Users of", "Kind"}, "Jobs", "Blocked", "> 10 min", "> 1 h", "All together (h)", "Longest", "Promises moved"),
	}
	guests := report.Table{
		Name: "guests", Title: "What guests got" + plan, Columns: report.Columns([]string{"Site"}, "Jobs of others", "Processor-hours", "Their mean wait"),
	}
	for i := range list {
		h := &list[i]
		h.Rows(func(name string, class bool, f *HarmFigures) {
			site, kind := h.Site, "all"
			if class {
				site, kind = "", name
			}
			delays.AddCells(append(report.Cells(site, kind, fmt.Sprint(f.Jobs), report.Arrow(report.Span(f.Alone), report.Span(f.Wait))),
				report.Cell{Text: Shift(f.Delay), Tone: delayTone(f.Delay)},
				report.Cell{Text: Shift(f.DelayP95)}, report.Cell{Text: Part(f.Later1m, f.Compared)}, report.Cell{Text: Part(f.Later10m, f.Compared)}, report.Cell{Text: Part(f.Later1h, f.Compared)},
				report.Cell{Text: report.Whole(f.Delays / hour)}, report.Cell{Text: report.Whole(f.Gains / hour)}, report.Cell{Text: f.Price()})...)
			blocked.AddCells(append(report.Cells(site, kind, fmt.Sprint(f.Jobs), Part(f.Blocked, f.Jobs), Part(f.Blocked10m, f.Jobs), Part(f.Blocked1h, f.Jobs),
				report.Whole(f.BlockedSeconds/hour), report.Span(f.WorstBlocked)), h.movedCell(f))...)
		})
		guests.Add(h.Site, fmt.Sprint(h.Guests), report.Whole(h.GuestProcessorHours), report.Span(h.GuestWait))
	}
	s.Tables = []report.Table{delays, blocked, guests}
	s.Plots = []report.Plot{harmPlot(list)}
	return s
}

// mostSentences is for how many sites there are words beside the tables.
const mostSentences = 6

// littleDelay is a mean delay that is none, in seconds.
const littleDelay = 1

func delayTone(seconds float64) report.Tone {
	switch {
	case seconds > littleDelay:
		return report.Bad
	case seconds < -littleDelay:
		return report.Good
	}
	return report.Plain
}

// movedCell is the number of promises moved, if any are made.
func (h *Harm) movedCell(f *HarmFigures) report.Cell {
	switch {
	case !h.Promises:
		return report.Cell{Text: "none made", Tone: report.Muted}
	case f.PromisesMoved > 0:
		return report.Cell{Text: fmt.Sprint(f.PromisesMoved), Tone: report.Bad}
	}
	return report.Cell{Text: "0"}
}

// harmPlot shows how many jobs start later than alone, by site.
func harmPlot(list []Harm) report.Plot {
	b := &report.Bars{Series: []report.BarSeries{{Name: "more than 1 min"}, {Name: "more than 10 min"}, {Name: "more than 1 h"}}}
	for i := range list[:min(len(list), mostPlotted)] {
		f := &list[i].HarmFigures
		b.Groups = append(b.Groups, list[i].Site)
		for k, n := range []int{f.Later1m, f.Later10m, f.Later1h} {
			b.Series[k].Values = append(b.Series[k].Values, 100*float64(n)/float64(max(f.Compared, 1)))
		}
	}
	return report.Plot{
		Name: "later", Title: "Jobs that started later than alone", Caption: "Against a schedule of each site's own jobs, without guests and other sites.",
		Y: report.Axis{Label: "share of its jobs (%)", Zero: true}, Bars: b,
	}
}
