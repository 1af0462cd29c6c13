package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kith/internal/cli"
)

// maxScript is the longest script, in bytes.
const maxScript = 1 << 20

// A program is what a job runs: a command or a script.
type program struct {
	command   []string
	script    string
	arguments []string
	// name is the job's name unless the user gives one.
	name string
	// source is what messages call the script; "" if its #SBATCH lines do not count.
	source string
}

// readProgram finds out what the command line wants to run.
func (c *client) readProgram(cmd *cobra.Command, args []string, wrap string) (*program, error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case cmd.Flags().Changed("wrap"):
		if len(args) > 0 {
			return nil, cli.Usagef("--wrap %q: argument %q is one too many", wrap, args[0])
		}
		if strings.TrimSpace(wrap) == "" {
			return nil, cli.Usagef("--wrap %q: there is no command in it; write what the shell is to run, for example --wrap hostname", wrap)
		}
		return checked(&program{script: "#!/bin/sh\n" + wrap + "\n", name: "wrap"})
	case dash == 0 && len(args) > 0:
		return checked(&program{command: args, name: filepath.Base(args[0])})
	case dash == 0:
		return nil, cli.Usagef("%s --: which command?", cmd.Name())
	case len(args) == 0 || args[0] == "-":
		return c.scriptFromStdin(cmd, args)
	}
	script, err := readScript(args[0])
	if err != nil {
		return nil, err
	}
	return checked(&program{script: script, arguments: args[1:], name: filepath.Base(args[0]), source: args[0]})
}

// scriptFromStdin reads the script as sbatch does when no file is named, but
// does not wait for a person to type it.
func (c *client) scriptFromStdin(cmd *cobra.Command, args []string) (*program, error) {
	if f, ok := c.Stdin.(*os.File); ok && len(args) == 0 && term.IsTerminal(int(f.Fd())) {
		return nil, cli.Usagef("%s: what shall run? Give a SCRIPT, -- COMMAND, or --wrap TEXT", cmd.Name())
	}
	text, err := io.ReadAll(io.LimitReader(c.Stdin, maxScript+1))
	if err != nil {
		return nil, cli.Refusedf("read the script from stdin: %v", err)
	}
	if len(text) == 0 {
		return nil, cli.Usagef("%s: what shall run? Give a SCRIPT, -- COMMAND, or --wrap TEXT; stdin is empty", cmd.Name())
	}
	if err := checkScript(fromStdin, string(text)); err != nil {
		return nil, err
	}
	p := &program{script: string(text), name: fromStdin, source: fromStdin}
	if len(args) > 1 {
		p.arguments = args[1:]
	}
	return checked(p)
}

// readScript reads a script file.
func readScript(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", cli.Usagef("script %s: there is no such file; for a command write: kith submit -- %s", name, name)
	case err != nil:
		return "", cli.Usagef("script %s: %v", name, cli.Bare(err))
	case !info.Mode().IsRegular():
		return "", cli.Usagef("script %s: is no regular file", name)
	case info.Size() > maxScript:
		return "", cli.Usagef("script %s: has %d bytes, at most %d; for a program write: kith submit --input %s -- ./%s",
			name, info.Size(), maxScript, name, filepath.Base(name))
	}
	f, err := os.Open(name)
	if err != nil {
		return "", cli.Usagef("script %s: %v", name, cli.Bare(err))
	}
	defer f.Close() //nolint:errcheck // Only read from.
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return "", cli.Usagef("script %s: %v", name, cli.Bare(err))
	}
	return string(text), checkScript(name, string(text))
}

// fromStdin names what was read from the standard input.
const fromStdin = "stdin"

func checkScript(name, text string) error {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case len(text) > maxScript:
		return cli.Usagef("script %s: is longer than %d bytes; take large programs along with --input", name, maxScript)
	case !strings.HasPrefix(text, "#!"):
		what := fmt.Sprintf("script %s: does not begin with #! and the path of an interpreter; write #!/bin/sh, or another, into the first line", name)
		if name == fromStdin {
			return cli.Usagef("%s", what)
		}
		return cli.Usagef("%s; for a program write: kith submit --input %s -- ./%s", what, name, filepath.Base(name))
	case strings.HasSuffix(first, "\r"):
		return cli.Usagef("script %s: its lines end with CR LF as on Windows, so that the interpreter would not be found; convert it, for example with dos2unix", name)
	case !utf8.ValidString(text):
		return cli.Usagef("script %s: is not UTF-8 text; take it along with --input %s and run it with -- ./%s", name, name, filepath.Base(name))
	case strings.IndexByte(text, 0) >= 0:
		return cli.Usagef("script %s: contains a zero byte", name)
	}
	return nil
}

// checked refuses words that cannot be sent.
func checked(p *program) (*program, error) {
	for _, word := range append(append([]string{p.script}, p.command...), p.arguments...) {
		if !utf8.ValidString(word) {
			return nil, cli.Usagef("argument %q: is not UTF-8 text", word)
		}
	}
	return p, nil
}
