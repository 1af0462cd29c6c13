package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes that all programs share. Scripts depend on them: they never
// change their meaning. A program may have further ones.
const (
	ExitOK          = 0
	ExitRefused     = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// ExitCode is a line of a table of exit codes.
type ExitCode struct {
	Code, Meaning string
}

// ExitTable writes exit codes as lines of a help text.
func ExitTable(codes []ExitCode) string {
	var b strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&b, "  %-8s  %s\n", c.Code, c.Meaning)
	}
	return b.String()
}

// ExitTopic is "help exit-codes" with the given text.
func ExitTopic(text string) *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimSuffix(text, "\n")}
}
