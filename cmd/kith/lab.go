package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/testbed/lab"
)

// labVerb is "kith lab".
func labVerb(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Repeat the experiments behind Kith in virtual time",
		Long: `Repeat the experiments of the papers that Kith is built on, with the engines
that kithd runs, in virtual time, and tell claim by claim what holds. No site is
asked.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("lab: %q is none of its verbs; %q lists them", args[0], "kith help lab")
			}
			return usagef("lab: which verb? %q lists them", "kith help lab")
		},
	}
	for _, v := range []verb{labListVerb, labRunVerb, labFaultsVerb, labExploreVerb} {
		cmd.AddCommand(v(c))
	}
	return cmd
}

// labListVerb is "kith lab list".
func labListVerb(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list [EXPERIMENT|CLAIM...]",
		Short: "List the experiments and their claims",
		Long:  "List the experiments and, for each claim, what the source says and which band\na measurement must lie in.",
		RunE: func(_ *cobra.Command, args []string) error {
			selected, err := lab.Select(args)
			if err != nil {
				return usagef("lab list: %v", err)
			}
			var list []listedExperiment
			for _, s := range selected {
				e := listedExperiment{ID: s.Experiment.ID, Title: s.Experiment.Title, Source: s.Experiment.Source, Seeds: s.Experiment.Seeds, Claims: []lab.Claim{}}
				for _, claim := range s.Experiment.Claims {
					if s.Claims == nil || slices.Contains(s.Claims, claim.ID) {
						e.Claims = append(e.Claims, claim)
					}
				}
				list = append(list, e)
			}
			return c.printValue(list, func() string { return labListText(list, c.width) })
		},
	}
}

// listedExperiment is an experiment as "kith lab list" prints it.
type listedExperiment struct {
	ID     string      `json:"id"`
	Title  string      `json:"title"`
	Source string      `json:"source"`
	Seeds  int         `json:"seeds"`
	Claims []lab.Claim `json:"claims"`
}

func labListText(list []listedExperiment, width int) string {
	var b strings.Builder
	for i, e := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s  %s\n     %s; %s by default\n\n", e.ID, e.Title, e.Source, plural(int64(e.Seeds), "seed", "seeds"))
		g := grid{columns: []column{{title: "CLAIM"}, {title: "STATEMENT", elastic: true}, {title: "SOURCE", elastic: true}, {title: "BAND", elastic: true}, {title: ""}}}
		for _, claim := range e.Claims {
			enforced := "enforced"
			if !claim.Enforced {
				enforced = ""
			}
			g.add(claim.ID, claim.Statement, claim.Source, claim.Band, enforced)
		}
		b.WriteString(g.render(width))
	}
	return b.String()
}
