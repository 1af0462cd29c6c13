package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/lab"
	"kith/testbed/lab/experiments"
)

// listVerb is "kith-lab list".
func listVerb(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "list [EXPERIMENT|STATEMENT...]",
		Short: "List the experiments and their statements",
		Long:  "List the experiments and, for each statement, what the source says and which band\na measurement must lie in.",
		RunE: func(_ *cobra.Command, args []string) error {
			selected, err := lab.Select(experiments.All(), args)
			if err != nil {
				return cli.Usagef("list: %v", err)
			}
			var list []listedExperiment
			for _, s := range selected {
				e := listedExperiment{ID: s.Experiment.ID, Title: s.Experiment.Title, Source: s.Experiment.Source, Seeds: s.Experiment.Seeds, Statements: []lab.Statement{}}
				for _, statement := range s.Experiment.Statements {
					if s.Statements == nil || slices.Contains(s.Statements, statement.ID) {
						e.Statements = append(e.Statements, statement)
					}
				}
				list = append(list, e)
			}
			return p.Print(list, func() string { return listText(list, p.Width) })
		},
	}
}

// listedExperiment is an experiment as "kith-lab list" prints it.
type listedExperiment struct {
	ID         string          `json:"id"`
	Title      string          `json:"title"`
	Source     string          `json:"source"`
	Seeds      int             `json:"seeds"`
	Statements []lab.Statement `json:"statements"`
}

func listText(list []listedExperiment, width int) string {
	var b strings.Builder
	for i, e := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s  %s\n     %s; %s by default\n\n", e.ID, e.Title, e.Source, cli.Plural(int64(e.Seeds), "seed", "seeds"))
		g := cli.Grid{Columns: []cli.Column{{Title: "ID"}, {Title: "STATEMENT", Elastic: true}, {Title: "SOURCE", Elastic: true}, {Title: "BAND", Elastic: true}, {Title: ""}}}
		for _, statement := range e.Statements {
			enforced := "enforced"
			if !statement.Enforced {
				enforced = ""
			}
			g.Add(statement.ID, statement.Text, statement.Source, statement.Band, enforced)
		}
		b.WriteString(g.Render(width))
	}
	return b.String()
}
