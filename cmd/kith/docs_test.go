package main

import (
	"os"
	"strings"
	"testing"

	"kith/internal/cli/clitest"
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
	root := newClient(nil, nil, nil).root(verbs())
	clitest.CheckPage(t, page, "| all |", root, map[string]string{"kith submit": submit})
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
		if !strings.Contains(section, "\n| "+c.Code+" | ") {
			t.Errorf("docs/cli.md does not explain exit code %s", c.Code)
		}
	}
	for _, c := range ofJobs[1:] { // the first is the job's own
		if !strings.Contains(section, c.Code) {
			t.Errorf("docs/cli.md does not explain exit code %s of jobs", c.Code)
		}
	}
}
