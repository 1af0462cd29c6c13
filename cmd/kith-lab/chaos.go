package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/chaos"
)

// chaosVerb is "kith-lab chaos".
func chaosVerb(p *cli.Program) *cobra.Command {
	opt := chaos.Options{}
	var minutes, slack float64
	cmd := &cobra.Command{
		Use:   "chaos [--minutes N] [--sites S] [--seed X]",
		Short: "Kill, freeze, cut off and fill up real sites while they run jobs, and check that each ran once",
		Long: `Start real sites on loopback, submit real jobs at all of them, and meanwhile kill,
freeze, cut off, fill up, restart and upgrade them. Each job signs a ledger when
it starts and ends, and checks that no other attempt of it runs; one in ten then
damages the folder of its own attempt. So do the tasks of bags, which are held and
cancelled at times. At the end the
history is checked: the exit code is 0 only if every acknowledged job and task had
one outcome, none started twice, nothing is left over, guests moved no promise to a
site's own jobs, and the sites agreed in time after each healing.

Faults: ` + faultNames() + `.
--seed repeats the faults and the jobs of a run, not what they meet.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NoArgs(cmd, args); err != nil {
				return err
			}
			if !(minutes > 0) || minutes > 24*60 {
				return cli.Usagef("--minutes %v: choose more than 0 and at most 1440", minutes)
			}
			if !(slack >= 1) {
				return cli.Usagef("--slack %v: choose 1 or more", slack)
			}
			opt.Duration = time.Duration(math.Round(minutes * float64(time.Minute)))
			return runChaos(cmd.Context(), p, opt, slack)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&minutes, "minutes", 1, "inject faults for `N` minutes; healing and checking come on top")
	flags.IntVar(&opt.Sites, "sites", 4, "how many sites to start, as `S`")
	flags.Uint64Var(&opt.Seed, "seed", 1, "where faults and jobs come from, as `X`")
	flags.StringSliceVar(&opt.Kinds, "faults", nil, "only these `KINDS`, with commas")
	flags.StringVar(&opt.UpgradeFrom, "upgrade-from", "", "begin with the kithd in `FILE`, of an earlier version, and upgrade every site under load")
	flags.BoolVar(&opt.Demotions, "demotions", false, "have most jobs save what they have done and go on elsewhere: at levels of a hierarchy, as guests who leave, and as users ask; without bags")
	insecureFlag(cmd, &opt.Insecure)
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	slackFlag(cmd, &slack)
	cli.Complete(cmd, "faults", strings.Split(faultNames(), ", ")...)
	cmd.AddCommand(overloadVerb(p), scaleVerb(p), bagKillsVerb(p), membersVerb(p))
	return cmd
}

// overloadVerb is "kith-lab chaos overload".
func overloadVerb(p *cli.Program) *cobra.Command {
	opt := chaos.DefaultOverloadOptions()
	var slack float64
	cmd := &cobra.Command{
		Use:   "overload [--length D] [--factor N]",
		Short: "Offer a real site many times the load that it can take",
		Long: `Start a real site on loopback, measure how many jobs a second it can run, and
submit many times as many. The exit code is 0 only if every submission was
answered, by acceptance or by advice when to try again, every accepted job ran
exactly once, and the targets for answers, memory and recovery were met.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NoArgs(cmd, args); err != nil {
				return err
			}
			if opt.Length < time.Second || opt.Length > time.Hour || !(opt.Factor > 0) || opt.Factor > 1000 {
				return cli.Usagef("--length %v --factor %v: choose 1s to 1h, and a factor up to 1000", opt.Length, opt.Factor)
			}
			if opt.Jobs < 1 || opt.Jobs > 1_000_000 || opt.Users < 0 || opt.Users > 20_000 {
				return cli.Usagef("--jobs %d --users %d: choose 1 to 1000000 jobs and up to 20000 users", opt.Jobs, opt.Users)
			}
			if !(slack >= 1) {
				return cli.Usagef("--slack %v: choose 1 or more", slack)
			}
			return runOverload(cmd.Context(), p, opt, slack)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&opt.Length, "length", opt.Length, "how long the overload lasts, as `D`")
	flags.Float64Var(&opt.Factor, "factor", opt.Factor, "submit `N` times what the site can run")
	flags.IntVar(&opt.Jobs, "jobs", opt.Jobs, "the site takes on `N` jobs at a time")
	flags.IntVar(&opt.Users, "users", opt.Users, "instead of a rate, let `N` users submit as fast as they are answered")
	insecureFlag(cmd, &opt.Insecure)
	flags.StringVar(&opt.Dir, "dir", "", "keep data and log of the site in folder `D` (default: a temporary one)")
	slackFlag(cmd, &slack)
	return cmd
}

