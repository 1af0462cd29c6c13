package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Program is one run of a command line: where it reads and writes, and what
// the flags of all verbs say. It is used by one goroutine.
type Program struct {
	// Name is what users call the program; it begins every line on stderr.
	Name           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ is the environment of the caller, as NAME=value.
	Environ []string
	Now     func() time.Time
	// Zone is the time zone in which instants are shown.
	Zone *time.Location
	// Width is how many columns a table may have; 0 means any number.
	Width int

	format Parsed[Format]
}

// New returns a program that reads from and writes to the given streams, with
// the environment, clock and time zone of this process.
func New(name string, stdin io.Reader, stdout, stderr io.Writer) *Program {
	return &Program{
		Name: name, Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: os.Environ(),
		Now: time.Now, Zone: time.Local, Width: terminalWidth(stdout),
	}
}

// A Verb makes one command of a program.
type Verb func(*Program) *cobra.Command

// Around runs a verb. It may check the flags of all verbs first, and put the
// verb's error into words; see [Failure].
type Around func(cmd *cobra.Command, verb func() error) error

// Root makes root the top of a command line with the given commands: it gets
// the flags --output and --version and the command help, and every command the manners of the
// package. Without around, verbs run as they are. A root that does nothing of
// its own reports a missing command.
func (p *Program) Root(root *cobra.Command, around Around, commands ...*cobra.Command) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(FlagFailure)
	p.format = Parsed[Format]{Value: Table, Text: string(Table), Kind: "table|json", Parse: parseFormat}
	root.PersistentFlags().SortFlags = false
	root.PersistentFlags().Var(&p.format, "output", "print tables for people or JSON for programs")
	Complete(root, "output", string(Table), string(JSON))
	version := root.Flags().Bool("version", false, "tell the version of this program")
	root.SetHelpCommand(wrap(helpVerb(p), around))
	for _, c := range commands {
		root.AddCommand(wrap(c, around))
	}
	if root.RunE == nil {
		root.RunE = missingCommand
	} else {
		root.RunE = guarded(root.RunE, around)
	}
	own := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version {
			return p.printVersion(false)
		}
		return own(cmd, args)
	}
	return root
}

// wrap gives a command and those below it what all of them share.
func wrap(cmd *cobra.Command, around Around) *cobra.Command {
	for _, below := range cmd.Commands() {
		wrap(below, around)
	}
	if cmd.RunE == nil && cmd.HasSubCommands() {
		cmd.RunE = missingCommand
	}
	if cmd.Args != nil {
		cmd.Args = named(cmd.Args)
	}
	if cmd.RunE != nil { // else it is a topic of the help
		cmd.DisableFlagsInUseLine = true
		cmd.RunE = guarded(cmd.RunE, around)
	}
	return cmd
}

// guarded makes a failure of every error that a verb returns.
func guarded(verb func(*cobra.Command, []string) error, around Around) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var err error
		if around == nil {
			err = verb(cmd, args)
		} else {
			err = around(cmd, func() error { return verb(cmd, args) })
		}
		if _, ok := errors.AsType[*Failure](err); err == nil || ok {
			return err
		}
		return Refusedf("%v", err)
	}
}

// missingCommand is what a command does that only has others below it.
func missingCommand(cmd *cobra.Command, args []string) error {
	help := cmd.Root().Name() + " help"
	if cmd != cmd.Root() {
		help += " " + cmd.Name()
	}
	if len(args) > 0 {
		text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		cmd.SuggestionsMinimumDistance = 2 // as cobra has it
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			return Usagef("%s; did you mean %s?", text, strings.Join(similar, " or "))
		}
		return Usagef("%s; %q lists the commands", text, help)
	}
	return Usagef("missing command; %q lists them", help)
}

// Run carries out one command line, prints what went wrong and returns the
// exit code. A failure while ctx has ended counts as an interruption, unless
// the failure says more.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok { // the command line itself
		f = wrongWord(root, err)
	}
	if ctx.Err() != nil && f.Code != ExitUsage && !f.Keep {
		f = &Failure{Code: ExitInterrupted, Problems: []string{"interrupted"}}
	}
	for _, problem := range f.Problems {
		p.tell(problem)
	}
	return f.Code
}

// Getenv returns a variable of the caller's environment, or "".
func (p *Program) Getenv(name string) string {
	value, _ := Lookup(p.Environ, name)
	return value
}

// Lookup finds a variable in a list of NAME=value; the last one counts.
func Lookup(environ []string, name string) (string, bool) {
	for _, entry := range slices.Backward(environ) {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return entry[len(name)+1:], true
		}
	}
	return "", false
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
