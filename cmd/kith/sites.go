package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// sitesVerb is "kith sites".
func sitesVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "sites",
		Short: "List the sites that this site knows, itself first",
		Long: `List the sites that this site knows, itself first.

REACH is how this site can reach the other: self, connected or unreachable. LOAD
is the time that the site needs to drain the work it has. AGE is how old this
knowledge is. MEMORY is what the site offers to all jobs together; SPEED is that
of a processor against the federation's reference, 1: a time limit is the same
time at all sites.

NOTE tells of hosts that are held back: too many tasks of this site's bags failed
there that do well elsewhere. Such a host gets a task now and then and comes back
by doing them well; "kith site trust" has it come back at once.

A terminal too narrow for all columns shows fewer of them; into a pipe or a file
all are written.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := s.sites.ListSites(ctx, &kithv1.ListSitesRequest{})
				if err != nil {
					return err
				}
				return c.printMessage(list, func() string { return c.sitesText(list) })
			})
		},
	}
}

// sitesText is the list for people.
func (c *client) sitesText(list *kithv1.ListSitesResponse) string {
	g := cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "REACH"}, {Title: "CPUS", Right: true}, {Title: "MEMORY", Right: true, Spare: 3},
		{Title: "SPEED", Right: true, Spare: 2}, {Title: "FREE", Right: true}, {Title: "QUEUED", Right: true},
		{Title: "RUNNING", Right: true, Spare: 6}, {Title: "LOAD", Right: true}, {Title: "POLICY", Elastic: true, Spare: 5}, {Title: "AGE", Right: true, Spare: 4},
		{Title: "VERSION", Elastic: true, Spare: 1}, {Title: "NOTE", Elastic: true},
	}}
	for _, s := range list.GetSites() {
		reach := strings.ToLower(strings.TrimPrefix(s.GetReachability().String(), "REACHABILITY_"))
		if s.GetLoadTime() == nil {
			row := append([]string{s.GetId(), reach}, slices.Repeat([]string{cli.Nothing}, len(g.Columns)-3)...)
			g.Add(append(row, siteNote(s))...)
			continue
		}
		g.Add(s.GetId(), reach, fmt.Sprint(s.GetProcessors()), shortBytes(s.GetMemoryBytes()), speedText(s.GetSpeed()),
			fmt.Sprint(s.GetFreeProcessors()), fmt.Sprint(s.GetQueuedCopies()),
			fmt.Sprint(s.GetRunningAttempts()), cli.Seconds(s.GetLoadWorkSeconds()), orDefault(s.GetPolicy(), cli.Nothing),
			spanOf(s.GetLoadAge()), orDefault(s.GetVersion(), cli.Nothing), siteNote(s))
	}
	return g.Render(c.Width)
}

// shortBytes writes memory in a few characters, rounded down.
func shortBytes(n int64) string {
	if n <= 0 {
		return cli.Nothing
	}
	unit := 0
	for ; n >= 10*1024 && unit < 4; unit++ {
		n /= 1024
	}
	return fmt.Sprint(n) + []string{"B", "K", "M", "G", "T"}[unit]
}

// speedText is a speed; 0 is that of a site whose kithd does not say.
func speedText(v float64) string {
	if v <= 0 {
		return cli.Nothing
	}
	return fmt.Sprintf("%.4g", v)
}

// siteNote says what is unusual about a site.
func siteNote(s *kithv1.Site) string {
	var notes []string
	if s.GetDraining() {
		note := "draining"
		if s.GetDrainActor() != "" {
			note += " by " + s.GetDrainActor()
		}
		if s.GetDrainReason() != "" {
			note += ": " + s.GetDrainReason()
		}
		notes = append(notes, note)
	}
	switch {
	case s.GetStartTrouble() != "":
		notes = append(notes, s.GetStartTrouble())
	case s.GetNotStarting():
		notes = append(notes, "starts no jobs for now")
	}
	if s.GetDiskTrouble() != "" {
		notes = append(notes, s.GetDiskTrouble())
	}
	if s.GetKeyTrouble() != "" {
		notes = append(notes, s.GetKeyTrouble())
	}
	if s.GetNameConflict() != "" {
		notes = append(notes, s.GetNameConflict())
	}
	if s.GetLoadRefused() != "" {
		notes = append(notes, "its load is not believed: "+s.GetLoadRefused())
	}
	if note := levelNote(s); note != "" {
		notes = append(notes, note)
	}
	if note := ownerNote(s); note != "" {
		notes = append(notes, note)
	}
	notes = append(notes, heldNotes(s)...)
	switch {
	case s.GetConnectionError() != "":
		notes = append(notes, s.GetConnectionError())
	case s.GetLoadTime() == nil:
		notes = append(notes, "has not reported its load")
	case s.GetLoadStale():
		notes = append(notes, "load too old to rank by")
	}
	return strings.Join(notes, ", ")
}

// levelNote says which level of a hierarchy a site is.
func levelNote(s *kithv1.Site) string {
	l := s.GetLevel()
	if l == nil {
		return ""
	}
	return fmt.Sprintf("level %d: runs of at most %s, stays of at most %s", l.GetRank(), cli.Span(time.Duration(l.GetRunLimitNs())), cli.Span(time.Duration(l.GetQueueLimitNs())))
}

// ownerNote says what the owner of a site's machine takes of it: of a job of one processor and,
// where that is another share, of one of all.
func ownerNote(s *kithv1.Site) string {
	loads := s.GetOwnerLoads()
	if len(loads) == 0 {
		return ""
	}
	one, all := loads[0].GetRho(), loads[len(loads)-1].GetRho()
	note := fmt.Sprintf("its owner comes first and takes %.0f %% of a processor", 100*one)
	if s.GetProcessors() > 1 {
		note += fmt.Sprintf(", %.0f %% of all together", 100*all)
	}
	return note
}
