package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// completionVerb is "kith completion".
func completionVerb(c *cli) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a script that lets a shell complete kith's words",
		Example: `  source <(kith completion bash)
  kith completion zsh > "${fpath[1]}/_kith"
  kith completion fish > ~/.config/fish/completions/kith.fish`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s: which shell? One of %s", cmd.Name(), strings.Join(shells, ", "))
			}
			var b bytes.Buffer
			var err error
			switch args[0] {
			case "bash":
				err = cmd.Root().GenBashCompletionV2(&b, true)
			case "zsh":
				err = cmd.Root().GenZshCompletion(&b)
			case "fish":
				err = cmd.Root().GenFishCompletion(&b, true)
			default:
				return usagef("%s %s: there are only %s", cmd.Name(), args[0], strings.Join(shells, ", "))
			}
			if err != nil {
				return err
			}
			return c.write(b.String())
		},
	}
}
