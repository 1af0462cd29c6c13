package kdistributed

import (
	"fmt"
	"math"
	"slices"

	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// perfectSchemes are the trials of the source's Figure 12.
func perfectSchemes() []trial {
	var list []trial
	for _, t := range []trial{ind, uni, cen, hier, dist, kd4, dual} {
		list = append(list, t.in(perfectMix))
	}
	return list
}

// Plots are the figures of the source, those whose trials were run.
func (a *answers) Plots() []report.Plot {
	user, perfect, equal := sweep(sharedMix, meta.RankWork), sweep(perfectMix, meta.RankWork), sweep(equalMix, meta.RankWork)
	all := perfectSchemes()
	return lab.Draw(a.Outcomes, []lab.Figure[trial]{
		{Needs: []trial{ind}, Draw: a.plotDay},
		{Needs: []trial{ind, uni, cen, hier, dist, kd4, dual}, Draw: func() report.Plot {
			return a.plotSchemes("001-schemes", "All schemes, K = 4", "Figures 6, 8 and 9 of the source. Whiskers span the streams.",
				[]trial{uni, cen, hier, dist, kd4, dual}, ind, meanTurnaround)
		}},
		{Needs: append(slices.Clone(byClass), ind), Draw: a.plotClasses},
		{Needs: []trial{ind, dist, kd4, dual}, Draw: a.plotSides},
		{Needs: slices.Concat(user, perfect, equal), Draw: func() report.Plot { return a.plotSweep(user, perfect, equal) }},
		{Needs: all, Draw: func() report.Plot {
			return a.plotSchemes("001-perfect", "All schemes with perfect estimates, K = 4", "Figure 12 of the source: every estimate is the run time.", all[1:], all[0], meanTurnaround)
		}},
		{Needs: staleTrials(), Draw: a.plotAges},
		{Needs: []trial{ind, uni, cen.moving(), hier.moving(), dist.moving(), kd4.moving(), dual.moving()}, Draw: func() report.Plot {
			return a.plotSchemes("001-transfers", "With transfers of 100 MB to 1 GB at 10 Mbit/s, K = 4", "Figure 15 of the source. A job that runs away from its origin holds its processors while its data arrive; Unified moves nothing.",
				[]trial{uni, cen.moving(), hier.moving(), dist.moving(), kd4.moving(), dual.moving()}, ind, nil)
		}},
		{Needs: messageTrials(), Draw: a.plotMessages},
	})
}

// plotDay is the source's Figure 5.
func (a *answers) plotDay() report.Plot {
	p := report.Plot{
		Name: "001-day", Title: "Requested processors over the day",
		Caption: "Figure 5 of the source: processors that waiting and running jobs of one light site ask for, by the hour of its day, means over all days.",
		X:       report.Axis{Label: "hour of the day", From: 0, To: 23, Ticks: hourTicks()},
		Y:       report.Axis{Label: "processors requested", Zero: true},
		Rules:   []report.Rule{{At: float64(a.env.ProcessorsOr(paperProcessors)), Label: "processors of the site"}},
	}
	for i, o := range a.Outcomes[ind][:min(len(a.streams), report.MaxSeries)] {
		s := report.Series{Name: a.streams[i].name, Style: report.Line}
		for h, v := range o.demand {
			s.X, s.Y = append(s.X, float64(h)), append(s.Y, v)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func hourTicks() []report.Tick {
	var ticks []report.Tick
	for h := 0; h < 24; h += 3 {
		ticks = append(ticks, report.Tick{At: float64(h), Label: fmt.Sprint(h)})
	}
	return append(ticks, report.Tick{At: 23, Label: "23"})
}

// plotSchemes compares trials with a baseline by slowdown and, if another
// figure is given, by turnaround.
func (a *answers) plotSchemes(name, title, caption string, trials []trial, base trial, turnaround func(*outcome) float64) report.Plot {
	p := report.Plot{
		Name: name, Title: title, Caption: caption,
		Y:     report.Axis{Label: "mean ÷ that of Independent"},
		Rules: []report.Rule{{At: 1, Label: "Independent"}},
		Bars:  &report.Bars{},
	}
	slow, turn := report.BarSeries{Name: "slowdown"}, report.BarSeries{Name: "turnaround"}
	for _, t := range trials {
		p.Bars.Groups = append(p.Bars.Groups, string(t.scheme))
		lab.AddBar(&slow, a.Ratio(t, base, meanSlowdown))
		if turnaround != nil {
			lab.AddBar(&turn, a.Ratio(t, base, turnaround))
		}
	}
	p.Bars.Series = []report.BarSeries{slow}
	if turnaround != nil {
		p.Bars.Series = append(p.Bars.Series, turn)
	}
	return p
}

// plotClasses shows the four categories of jobs.
func (a *answers) plotClasses() report.Plot {
	p := report.Plot{
		Name: "001-classes", Title: "Slowdown by class of job, K = 4",
		Caption: "Short means under 900 s, narrow under 8 processors. Unified helps wide jobs, Distributed hurts short and narrow ones.",
		Y:       report.Axis{Label: "mean slowdown", Log: true},
		Bars:    &report.Bars{},
	}
	for c := range metrics.Class(metrics.Classes) {
		p.Bars.Groups = append(p.Bars.Groups, c.String())
	}
	for _, t := range append([]trial{ind}, byClass...) {
		s := report.BarSeries{Name: string(t.scheme)}
		for c := range metrics.Class(metrics.Classes) {
			s.Values = append(s.Values, a.Of(t, classSlowdown(c)).Mean())
		}
		p.Bars.Series = append(p.Bars.Series, s)
	}
	return p
}

// plotSides is the source's Figure 10.
func (a *answers) plotSides() report.Plot {
	p := report.Plot{
		Name: "001-sides", Title: "Jobs of light and of heavy sites, K = 4",
		Caption: "Figure 10 of the source: mean slowdown of the jobs submitted at the two light sites and at the two heavy ones, wherever they ran.",
		Y:       report.Axis{Label: "mean slowdown", Log: true},
		Bars:    &report.Bars{Series: []report.BarSeries{{Name: "submitted at a light site"}, {Name: "submitted at a heavy site"}}},
	}
	for _, t := range []trial{ind, dist, kd4, dual} {
		p.Bars.Groups = append(p.Bars.Groups, string(t.scheme))
		lab.AddBar(&p.Bars.Series[0], a.Of(t, lightSlowdown))
		lab.AddBar(&p.Bars.Series[1], a.Of(t, heavySlowdown))
	}
	return p
}

// plotSweep is the source's Figures 11, 13 and 14.
func (a *answers) plotSweep(user, perfect, equal []trial) report.Plot {
	p := report.Plot{
		Name: "001-copies", Title: "What each further copy gains",
		Caption: "Figures 11, 13 and 14 of the source: K-Distributed against itself with one copy. With jobs of equal width there is nothing to backfill.",
		X:       report.Axis{Label: "copies per job, K", From: 1, To: 4, Ticks: lab.CountTicks(4)},
		Y:       report.Axis{Label: "mean slowdown ÷ that with K = 1", Zero: true},
		Rules:   []report.Rule{{At: 0.65, Label: "source, perfect: K = 2 below 0.65"}, {At: 0.45, Label: "K = 3 below 0.45"}},
	}
	for _, line := range []struct {
		name   string
		trials []trial
	}{{"users' estimates", user}, {"perfect estimates", perfect}, {"equal width, perfect estimates", equal}} {
		s := report.Series{Name: line.name, Style: report.Line}
		for i, v := range a.sweepRatios(line.trials) {
			lab.AddPoint(&s, float64(i+1), v)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// plotAges shows what stale loads cost.
func (a *answers) plotAges() report.Plot {
	p := report.Plot{
		Name: "001-ages", Title: "Placing by loads that are out of date",
		Caption: "All sites take down their loads at the same instants, once in each period; a site always knows its own. Centralized and Hierarchical ask at each decision.",
		X:       report.Axis{Label: "period of load reports (h)", From: 0, To: 6},
		Y:       report.Axis{Label: "mean slowdown ÷ Independent", Zero: true},
		Rules: []report.Rule{
			{At: 1, Label: "Independent"},
			{At: a.Ratio(cen, ind, meanSlowdown).Mean(), Label: "Centralized"},
		},
	}
	for _, t := range []trial{dist, kd4} {
		s := report.Series{Name: string(t.scheme), Style: report.Line}
		if t.k > 0 {
			s.Name += fmt.Sprintf(", K = %d", t.k)
		}
		for _, d := range periods {
			v := a.Ratio(t.aged(d), ind, meanSlowdown)
			lab.AddPoint(&s, d.Hours(), v)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// plotMessages shows what crosses between sites.
func (a *answers) plotMessages() report.Plot {
	p := report.Plot{
		Name: "001-messages", Title: "Messages of claims and withdrawals",
		Caption: "A job costs exactly K messages by the source's count; those with its own origin never leave the site.",
		X:       report.Axis{Label: "copies per job, K"},
		Y:       report.Axis{Label: "messages per job"},
		Bars:    &report.Bars{Series: []report.BarSeries{{Name: "by the source's count"}, {Name: "on the wire, K-Distributed"}, {Name: "on the wire, K-Dual"}}},
	}
	per := func(n func(*outcome) int64) func(*outcome) float64 {
		return func(o *outcome) float64 { return float64(n(o)) / float64(o.jobs) }
	}
	logical, wire := per(func(o *outcome) int64 { return o.logical }), per(func(o *outcome) int64 { return o.wire })
	for k := range int32(4) {
		p.Bars.Groups = append(p.Bars.Groups, fmt.Sprintf("K = %d", k+1))
		p.Bars.Series[0].Values = append(p.Bars.Series[0].Values, a.Of(at(kDist, k+1), logical).Mean())
		p.Bars.Series[1].Values = append(p.Bars.Series[1].Values, a.Of(at(kDist, k+1), wire).Mean())
		p.Bars.Series[2].Values = append(p.Bars.Series[2].Values, a.Of(at(kDual, k+1), wire).Mean())
	}
	return p
}

// Tables has the schemes with all their figures.
func (a *answers) Tables() []report.Table {
	rows := []trial{ind, uni, cen, hier, dist, at(kDist, 2), at(kDist, 3), kd4, at(kDual, 2), at(kDual, 3), dual, dualHead}
	t := report.Table{
		Name: "001-figures", Title: "All schemes in figures",
		Caption: "Means over the streams. Bounded slowdown has a floor of 10 s; trimmed means without the first and last 5 % of the jobs; remote is the share of jobs that ran away from their origin.",
	}
	for i, title := range []string{
		"scheme", "slowdown", "median", "p95", "bounded", "trimmed", "turnaround (s)", "p95 (s)", "utilisation (%)",
		"light", "heavy", "short-narrow", "short-wide", "long-narrow", "long-wide", "remote (%)",
	} {
		t.Columns = append(t.Columns, report.Column{Title: title, Right: i > 0})
	}
	figures := []func(*outcome) float64{
		meanSlowdown, func(o *outcome) float64 { return o.slowdown.P50 }, func(o *outcome) float64 { return o.slowdown.P95 },
		func(o *outcome) float64 { return o.bounded.Mean }, func(o *outcome) float64 { return o.trimmed },
		meanTurnaround, func(o *outcome) float64 { return o.turnaround.P95 }, func(o *outcome) float64 { return 100 * o.utilisation },
		lightSlowdown, heavySlowdown,
		classSlowdown(metrics.ShortNarrow), classSlowdown(metrics.ShortWide), classSlowdown(metrics.LongNarrow), classSlowdown(metrics.LongWide),
		func(o *outcome) float64 { return 100 * o.remote },
	}
	for _, r := range rows {
		if !a.Has(r) {
			continue
		}
		name := string(r.scheme)
		if r.k > 0 {
			name += fmt.Sprintf("(%d)", r.k)
		}
		if r.scopeHead {
			name += ", scope head"
		}
		cells := []string{name}
		for i, f := range figures {
			v := a.Of(r, f).Mean()
			if r.scheme == unified && i == len(figures)-1 {
				v = math.NaN() // nothing is remote at one site
			}
			cells = append(cells, report.Number(v))
		}
		t.Add(cells...)
	}
	return lab.WithRows(t)
}
