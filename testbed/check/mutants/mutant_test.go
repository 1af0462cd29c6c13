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

// mostAlone is how many mutants may need a program of their own, which takes long to build.
const mostAlone = 3

// TestApply sees to it that the mutants keep up with the code, and that nearly all are in one
// program.
func TestApply(t *testing.T) {
	_, alone, err := merge(root, All())
	if err != nil {
		t.Fatal(err)
	}
	if len(alone) > mostAlone {
		t.Errorf("%d mutants change more than bodies of functions, and are built one by one: write them as functions", len(alone))
	}
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

// TestPageHasAllMutants sees to it that docs/reliability.md has a row for each.
func TestPageHasAllMutants(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range All() {
		if !strings.Contains(string(page), "\n| "+m.Rule+" | ") {
			t.Errorf("mutant %s: docs/reliability.md has no row %q", m.Name, m.Rule)
		}
	}
}

// TestCaught demands of each mutant that what its line says catches it.
func TestCaught(t *testing.T) {
	if !*all {
		t.Skip("builds the engines with all mutants and looks for each; run it with -mutants")
	}
	files, alone, err := merge(root, All())
	if err != nil {
		t.Fatal(err)
	}
	var (
		overlay = overlayOf(t, files)
		healthy = build(t, overlay)
		tests   = testPrograms(t, overlay)
		mu      sync.Mutex
		told    = map[string]bool{}
	)
	first := func(line string) bool {
		mu.Lock()
		defer mu.Unlock()
		defer func() { told[line] = true }()
		return !told[line]
	}
	// Nothing must be found in the engines as they are.
	if f := catch(t, healthy, "", search(mostSeeds)); f.Violation != "" {
		t.Fatalf("without a mutant: seed %d: %s", f.Seed, f.Violation)
	}
	for _, m := range All() {
		if *only != "" && m.Name != *only {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			apart := slices.ContainsFunc(alone, func(a Mutant) bool { return a.Name == m.Name })
			if m.Tests != nil {
				if apart {
					t.Fatalf("it changes more than bodies of functions, and is caught by a test")
				}
				failsWith(t, tests[m.Tests[0]], m.Name, m.Tests)
				return
			}
			mutant := healthy
			if apart {
				changed, err := m.Apply(root)
				if err != nil {
					t.Fatal(err)
				}
				mutant = build(t, overlayOf(t, changed))
			}
			for _, args := range append([][]string{m.Caught}, m.Also...) {
				line := strings.Join(args, " ")
				if args[0] != "-seeds" && first(line) {
					if f := catch(t, healthy, "", args); f.Violation != "" {
						t.Fatalf("without a mutant: %s", f.Violation)
					}
				}
				f := catch(t, mutant, m.Name, args)
				if f.Violation == "" {
					t.Fatalf("%s: nothing found by catch %s", m.Rule, line)
				}
				if !slices.ContainsFunc(strings.Fields(m.Breaks), func(rule string) bool {
					return strings.Contains(" "+f.Violation, " "+rule+": ")
				}) {
					t.Errorf("expected a violation of %s", m.Breaks)
				}
				switch args[0] {
				case "-seeds", "-wide", "-hostile", "-bags", "-members", "-levels":
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

// testPrograms builds the tests of the packages whose tests catch mutants.
func testPrograms(t *testing.T, overlay string) map[string]string {
	t.Helper()
	programs := make(map[string]string)
	for _, m := range All() {
		if m.Tests == nil || programs[m.Tests[0]] != "" || *only != "" && m.Name != *only {
			continue
		}
		program := filepath.Join(t.TempDir(), "tests")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags", "-s -w", "-overlay", overlay, "-o", program, m.Tests[0])
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go test -c: %v\n%s", err, text)
		}
		programs[m.Tests[0]] = program
	}
	return programs
}

// failsWith sees to it that a test passes, and fails with a mutant.
func failsWith(t *testing.T, program, mutant string, test []string) {
	t.Helper()
	run := func(mutant string) (string, error) {
		cmd := exec.Command(program, "-test.v", "-test.run=^"+test[1]+"$")
		cmd.Dir, cmd.Env = filepath.Join(root, test[0]), append(os.Environ(), switchVariable+"="+mutant)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for try := 1; ; try++ { // a busy machine gets a second chance
		text, err := run("")
		if err == nil && strings.Contains(text, "--- PASS: "+test[1]) {
			break
		}
		if try == 2 {
			t.Fatalf("without a mutant: %v\n%s", err, text)
		}
		t.Logf("without a mutant, try %d: %v\n%s", try, err, text)
	}
	text, err := run(mutant)
	if err == nil || !strings.Contains(text, "--- FAIL: "+test[1]) {
		t.Fatalf("%s does not fail: %v\n%s", test[1], err, text)
	}
	_, line, _ := strings.Cut(text, "--- FAIL: ")
	t.Logf("%s", line[:min(len(line), 300)])
}

// build builds the command catch with an overlay.
func build(t *testing.T, overlay string) string {
	t.Helper()
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

// catch runs it with a mutant, or none.
func catch(t *testing.T, program, mutant string, args []string) Find {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), switchVariable+"="+mutant)
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
