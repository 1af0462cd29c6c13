package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kith/internal/cli"
)

// DefaultConfigPath is where kithd looks for its configuration.
const DefaultConfigPath = "/etc/kith/kithd.toml"

// Main is the kithd program: it returns the exit code, 0 after a clean stop, 1
// after a failure, 2 for wrong usage or configuration.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := cli.New("kithd", nil, stdout, stderr)
	return p.Run(ctx, command(p), args)
}

func command(p *cli.Program) *cobra.Command {
	path := DefaultConfigPath
	root := &cobra.Command{
		Use:   "kithd",
		Short: "The daemon of a Kith site: local scheduler and peer meta-scheduler",
		Long: "kithd runs one site of a Kith federation until it gets SIGTERM or SIGINT.\n" +
			"It logs to stderr. Running jobs outlive it: a new kithd takes them up again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := LoadConfig(path)
			if err != nil {
				return badConfig(err)
			}
			return runSite(cmd.Context(), cfg, p.Stderr)
		},
	}
	root.PersistentFlags().StringVar(&path, "config", path, "configuration `FILE`")
	config := &cobra.Command{Use: "config", Short: "Work with the configuration file"}
	config.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file and say what is wrong", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				path = args[0]
			}
			cfg, err := LoadConfig(path)
			if err != nil {
				return badConfig(err)
			}
			return p.Print(checkedConfig{File: path, Site: cfg.Site}, func() string {
				return fmt.Sprintf("%s: site %s, good\n", path, cfg.Site)
			})
		},
	})
	version := cli.VersionVerb(p, `"kith sites --output json" has those of running sites.`)
	return p.Root(root, nil, config, version, cli.CompletionVerb(p), cli.ExitTopic("Exit codes of kithd:\n\n"+cli.ExitTable(exitCodes())))
}

// badConfig has a line for each mistake in a configuration.
func badConfig(err error) *cli.Failure {
	return &cli.Failure{Code: cli.ExitUsage, Problems: strings.Split(err.Error(), "\n")}
}

// checkedConfig is a configuration without mistakes as "kithd config check
// --output json" prints it.
type checkedConfig struct {
	File string `json:"file"`
	Site string `json:"site"`
}

// exitCodes is the table behind "kithd help exit-codes".
func exitCodes() []cli.ExitCode {
	return []cli.ExitCode{
		{Code: "0", Meaning: "it worked; a site was stopped in order"},
		{Code: "1", Meaning: "the site could not start, or failed; its log and the last line on stderr say why"},
		{Code: "2", Meaning: "wrong usage: the command line or the configuration"},
	}
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
