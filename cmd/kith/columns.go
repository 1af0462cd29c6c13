package main

import (
	"fmt"
	"slices"
	"strings"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// queueColumn is a column that "kith queue" can show.
type queueColumn struct {
	// word names the column for --format.
	word string
	cli.Column
	cell func(*client, *kithv1.Job) string
}

// queueColumns is all of them.
func queueColumns() []queueColumn {
	return []queueColumn{
		{"id", cli.Column{Title: "ID"}, func(_ *client, j *kithv1.Job) string { return j.GetId() }},
		{"name", cli.Column{Title: "NAME", Elastic: true}, func(_ *client, j *kithv1.Job) string { return j.GetName() }},
		{"user", cli.Column{Title: "USER", Elastic: true}, func(_ *client, j *kithv1.Job) string { return j.GetStatus().GetUser() }},
		{"state", cli.Column{Title: "STATE"}, func(_ *client, j *kithv1.Job) string { return stateWord(j.GetStatus().GetState()) }},
		{"submit", cli.Column{Title: "SUBMITTED"}, func(c *client, j *kithv1.Job) string { return c.at(j.GetStatus().GetSubmitTime()) }},
		{"estimate", cli.Column{Title: "EST. START"}, func(c *client, j *kithv1.Job) string { return c.at(j.GetStatus().GetEstimatedStartTime()) }},
		{"start", cli.Column{Title: "STARTED"}, func(c *client, j *kithv1.Job) string { return c.at(j.GetStatus().GetStartTime()) }},
		{"end", cli.Column{Title: "ENDED"}, func(c *client, j *kithv1.Job) string { return c.at(j.GetStatus().GetEndTime()) }},
		{"exit", cli.Column{Title: "EXIT", Right: true}, func(_ *client, j *kithv1.Job) string { return exitText(j.GetStatus()) }},
		{"time", cli.Column{Title: "TIME", Right: true}, func(c *client, j *kithv1.Job) string { return strings.TrimPrefix(c.runText(j), "at least ") }},
		{"limit", cli.Column{Title: "LIMIT", Right: true}, func(_ *client, j *kithv1.Job) string { return spanOf(j.GetWalltime()) }},
		{"cpus", cli.Column{Title: "CPUS", Right: true}, func(_ *client, j *kithv1.Job) string { return fmt.Sprint(j.GetProcessors()) }},
		{"site", cli.Column{Title: "SITE/REASON", Elastic: true}, (*client).whereText},
	}
}

// The columns without --format: of jobs that have not ended, with --start, and of all.
var (
	startColumns = []string{"id", "name", "user", "state", "estimate", "limit", "cpus", "site"}
	liveColumns  = []string{"id", "name", "user", "state", "time", "limit", "cpus", "site"}
	endedColumns = []string{"id", "name", "user", "state", "submit", "end", "exit", "time", "limit", "cpus", "site"}
)

// longestName is how much of a job's name the tables show that a user did not
// choose the columns of: one long name does not widen all lines.
const longestName = 60

// parseColumns reads names of columns.
func parseColumns(text string) ([]string, error) {
	words := strings.Split(text, ",")
	for _, word := range words {
		if !slices.Contains(columnWords(), word) {
			return nil, fmt.Errorf("%q is no column; there are %s", word, strings.Join(columnWords(), ", "))
		}
	}
	return words, nil
}

func columnWords() []string {
	var words []string
	for _, col := range queueColumns() {
		words = append(words, col.word)
	}
	return words
}

// jobGrid is a table of jobs with the named columns.
func (c *client) jobGrid(jobs []*kithv1.Job, words []string) *cli.Grid {
	all := queueColumns()
	g := &cli.Grid{}
	var chosen []queueColumn
	for _, word := range words {
		i := slices.IndexFunc(all, func(col queueColumn) bool { return col.word == word })
		chosen = append(chosen, all[i])
		g.Columns = append(g.Columns, all[i].Column)
	}
	for _, j := range jobs {
		cells := make([]string, len(chosen))
		for i, col := range chosen {
			cells[i] = col.cell(c, j)
		}
		g.Add(cells...)
	}
	return g
}

// whereText says at which site a job is, also if that is out of reach, else why
// it waits.
func (c *client) whereText(j *kithv1.Job) string {
	s := j.GetStatus()
	text := whereOrWhy(s)
	if away := s.GetHostUnreachableSince(); away != nil {
		text += " (out of reach since " + c.at(away) + ")"
	}
	return text
}

// exitText is the code with which "kith wait" would end, of a job that ran.
func exitText(s *kithv1.JobStatus) string {
	if !ended(s.GetState()) || !began(s) {
		return cli.Nothing
	}
	return fmt.Sprint(jobExitCode(s))
}
