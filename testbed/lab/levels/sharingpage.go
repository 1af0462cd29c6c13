package levels

import (
	"fmt"

	"kith/testbed/lab"
	"kith/testbed/report"
)

type sharingQuestion = lab.Question[sharing, *sharers]

func sharedShort(o *shared) float64  { return o.short.time }
func sharedNarrow(o *shared) float64 { return o.narrow.time }
func sharedAll(o *shared) float64    { return o.all.time }
func moved(o *shared) float64        { return o.moved }
func messages(o *shared) float64     { return o.messages }

// sharingRatio is [ratio] between two ways.
func sharingRatio(id, text string, of func(*shared) float64, x, over sharing, least, most float64, band, why string) sharingQuestion {
	return sharingQuestion{
		ID: id, Kind: lab.Direction, Text: text, Source: "no paper says", Band: band, Needs: []sharing{x, over},
		Judge: func(a *sharers) lab.Finding {
			return lab.Conclude(lab.Shown(string(x), a.Of(x, of), ""), lab.Shown(string(over), a.Of(over, of), ""),
				lab.Within("the first ÷ the second", a.Ratio(x, over, of), least, most)).Noted("", why)
		},
	}
}

func movedQuestion(id, text string, x sharing, least, most float64, band string) sharingQuestion {
	return sharingQuestion{
		ID: id, Kind: lab.Direction, Text: text, Source: "no paper says", Band: band, Needs: []sharing{x},
		Judge: func(a *sharers) lab.Finding {
			return lab.Conclude(lab.Within("moves of a hundred jobs", a.Of(x, moved), least, most)).Noted("", whyMinute)
		},
	}
}

// What we think where a band is not met.
const (
	whyRefused = "We think that little is left to be moved: a level that is full refuses a job when it comes, which then goes to the other site."
	whyCopies  = "Each copy counts in Q of its site as if it were to run there: levels are full sooner, and more jobs go down a level from their queue (see the table)."
	whyMinute  = "We think that there is more to move than we thought as loads are up to a minute old: all that comes within one goes to one site. Where little waits, as on CTC, moves bring nothing to jobs of which nobody knows how long they run."
)

func sharingQuestions() []sharingQuestion {
	return []sharingQuestion{
		sharingRatio("U1", "Where jobs queue at home, and one home has twice the jobs, short ones that fit level 1 end sooner if they are pushed.", sharedNarrow, homePushed, home, 0, 0.9, "mean time: at most 0.9", whyRefused),
		sharingRatio("U2", "Copies share at least as well there.", sharedNarrow, homeCopies, homePushed, 0, 1, "mean time: at most 1", whyCopies),
		sharingRatio("U3", "Where placement goes by loads there is little left for the push to do.", sharedAll, pushed, single, 0.9, 1.02, "mean time of all jobs: 0.9 to 1.02", whyMinute),
		movedQuestion("U4", "So few jobs move there.", pushed, 0, 5, "at most 5 of a hundred jobs"),
		sharingRatio("U5", "Copies by load are no worse than one copy that is pushed.", sharedAll, copies, pushed, 0, 1, "mean time of all jobs: at most 1", whyCopies),
		sharingRatio("U6", "The push costs fewer messages than copies do.", messages, pushed, copies, 0, 1, "messages but loads: at most 1", ""),
	}
}

// Workload says what was run.
func (a *sharers) Workload() string {
	return (&answers{env: a.env}).described(fmt.Sprintf("two sites of each size; two of three jobs are submitted at the first of the smallest, the others at the second one; K is %d where there are copies", twice))
}

// Remark says how things were read.
func (a *sharers) Remark(r *lab.Report) {
	r.Remark("The sites, limits and jobs are those of the experiment levels, all of unknown length, but that each level has two sites, and twice the jobs come in a time. Bands are our own, drawn before the first run. By load: placed at the least loaded sites of the level, as told every minute. At home: at level 1 a job goes to the site where it was submitted, one of which has twice the jobs of the other, as each queue of the source has users of its own; at the other levels, where nobody submits, placement goes by loads. Pushed: `level.share = \"push\"` with a period of a minute. Work is not conserved (`placement.conserve`), which would move jobs to idle sites in all trials.")
	r.Remark("Narrow are short jobs that a site of level 1 could run. A move is one of a job that waits, from a site of its level to another one; messages are all of a job but loads.")
}

// Tables has a row for each way.
func (a *sharers) Tables() []report.Table {
	t := report.Table{
		Name: "sharing", Title: "Copies, moves and neither inside a level", Caption: "Means over the seeds; times in s.",
		Columns: []report.Column{{Title: "trial"}},
	}
	figures := []struct {
		title string
		of    func(*shared) float64
	}{
		{"narrow: time", sharedNarrow}, {"wait", func(o *shared) float64 { return o.narrow.wait }}, {"slowdown", func(o *shared) float64 { return o.narrow.slowdown }},
		{"short: time", sharedShort}, {"long: time", func(o *shared) float64 { return o.long.time }},
		{"all: time", sharedAll}, {"wait", func(o *shared) float64 { return o.all.wait }}, {"slowdown", func(o *shared) float64 { return o.all.slowdown }},
		{"moves of 100 jobs", moved}, {"went down unrun, of 100", func(o *shared) float64 { return o.lowered }}, {"messages of a job", messages},
	}
	for _, f := range figures {
		t.Columns = append(t.Columns, report.Column{Title: f.title, Right: true})
	}
	for _, x := range allSharing() {
		if !a.Has(x) {
			continue
		}
		cells := []string{string(x)}
		for _, f := range figures {
			cells = append(cells, report.Number(a.Of(x, f.of).Mean()))
		}
		t.Add(cells...)
	}
	return lab.WithRows(t)
}

// Plots has none: the table has all there is.
func (a *sharers) Plots() []report.Plot { return nil }
