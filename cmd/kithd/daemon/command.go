package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kith/cmd/kithd/config"
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
	path, asRoot, insecure := DefaultConfigPath, false, false
	root := &cobra.Command{
		Use:   "kithd",
		Short: "The daemon of a Kith site: local scheduler and peer meta-scheduler",
		Long: "kithd runs one site of a Kith federation until it gets SIGTERM or SIGINT.\n" +
			"At SIGHUP it reads its configuration again. " +
			"It logs to stderr. Running jobs outlive it: a new kithd takes them up again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			// From here on SIGHUP does not end kithd; one that comes before the site is
			// ready is heeded then.
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			cfg, err := config.Load(path)
			if err != nil {
				return badConfig(err)
			}
			if err := mayRun(os.Geteuid(), asRoot, os.Getenv(asRootVariable)); err != nil {
				return err
			}
			cfg.Listen.InsecureLoopback = cfg.Listen.InsecureLoopback || insecure
			if err := cfg.Validate(); err != nil {
				return badConfig(err)
			}
			return runSite(cmd.Context(), cfg, &Reload{Path: path, Signal: hangups, Level: new(slog.LevelVar), InsecureLoopback: insecure}, p.Stderr)
		},
	}
	root.PersistentFlags().StringVar(&path, "config", path, "configuration `FILE`")
	root.Flags().BoolVar(&asRoot, "as-root", false, "run as root, as all jobs will then; so does "+asRootVariable+"=1")
	root.Flags().BoolVar(&insecure, "insecure-loopback", false, "serve without keys, on loopback only: for tests")
	file := &cobra.Command{Use: "config", Short: "Work with the configuration file"}
	file.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file and say what is wrong", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				path = args[0]
			}
			return check(p, path)
		},
	})
	version := cli.VersionVerb(p, `"kith sites --output json" has those of running sites.`)
	return p.Root(root, nil, initVerb(p, &path), renewVerb(p, &path), membersVerb(p, &path), restoreVerb(p, &path), file, version, cli.CompletionVerb(p), cli.ExitTopic("Exit codes of kithd:\n\n"+cli.ExitTable(exitCodes())))
}

// badConfig has a line for each mistake in a configuration.
func badConfig(err error) *cli.Failure {
	return &cli.Failure{Code: cli.ExitUsage, Problems: strings.Split(err.Error(), "\n")}
}

// checkedConfig is a configuration without mistakes as "kithd config check
// --output json" prints it.
type checkedConfig struct {
	File     string   `json:"file"`
	Site     string   `json:"site"`
	Warnings []string `json:"warnings"`
}

// exitCodes is the table behind "kithd help exit-codes".
func exitCodes() []cli.ExitCode {
	return []cli.ExitCode{
		{Code: "0", Meaning: "it worked; a site was stopped in order"},
		{Code: "1", Meaning: "the site could not start, or failed; its log and the last line on stderr say why"},
		{Code: "2", Meaning: "wrong usage: the command line or the configuration"},
	}
}

// check says ok, or all that is wrong with a file. What may only be wrong on
// this machine is a warning: the file may be for another one.
func check(p *cli.Program, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		return badConfig(err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("addresses of this machine: %w", err)
	}
	good := checkedConfig{File: path, Site: cfg.Site, Warnings: cfg.Doubts(own).Lines()}
	return p.Print(good, func() string {
		var b strings.Builder
		for _, w := range good.Warnings {
			fmt.Fprintf(&b, "%s: warning: %s\n", path, w)
		}
		fmt.Fprintf(&b, "%s: ok\n", path)
		return b.String()
	})
}

// heapFloor is how large the heap of kithd may become before its garbage is collected. Little
// lives in that of a site without a long queue, and each job leaves 80 KB of garbage.
const heapFloor = 32 << 20

// runSite runs the site until a signal comes.
func runSite(ctx context.Context, cfg config.Config, r *Reload, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer cli.HeapFloor(heapFloor)()
	log := logger(cfg.Log, r.Level, stderr)
	if cfg.Members.Self != "" {
		m, err := OpenMember(cfg, log)
		if err != nil {
			return err
		}
		return m.Run(ctx, r)
	}
	d, err := Open(cfg, log)
	if err != nil {
		return err
	}
	return d.Run(ctx, r)
}

// logger returns the log that the configuration asks for. Its level is level's.
func logger(l config.Log, level *slog.LevelVar, w io.Writer) *slog.Logger {
	level.Set(l.SlogLevel())
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
