package cli

import (
	"errors"
	"strings"

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
		if bad.GetFlag().Value.Type() == "duration" {
			return Usagef("--%s %s: write a number with a unit, for example 30s, 5m or 1h30m", bad.GetFlag().Name, clip(bad.GetValue()))
		}
		return Usagef("--%s %s: %v", bad.GetFlag().Name, clip(bad.GetValue()), bad.Unwrap())
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && missing.GetSpecifiedShortnames() == "" {
		if similar := similarFlag(cmd.Flags(), missing.GetSpecifiedName()); similar != "" {
			return Usagef("%v; did you mean --%s?", err, similar)
		}
	}
	return Usagef("%v; %q lists the flags", err, cmd.CommandPath()+" --help")
}

// clip shortens a value that may be long.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// similarFlag returns the flag that a mistyped name most likely stands for: one
// that it begins or ends, or that is at most two letters away; "" if there is none.
func similarFlag(flags *pflag.FlagSet, name string) string {
	best, least := "", 3
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		away := distance(name, f.Name)
		if len(name) > 3 && strings.Contains(strings.ReplaceAll(f.Name, "-", ""), strings.ReplaceAll(name, "-", "")) {
			away = min(away, 1)
		}
		if away < least && away < len(name) {
			best, least = f.Name, away
		}
	})
	return best
}

// distance is how many letters have to be added, left out or replaced to make
// b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
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
