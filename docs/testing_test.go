package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")

// TestNamedTestsExist checks what docs/testing.md says proves what.
func TestNamedTestsExist(t *testing.T) {
	found := testName.FindAllStringSubmatch(read(t, "docs/testing.md"), -1)
	if len(found) == 0 {
		t.Fatal("docs/testing.md names no test")
	}
	for _, m := range found {
		files, err := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		exists := false
		for _, path := range files {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			exists = exists || strings.Contains(read(t, name), "\nfunc "+m[2]+"(")
		}
		if !exists {
			t.Errorf("docs/testing.md names %s.%s, which does not exist", m[1], m[2])
		}
	}
}
