package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cmd/kithd/config"
)

// older writes a kithd that only checks its configuration, and says something.
func older(t *testing.T, says string, code string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kithd")
	script := "#!/bin/sh\n[ \"$1 $2\" = 'config check' ] || exit 9\ncat <<'END' >&2\n" + says + "\nEND\nexit " + code + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func node(t *testing.T) *Node {
	t.Helper()
	f := &Federation{cfg: Config{Dir: t.TempDir(), Program: "/bin/false"}}
	f.cfg.Sites = []Site{{Name: "alpha"}}
	n, err := f.prepare(0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What an earlier version does not know is left out of its configuration.
func TestEarlierVersion(t *testing.T) {
	n := node(t)
	says := "kithd: config F: key timing.lease is not known; did you mean timing.load?\nkey gossip is not known\nkey site is not known"
	if err := n.Use(older(t, says, "2")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"timing.lease", "gossip", "site"}; !slices.Equal(n.program.unknown, want) {
		t.Errorf("unknown keys are %v, want %v", n.program.unknown, want)
	}
	path := filepath.Join(t.TempDir(), "kithd.toml")
	if err := writeConfig(path, n.Config, n.program.unknown); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"lease =", "[gossip]", "site ="} {
		if strings.Contains(string(text), gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	for _, kept := range []string{"lease_margin =", "data =", "[timing]"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q is gone", kept)
		}
	}
}

func TestVersionThatKnowsAll(t *testing.T) {
	n := node(t)
	if err := n.Use(older(t, "good", "0")); err != nil || len(n.program.unknown) > 0 {
		t.Errorf("%v, unknown keys %v", err, n.program.unknown)
	}
	path := filepath.Join(t.TempDir(), "kithd.toml")
	if err := writeConfig(path, n.Config, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Load(path); err != nil || got.Site != "alpha" {
		t.Errorf("the configuration is read back as %+v, %v", got, err)
	}
	if err := n.Use(""); err != nil || n.program.path != "/bin/false" {
		t.Errorf("the federation's own program is now %q, %v", n.program.path, err)
	}
}

// A program that refuses the configuration for another reason is no kithd.
func TestNoVersion(t *testing.T) {
	for _, path := range []string{older(t, "segmentation fault", "1"), "/nowhere/kithd"} {
		n := node(t)
		if err := n.Use(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A kithd init that hangs ends with who waits for its keys.
func TestMakingKeysEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kithd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 20\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := node(t)
	n.program = program{path: path}
	for name, do := range map[string]func(context.Context) error{
		"makeKeys":  n.makeKeys,
		"MakesKeys": func(ctx context.Context) error { return MakesKeys(ctx, path) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := do(ctx)
		cancel()
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
}
