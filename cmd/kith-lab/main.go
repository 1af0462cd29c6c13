package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/flood"
	"kith/testbed/local/inprocess"
)

func main() {
	// The sites of chaos and bench are this very program, and so are the shims
	// of their jobs.
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	if handled, code := flood.Main(os.Args); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the verb to end; the next one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// verbs is the command line. To add a verb, add its function here.
func verbs() []cli.Verb {
	return []cli.Verb{listVerb, runVerb, faultsVerb, exploreVerb, flightVerb, chaosVerb, benchVerb, versionVerb, cli.CompletionVerb, exitCodesTopic}
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.New("kith-lab", stdin, stdout, stderr)
	return p.Run(ctx, root(p), args)
}

// root makes the command with all verbs below it.
func root(p *cli.Program) *cobra.Command {
	var commands []*cobra.Command
	for _, v := range verbs() {
		commands = append(commands, v(p))
	}
	return p.Root(&cobra.Command{
		Use:   "kith-lab",
		Short: "Repeat the experiments behind Kith, and try to break it",
		Long: `Repeat the experiments of the papers that Kith is built on, search for faults
that break a promise, and measure. Nothing here asks a site: what needs sites
starts its own, on loopback.

Exit codes are those of "kith-lab help exit-codes".`,
	}, nil, commands...)
}

// versionVerb is "kith-lab version".
func versionVerb(p *cli.Program) *cobra.Command { return cli.VersionVerb(p, "") }

// exitCodes is the table behind "kith-lab help exit-codes".
func exitCodes() []cli.ExitCode {
	return []cli.ExitCode{
		{Code: "0", Meaning: "it worked, and what was checked holds"},
		{Code: "1", Meaning: "a claim with an enforced band does not hold, a promise is broken, a check failed, or a file could not be written"},
		{Code: "2", Meaning: "wrong usage: the command line or a value in it"},
		{Code: "130", Meaning: "interrupted, for example with Ctrl-C"},
	}
}

// exitCodesTopic is "kith-lab help exit-codes".
func exitCodesTopic(*cli.Program) *cobra.Command {
	return cli.ExitTopic("Exit codes of kith-lab:\n\n" + cli.ExitTable(exitCodes()))
}