// insecureFlag is for comparisons: without it sites have keys and speak mutual TLS.
func insecureFlag(cmd *cobra.Command, insecure *bool) {
	cmd.Flags().BoolVar(insecure, "insecure-loopback", false, "give the sites no keys: they speak plaintext on loopback")
}

// slackFlag is for machines that have other work: their times say little.
func slackFlag(cmd *cobra.Command, slack *float64) {
	cmd.Flags().Float64Var(slack, "slack", 1, "fail only where a time or the memory is more than `F` times its target")
}

func runOverload(ctx context.Context, p *cli.Program, opt chaos.OverloadOptions, slack float64) error {
	remove, err := cli.OwnFolder(&opt.Dir, "kith-overload-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	opt.Observe = func(line string) { p.Note("%s", line) }
	r, err := chaos.RunOverload(ctx, opt)
	if err == nil {
		err = p.Print(r, func() string { return overloadTable(r, p.Width) })
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("overload: %v", err)
	case !r.Sound() || len(r.Misses(slack)) > 0:
		return cli.Refusedf("checks failed:\n  %s", strings.Join(append(r.Problems, r.Misses(slack)...), "\n  "))
	}
	return nil
}

// overloadTable is what people see at the end.
func overloadTable(r *chaos.Overload, width int) string {
	g := cli.Grid{Columns: []cli.Column{{Title: "WHAT", Elastic: true}, {Title: "VALUE", Right: true}, {Title: "UNIT"}, {Title: "TARGET", Right: true}, {Title: ""}}}
	row := func(what string, value float64, unit, target string, reached bool) {
		verdict := ""
		switch {
		case target != "" && reached:
			verdict = "reached"
		case target != "":
			verdict = "missed"
		}
		g.Add(what, cli.Number(value), unit, target, verdict)
	}
	row("jobs that the site can run", r.Takes, "/s", "", true)
	row(fmt.Sprintf("jobs that were submitted, for %.0f s", r.Seconds), r.Offered, "/s", "", true)
	row("accepted", float64(r.Accepted), "", "", true)
	row("refused, with advice when to try again", float64(r.Refused), "", "", true)
	row("not answered", float64(r.Unanswered), "", "0", r.Unanswered == 0)
	row("accepted and lost", float64(r.Lost), "", "0", r.Lost == 0)
	row("started twice", float64(r.DoubleStarts), "", "0", r.DoubleStarts == 0)
	row("time to an answer, median", r.MedianAnswer*1000, "ms", "", true)
	row("the same, 999 of 1000", r.LateAnswer*1000, "ms", "≤ "+cli.Number(chaos.AnswerTarget*1000), r.LateAnswer <= chaos.AnswerTarget)
	row("the same, worst", r.WorstAnswer*1000, "ms", "", true)
	row("resident memory, idle", r.IdleMemory, "MiB", "", true)
	row("the same, peak", r.PeakMemory, "MiB", "≤ "+cli.Number(r.IdleMemory+chaos.MemoryTarget), r.PeakMemory <= r.IdleMemory+chaos.MemoryTarget)
	row("end of the overload → a job is accepted as on an idle site", r.Recovery, "s", "≤ "+cli.Number(chaos.RecoveryTarget), r.Recovery <= chaos.RecoveryTarget)
	row("end of the overload → all accepted jobs have ended", r.Drained, "s", "", true)
	return g.Render(width)
}

func faultNames() string {
	var names []string
	for _, k := range chaos.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func runChaos(ctx context.Context, p *cli.Program, opt chaos.Options, slack float64) error {
	remove, err := cli.OwnFolder(&opt.Dir, "kith-chaos-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	if err := opt.Validate(); err != nil {
		return cli.Usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if opt.UpgradeFrom != "" {
		if opt.UpgradeFrom, err = filepath.Abs(opt.UpgradeFrom); err != nil {
			return cli.Refusedf("--upgrade-from: %v", err)
		}
		if _, err := os.Stat(opt.UpgradeFrom); err != nil {
			return cli.Usagef("--upgrade-from %s: %v", opt.UpgradeFrom, cli.Bare(err))
		}
	}
	opt.Observe = func(line string) { p.Note("%s", line) }
	p.Note("%d sites, seed %d, faults for %v", opt.Sites, opt.Seed, opt.Duration)
	r, err := chaos.Run(ctx, opt)
	if err == nil {
		err = p.Print(r, func() string { return chaosTable(r, p.Width) })
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("chaos: %v", err)
	case !r.Sound() || len(r.Misses(slack)) > 0:
		return cli.Refusedf("seed %d: checks failed:\n  %s", r.Seed, strings.Join(append(r.Problems, r.Misses(slack)...), "\n  "))
	}
	return nil
}

// chaosTable is what people see at the end.
func chaosTable(r *chaos.Result, width int) string {
	j := r.Jobs
	g := cli.Grid{Columns: []cli.Column{{Title: "WHAT", Elastic: true}, {Title: "COUNT", Right: true}, {Title: "TARGET", Right: true}, {Title: ""}}}
	none := func(what string, n int) {
		verdict := "reached"
		if n != 0 {
			verdict = "missed"
		}
		g.Add(what, fmt.Sprint(n), "0", verdict)
	}
	g.Add("minutes with faults", fmt.Sprintf("%.1f", r.Minutes), "", "")
	g.Add("faults", fmt.Sprint(r.FaultCount), "", "")
	g.Add("jobs acknowledged", fmt.Sprint(j.Acknowledged), "", "")
	g.Add("attempts that ran", fmt.Sprint(j.Attempts), "", "")
	if d := r.Demotions; d.Counting > 0 {
		g.Add("jobs that count", fmt.Sprint(d.Counting), "", "")
		g.Add("numbers counted", fmt.Sprint(d.Numbers), "", "")
		g.Add(fmt.Sprintf("counted again, after %d losses", d.Losses), fmt.Sprint(d.Repeated), "", "")
		verdict := "reached"
		if r.Share() < chaos.DemotedTarget {
			verdict = "missed"
		}
		g.Add("share of jobs demoted at least once", fmt.Sprintf("%.2f", r.Share()), "≥ "+cli.Number(chaos.DemotedTarget), verdict)
		none("numbers miscounted, checkpoints too old", r.Miscounted)
	} else {
		g.Add("tasks of bags acknowledged", fmt.Sprint(r.Bags.Tasks), "", "")
		g.Add("runs of tasks", fmt.Sprint(r.Bags.Runs), "", "")
	}
	none("double starts", r.DoubleStarts)
	none("lost jobs", r.LostJobs)
	none("lost tasks of bags", r.LostTasks)
	none("stray copies and bundles after healing", r.StrayCopies)
	none("overlapping attempts and runs", r.Overlaps)
	none("changed outcomes", r.ChangedOutcomes)
	none("damaged outputs", r.DamagedOutputs)
	none("promises to home jobs that guests moved", r.PromisesMoved)
	none("processes left", r.LeftProcesses)
	none("daemons that crashed", r.Crashes)
	none("other problems", r.OtherProblems)
	verdict := "reached"
	if r.Heals.Worst > r.Heals.Target {
		verdict = "missed"
	}
	g.Add(fmt.Sprintf("seconds from healing until the sites agree, worst of %d (median %.1f)", r.Heals.Count, r.Heals.Median),
		fmt.Sprintf("%.1f", r.Heals.Worst), "≤ "+cli.Number(r.Heals.Target), verdict)
	text := g.Render(width)
	text += fmt.Sprintf("Faults: %s.\n", byKind(r.Faults))
	text += fmt.Sprintf("Jobs: %d completed, %d failed as meant, %d out of time, %d cancelled, %d lost with their shim, %d with the trust between their sites, %d spoilt by the full disk, %d that damaged their own folder; %d ran more than once.\n",
		j.Completed, j.Failed, j.TimedOut, j.Cancelled, j.LostWithShim, j.LostWithTrust, j.SpoiltByDisk, j.Vandals, j.RanAgain)
	if d := r.Demotions; len(d.Causes) > 0 {
		text += fmt.Sprintf("Attempts that ended for their job to go on: %s.\n", causes(d.Causes))
	}
	b := r.Bags
	text += fmt.Sprintf("Tasks of %d bags: %d completed, %d failed as meant, %d cancelled, %d lost with their shim, %d with the trust between their sites, %d spoilt by the full disk; %d ran more than once; %d outputs were read.\n",
		b.Acknowledged, b.Completed, b.Failed, b.Cancelled, b.LostWithShim, b.LostWithTrust, b.SpoiltByDisk, b.RanAgain, b.OutputsRead)
	text += fmt.Sprintf("Audit logs: %d lines.\n", r.AuditLines)
	if r.Unguarded > 0 {
		text += fmt.Sprintf("Jobs that overlapped as they may, with a frozen shim and no daemon at work: %d.\n", r.Unguarded)
	}
	if j.Refused > 0 {
		text += fmt.Sprintf("Refused, by an earlier version or as wider than all sites were: %d.\n", j.Refused)
	}
	for _, s := range r.Skipped {
		text += fmt.Sprintf("Skipped: %s: %s.\n", s.Kind, s.Reason)
	}
	return text
}

// causes lists counts by their names.
func causes(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(list, ", ")
}

// byKind lists counts in the order of kinds.
func byKind(counts map[string]int) string {
	var list []string
	for _, k := range chaos.Kinds() {
		if n := counts[string(k)]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, k))
		}
	}
	return strings.Join(list, ", ")
}
