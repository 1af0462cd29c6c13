package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/testbed/chaos"
)

// chaosVerb is "kith chaos".
func chaosVerb(c *cli) *cobra.Command {
	opt := chaos.Options{}
	var minutes float64
	cmd := &cobra.Command{
		Use:   "chaos [--minutes N] [--sites S] [--seed X]",
		Short: "Kill, freeze, cut off and fill up real sites while they run jobs, and check that each ran once",
		Long: `Start real sites on loopback, submit real jobs at all of them, and meanwhile kill,
freeze, cut off, fill up, restart and upgrade them. Each job signs a ledger when
it starts and ends, and checks that no other attempt of it runs. At the end the
history is checked: the exit code is 0 only if every acknowledged job had one
outcome, none started twice, and nothing is left over.

Faults: ` + faultNames() + `.
--seed repeats the faults and the jobs of a run, not what they meet.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := noArgs(cmd, args); err != nil {
				return err
			}
			if !(minutes > 0) || minutes > 24*60 {
				return usagef("--minutes %v: choose more than 0 and at most 1440", minutes)
			}
			opt.Duration = time.Duration(math.Round(minutes * float64(time.Minute)))
			return c.chaos(cmd.Context(), opt)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&minutes, "minutes", 1, "inject faults for `N` minutes; healing and checking come on top")
	flags.IntVar(&opt.Sites, "sites", 4, "how many sites to start, as `S`")
	flags.Uint64Var(&opt.Seed, "seed", 1, "where faults and jobs come from, as `X`")
	flags.StringSliceVar(&opt.Kinds, "faults", nil, "only these `KINDS`, with commas")
	flags.StringVar(&opt.UpgradeFrom, "upgrade-from", "", "begin with the kithd in `FILE`, of an earlier version, and upgrade every site under load")
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	complete(cmd, "faults", strings.Split(faultNames(), ", ")...)
	return cmd
}

func faultNames() string {
	var names []string
	for _, k := range chaos.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func (c *cli) chaos(ctx context.Context, opt chaos.Options) error {
	remove, err := ownFolder(&opt.Dir, "kith-chaos-")
	if err != nil {
		return refusedf("%v", err)
	}
	defer remove()
	if err := opt.Validate(); err != nil {
		return usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if opt.UpgradeFrom != "" {
		if opt.UpgradeFrom, err = filepath.Abs(opt.UpgradeFrom); err != nil {
			return refusedf("--upgrade-from: %v", err)
		}
		if _, err := os.Stat(opt.UpgradeFrom); err != nil {
			return usagef("--upgrade-from: %v", bare(err))
		}
	}
	opt.Observe = func(line string) { c.note("%s", line) }
	c.note("%d sites, seed %d, faults for %v", opt.Sites, opt.Seed, opt.Duration)
	r, err := chaos.Run(ctx, opt)
	if err == nil {
		err = c.printValue(r, func() string { return chaosTable(r, c.width) })
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitWith(exitInterrupted)
	case err != nil:
		return refusedf("chaos: %v", err)
	case !r.Good():
		return refusedf("seed %d: not everything is as it should be:\n  %s", r.Seed, strings.Join(r.Problems, "\n  "))
	}
	return nil
}

// ownFolder makes an empty folder where the user wants it, or a temporary one,
// and says how to remove it.
func ownFolder(dir *string, prefix string) (remove func(), err error) {
	if *dir == "" {
		*dir, err = os.MkdirTemp("", prefix)
		made := *dir
		return func() { os.RemoveAll(made) }, err //nolint:errcheck // what is left in a temporary folder harms nobody
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(*dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("--dir %s: is not empty; choose another folder, or remove it", *dir)
	}
	return func() {}, os.MkdirAll(*dir, 0o700)
}

// chaosTable is what people see at the end.
func chaosTable(r *chaos.Result, width int) string {
	j := r.Jobs
	g := grid{columns: []column{{title: "WHAT", elastic: true}, {title: "COUNT", right: true}, {title: "TARGET", right: true}, {title: ""}}}
	none := func(what string, n int) {
		verdict := "reached"
		if n != 0 {
			verdict = "MISSED"
		}
		g.add(what, fmt.Sprint(n), "0", verdict)
	}
	g.add("minutes with faults", fmt.Sprintf("%.1f", r.Minutes), "", "")
	g.add(fmt.Sprintf("faults (%s)", byKind(r.Faults)), fmt.Sprint(r.FaultCount), "", "")
	g.add(fmt.Sprintf("jobs acknowledged (%d completed, %d failed as meant, %d out of time, %d cancelled, %d lost with their shim, %d spoilt by the full disk)",
		j.Completed, j.Failed, j.TimedOut, j.Cancelled, j.LostWithShim, j.SpoiltByDisk), fmt.Sprint(j.Acknowledged), "", "")
	g.add(fmt.Sprintf("attempts that ran (%d jobs in more than one)", j.RanAgain), fmt.Sprint(j.Attempts), "", "")
	none("double starts", r.DoubleStarts)
	none("lost jobs", r.LostJobs)
	none("stray copies after healing", r.StrayCopies)
	none("overlapping attempts", r.Overlaps)
	none("changed outcomes", r.ChangedOutcomes)
	none("damaged outputs", r.DamagedOutputs)
	none("processes left", r.LeftProcesses)
	none("daemons that crashed", r.Crashes)
	none("other problems", r.OtherProblems)
	verdict := "reached"
	if r.Heals.Worst > r.Heals.Target {
		verdict = "missed"
	}
	g.add(fmt.Sprintf("seconds from healing until the sites agree, worst of %d (median %.1f)", r.Heals.Count, r.Heals.Median),
		fmt.Sprintf("%.1f", r.Heals.Worst), "≤ "+number(r.Heals.Target), verdict)
	text := g.render(width)
	for _, s := range r.Skipped {
		text += fmt.Sprintf("Skipped: %s: %s.\n", s.Kind, s.Reason)
	}
	return text
}

// byKind lists counts in the order of kinds.
func byKind(counts map[string]int) string {
	var list []string
	for _, k := range chaos.Kinds() {
		if n := counts[string(k)]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, k))
		}
	}
	return strings.Join(slices.Clip(list), ", ")
}
