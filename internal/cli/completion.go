package cli

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// CompletionVerb is the command completion.
func CompletionVerb(p *Program) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a script that lets a shell complete this program's words",
		Example: strings.ReplaceAll(`  source <(NAME completion bash)
  NAME completion zsh > "${fpath[1]}/_NAME"
  NAME completion fish > ~/.config/fish/completions/NAME.fish`, "NAME", p.Name),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("%s: which shell? One of %s", cmd.Name(), strings.Join(shells, ", "))
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
				return Usagef("%s %s: there are only %s", cmd.Name(), args[0], strings.Join(shells, ", "))
			}
			if err != nil {
				return err
			}
			return p.Write(b.String())
		},
	}
}
