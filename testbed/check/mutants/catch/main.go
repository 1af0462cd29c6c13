// Command catch looks for a broken invariant in the engines that it was built
// with: by exploration, by search for schedules of faults, or by a scenario. The tests of
// testbed/check/mutants build it with a mutant of the engines. It prints what it found
// as JSON and exits with code 3 if that is a violation.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"kith/testbed/check/explore"
	"kith/testbed/check/faults"
	"kith/testbed/check/mutants"
	"kith/testbed/check/scenarios"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("catch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	cfg := explore.Default()
	flags.IntVar(&cfg.Sites, "sites", cfg.Sites, "exploration: sites")
	flags.IntVar(&cfg.Jobs, "jobs", cfg.Jobs, "exploration: jobs")
	flags.IntVar(&cfg.Tasks, "tasks", 0, "exploration: tasks of a bag in place of jobs")
	flags.IntVar(&cfg.Copies, "copies", cfg.Copies, "exploration: copies of each job")
	flags.IntVar(&cfg.Crashes, "crashes", cfg.Crashes, "exploration: crashes")
	flags.IntVar(&cfg.Reboots, "reboots", cfg.Reboots, "exploration: reboots")
	flags.IntVar(&cfg.Losses, "losses", cfg.Losses, "exploration: lost messages")
	flags.IntVar(&cfg.Duplicates, "duplicates", cfg.Duplicates, "exploration: doubled messages")
	flags.IntVar(&cfg.Cuts, "cuts", cfg.Cuts, "exploration: broken streams")
	flags.IntVar(&cfg.Timeouts, "timeouts", cfg.Timeouts, "exploration: timeouts")
	flags.IntVar(&cfg.Waits, "waits", cfg.Waits, "exploration: timeouts where nothing else can happen")
	flags.IntVar(&cfg.Cancels, "cancels", cfg.Cancels, "exploration: cancelled jobs")
	flags.IntVar(&cfg.Demotions, "demotions", 0, "exploration: attempts that save and end to go on")
	flags.IntVar(&cfg.Asks, "asks", 0, "exploration: asks of users to save and go on")
	flags.IntVar(&cfg.Replicas, "replicas", 0, "exploration: replicas of tasks of a bag")
	flags.IntVar(&cfg.Deadline, "deadline", 0, "exploration: deadline of a bag, in seconds")
	flags.IntVar(&cfg.Revokes, "revokes", 0, "exploration: sites that are revoked")
	flags.BoolVar(&cfg.Policies, "policies", false, "exploration: a bag with policies")
	flags.BoolVar(&cfg.Race, "race", false, "exploration: jobs under race")
	flags.BoolVar(&cfg.Busy, "busy", cfg.Busy, "exploration: the first site is busy")
	flags.BoolVar(&cfg.Staging, "job-staging", false, "exploration: jobs have input")
	flags.BoolVar(&cfg.Output, "job-output", false, "exploration: jobs leave output")
	flags.BoolVar(&cfg.Full, "full", false, "exploration: all orders")
	first := flags.Uint64("first-seed", 0, "fault search: first seed")
	seeds := flags.Int("seeds", 0, "fault search: how many seeds; 0 explores instead")
	wide := flags.Bool("wide", false, "fault search: wide schedules")
	bags := flags.Bool("bags", false, "fault search: bags of tasks")
	hostile := flags.Bool("hostile", false, "fault search: an enemy among the sites")
	members := flags.Bool("members", false, "fault search: sites of several members")
	levels := flags.Bool("levels", false, "fault search: sites are levels of a hierarchy")
	scenario := flags.String("scenario", "", "play a scenario instead")
	hole := flags.Bool("black-hole", false, "play a site that spoils all its tasks instead")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	search := faults.Search{Seeds: *seeds, FirstSeed: *first, Wide: *wide, Bags: *bags, Hostile: *hostile, Members: *members, Levels: *levels, Workers: runtime.GOMAXPROCS(0)}
	find, err := look(cfg, *scenario, *hole, search)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if err := json.NewEncoder(stdout).Encode(find); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if find.Violation != "" {
		return 3
	}
	return 0
}

func look(cfg explore.Config, scenario string, hole bool, search faults.Search) (*mutants.Find, error) {
	if hole {
		return blackHole()
	}
	if scenario != "" {
		return play(scenario)
	}
	if search.Seeds == 0 {
		r, err := explore.Run(context.Background(), cfg)
		if err != nil {
			return nil, err
		}
		return &mutants.Find{Violation: r.Violation, States: r.States, Depth: r.Depth}, nil
	}
	f := faults.First(context.Background(), search)
	if f == nil {
		return &mutants.Find{}, nil
	}
	return &mutants.Find{Violation: f.Invariant + ": " + f.Text, Seed: f.Seed}, nil
}

func play(name string) (*mutants.Find, error) {
	list, err := scenarios.All()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name == name {
			find := &mutants.Find{}
			if err := list[i].Run(nil); err != nil {
				find.Violation = err.Error()
			}
			return find, nil
		}
	}
	return nil, fmt.Errorf("there is no scenario %q", name)
}
