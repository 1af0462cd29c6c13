package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/chaos"
)

// membersVerb is "kith-lab chaos members".
func membersVerb(p *cli.Program) *cobra.Command {
	opt := chaos.DefaultMembersOptions()
	var slack float64
	var names []string
	for _, k := range chaos.MemberFaults() {
		names = append(names, string(k))
	}
	cmd := &cobra.Command{
		Use:   "members [--rounds N] [--seed X]",
		Short: "Kill, pause, empty and restart the machines of a site of three while it runs jobs",
		Long: `Start a site that three machines keep and whose jobs a fourth one runs, beside a
site of one machine, submit real jobs at both, and meanwhile do to the machines what
they must bear: each of the faults below once a round, in an order of its own. The jobs
sign a ledger, and the history is checked as that of "kith-lab chaos": the exit code
is 0 only if every acknowledged job had one outcome, none started twice, nothing is
left over, and no site stood idle while a job waited once all was healed.

Faults: ` + strings.Join(names, ", ") + `.
Machines of a site reach each other directly: one that is to be cut off is paused.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NoArgs(cmd, args); err != nil {
				return err
			}
			if err := opt.Validate(); err != nil {
				return cli.Usagef("--%v", err)
			}
			if !(slack >= 1) {
				return cli.Usagef("--slack %v: choose 1 or more", slack)
			}
			return runMembers(cmd.Context(), p, opt, slack)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.Rounds, "rounds", opt.Rounds, "inject each fault `N` times")
	flags.Uint64Var(&opt.Seed, "seed", opt.Seed, "where faults and jobs come from, as `X`")
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	slackFlag(cmd, &slack)
	return cmd
}

func runMembers(ctx context.Context, p *cli.Program, opt chaos.MembersOptions, slack float64) error {
	remove, err := cli.OwnFolder(&opt.Dir, "kith-three-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	opt.Observe = func(line string) { p.Note("%s", line) }
	r, err := chaos.RunMembers(ctx, opt)
	if r != nil { // what is known tells more than the error alone
		err = errors.Join(err, p.Print(r, func() string { return membersTable(r, p.Width) }))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("members: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case !r.Sound() || len(r.Misses(slack)) > 0:
		return cli.Refusedf("seed %d: checks failed:\n  %s", r.Seed, strings.Join(append(r.Problems, r.Misses(slack)...), "\n  "))
	}
	return nil
}

// membersTable is what people see at the end.
func membersTable(r *chaos.Result, width int) string {
	j := r.Jobs
	g := cli.Grid{Columns: []cli.Column{{Title: "WHAT", Elastic: true}, {Title: "COUNT", Right: true}, {Title: "TARGET", Right: true}, {Title: ""}}}
	row := func(what, value, target string, reached bool) {
		verdict := "reached"
		if !reached {
			verdict = "missed"
		}
		g.Add(what, value, target, verdict)
	}
	g.Add("minutes with faults", fmt.Sprintf("%.1f", r.Minutes), "", "")
	g.Add("faults", fmt.Sprint(r.FaultCount), "", "")
	g.Add("jobs acknowledged", fmt.Sprint(j.Acknowledged), "", "")
	g.Add("attempts that ran", fmt.Sprint(j.Attempts), "", "")
	for _, n := range []struct {
		what string
		n    int
	}{
		{"double starts", r.DoubleStarts}, {"lost jobs", r.LostJobs}, {"copies left at the end", r.StrayCopies}, {"overlapping attempts", r.Overlaps},
		{"changed outcomes", r.ChangedOutcomes}, {"damaged outputs", r.DamagedOutputs}, {"processes left", r.LeftProcesses}, {"daemons that crashed", r.Crashes},
		{"other problems", r.OtherProblems},
	} {
		row(n.what, fmt.Sprint(n.n), "0", n.n == 0)
	}
	row(fmt.Sprintf("seconds from healing until the site takes jobs, worst of %d (median %.1f)", r.Heals.Count, r.Heals.Median),
		fmt.Sprintf("%.1f", r.Heals.Worst), "≤ "+cli.Number(r.Heals.Target), r.Heals.Worst <= r.Heals.Target)
	var faults []string
	for _, k := range chaos.MemberFaults() {
		faults = append(faults, fmt.Sprintf("%d %s", r.Faults[string(k)], k))
	}
	return g.Render(width) + fmt.Sprintf("Faults: %s.\nJobs: %d completed, %d failed as meant, %d out of time, %d cancelled, %d lost with the machine that ran them; %d ran more than once.\n",
		strings.Join(faults, ", "), j.Completed, j.Failed, j.TimedOut, j.Cancelled, j.LostWithNode, j.RanAgain)
}
