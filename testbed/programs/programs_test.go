package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// touch makes a program that does nothing.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// All programs must be beside the running one: half of an installation does
// not count.
func TestBeside(t *testing.T) {
	dir, names := t.TempDir(), []string{Kithd, Shim}
	touch(t, filepath.Join(dir, Kithd))
	if allIn(dir, names) {
		t.Error("kith-shim is missing")
	}
	if err := os.Mkdir(filepath.Join(dir, Shim), 0o700); err != nil {
		t.Fatal(err)
	}
	if allIn(dir, names) {
		t.Error("kith-shim is a folder")
	}
	if err := os.Remove(filepath.Join(dir, Shim)); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(dir, Shim))
	if !allIn(dir, names) {
		t.Error("both are there")
	}
	// What was found is not ours to remove.
	if s := (&Set{dir: dir}); s.Remove() != nil || !allIn(dir, names) {
		t.Error("what was found is gone")
	}
}

// In the source of Kith the programs are built, and removed afterwards.
func TestBuilt(t *testing.T) {
	var said []string
	s, err := Find(t.Context(), func(text string) { said = append(said, text) }, Shim)
	if err != nil {
		t.Fatal(err)
	}
	path := s.Path(Shim)
	if st, err := os.Stat(path); err != nil || st.Mode()&0o100 == 0 {
		t.Errorf("%v, %v", st, err)
	}
	if len(said) != 1 || said[0] != "building kith-shim" {
		t.Errorf("told %q", said)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("what was built is still there: %v", err)
	}
}

// Without an installation, a checkout or Go, the error says what to do.
func TestNowhere(t *testing.T) {
	t.Run("no source", func(t *testing.T) {
		t.Chdir(t.TempDir())
		says(t, "not in the source of Kith")
	})
	t.Run("no Go", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		says(t, "no go command")
	})
}

func says(t *testing.T, why string) {
	t.Helper()
	_, err := Find(t.Context(), nil, Kithd, Shim)
	if err == nil {
		t.Fatal("found nothing, and no error")
	}
	for _, part := range []string{"kithd and kith-shim: not in /", why, "install Kith's programs into one folder"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}
