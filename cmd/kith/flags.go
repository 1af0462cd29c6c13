package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kith/internal/job"
)

// parsed is a flag whose text a function reads.
type parsed[T any] struct {
	value T
	text  string // as given, or the default
	kind  string // for the help
	parse func(string) (T, error)
}

// Set implements pflag.Value.
func (p *parsed[T]) Set(text string) error {
	value, err := p.parse(text)
	if err != nil {
		return err
	}
	p.value, p.text = value, text
	return nil
}

// String implements pflag.Value.
func (p *parsed[T]) String() string { return p.text }

// Type implements pflag.Value.
func (p *parsed[T]) Type() string { return p.kind }

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

// flagFailure puts a mistake in the flags of a verb into words.
func flagFailure(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if f, ok := errors.AsType[*failure](err); ok {
			return f
		}
		name := "--" + bad.GetFlag().Name
		if name == "--output" && cmd.Flags().Lookup("stdout") != nil {
			return usagef("--output %s: it chooses table or json; the file for the job's stdout is -o FILE or --stdout FILE", bad.GetValue())
		}
		return usagef("%s %s: %v", name, bad.GetValue(), bad.Unwrap())
	}
	return usagef("%v; %q lists the flags", err, cmd.CommandPath()+" --help")
}

// noArgs accepts no arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s: argument %q is one too many", cmd.Name(), args[0])
	}
	return nil
}

// oneJob accepts exactly one job.
func oneJob(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s: argument %q is one too many", cmd.Name(), args[1])
	}
	return someJobs(cmd, args)
}

// someJobs accepts one or more jobs.
func someJobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s: which job? %q lists them", cmd.Name(), "kith queue")
	}
	var problems []string
	for _, arg := range args {
		if _, err := job.ParseID(arg); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return &failure{code: exitUsage, problems: problems}
	}
	return nil
}
