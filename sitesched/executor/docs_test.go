package executor

import (
	"os"
	"strings"
	"testing"

	"kith/sitesched/work"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/cli.md names every variable that a job finds.
func TestPageNamesEveryVariable(t *testing.T) {
	cli := page(t, "cli.md")
	var e environment
	for _, v := range append(e.base(&work.Spec{}, "/"), e.facts(&work.Spec{}, "/")...) {
		if !strings.Contains(cli, "`"+v.name+"`") {
			t.Errorf("docs/cli.md does not name %s", v.name)
		}
	}
}

// docs/operations.md names every capability.
func TestPageNamesEveryCapability(t *testing.T) {
	operations := page(t, "operations.md")
	for _, name := range []string{
		CapShim, CapSession, CapPIDNamespace, CapUserNamespace, CapSubreaper, CapNoNewPrivs, CapCoreLimit, CapCgroup,
		CapMemoryLimit, CapOutputLimit, CapAffinity, CapAccounts, CapBackground,
	} {
		if !strings.Contains(operations, "\n| `"+name+"` | ") {
			t.Errorf("docs/operations.md has no row for the capability %s", name)
		}
	}
}
