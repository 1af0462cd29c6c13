package main

import (
	"fmt"
	"strconv"

	"kith/internal/cli"
	"kith/testbed/join"
)

// mostKinds is for how many sites the kinds of jobs stand below each; the page and JSON have all.
const mostKinds = 6

// harmGrid says what guests cost the users of each site of a study.
func harmGrid(list []join.Harm) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "JOBS", Right: true}, {Title: "DELAY", Right: true}, {Title: "95% UP TO", Right: true}, {Title: "> 1 min", Right: true}, {Title: "> 10 min", Right: true},
		{Title: "> 1 h", Right: true}, {Title: "LOST", Right: true}, {Title: "GAINED", Right: true}, {Title: "BLOCKED", Right: true}, {Title: "> 10 min", Right: true},
		{Title: "LONGEST", Right: true}, {Title: "PROMISES MOVED", Right: true},
	}}
	for i := range list {
		h := &list[i]
		h.Rows(func(name string, class bool, f *join.HarmFigures) {
			if class {
				if len(list) > mostKinds {
					return
				}
				name = "  " + name
			}
			moved := "none made"
			if h.Promises {
				moved = strconv.FormatUint(f.PromisesMoved, 10)
			}
			g.Add(cli.Clean(name), strconv.Itoa(f.Jobs), shift(f.Delay), shift(f.DelayP95), join.Part(f.Later1m, f.Compared), join.Part(f.Later10m, f.Compared), join.Part(f.Later1h, f.Compared),
				cli.Seconds(f.Delays), cli.Seconds(f.Gains), join.Part(f.Blocked, f.Jobs), join.Part(f.Blocked10m, f.Jobs), cli.Seconds(f.WorstBlocked), moved)
		})
	}
	return g
}

// guestGrid says what guests got, by site.
func guestGrid(list []join.Harm) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{{Title: "SITE"}, {Title: "GUESTS", Right: true}, {Title: "PROCESSOR-HOURS", Right: true}, {Title: "THEIR WAIT", Right: true}}}
	for i := range list {
		h := &list[i]
		g.Add(cli.Clean(h.Site), strconv.Itoa(h.Guests), fmt.Sprintf("%.1f", h.GuestProcessorHours), cli.Seconds(h.GuestWait))
	}
	return g
}

// harmReport is both, with what the columns mean.
func harmReport(list []join.Harm, plan string, width int) string {
	return fmt.Sprintf("\nWhat guests cost%s: starts against a schedule of the site's own jobs alone, later by so much, lost and gained in all; and how many jobs waited for guests alone:\n\n%s",
		plan, harmGrid(list).Render(width)) + fmt.Sprintf("\nWhat guests got%s:\n\n%s", plan, guestGrid(list).Render(width))
}
