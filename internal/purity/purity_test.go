// Package purity holds no code, only the test that the engines stay pure.
package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages that do no I/O, start no goroutine and read neither a
// clock nor global randomness, with what they may import beside the harmless.
var pure = map[string][]string{
	"internal/job":      {"encoding/binary"},
	"internal/estimate": nil,
	"internal/fifo":     nil,
	"internal/draw":     nil,
	"internal/harvest":  {"kith/internal/draw", "kith/internal/job"},
	"internal/identity": {"context", "unicode/utf8"},
	"internal/forecast": {"kith/internal/job", "encoding/binary"},
	// Its tables have random seeds, as Go's maps do: what they yield is in no order.
	"internal/hashed": {"hash/maphash"},
	"sitesched":       {"kith/internal/job", "kith/internal/hashed", "kith/internal/forecast"},
	"sitesched/batch": {"kith/internal/job"},
	"sitesched/level": {"kith/internal/job", "kith/internal/estimate"},
	"cluster":         {"kith/internal/job", "kith/internal/harvest"},
	"store":           {"kith/internal/job", "kith/internal/identity", "kith/internal/hashed"},
	"meta":            {"kith/internal/estimate", "kith/internal/fifo", "kith/internal/forecast", "kith/internal/harvest", "kith/internal/job", "kith/internal/identity", "kith/cluster", "kith/store", "kith/meta/place", "kith/meta/bags", "kith/sitesched/level"},
	"meta/place":      {"kith/internal/forecast", "kith/internal/job", "kith/cluster", "kith/store"},
	"meta/bags":       {"kith/internal/job", "kith/store"},
	// Its programs know no clock: the functions of times are not in their language.
	"meta/policy": {
		"kith/internal/job", "kith/store", "kith/meta/bags", "regexp/syntax", "reflect",
		"cel.dev/cel-go/cel", "cel.dev/cel-go/common", "cel.dev/cel-go/common/ast", "cel.dev/cel-go/common/cost", "cel.dev/cel-go/common/env",
		"cel.dev/cel-go/common/operators", "cel.dev/cel-go/common/overloads", "cel.dev/cel-go/common/types", "cel.dev/cel-go/common/types/ref",
		"cel.dev/cel-go/interpreter", "cel.dev/cel-go/parser",
	},
	"meta/commit":           {"kith/internal/job", "kith/meta", "kith/store"},
	"store/raftstore/leads": {"kith/store", "kith/store/codec", "encoding/binary", "hash/crc32"},
	"testbed/quorum":        {"kith/internal/job", "kith/store", "kith/store/codec", "kith/store/memstore", "kith/store/raftstore/leads"},
	// The simulator writes what happened to a writer of its caller, and hashes it.
	"testbed/sim": {
		"kith/internal/estimate", "kith/internal/fifo", "kith/internal/forecast", "kith/internal/job", "kith/cluster", "kith/store", "kith/store/memstore", "kith/meta", "kith/meta/bags", "kith/meta/commit", "kith/sitesched", "kith/testbed/quorum",
		"crypto/sha256", "encoding/binary", "encoding/hex", "hash", "io",
	},
}

// harmless are the packages of the library that a pure one may import. What of
// them is not harmless all the same is in forbidden.
var harmless = []string{
	"bytes", "cmp", "container/heap", "errors", "fmt", "hash/fnv", "iter", "maps", "math", "math/bits", "math/rand/v2", "slices", "sort", "strconv", "strings", "time", "unicode/utf8",
}

// forbidden are names of harmless packages: clocks, the terminal, and
// randomness that no seed was given for.
var forbidden = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "LoadLocation", "Local"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"math/rand/v2": {
		"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN", "N", "NormFloat64", "Perm", "Shuffle",
		"Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN",
	},
}

func TestPurePackages(t *testing.T) {
	for dir, allowed := range pure {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files, %v", dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range impurities(t, string(text), allowed) {
				t.Errorf("%s/%s %s", dir, filepath.Base(path), finding)
			}
		}
	}
}

// impurities says what a file does that a pure package does not.
func impurities(t *testing.T, text string, allowed []string) (findings []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	say := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	imported := map[string]string{} // by the name it has in the file
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(harmless, path) && !slices.Contains(allowed, path) {
			say("imports %s", path)
		}
		name := strings.TrimSuffix(path, "/v2")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || name == "_" {
			say("imports %s as %s", path, name)
		}
		imported[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say("starts a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(forbidden[imported[x.Name]], n.Sel.Name) {
				say("uses %s.%s", imported[x.Name], n.Sel.Name)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				say("prints")
			}
		}
		return true
	})
	return findings
}

// What the test is there to find, it finds.
func TestImpuritiesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		`import "net"`: "imports net", `import "os"`: "imports os", `import "sync"`: "imports sync",
		`import "kith/meta"`:                                                         "imports kith/meta",
		`import "math/rand"`:                                                         "imports math/rand",
		`import . "time"`:                                                            "imports time as .",
		`import _ "embed"`:                                                           "imports embed",
		`func f() { go f() }`:                                                        "starts a goroutine",
		`func f() { println() }`:                                                     "prints",
		`import "time"; var t = time.Now()`:                                          "uses time.Now",
		`import "time"; var f = time.Since`:                                          "uses time.Since",
		`import clock "time"; func f() { clock.Sleep(1) }`:                           "uses time.Sleep",
		`import "math/rand/v2"; var n = rand.IntN(2)`:                                "uses math/rand/v2.IntN",
		`import "fmt"; func f() { fmt.Println() }`:                                   "uses fmt.Println",
		`import "time"; var d = time.Second`:                                         "",
		`import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(2) }`:       "",
		`import "kith/internal/job"; var id job.ID`:                                  "",
		`import "fmt"; var s = fmt.Sprint(1); type c struct{}; func (c) Now() { }; `: "",
		`import "time"; type clock interface { Now() time.Time }; func f(c clock) { c.Now() }`: "",
	} {
		got := impurities(t, "package p\n"+text, []string{"kith/internal/job"})
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

// strangers may not import one another: what is on the wire and what is on the
// disk change on their own.
var strangers = map[string][]string{
	"proto/gen/kith/v1":       {"kith/"},
	"proto/gen/kith/state/v1": {"kith/"},
	"cluster/wire":            {"kith/store", "kith/proto/gen/kith/state"},
	"cluster/gossip":          {"kith/store", "kith/proto/gen/kith/state"},
	"meta/peer":               {"kith/store/codec", "kith/proto/gen/kith/state"},
	"meta/api":                {"kith/store/codec", "kith/proto/gen/kith/state"},
	"store/codec":             {"kith/cluster", "kith/proto/gen/kith/v1"},
}

// The messages between sites and those on disk import none of each other, and
// each has one package that converts it.
func TestWireAndDiskAreApart(t *testing.T) {
	for dir, foreign := range strangers {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files, %v", dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				imported := strings.Trim(spec.Path.Value, `"`)
				for _, prefix := range foreign {
					if strings.HasPrefix(imported, prefix) {
						t.Errorf("%s/%s imports %s", dir, filepath.Base(path), imported)
					}
				}
			}
		}
	}
}
