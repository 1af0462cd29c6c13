package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Guard is a check that keeps a hostile site, user or stranger from something. Taken out,
// the test that plays the attack must fail: else it proves nothing.
//
// All guards of the table are in one program for each package of tests, which is built
// once; the environment says which of them is out. So taking one out costs a run of one test.
type Guard struct {
	// Row is that of "Attacks as tests" in docs/security.md.
	Row  int
	Name string
	// Cuts are where the guard is.
	Cuts []Cut
	// Package has the test, relative to the root of the module; Test is its name, with subtests
	// behind it as for go test -run.
	Package, Test string
}

// Cut is a place of a guard. Text is in the file once, and marks what goes:
//
//	«condition» refuses where it holds, and is false when the guard is out
//	‹condition› lets pass where it holds, and is true when the guard is out
//	⟦without|value⟧ is a value, which is the one before the bar when the guard is out
//	⟪statements⟫ are not done when the guard is out
type Cut struct{ File, Text string }

// switchPackage is where the built guards look whether they are out. It is not part of the
// module: tests put it there with -overlay.
const switchPackage = "internal/guardswitch"

// switchSource is that package. The variable is inherited by daemons that a test starts.
const switchSource = `// Package guardswitch says which guard is out.
package guardswitch

import "os"

var out = os.Getenv("` + switchVariable + `")

// Out reports whether a guard is out.
func Out(guard string) bool { return out == guard }

// Pick returns without if the guard is out.
func Pick[T any](guard string, without, with T) T {
	if Out(guard) {
		return without
	}
	return with
}
`

const switchVariable = "KITH_GUARD_OUT"

// plain returns the text of a cut as it is in the file, and with a switch in place of what is
// marked.
func (c Cut) plain(guard string) (before, after string, err error) {
	var plain, switched strings.Builder
	rest := c.Text
	for marks := 0; ; marks++ {
		i := strings.IndexAny(rest, "«‹⟦⟪")
		if i < 0 {
			plain.WriteString(rest)
			switched.WriteString(rest)
			if marks == 0 {
				err = fmt.Errorf("guard %s: nothing is marked in %q", guard, c.Text)
			}
			return plain.String(), switched.String(), err
		}
		plain.WriteString(rest[:i])
		switched.WriteString(rest[:i])
		rest = rest[i:]
		for open, end := range map[string]string{"«": "»", "‹": "›", "⟦": "⟧", "⟪": "⟫"} {
			if !strings.HasPrefix(rest, open) {
				continue
			}
			marked, behind, ok := strings.Cut(strings.TrimPrefix(rest, open), end)
			if !ok {
				return "", "", fmt.Errorf("guard %s: no %s in %q", guard, end, rest)
			}
			rest = behind
			switch open {
			case "«":
				plain.WriteString(marked)
				fmt.Fprintf(&switched, "(!guardswitch.Out(%q) && (%s))", guard, marked)
			case "‹":
				plain.WriteString(marked)
				fmt.Fprintf(&switched, "(guardswitch.Out(%q) || (%s))", guard, marked)
			case "⟦":
				without, with, ok := strings.Cut(marked, "|")
				if !ok {
					return "", "", fmt.Errorf("guard %s: no | in %q", guard, marked)
				}
				plain.WriteString(with)
				fmt.Fprintf(&switched, "guardswitch.Pick(%q, %s, %s)", guard, without, with)
			default:
				plain.WriteString(marked)
				fmt.Fprintf(&switched, "if !guardswitch.Out(%q) { %s }", guard, marked)
			}
			break
		}
	}
}

// switched returns the files of the guards, each with switches, by their names relative to
// root. It fails if a text is not in its file exactly once.
func switched(root string, guards []Guard) (map[string]string, error) {
	files := make(map[string]string)
	for _, g := range guards {
		for _, c := range g.Cuts {
			text, ok := files[c.File]
			if !ok {
				b, err := os.ReadFile(filepath.Join(root, c.File))
				if err != nil {
					return nil, fmt.Errorf("guard %s: %w", g.Name, err)
				}
				text = string(b)
			}
			before, after, err := c.plain(g.Name)
			if err != nil {
				return nil, err
			}
			if n := strings.Count(text, before); n != 1 {
				return nil, fmt.Errorf("guard %s: %q is %d times in %s, not once: write it anew", g.Name, before, n, c.File)
			}
			files[c.File] = strings.Replace(text, before, after, 1)
		}
	}
	for name, text := range files {
		head, rest, ok := strings.Cut("\n"+text, "\npackage ")
		word, rest, more := strings.Cut(rest, "\n")
		if !ok || !more {
			return nil, fmt.Errorf("%s has no package clause", name)
		}
		files[name] = strings.TrimPrefix(head+"\npackage "+word+"\n\nimport \"kith/"+switchPackage+"\"\n"+rest, "\n")
	}
	files[switchPackage+"/switch.go"] = switchSource
	return files, nil
}
