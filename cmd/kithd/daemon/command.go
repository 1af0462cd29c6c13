package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// DefaultConfigPath is where kithd looks for its configuration.
const DefaultConfigPath = "/etc/kith/kithd.toml"

// Main is the kithd program: it returns the exit code, 0 after a clean stop, 1
// after a failure, 2 for wrong usage or configuration.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := 0
	root := command(&code)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "kithd: %v\n", err)
		if code == 0 {
			code = 2
		}
	}
	return code
}

func command(code *int) *cobra.Command {
	path := DefaultConfigPath
	root := &cobra.Command{
		Use:   "kithd",
		Short: "The daemon of a Kith site: local scheduler and peer meta-scheduler",
		Long: "kithd runs one site of a Kith federation until it gets SIGTERM or SIGINT.\n" +
			"It logs to stderr. Running jobs outlive it: a new kithd takes them up again.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := LoadConfig(path)
			if err != nil {
				*code = 2
				return err
			}
			if err := runSite(cmd.Context(), cfg, cmd.ErrOrStderr()); err != nil {
				*code = 1
				return err
			}
			return nil
		},
	}
	root.PersistentFlags().StringVar(&path, "config", path, "configuration file")
	config := &cobra.Command{Use: "config", Short: "Work with the configuration file"}
	config.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file and say what is wrong", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				path = args[0]
			}
			cfg, err := LoadConfig(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: site %s, good\n", path, cfg.Site)
			return nil
		},
	})
	root.AddCommand(config, &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "kithd", Version()) },
	})
	return root
}

// runSite runs the site until a signal comes.
func runSite(ctx context.Context, cfg Config, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, err := cfg.Log.logger(stderr)
	if err != nil {
		return err
	}
	d, err := Open(cfg, log)
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

func (l LogConfig) logger(w io.Writer) (*slog.Logger, error) {
	level, err := l.level()
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}
