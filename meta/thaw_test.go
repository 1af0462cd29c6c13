package meta

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// receivers returns the types of this package with a method of a name.
func receivers(t *testing.T, method string) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv != nil && f.Name.Name == method {
				if of, is := f.Recv.List[0].Type.(*ast.Ident); is {
					names = append(names, of.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// What can be recorded is all that there is.
func TestEventsAndMessagesAreAll(t *testing.T) {
	t.Parallel()
	var events, messages []string
	for _, e := range Events() {
		events = append(events, reflect.TypeOf(e).Name())
	}
	for _, m := range Messages() {
		messages = append(messages, reflect.TypeOf(m).Name())
	}
	slices.Sort(events)
	slices.Sort(messages)
	if want := receivers(t, "event"); !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
	if want := receivers(t, "kind"); !slices.Equal(messages, want) {
		t.Errorf("messages %v, want %v", messages, want)
	}
}
