package whatif

import (
	"fmt"
	"math"
	"strings"
	"time"

	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// say writes the answer: what it does to the site's own users, to guests, to kinds of jobs,
// and what the answer does not cover.
func (a *Answer) say() {
	own := &a.Groups[0]
	if own.Then.Jobs == 0 {
		own = &a.All
	}
	if a.Effect = own.Then.Effect; own.TooWide.Jobs > 0 {
		a.Effect = join.Loses // what cannot run at all is worse than what waits
	}
	lines := []string{a.headline(own)}
	for i := range a.Groups {
		if g := &a.Groups[i]; g != own && g.Then.Jobs > 0 && len(lines) < 6 {
			lines = append(lines, fmt.Sprintf("%s: %s.", g.who(), g.sentence()))
		}
	}
	lines = append(lines, a.kinds(own))
	if u := own.Users; u.Win+u.Lose+u.Even > 1 {
		lines = append(lines, fmt.Sprintf("Of its %d users %d win, %d lose and %d are as well off.", u.Win+u.Lose+u.Even, u.Win, u.Lose, u.Even))
	}
	if list := a.Harms(); list != nil {
		lines = append(lines, a.harmWords())
	}
	lines = append(lines, a.uncovered()...)
	if n := own.Then.Jobs; n < fewJobs {
		lines = append(lines, fmt.Sprintf("That is of %s, in which chance decides: it says little.", report.Count(n, "job", "jobs")))
	}
	a.Sentences = append(lines, a.trust())
}

var effectWords = map[join.Effect]string{join.Wins: "Better", join.Loses: "Worse", join.Even: "As good"}

// headline says what becomes of the site's own users.
func (a *Answer) headline(g *Group) string {
	who := effectWords[a.Effect] + " for " + g.whose(a.Site)
	if n := g.TooWide.Jobs; n > 0 {
		return fmt.Sprintf("%s: %s, %d of its %d jobs could not run at all; the others do not wait for those, and their %s.", who, a.Changes, n, n+g.Then.Jobs, g.sentence())
	}
	return fmt.Sprintf("%s: %s, %s.", who, a.Changes, g.sentence())
}

// whose names the users of a group.
func (g *Group) whose(site string) string {
	switch {
	case g.Name == site:
		return "the users of " + site
	case g.Name == "all":
		return "the guests of " + site
	}
	return g.who()
}

// who names the users of another site.
func (g *Group) who() string {
	if g.Name == "" {
		return "Guests from other sites"
	}
	return "Guests from " + g.Name
}

func (g *Group) sentence() string {
	return fmt.Sprintf("jobs are done %s (mean turnaround %s instead of %s, mean wait %s instead of %s)",
		sooner(g.Then.Change), report.Span(g.Then.Turnaround), report.Span(g.Was.Turnaround), report.Span(g.Then.Wait), report.Span(g.Was.Wait))
}

// sooner writes a change of the mean turnaround.
func sooner(change float64) string {
	switch {
	case change <= -0.05:
		return report.Number(-change) + "% sooner"
	case change >= 0.05:
		return report.Number(change) + "% later"
	}
	return "as late as now"
}

// fewJobs is how many jobs a kind must have for a word about it.
const fewJobs = 30

// kinds names the kinds of jobs that win and lose most.
func (a *Answer) kinds(g *Group) string {
	best, worst := -join.EvenWithin, join.EvenWithin
	winner, loser := metrics.Class(metrics.Classes), metrics.Class(metrics.Classes)
	for c := range g.ThenKinds {
		f := &g.ThenKinds[c]
		if f.Jobs < fewJobs {
			continue
		}
		if f.Change < best {
			best, winner = f.Change, metrics.Class(c)
		}
		if f.Change > worst {
			worst, loser = f.Change, metrics.Class(c)
		}
	}
	var parts []string
	if winner < metrics.Classes {
		parts = append(parts, fmt.Sprintf("%s jobs win most (done %s)", winner, sooner(best)))
	}
	if loser < metrics.Classes {
		parts = append(parts, fmt.Sprintf("%s jobs lose most (done %s)", loser, sooner(worst)))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("No kind of its jobs, short or long, narrow or wide, is done sooner or later, as far as there are %d jobs of it to tell.", fewJobs)
	}
	return "Of its jobs " + strings.Join(parts, ", ") + "."
}

// uncovered says which jobs are not compared, and where queues have no end.
func (a *Answer) uncovered() (lines []string) {
	if n := a.All.TooWide; n.Jobs > 0 {
		lines = append(lines, fmt.Sprintf("%s (%s processor-hours) %s more than %d processors and could not run here at all%s. The comparison is without them.",
			report.Count(n.Jobs, "job", "jobs"), report.Whole(n.ProcessorHours), needs(n.Jobs), a.Then.Processors, a.byGroup(func(g *Group) int { return g.TooWide.Jobs })))
	}
	if n := a.All.Gone; n.Jobs > 0 {
		lines = append(lines, fmt.Sprintf("%s (%s processor-hours) of guests would not come.", report.Count(n.Jobs, "job", "jobs"), report.Whole(n.ProcessorHours)))
	}
	if n := a.All.TooLong; n.Jobs > 0 {
		lines = append(lines, fmt.Sprintf("%s (%s processor-hours) of guests %s for more time and would be refused.", report.Count(n.Jobs, "job", "jobs"), report.Whole(n.ProcessorHours),
			map[bool]string{true: "asks", false: "ask"}[n.Jobs == 1]))
	}
	if n := a.All.Returned; n.Jobs > 0 {
		lines = append(lines, fmt.Sprintf("%s (%s processor-hours) of its users that ran at other sites would run here; they are compared with what was recorded, for a replay of the other site is not to be had.",
			report.Count(n.Jobs, "job", "jobs"), report.Whole(n.ProcessorHours)))
	}
	if x := a.Added; x != nil {
		lines = append(lines, fmt.Sprintf("%s added, %s of the work: jobs of the past once more, at the same time of another day. They wait %s in the mean, and are not among those that are compared.",
			report.Count(x.Jobs, "job was", "jobs were"), percentWords(x.Share), report.Span(x.Wait)))
	}
	for _, m := range []struct {
		Machine
		words string
	}{{a.Was, "As the site is"}, {a.Then, "As it would be"}} {
		if m.OfferedLoad > 1 && a.until.Sub(0) >= 24*time.Hour {
			lines = append(lines, fmt.Sprintf("%s, jobs ask for %.0f%% of what the processors can do: the queue grows without end, and how long jobs wait hangs on how many days are looked at.",
				m.words, 100*m.OfferedLoad))
		}
	}
	return lines
}

func needs(n int) string {
	if n == 1 {
		return "needs"
	}
	return "need"
}

// byGroup says how a number of jobs is made up, if there are several groups.
func (a *Answer) byGroup(jobs func(*Group) int) string {
	var parts []string
	for i := range a.Groups {
		if n := jobs(&a.Groups[i]); n > 0 {
			name := a.Groups[i].Name
			if name == "" {
				name = "other sites"
			}
			parts = append(parts, fmt.Sprintf("%d of %s", n, name))
		}
	}
	if len(a.Groups) < 2 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// trust says how near the replay of what was is to what was.
func (a *Answer) trust() string {
	recorded, was := a.All.Recorded.Wait, a.All.Was.Wait
	line := fmt.Sprintf("Recorded was a mean wait of %s; the replay of the same jobs at the site as it is now makes %s of it.", report.Span(recorded), report.Span(was))
	if far := math.Abs(was-recorded) > 60+0.25*recorded; far {
		line += " They are far apart: drains, restarts, another configuration or size at the time, claims and files are not in a replay. Believe the changes more than the times."
	}
	return line
}
