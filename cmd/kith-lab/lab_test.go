package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kith/internal/cli"
	"kith/internal/cli/clitest"
	"kith/internal/scratch"
	"kith/testbed/local/inprocess"
)

func TestMain(m *testing.M) {
	// In the script of chaos this test binary is the sites, too.
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	scratch.InMemory()
	testscript.Main(m, map[string]func(){"kith-lab": main})
}

// update rewrites what the tests compare with; read the difference.
var update = flag.Bool("update", false, "rewrite golden files")

// TestScripts runs testdata/*.txtar. Beside the commands of package testscript
// there is "code N COMMAND ARGS...", which runs a command that must exit with N.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=10") // else each command takes a second longer
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": clitest.ExitsWith},
	})
}

// docs/cli.md has a row for every verb with its flags.
func TestPageNamesEveryVerbAndFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	p := cli.New("kith-lab", nil, nil, nil)
	clitest.CheckPage(t, string(page), "| all of kith-lab |", root(p), nil)
}

// TestHelpOfVerbs checks that each verb can be explained and that its flags
// and those of all verbs do not clash.
func TestHelpOfVerbs(t *testing.T) {
	t.Parallel()
	for _, v := range verbs() {
		name := v(cli.New("kith-lab", nil, nil, nil)).Name()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"help", name}, strings.NewReader(""), &stdout, &stderr)
		if code != cli.ExitOK || stderr.Len() > 0 || stdout.Len() < 20 {
			t.Errorf("%s: %d %q %q", name, code, &stdout, &stderr)
		}
	}
}
