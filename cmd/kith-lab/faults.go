package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/faults"
)

// faultOptions are the flags of "kith-lab faults".
type faultOptions struct {
	search faults.Search
	replay string
}

// faultsVerb is "kith-lab faults".
func faultsVerb(p *cli.Program) *cobra.Command {
	opt := faultOptions{search: faults.Search{Workers: runtime.GOMAXPROCS(0)}}
	cmd := &cobra.Command{
		Use:   "faults [--seeds N] [--first-seed F] [--sites S] [--jobs J] [--wide] [--hostile] [--members]",
		Short: "Search for schedules of faults that break a promise",
		Long: `Run federations in virtual time under random faults: daemons and machines die
and return, disks are slow, full or emptied, messages are lost, doubled and
hours late, networks are cut, clocks drift, daemons freeze, and sites lie. After
every event all invariants are checked; in the end, when all faults are over,
every job must end.

With --wide, jobs come without an end, sites have small bounds, restart with other
configurations and wall clocks, cannot start processes, have disks that hang or
that jobs fill, leave for good, and attack others; and no site may be idle beside
work that it could run (L4).

With --hostile there is an enemy among the sites, who knows the protocol, and operators
revoke sites and admit them again.

With --members, three or five members keep the facts of some sites: the one that leads is
killed or stopped between any two effects, members are cut off from each other, lose their
disks, have clocks a day apart and restart one after another.

Each seed is one schedule, the same on every machine. What fails is made as
small as possible and told; the exit code is then 1. --replay tells the story of
one schedule in text form, as a failure prints it.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := &opt.search
			switch {
			case s.Seeds < 1:
				return cli.Usagef("--seeds %d: choose at least 1", s.Seeds)
			case s.Size.Sites != 0 && (s.Size.Sites < 2 || s.Size.Sites > 32):
				return cli.Usagef("--sites %d: choose 2 to 32, or 0 to leave it to the seed", s.Size.Sites)
			case s.Size.Jobs < 0 || s.Size.Jobs > 1000:
				return cli.Usagef("--jobs %d: choose 1 to 1000, or 0 to leave it to the seed", s.Size.Jobs)
			case s.Workers < 1 || s.Workers > 1024:
				return cli.Usagef("--workers %d: choose 1 to 1024", s.Workers)
			case s.Levels && (s.Wide || s.Hostile || s.Members):
				return cli.Usagef("--levels: choose it alone, or with --bags")
			case s.Members && (s.Wide || s.Hostile || s.Bags):
				return cli.Usagef("--members: choose it alone; half of its schedules are wide ones")
			}
			if opt.replay != "" {
				return replayFaults(p, opt.replay)
			}
			return searchFaults(cmd.Context(), p, opt.search)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.search.Seeds, "seeds", 1000, "how many schedules to run, as `N`")
	flags.Uint64Var(&opt.search.FirstSeed, "first-seed", 0, "the first seed, as `F`")
	flags.IntVar(&opt.search.Size.Sites, "sites", 0, "how many sites, as `S` (default: 2 to 5, by the seed)")
	flags.IntVar(&opt.search.Size.Jobs, "jobs", 0, "how many jobs, as `J` (default: 1 to 40, by the seed)")
	flags.BoolVar(&opt.search.Wide, "wide", false, "make wide schedules")
	flags.BoolVar(&opt.search.Bags, "bags", false, "make schedules with bags of tasks")
	flags.BoolVar(&opt.search.Hostile, "hostile", false, "make schedules with an enemy among the sites")
	if err := flags.MarkHidden("bags"); err != nil { // there are none yet for users
		panic(err)
	}
	flags.BoolVar(&opt.search.Members, "members", false, "make schedules with sites whose facts three or five members keep")
	flags.BoolVar(&opt.search.Levels, "levels", false, "make schedules whose sites are levels of a hierarchy for jobs of unknown length")
	flags.IntVar(&opt.search.Workers, "workers", opt.search.Workers, "how many schedules run at a time, as `N`")
	flags.StringVar(&opt.replay, "replay", "", "tell the story of the schedule in `FILE` instead (- for stdin)")
	return cmd
}

func searchFaults(ctx context.Context, p *cli.Program, s faults.Search) error {
	defer cli.CollectLess()()
	bar := p.Progress("schedules", s.Seeds)
	s.Progress = func(done, _ int) { bar.Set(done) }
	r := s.Run(ctx)
	bar.Clear()
	if err := p.Print(r, func() string { return faultReport(r, p.Width) }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cli.ExitWith(cli.ExitInterrupted)
	}
	if n := r.Failed(); n > 0 {
		return cli.Refusedf("%s of %d broke a promise", cli.Plural(int64(n), "schedule", "schedules"), r.Schedules)
	}
	return nil
}

// faultReport is what people see.
func faultReport(r *faults.Report, width int) string {
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "seed %d breaks %s: %s\n\nthe same, smaller:\n\n%s\nwhat happens:\n\n%s\n\n",
			f.Seed, f.Invariant, f.Text, f.Schedule, strings.Join(f.Story, "\n"))
	}
	g := cli.Grid{Columns: []cli.Column{{Title: "FAULT"}, {Title: "INJECTED", Right: true}}}
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		g.Add(string(k), fmt.Sprint(r.Faults[k]))
	}
	b.WriteString(g.Render(width))
	fmt.Fprintf(&b, "\n%d schedules (seeds %d to %d) in %.1f s: %d jobs, %d starts, %d evictions, %d messages, %d faults.\n",
		r.Schedules, r.FirstSeed, r.FirstSeed+uint64(max(r.Schedules, 1)-1), r.Seconds, r.Jobs, r.Starts, r.Evicted, r.Messages, r.FaultCount())
	fmt.Fprintf(&b, "Double starts %d, lost jobs %d, stray copies %d, broken guarantees %d, idle sites %d, missing copies %d, other failures %d.\n",
		r.DoubleStarts, r.LostJobs, r.StrayCopies, r.BrokenGuarantees, r.IdleSites, r.MissingCopies, r.Other)
	fmt.Fprintf(&b, "%d jobs were lost with the only disk that knew of them, %d were refused. Sites agreed again at most %.0f s after the last fault.\n",
		r.LostWithDisk, r.Refused, r.SlowestAgreement)
	return b.String()
}

// replayFaults tells the story of one schedule.
func replayFaults(p *cli.Program, name string) error {
	text, err := readSmall(p, name)
	if err != nil {
		return cli.Usagef("--replay %s: %v", name, cli.Bare(err))
	}
	s, err := faults.Parse(text)
	if err != nil {
		return cli.Usagef("--replay %s: %v", name, err)
	}
	story := faults.WholeStory(s)
	if err := p.Print(story, func() string { return strings.Join(story, "\n") + "\n" }); err != nil {
		return err
	}
	if v := faults.Run(s, nil).Violation; v != nil {
		return cli.Refusedf("%v", v)
	}
	return nil
}

// maxSchedule is the longest schedule in text form, in bytes.
const maxSchedule = 4 << 20

// readSmall reads a whole file, or stdin for "-".
func readSmall(p *cli.Program, name string) (string, error) {
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close() //nolint:errcheck // Only read from.
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSchedule+1))
	if err == nil && len(text) > maxSchedule {
		err = fmt.Errorf("is longer than %d bytes", maxSchedule)
	}
	return string(text), err
}
