package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is a bug that a programmer could make.
type Mutant struct {
	Name string
	// Rule is what it breaks, for people.
	Rule string
	// Changes are made to the engines.
	Changes []Change
	// Caught says how: arguments of the command catch. Each of Also must catch it
	// as well.
	Caught []string
	// Tests are of a mutant that no search of the engines reaches: a package, and a test of it
	// that must fail.
	Tests []string
	Also  [][]string
	// Breaks is the invariant that is found broken, such as S2; several, with spaces between,
	// if it depends on the schedule which of them is seen first.
	Breaks string
}

// Change replaces a piece of text that is in a file once.
type Change struct{ File, Old, New string }

// Find is what the command catch prints.
type Find struct {
	Violation string `json:"violation,omitempty"`
	// Of an exploration.
	States int `json:"states,omitempty"`
	Depth  int `json:"depth,omitempty"`
	// Of a fault search.
	Seed uint64 `json:"seed,omitempty"`
}

// Apply returns the changed files of a mutant, by the name of the original
// relative to root. It fails if a text is not in its file exactly once: the code
// has moved on, and the mutant must, too.
func (m *Mutant) Apply(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, c := range m.Changes {
		text, ok := files[c.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, c.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %q is %d times in %s, not once: write it anew", m.Name, c.Old, n, c.File)
		}
		files[c.File] = strings.Replace(text, c.Old, c.New, 1)
	}
	return files, nil
}
