package audit

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forged writes a file of lines that follow each other by their hashes, whatever else is
// wrong with them, and returns the hash of the last.
func forged(t *testing.T, dir, name string, prev Hash, lines ...*Line) Hash {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		l.Kind, l.Prev = "drain", prev
		raw, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(raw, '\n'))
		prev = sha256.Sum256(raw)
	}
	if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return prev
}

// Each thing that can be wrong with a log is called by its name, also where all the hashes
// fit.
func TestVerifySaysWhatIsWrong(t *testing.T) {
	one, two := func() *Line { return &Line{Number: 1} }, func() *Line { return &Line{Number: 2} }
	for want, do := range map[string]func(dir string) *Head{
		"the file ends in the middle of a line, and another file follows": func(dir string) *Head {
			h := forged(t, dir, nameOf(1), Hash{}, one(), two())
			forged(t, dir, nameOf(3), h, &Line{Number: 3})
			text, err := os.ReadFile(filepath.Join(dir, nameOf(1)))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, nameOf(1)), append(text, `{"n":3`...), 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"the file is empty, and another file follows": func(dir string) *Head {
			forged(t, dir, nameOf(1), Hash{})
			forged(t, dir, nameOf(2), Hash{}, one())
			return nil
		},
		"the file is named after line 2 and begins with line 1": func(dir string) *Head {
			forged(t, dir, nameOf(2), Hash{}, one())
			return nil
		},
		"line 1 stands behind line 2": func(dir string) *Head {
			forged(t, dir, nameOf(1), Hash{}, one(), two(), one())
			return nil
		},
		"line 1 names a line before it": func(dir string) *Head {
			forged(t, dir, nameOf(1), Hash{1}, one())
			return nil
		},
		"the head in line 2 is not one of the line before it": func(dir string) *Head {
			forged(t, dir, nameOf(1), Hash{}, one(), &Line{Number: 2, Head: &Head{Number: 1, Hash: Hash{1}}})
			return nil
		},
		"the log ends with line 1, and the head names line 2: lines are missing at its end": func(dir string) *Head {
			forged(t, dir, nameOf(1), Hash{}, one())
			return &Head{Number: 2}
		},
		"line 4, which was removed, is not the one that the head names": func(dir string) *Head {
			forged(t, dir, nameOf(5), Hash{1}, &Line{Number: 5, Removed: &Removal{Last: 4, Hash: Hash{1}}})
			return &Head{Number: 4, Hash: Hash{2}}
		},
	} {
		dir := t.TempDir()
		r := verify(t, dir, VerifyOptions{Head: do(dir)})
		found := false
		for _, f := range r.Faults {
			found = found || strings.HasPrefix(f.Problem, want)
		}
		if !found {
			t.Errorf("found %v, want %q", r.Faults, want)
		}
	}
}
