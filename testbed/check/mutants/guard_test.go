package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rowsOfAttacks are those of "Attacks as tests" in docs/security.md.
const rowsOfAttacks = 15

// TestGuardsAreThere sees to it that the table of guards keeps up with the code, that each
// row of attacks has guards, and that docs/security.md names the tests.
func TestGuardsAreThere(t *testing.T) {
	if _, err := switched(root, Guards()); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, named := make(map[int]string), map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if m := regexp.MustCompile(`^\| (\d+) \| `).FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			rows[n] = line
		}
	}
	guards := make(map[int]int)
	for _, g := range Guards() {
		if named[g.Name] {
			t.Errorf("guard %s: named twice", g.Name)
		}
		named[g.Name] = true
		guards[g.Row]++
		if !strings.Contains(rows[g.Row], "`"+strings.Split(g.Test, "/")[0]+"`") {
			t.Errorf("guard %s: row %d of docs/security.md does not name %s", g.Name, g.Row, g.Test)
		}
	}
	for row := 1; row <= rowsOfAttacks; row++ {
		if guards[row] == 0 {
			t.Errorf("no guard of row %d is in the table", row)
		}
	}
}

// TestGuards takes out one guard after the other and demands that the test of its attack
// fails. With all of them in, each of the tests passes.
func TestGuards(t *testing.T) {
	if !*all {
		t.Skip("builds the tests of all packages of trust once more, and runs one for each guard; run it with -mutants")
	}
	files, err := switched(root, Guards())
	if err != nil {
		t.Fatal(err)
	}
	overlay := overlayOf(t, files)
	packages := make(map[string][]Guard)
	for _, g := range Guards() {
		if *only == "" || g.Name == *only {
			packages[g.Package] = append(packages[g.Package], g)
		}
	}
	for pkg, guards := range packages {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "tests")
			cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags", "-s -w", "-overlay", overlay, "-o", program, "./"+pkg)
			cmd.Dir = root
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("go test -c: %v\n%s", err, text)
			}
			// play runs a test and returns its name if it failed.
			play := func(guard, test string) (failed bool, text string) {
				cmd := exec.Command(program, "-test.v", "-test.timeout=3m", "-test.run=^"+strings.ReplaceAll(test, "/", "$/^")+"$")
				cmd.Dir, cmd.Env = filepath.Join(root, pkg), append(os.Environ(), switchVariable+"="+guard)
				out, err := cmd.CombinedOutput()
				text = string(out)
				name := strings.Split(test, "/")[0]
				failed = strings.Contains(text, "--- FAIL: "+name+" ")
				if !failed && (err != nil || !strings.Contains(text, "--- PASS: "+name+" ")) {
					t.Errorf("%s without guard %q neither passed nor failed: %v\n%s", test, guard, err, tail(text))
				}
				return failed, text
			}
			sound := map[string]bool{}
			for _, g := range guards {
				if !sound[g.Test] {
					sound[g.Test] = true
					if failed, text := play("", g.Test); failed {
						t.Errorf("%s fails with all guards in:\n%s", g.Test, tail(text))
					}
				}
				t.Run(g.Name, func(t *testing.T) {
					t.Parallel() // most of a test that fails is waiting
					failed, text := play(g.Name, g.Test)
					if !failed {
						t.Fatalf("%s of row %d passes without the guard %s", g.Test, g.Row, g.Name)
					}
					t.Log(firstComplaint(text))
				})
			}
		})
	}
}

// tail returns the end of what a test has said.
func tail(text string) string { return text[max(0, len(text)-2000):] }

// firstComplaint returns the first line that a failing test has said about it.
func firstComplaint(text string) string {
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`^ +\w+_test\.go:\d+: `).MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return tail(text)
}
