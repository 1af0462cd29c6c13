package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
)

// A verb is one command of the command line: its name and what makes it.
type verb struct {
	name string
	make func(*client) *cobra.Command
}

// verbs is the command line. To add a verb, add its function here.
func verbs() []verb {
	return []verb{
		{"submit", submitVerb}, {"queue", queueVerb}, {"show", showVerb}, {"why", whyVerb}, {"logs", logsVerb}, {"fetch", fetchVerb},
		{"cancel", cancelVerb}, {"hold", holdVerb}, {"release", releaseVerb}, {"checkpoint", checkpointVerb}, {"wait", waitVerb}, {"bag", bagVerb},
		{"sites", sitesVerb}, {"site", siteVerb}, {"token", tokenVerb}, {"drain", drainVerb}, {"resume", resumeVerb}, {"audit", auditVerb},
		{"history", historyVerb}, {"forecasts", forecastsVerb}, {"harm", harmVerb}, {"what-if", whatIfVerb},
		{"demo", demoVerb}, {"replay", replayVerb}, {"version", versionVerb}, {"completion", completionVerb}, {"exit-codes", exitCodesTopic},
	}
}

// needed returns the verbs that a command line needs: the one that it begins
// with, else all, for help, for completion and to say what is similar. To make
// them all takes longer than most of them run.
func needed(args []string) []verb {
	all := verbs()
	if len(args) > 0 {
		for i := range all {
			if all[i].name == args[0] {
				return all[i : i+1]
			}
		}
		if remedy := foreignCommands[args[0]]; remedy != "" {
			return []verb{{args[0], foreignVerb(args[0], remedy)}}
		}
	}
	return all
}

// defaultTimeout is that of --timeout.
const defaultTimeout = 30 * time.Second

// client is one run of kith: a program that may ask a site. It is used by one
// goroutine.
type client struct {
	*cli.Program

	address string
	// caFile and tokenFile are how the site and the user prove themselves over TCP; ""
	// for neither.
	caFile, tokenFile string
	timeout           time.Duration
	// limited says that the user gave a timeout: it then also bounds verbs
	// that follow something for as long as it takes.
	limited bool
	// exits says that the process ends with this run: what the kernel cleans up
	// faster is left to it.
	exits bool
	// dialled is how the latest try to connect went.
	dialled dialLog
}

func newClient(stdin io.Reader, stdout, stderr io.Writer) *client {
	return &client{Program: cli.New("kith", stdin, stdout, stderr)}
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newClient(stdin, stdout, stderr).run(ctx, args)
}

func (c *client) run(ctx context.Context, args []string) int {
	return c.Run(ctx, c.root(needed(args)), args)
}

// root makes the command with the given verbs below it.
func (c *client) root(list []verb) *cobra.Command {
	root := &cobra.Command{
		Use:   "kith",
		Short: "Run jobs at the first of several sites that can start them",
		Long: `Kith federates compute sites. A job is submitted at one site, its origin, waits
at several, and runs at the first that can start it.

Commands ask the site at --site. Exit codes are those of "kith help exit-codes".`,
	}
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&c.address, "site", c.Getenv("KITH_SITE"), "`HOST:PORT` or unix:PATH of the site to ask (default $KITH_SITE, else the socket of this machine's site)")
	flags.Lookup("site").DefValue = ""
	flags.StringVar(&c.caFile, "ca", c.Getenv("KITH_CA"), "`FILE` with the CA of a site at HOST:PORT, its ca.crt (default $KITH_CA)")
	flags.Lookup("ca").DefValue = ""
	flags.StringVar(&c.tokenFile, "token", c.Getenv("KITH_TOKEN"), "`FILE` with a token of a site at HOST:PORT (default $KITH_TOKEN)")
	flags.Lookup("token").DefValue = ""
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait for the site's answer, as `D`: 10s, 5m")
	var commands []*cobra.Command
	for _, v := range list {
		commands = append(commands, v.make(c))
	}
	return c.Root(root, c.around, commands...)
}

// around checks the flags of all verbs and puts the error of a site into words.
func (c *client) around(cmd *cobra.Command, verb func() error) error {
	if c.address == "" {
		c.address = defaultSite()
	}
	c.limited = cmd.Flags().Changed("timeout")
	if c.timeout <= 0 {
		return cli.Usagef("--timeout %v: must be more than 0", c.timeout)
	}
	return c.explain(verb())
}

// versionVerb is "kith version".
func versionVerb(c *client) *cobra.Command {
	return cli.VersionVerb(c.Program, `"kith sites --output json" has those of the sites.`)
}

// completionVerb is "kith completion".
func completionVerb(c *client) *cobra.Command { return cli.CompletionVerb(c.Program) }
