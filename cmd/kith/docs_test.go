package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func cliPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// docs/cli.md has a row for every verb with its flags; those of submit have a
// table of their own.
func TestPageNamesEveryVerbAndFlag(t *testing.T) {
	page := cliPage(t)
	_, submit, _ := strings.Cut(page, "\n### submit\n")
	submit, _, _ = strings.Cut(submit, "\n#")
	root := (&cli{}).root()
	checkFlags(t, "all", rowOf(page, "| all |"), root.PersistentFlags())
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		if cmd == root || cmd.Hidden || (cmd.HasSubCommands() && !cmd.Runnable()) {
			return
		}
		row := rowOf(page, "| `"+cmd.CommandPath()+"` |")
		if row == "" {
			t.Errorf("docs/cli.md has no row for %q", cmd.CommandPath())
			return
		}
		if cmd.CommandPath() == "kith submit" {
			row = submit
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
			t.Errorf("docs/cli.md does not name --%s of %q", f.Name, verb)
		}
		if f.Shorthand != "" && !strings.Contains(text, "`-"+f.Shorthand+"`") {
			t.Errorf("docs/cli.md does not name -%s of %q", f.Shorthand, verb)
		}
	})
}

// The table of #SBATCH lines names every option that counts.
func TestPageNamesEveryDirective(t *testing.T) {
	_, section, _ := strings.Cut(cliPage(t), "\n## `#SBATCH` lines\n")
	section, _, _ = strings.Cut(section, "\nEvery other option")
	for _, o := range supportedOptions() {
		if !strings.Contains(section, "`--"+o.long+"`") {
			t.Errorf("docs/cli.md does not say what #SBATCH --%s means", o.long)
		}
		if o.short != 0 && !strings.Contains(section, "`-"+string(o.short)+"`") {
			t.Errorf("docs/cli.md does not say what #SBATCH -%c means", o.short)
		}
	}
}

// The page has the exit codes of "kith help exit-codes".
func TestPageNamesEveryExitCode(t *testing.T) {
	_, section, _ := strings.Cut(cliPage(t), "\n## Exit codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	own, ofJobs := exitCodes()
	for _, c := range own {
		if !strings.Contains(section, "\n| "+c.code+" | ") {
			t.Errorf("docs/cli.md does not explain exit code %s", c.code)
		}
	}
	for _, c := range ofJobs[1:] { // the first is the job's own
		if !strings.Contains(section, c.code) {
			t.Errorf("docs/cli.md does not explain exit code %s of jobs", c.code)
		}
	}
}
