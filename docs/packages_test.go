package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/packages.md anew; read the difference")

// A floor holds the packages that begin with one of its paths. A package
// imports packages of its own floor and of those below.
type floor struct {
	name, what string
	paths      []string
}

// floors is the house from the ground up. The longest path that a package
// begins with decides.
var floors = []floor{
	{"words", "what all others speak in; nothing here assembles anything", []string{"internal", "proto"}},
	{"facts", "what is recorded, and what is known of other sites", []string{"store", "cluster"}},
	{"decisions", "where copies go, who gets the claim, what starts when", []string{"meta", "sitesched"}},
	{"adapters", "decisions and facts meet the wire, the disk and processes", []string{"meta/api", "meta/peer", "meta/transfer", "meta/trust", "cluster/gossip", "cluster/wire", "sitesched/executor", "sitesched/runner", "sitesched/apart"}},
	{"the daemon", "wiring: kithd and the parent of its jobs", []string{"cmd/kithd", "cmd/kith-shim"}},
	{"simulation", "the simulator and what people run on it", []string{"testbed"}},
	{"real federations", "sites as processes on one machine", []string{"testbed/local", "testbed/programs", "testbed/demo", "testbed/e2e"}},
	{"laboratory", "the papers' experiments", []string{"testbed/lab"}},
	{"checks", "what searches for faults and measures", []string{"testbed/check"}},
	{"command lines", "what people start, and the tests of the documents", []string{"cmd/kith", "cmd/kith-lab", "docs"}},
}

// upward are arrows that run up and are there for a reason. One that is gone
// must leave the list.
var upward = map[string]string{}

// floorOf returns the floor of a package, -1 if it has none.
func floorOf(pkg string) int {
	best, length := -1, -1
	for i := range floors {
		for _, path := range floors[i].paths {
			if (pkg == path || strings.HasPrefix(pkg, path+"/")) && len(path) > length {
				best, length = i, len(path)
			}
		}
	}
	return best
}

// imports returns what each package of the module imports of it, tests left
// out, by paths without the module's name.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], "kith/")
		graph[pkg] = nil
		for _, to := range words[1:] {
			if own, ok := strings.CutPrefix(to, "kith/"); ok {
				graph[pkg] = append(graph[pkg], own)
			}
		}
		slices.Sort(graph[pkg])
	}
	return graph
}

// TestPackages draws docs/packages.md from the imports of the packages and
// demands that no arrow runs up a floor.
func TestPackages(t *testing.T) {
	graph := imports(t)
	byFloor := make([][]string, len(floors))
	seen := make(map[string]bool)
	for pkg, list := range graph {
		at := floorOf(pkg)
		if at < 0 {
			t.Errorf("package %s is on no floor: add its path to floors in docs/packages_test.go", pkg)
			continue
		}
		byFloor[at] = append(byFloor[at], pkg)
		for _, to := range list {
			arrow := pkg + " -> " + to
			if up := floorOf(to); up > at {
				if seen[arrow] = true; upward[arrow] == "" {
					t.Errorf("%s runs up, from %q to %q: move what both need to a lower floor", arrow, floors[at].name, floors[up].name)
				}
			}
		}
	}
	for arrow := range upward {
		if !seen[arrow] {
			t.Errorf("%s is gone: take it out of upward in docs/packages_test.go", arrow)
		}
	}
	page, name := packagesPage(graph, byFloor), filepath.Join(root, "docs", "packages.md")
	if *rewrite {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil { //nolint:gosec // a page is for everybody
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(name); err != nil || string(old) != page {
		t.Errorf("docs/packages.md is not the house as it is (%v): run go test ./docs -run TestPackages -rewrite", err)
	}
}

// packagesPage is the text of docs/packages.md, the top floor first.
func packagesPage(graph map[string][]string, byFloor [][]string) string {
	var b strings.Builder
	b.WriteString("# Packages\n\nThis page is drawn by `go test ./docs -run TestPackages -rewrite` from what packages import; do not edit it. A package imports\n" +
		"packages of its own floor and of floors below, never of one above; the test fails otherwise. The top floor stands first. What each\n" +
		"package is for stands in its `doc.go`; [architecture.md](architecture.md) shows the way through the house.\n")
	for i, f := range slices.Backward(floors) {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s.\n\n| package | imports |\n|---|---|\n", i+1, strings.ToUpper(f.name[:1])+f.name[1:], strings.ToUpper(f.what[:1])+f.what[1:])
		slices.Sort(byFloor[i])
		for _, pkg := range byFloor[i] {
			fmt.Fprintf(&b, "| `%s` | %s |\n", pkg, strings.Join(graph[pkg], ", "))
		}
	}
	if len(upward) > 0 {
		b.WriteString("\n## Arrows that still run up\n\n")
		for _, arrow := range slices.Sorted(maps.Keys(upward)) {
			fmt.Fprintf(&b, "- `%s`: %s\n", arrow, upward[arrow])
		}
	}
	return b.String()
}
