package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpVerb is the command help. It is cobra's, except that a word which does not
// exist is an error, and that it can write manual pages.
func helpVerb(p *Program) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain this program or one of its commands",
		Long: "Explain this program or one of its commands. \"" + p.Name + " help man DIR\" writes a\n" +
			"manual page for each of them into the folder DIR.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "man" {
				if len(args) != 2 {
					return Usagef("help man: into which folder? Write %s help man DIR", p.Name)
				}
				return p.writeMan(cmd.Root(), args[1])
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef("there is no help on %q; %q lists the commands", strings.Join(args, " "), cmd.Root().Name()+" help")
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, sub := range cmd.Root().Commands() {
				if len(args) == 0 && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// wrongWord puts cobra's complaint about the words of the command line into a
// sentence.
func wrongWord(root *cobra.Command, err error) *Failure {
	text, rest, _ := strings.Cut(err.Error(), "\n")
	if _, similar, ok := strings.Cut(rest, "Did you mean this?"); ok {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(strings.Fields(similar), " or "))
	} else {
		text += fmt.Sprintf("; %q lists the commands", root.Name()+" help")
	}
	return Usagef("%s", text)
}
