package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A verb makes one command of the command line.
type verb func(*cli) *cobra.Command

// verbs is the command line. To add a verb, add its function here.
func verbs() []verb {
	return []verb{
		submitVerb, queueVerb, showVerb, whyVerb, logsVerb, fetchVerb,
		cancelVerb, holdVerb, releaseVerb, waitVerb,
		sitesVerb, siteVerb, drainVerb, resumeVerb,
		demoVerb, chaosVerb, replayVerb, labVerb, benchVerb, versionVerb, completionVerb, exitCodesTopic,
	}
}

// Defaults of the global flags.
const (
	defaultSite    = "127.0.0.1:7410"
	defaultTimeout = 30 * time.Second
)

// cli is one invocation: where it reads and writes, and what the global flags
// say. It is used by one goroutine.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string // of the caller, as NAME=value
	now            func() time.Time
	zone           *time.Location
	// width is how many columns a table may have; 0 means any number.
	width int

	address string
	format  parsed[format]
	timeout time.Duration
	// limited says that the user gave a timeout: it then also bounds verbs
	// that follow something for as long as it takes.
	limited bool
	// dialled is how the latest try to connect went.
	dialled dialLog
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: os.Environ(),
		now: time.Now, zone: time.Local, width: terminalWidth(stdout),
	}
	root := c.root()
	root.SetArgs(args)
	return c.report(ctx, root.ExecuteContext(ctx))
}

// root makes the command with all verbs below it.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kith",
		Short: "Run jobs at the first of several sites that can start them",
		Long: `Kith federates compute sites. A job is submitted at one site, its origin, waits
at several, and runs at the first that can start it.

Commands ask the site at --site. Exit codes are those of "kith help exit-codes".`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("which verb? %q lists them", cmd.Name()+" help")
		},
	}
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(flagFailure)
	c.format = parsed[format]{value: table, text: string(table), kind: "table|json", parse: parseFormat}
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&c.address, "site", c.getenv("KITH_SITE"), "`HOST:PORT` of the site to ask (default $KITH_SITE, else "+defaultSite+")")
	flags.Lookup("site").DefValue = ""
	flags.Var(&c.format, "output", "print tables for people or JSON for programs")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait for the site's answer, as `D`: 10s, 5m")
	complete(root, "output", string(table), string(asJSON))
	root.SetHelpCommand(c.wrap(helpVerb(c)))
	for _, v := range verbs() {
		root.AddCommand(c.wrap(v(c)))
	}
	return root
}

// wrap gives a verb what all of them share: the check of the global flags and
// errors in words.
func (c *cli) wrap(cmd *cobra.Command) *cobra.Command {
	for _, below := range cmd.Commands() {
		c.wrap(below)
	}
	inner := cmd.RunE
	if inner == nil {
		return cmd
	}
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.address == "" {
			c.address = defaultSite
		}
		c.limited = cmd.Flags().Changed("timeout")
		if c.timeout <= 0 {
			return usagef("--timeout %v: must be more than 0", c.timeout)
		}
		return c.explain(inner(cmd, args))
	}
	return cmd
}

// report prints what went wrong and returns the exit code.
func (c *cli) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok { // the command line itself
		f = wrongWord(err)
	}
	if ctx.Err() != nil && f.code != exitUsage && !f.keep {
		f = &failure{code: exitInterrupted, problems: []string{"interrupted"}}
	}
	for _, problem := range f.problems {
		c.note("%s", problem)
	}
	return f.code
}

// getenv returns a variable of the caller's environment, or "".
func (c *cli) getenv(name string) string {
	value, _ := lookup(c.environ, name)
	return value
}

// lookup finds a variable in a list of NAME=value; the last one counts.
func lookup(environ []string, name string) (string, bool) {
	for _, entry := range slices.Backward(environ) {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return entry[len(name)+1:], true
		}
	}
	return "", false
}

// complete names the values of a flag to the shell's completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that does not exist, which tests notice.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// terminalWidth returns the width of the terminal that w is, or 0.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
