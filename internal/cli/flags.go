package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Parsed is a flag whose text a function reads.
type Parsed[T any] struct {
	Value T
	Text  string // as given, or the default
	Kind  string // for the help
	Parse func(string) (T, error)
}

// Set implements pflag.Value.
func (p *Parsed[T]) Set(text string) error {
	value, err := p.Parse(text)
	if err != nil {
		return err
	}
	p.Value, p.Text = value, text
	return nil
}

// String implements pflag.Value.
func (p *Parsed[T]) String() string { return p.Text }

// Type implements pflag.Value.
func (p *Parsed[T]) Type() string { return p.Kind }

// FlagFailure puts a mistake in the flags of a verb into words.
func FlagFailure(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if f, ok := errors.AsType[*Failure](err); ok {
			return f
		}
		return Usagef("--%s %s: %v", bad.GetFlag().Name, bad.GetValue(), bad.Unwrap())
	}
	return Usagef("%v; %q lists the flags", err, cmd.CommandPath()+" --help")
}

// NoArgs accepts no arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s: unexpected argument %q", cmd.Name(), args[0])
	}
	return nil
}

// Complete names the values of a flag to the shell's completion.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that does not exist, which tests notice.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
