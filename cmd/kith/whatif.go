package main

import (
	"github.com/spf13/cobra"
)

// whatIfVerb is "kith what-if", questions that change nothing.
func whatIfVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "what-if", Short: "Ask what would be, and change nothing"}
	cmd.AddCommand(whatIfSiteVerb(c))
	return cmd
}
