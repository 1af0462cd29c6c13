package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/explore"
)

// exploreVerb is "kith-lab explore".
func exploreVerb(p *cli.Program) *cobra.Command {
	cfg := explore.Default()
	idle, bag := false, false
	cmd := &cobra.Command{
		Use:   "explore [--sites S] [--jobs J] [--copies K] [--crashes N] [--losses N] [--duplicates N] [--timeouts N]",
		Short: "Walk through every behaviour of a small federation",
		Long: `Walk through every behaviour of a small federation: all interleavings of
deliveries, losses, duplicates, crashes, timeouts and ends of jobs, with bounds
on how many faults there are. It drives the engines that kithd runs, not a model
of them.

Prints how many states there are and either that nothing is violated or the
shortest way to a violation; the exit code is then 1.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Busy = !idle
			switch {
			case bag:
				cfg = withBag(cmd, cfg)
			case cfg.Tasks > 0:
				return cli.Usagef("--tasks %d: they are of a bag; give --bag as well", cfg.Tasks)
			case cfg.Replicas > 0 || cfg.Deadline > 0 || cfg.Policies || cfg.Revokes > 0:
				return cli.Usagef("--replicas, --deadline, --policies and --revokes are of a bag: give --bag as well")
			}
			if err := cfg.Validate(); err != nil {
				return cli.Usagef("%v", err)
			}
			return runExplore(cmd.Context(), p, cfg)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, f := range []struct {
		to    *int
		name  string
		usage string
	}{
		{&cfg.Sites, "sites", "how many sites, as `S`; job i is submitted at site i"},
		{&cfg.Jobs, "jobs", "how many jobs, as `J`"},
		{&cfg.Tasks, "tasks", "with --bag, how many tasks it has, as `T`"},
		{&cfg.Copies, "copies", "at how many sites each job queues, as `K`"},
		{&cfg.Crashes, "crashes", "how many daemons die, at any boundary between two effects, as `N`"},
		{&cfg.Reboots, "reboots", "how many machines lose power, as `N`"},
		{&cfg.Losses, "losses", "how many messages are lost, as `N`"},
		{&cfg.Duplicates, "duplicates", "how many messages arrive twice, however late, as `N`"},
		{&cfg.Cuts, "cuts", "how many streams break, as `N`"},
		{&cfg.Timeouts, "timeouts", "how many timeouts come at a moment of their own, as `N`"},
		{&cfg.Waits, "waits", "how many timeouts come where nothing else can happen, with faults after them, as `N`"},
		{&cfg.Fails, "start-failures", "how many starts fail for a reason of the host's, as `N`"},
		{&cfg.Demotions, "demotions", "how many attempts save what they have done and end to go on, as `N`"},
		{&cfg.Asks, "asks", "how often users have a running job save and go on, as `N`"},
		{&cfg.Cancels, "cancels", "how many jobs their users cancel, as `N`"},
		{&cfg.Replicas, "replicas", "with --bag, how many sites may have a task beside the first one, as `N`; begins right before the first one has it"},
		{&cfg.Deadline, "deadline", "with --bag, the deadline in its policies, as `SECONDS`; begins right before the first one is missed"},
		{&cfg.Revokes, "revokes", "with --bag, how many other sites the first one revokes, as `N`"},
	} {
		flags.IntVar(f.to, f.name, *f.to, f.usage)
	}
	flags.BoolVar(&bag, "bag", false, "submit a bag of 3 tasks at the first of 2 sites in place of jobs")
	flags.BoolVar(&cfg.Policies, "policies", false, "with --bag, have it state policies: one task at a host, and with 3 sites none at its own")
	flags.BoolVar(&cfg.Race, "race", false, "submit jobs under on_site_lost=race")
	flags.BoolVar(&cfg.Staging, "job-staging", false, "submit jobs whose input takes time to other sites")
	flags.BoolVar(&cfg.Output, "job-output", false, "submit jobs whose output is fetched from their hosts")
	flags.BoolVar(&cfg.Collecting, "job-collecting", false, "submit jobs whose output takes time to collect when their processes are gone")
	flags.BoolVar(&cfg.Shrink, "shrink", false, "give each site two processors until its daemon has died, and one from then on")
	flags.BoolVar(&idle, "idle", false, "begin with the first site idle instead of busy with a job of its own")
	flags.BoolVar(&cfg.Full, "full", false, "look at all orders of steps that commute as well")
	flags.IntVar(&cfg.MaxStates, "max-states", explore.DefaultMaxStates, "give up after `N` states; a million takes some 100 MB")
	return cmd
}

// withBag is a world with a bag, and otherwise as the flags say that were given.
func withBag(cmd *cobra.Command, given explore.Config) explore.Config {
	cfg := given
	usual := explore.DefaultBag()
	for name, set := range map[string]func(){
		"jobs": func() { cfg.Jobs = usual.Jobs }, "sites": func() { cfg.Sites = usual.Sites }, "tasks": func() { cfg.Tasks = usual.Tasks }, "copies": func() { cfg.Copies = usual.Copies },
		"timeouts": func() { cfg.Timeouts = usual.Timeouts },
	} {
		if !cmd.Flags().Changed(name) {
			set()
		}
	}
	return cfg
}

func runExplore(ctx context.Context, p *cli.Program, cfg explore.Config) error {
	if p.Progress("explore", 1) != nil { // a person looks on
		cfg.Progress = func(states, depth int) {
			if depth%5 == 0 {
				p.Note("depth %d: %d states", depth, states)
			}
		}
	}
	r, err := explore.Run(ctx, cfg)
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case errors.Is(err, explore.ErrTooLarge):
		return cli.Refusedf("explore: %s than --max-states %d allows; raise it, or make the world smaller", strings.TrimSuffix(err.Error(), " than allowed"), cfg.MaxStates)
	case err != nil:
		return cli.Refusedf("explore: %v", err)
	}
	if err := p.Print(r, func() string { return exploreReport(r) }); err != nil {
		return err
	}
	if r.Violation != "" {
		return cli.Refusedf("%s", r.Violation)
	}
	return nil
}

// exploreReport is what people see.
func exploreReport(r *explore.Report) string {
	var b strings.Builder
	for _, line := range r.Story {
		b.WriteString(line + "\n")
	}
	if len(r.Story) > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d states, %d transitions (%d spared), depth %d, %d ends; %d states of single sites, %d steps of engines; %.1f s.\n",
		r.States, r.Transitions, r.Spared, r.Depth, r.Ends, r.LocalStates, r.LocalSteps, r.Seconds)
	if r.Violation == "" {
		b.WriteString("No violation.\n")
	} else {
		fmt.Fprintf(&b, "Violation: %s\n", r.Violation)
	}
	return b.String()
}
