package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
)

// pairs is a repeatable flag NAME=VALUE.
type pairs struct {
	values map[string]string
	// below are pairs that give way to values.
	below map[string]string
}

// Set implements pflag.Value.
func (p *pairs) Set(text string) error { return addPair(&p.values, text) }

func addPair(to *map[string]string, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write NAME=VALUE")
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[name] = value
	return nil
}

// String implements pflag.Value.
func (p *pairs) String() string { return "" }

// Type implements pflag.Value.
func (p *pairs) Type() string { return "NAME=VALUE" }

// merged returns all pairs, or nil if there are none.
func (p *pairs) merged() map[string]string {
	if len(p.below) == 0 {
		return p.values
	}
	all := make(map[string]string)
	for name, value := range p.below {
		all[name] = value
	}
	for name, value := range p.values {
		all[name] = value
	}
	return all
}

// parseCount reads a number of at least 1.
func parseCount(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > job.MaxProcessors {
		return 0, fmt.Errorf("write a number from 1 to %d", job.MaxProcessors)
	}
	return int32(n), nil
}

// parseSpread reads at how many sites a job queues.
func parseSpread(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > job.MaxCopies {
		return 0, fmt.Errorf("write a number from 1 to %d, or leave it out for the site's default", job.MaxCopies)
	}
	return int32(n), nil
}

// oneJob accepts exactly one job.
func oneJob(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("%s: unexpected argument %q", cmd.Name(), args[1])
	}
	return someJobs(cmd, args)
}

// someJobsOrTasks accepts one or more jobs, bags, and tasks of bags.
func someJobsOrTasks(cmd *cobra.Command, args []string) error {
	others := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		_, ok := parseTasksName(arg)
		return ok
	})
	if len(others) == 0 && len(args) > 0 {
		return nil
	}
	return someJobs(cmd, others)
}

// oneJobOrTask accepts exactly one job, bag, or task of a bag.
func oneJobOrTask(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if _, ok := parseTasksName(args[0]); ok {
			return nil
		}
	}
	return oneJob(cmd, args)
}

// ofTask says what there is instead of a verb that does not know tasks.
func ofTask(verb, task string, name tasksName) string {
	switch verb {
	case "hold":
		return fmt.Sprintf("only the whole bag can be held, with \"kith hold %s\"; \"kith cancel %s\" ends the task, and \"kith bag retry %s --index %s\" runs it later", name.bag, task, name.bag, name.indices)
	case "release":
		return fmt.Sprintf("only the whole bag can be held and released, with \"kith release %s\"", name.bag)
	case "why":
		return fmt.Sprintf("\"kith why %s\" tells about its bag, \"kith show %s\" about the task", name.bag, task)
	}
	return fmt.Sprintf("give its bag, %s; \"kith bag\" is about its tasks", name.bag)
}

// someJobs accepts one or more jobs.
func someJobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("%s: which job? %q lists them", cmd.Name(), "kith queue")
	}
	var problems []string
	for _, arg := range args {
		if name, ok := parseTasksName(arg); ok {
			problems = append(problems, fmt.Sprintf("%s: %s is a task: %s", cmd.Name(), arg, ofTask(cmd.Name(), arg, name)))
		} else if _, err := job.ParseID(arg); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return &cli.Failure{Code: cli.ExitUsage, Problems: problems}
	}
	return nil
}
