package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// named has a command say which of its words is missing, or one too many, where it only
// checks their number.
func named(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if _, ours := errors.AsType[*Failure](err); err == nil || ours {
			return err
		}
		needed, most := wordsOf(cmd.Use)
		usage, name := cmd.UseLine(), strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		switch {
		case len(args) < len(needed):
			return Usagef("%s: %s is missing; write: %s", name, strings.Join(needed[len(args):], " "), usage)
		case len(args) > most:
			return Usagef("%s: %q is one word too many; write: %s", name, args[most], usage)
		}
		return err
	}
}

// wordsOf returns the words that a line of usage asks for, and how many it has with those
// that may be left out. Flags are none of them.
func wordsOf(use string) (needed []string, most int) {
	flag := false
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case flag || strings.HasPrefix(word, "[-"):
			flag = !strings.HasSuffix(word, "]")
		case strings.HasPrefix(word, "["):
			most++
		default:
			needed = append(needed, word)
			most++
		}
	}
	return needed, most
}
