package sitesched

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps the package pure: it may use only packages that have no
// way to the clock, the network, files, goroutines or global randomness. Of
// package time it may use what is not a clock.
func TestImports(t *testing.T) {
	allowed := []string{
		"errors", "fmt", "maps", "math", "math/bits", "slices", "time", // time for Duration
		"kith/internal/job",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	clocks := []string{
		"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Sleep", "time.Tick",
		"time.NewTimer", "time.NewTicker",
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", name)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(clocks, x.Name+"."+n.Sel.Name) {
					t.Errorf("%s uses %s.%s", name, x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestDependencies follows the imports all the way down.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list does not run here: %v", err)
	}
	for _, path := range strings.Fields(string(out)) {
		switch root, _, _ := strings.Cut(path, "/"); {
		case path == "kith/sitesched", path == "kith/internal/job":
		case root == "kith", strings.Contains(root, "."):
			t.Errorf("depends on %s", path)
		case root == "net", root == "math" && strings.HasPrefix(path, "math/rand"), root == "crypto":
			t.Errorf("depends on %s", path)
		}
	}
}
