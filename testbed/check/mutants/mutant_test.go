package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	all  = flag.Bool("mutants", false, "build every mutant and see whether it is caught; takes some minutes")
	only = flag.String("only", "", "of the mutants, only the one of this name")
)

const root = "../../.."

// TestApply sees to it that the mutants keep up with the code.
func TestApply(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if _, err := m.Apply(root); err != nil {
			t.Error(err)
		}
		if seen[m.Name] {
			t.Errorf("mutant %s: named twice", m.Name)
		}
		seen[m.Name] = true
	}
	if len(seen) < 12 {
		t.Errorf("%d mutants", len(seen))
	}
}

// TestCaught builds each mutant and demands that what its line says catches it.
func TestCaught(t *testing.T) {
	if !*all {
		t.Skip("builds the engines once for every mutant; run it with -mutants")
	}
	// Nothing must be found in the engines as they are.
	var (
		mu   sync.Mutex
		told = map[string]bool{}
	)
	first := func(line string) bool {
		mu.Lock()
		defer mu.Unlock()
		defer func() { told[line] = true }()
		return !told[line]
	}
	healthy := build(t, nil)
	if f := catch(t, healthy, search(mostSeeds)); f.Violation != "" {
		t.Fatalf("without a mutant: seed %d: %s", f.Seed, f.Violation)
	}
	for _, m := range All() {
		if *only != "" && m.Name != *only {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel() // half of a mutant's time is one linker
			files, err := m.Apply(root)
			if err != nil {
				t.Fatal(err)
			}
			mutant := build(t, files)
			for _, args := range append([][]string{m.Caught}, m.Also...) {
				line := strings.Join(args, " ")
				if args[0] != "-seeds" && first(line) {
					if f := catch(t, healthy, args); f.Violation != "" {
						t.Fatalf("without a mutant: %s", f.Violation)
					}
				}
				f := catch(t, mutant, args)
				if f.Violation == "" {
					t.Fatalf("%s: nothing found by catch %s", m.Rule, line)
				}
				if !slices.ContainsFunc(strings.Fields(m.Breaks), func(rule string) bool {
					return strings.Contains(" "+f.Violation, " "+rule+": ")
				}) {
					t.Errorf("expected a violation of %s", m.Breaks)
				}
				switch args[0] {
				case "-seeds", "-wide", "-hostile", "-bags":
					t.Logf("fault search, seed %d: %s", f.Seed, f.Violation)
				case "-black-hole":
					t.Log(f.Violation)
				case "-scenario":
					t.Logf("scenario %s: %s", args[1], f.Violation)
				default:
					t.Logf("exploration, %d states, depth %d: %s", f.States, f.Depth, f.Violation)
				}
			}
		})
	}
}

// build builds the command catch with some files replaced.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	overlay := overlayOf(t, files)
	out := filepath.Join(t.TempDir(), "catch")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-overlay", overlay, "-o", out, "./catch")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

// overlayOf writes files somewhere and returns what -overlay takes to put them in place of
// those of the module.
func overlayOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(base, name)] = path
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// catch runs it.
func catch(t *testing.T, program string, args []string) Find {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if err != nil && (exit == nil || exit.ExitCode() != 3) {
		t.Fatalf("catch %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var f Find
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}
