package join

import (
	"fmt"
	"strings"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// Advice is what to do.
type Advice string

// The advices.
const (
	// Yes: a site gains and none loses; with [Answer.Asks], that site gains.
	Yes Advice = "yes"
	// No: no site gains, or the site that asks does not.
	No Advice = "no"
	// Depends: some gain and some lose.
	Depends Advice = "depends"
)

// decide chooses the plan and says what it does.
func (a *Answer) decide() {
	for i := range a.Plans {
		if a.better(i, a.Best) {
			a.Best = i
		}
	}
	best := &a.Plans[a.Best]
	switch {
	case a.Asks != "" && a.asking(best).Effect != Wins, best.Winners == 0:
		a.Join = No
	case best.Losers > 0:
		a.Join = Depends
	default:
		a.Join = Yes
	}
	a.Sentences = a.say()
}

// asking returns the outcome of the site that asks.
func (a *Answer) asking(o *Outcome) *SiteOutcome {
	for i := range o.Sites {
		if o.Sites[i].Site == a.Asks {
			return &o.Sites[i]
		}
	}
	return nil
}

// better reports whether plan i is to be preferred to plan k, which costs no
// more. What counts first is how few sites lose, or the site that asks; then
// the mean turnaround, if it is better by more than one percent.
func (a *Answer) better(i, k int) bool {
	x, y := &a.Plans[i], &a.Plans[k]
	cost := func(o *Outcome) float64 { return o.All.Turnaround }
	if a.Asks != "" {
		cost = func(o *Outcome) float64 { return a.asking(o).Turnaround }
	} else if x.Losers != y.Losers {
		return x.Losers < y.Losers
	}
	return cost(x) < cost(y)*(1-EvenWithin/100)
}

// say writes the answer: what to do, what it does to which site, and what other K do.
func (a *Answer) say() []string {
	best := &a.Plans[a.Best]
	lines := []string{a.headline(best)}
	for i := range best.Sites {
		lines = append(lines, a.siteSentence(i, best))
	}
	if s := a.classSentence(best); s != "" {
		lines = append(lines, s)
	}
	if s := a.otherPlans(); s != "" {
		lines = append(lines, s)
	}
	lines = append(lines, HarmInAll(best.Harms()))
	if p := &a.study.cfg.Placement; p.maxLoadAge() > daemonLoadAge {
		lines = append(lines, fmt.Sprintf("Sites ranked each other by loads that were up to %s old, as load_age asks; daemons that are not told otherwise "+
			"put a site whose load is older than %s behind all others.", report.Span(p.maxLoadAge().Seconds()), report.Span(daemonLoadAge.Seconds())))
	}
	return lines
}

func (a *Answer) headline(best *Outcome) string {
	var winners, losers, even []string
	for i := range best.Sites {
		switch x := &best.Sites[i]; x.Effect {
		case Wins:
			winners = append(winners, x.Site)
		case Loses:
			losers = append(losers, x.Site)
		default:
			even = append(even, x.Site)
		}
	}
	how := "with " + best.Name
	if !placesCopies(best.Scheme) {
		how = "with scheme " + best.Name
	}
	overall := fmt.Sprintf("over all sites jobs are done %s, and the mean wait goes from %s to %s", sooner(best.All.Change), report.Span(a.Alone.All.Wait), report.Span(best.All.Wait))
	var who string
	switch {
	case len(losers) == 0 && len(even) == 0:
		who = "every site gains"
	case len(winners) == 0 && len(losers) == 0:
		who = "it changes nothing worth mentioning"
	default:
		var parts []string
		for _, p := range []struct {
			names []string
			one   string
			many  string
		}{{winners, "gains", "gain"}, {losers, "loses", "lose"}, {even, "is as well off as alone", "are as well off as alone"}} {
			if len(p.names) > 0 {
				verb := p.many
				if len(p.names) == 1 {
					verb = p.one
				}
				parts = append(parts, names(p.names)+" "+verb)
			}
		}
		who = strings.Join(parts, ", ")
	}
	start := map[Advice]string{Yes: "Yes, join", No: "No, there is nothing to gain", Depends: "It depends"}[a.Join]
	if a.Asks != "" {
		x := a.asking(best)
		switch {
		case x.Effect == Loses:
			start = fmt.Sprintf("No, %s would lose", a.Asks)
		case x.Effect == Even:
			start = fmt.Sprintf("No, %s would not gain", a.Asks)
		case best.Losers > 0:
			start = fmt.Sprintf("Good for %s, but not for all", a.Asks)
		default:
			start = fmt.Sprintf("Yes, %s should join", a.Asks)
		}
	}
	if a.Asks != "" {
		how += fmt.Sprintf(", jobs of %s are done %s", a.Asks, sooner(a.asking(best).Change))
	}
	return fmt.Sprintf("%s: %s, %s; %s.", start, how, who, overall)
}

func (a *Answer) siteSentence(i int, best *Outcome) string {
	x, alone := &best.Sites[i], &a.Alone.Sites[i]
	return fmt.Sprintf("%s: jobs are done %s (mean turnaround %s instead of %s, mean wait %s instead of %s). "+
		"Other sites spend %s processor-hours on its jobs, and it spends %s on theirs.",
		x.Site, sooner(x.Change), report.Span(x.Turnaround), report.Span(alone.Turnaround), report.Span(x.Wait), report.Span(alone.Wait), report.Whole(x.WorkElsewhere), report.Whole(x.WorkForOthers))
}

// fewJobs is how many jobs a class must have for a word about it.
const fewJobs = 30

// classSentence names the kind of jobs of a site that loses most.
func (a *Answer) classSentence(best *Outcome) string {
	worst, site, class := EvenWithin, "", metrics.Class(0)
	for i := range best.Sites {
		for c := range best.Sites[i].Classes {
			if f := &best.Sites[i].Classes[c]; f.Jobs >= fewJobs && f.Change > worst {
				worst, site, class = f.Change, best.Sites[i].Site, metrics.Class(c)
			}
		}
	}
	if site == "" {
		return fmt.Sprintf("At no site a kind of job, short or long, narrow or wide, is done later, as far as there are %d jobs of it to tell.", fewJobs)
	}
	return fmt.Sprintf("Who loses most are the %s jobs of %s: they are done %s.", class, site, sooner(worst))
}

// otherPlans says what each K does to all jobs.
func (a *Answer) otherPlans() string {
	if len(a.Plans) < 2 {
		return ""
	}
	var parts []string
	for i := range a.Plans {
		p := &a.Plans[i]
		part := fmt.Sprintf("K = %d: %s, %s messages a job", p.Copies, sooner(p.All.Change), report.Number(p.MessagesPerJob))
		if p.Losers > 0 {
			part += fmt.Sprintf(", %s", report.Count(p.Losers, "site loses", "sites lose"))
		}
		parts = append(parts, part)
	}
	return "All sites together, by the number of copies: " + strings.Join(parts, "; ") + "."
}

// sooner writes a change of the mean turnaround.
func sooner(change float64) string {
	switch {
	case change <= -0.05:
		return report.Number(-change) + "% sooner"
	case change >= 0.05:
		return report.Number(change) + "% later"
	}
	return "as late as alone"
}

// names lists names as in a sentence.
func names(list []string) string {
	const most = 6
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
