// Package clitest checks command lines: what the tests of kith and kith-lab
// share.
package clitest

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CheckPage demands that a page of the documentation has a row of a table for
// every command below root, which names its flags, and one for the flags of
// all commands, which begins with all. Sections has the text to look at for
// commands whose flags have a place of their own.
func CheckPage(t *testing.T, page, all string, root *cobra.Command, sections map[string]string) {
	t.Helper()
	checkFlags(t, root.Name(), rowOf(page, all), root.PersistentFlags())
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden { // and what is below it
			return
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		if cmd == root || !cmd.Runnable() || cmd.HasSubCommands() && cmd.LocalNonPersistentFlags().FlagUsages() == "" {
			return
		}
		row := rowOf(page, "| `"+cmd.CommandPath()+"` |")
		if row == "" {
			t.Errorf("the page has no row for %q", cmd.CommandPath())
			return
		}
		if section, ok := sections[cmd.CommandPath()]; ok {
			row = section
		}
		checkFlags(t, cmd.CommandPath(), row, cmd.LocalNonPersistentFlags())
	}
	check(root)
}

// rowOf returns the line of a table that begins so.
func rowOf(page, begin string) string {
	_, rest, found := strings.Cut(page, "\n"+begin)
	if !found {
		return ""
	}
	row, _, _ := strings.Cut(rest, "\n")
	return begin + row
}

func checkFlags(t *testing.T, verb, text string, flags *pflag.FlagSet) {
	t.Helper()
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !strings.Contains(text, "`--"+f.Name+"`") && !strings.Contains(text, "`--"+f.Name+" ") {
			t.Errorf("the page does not name --%s of %q", f.Name, verb)
		}
		if f.Shorthand != "" && !strings.Contains(text, "`-"+f.Shorthand+"`") {
			t.Errorf("the page does not name -%s of %q", f.Shorthand, verb)
		}
	})
}

// ExitsWith is the command "code N COMMAND ARGS..." of a test script: it runs
// a command that must exit with N.
func ExitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGS...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code is %d, want %s", got, args[0])
	}
}
