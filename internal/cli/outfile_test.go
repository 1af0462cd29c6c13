package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entries are the names in a folder.
func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// A file that was there before stays as it is until the new one is complete,
// and for good if it never is.
func TestOutFile(t *testing.T) {
	dir := t.TempDir()
	old, link, fresh := filepath.Join(dir, "old.csv"), filepath.Join(dir, "link.csv"), filepath.Join(dir, "new.csv")
	if err := errors.Join(os.WriteFile(old, []byte("last month"), 0o640), os.Symlink("old.csv", link)); err != nil {
		t.Fatal(err)
	}
	content := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "this month"); return err }
	for _, name := range []string{old, link, fresh} {
		before := content(name)
		for what, fill := range map[string]func(io.Writer) error{"given up": nil, "broken": func(w io.Writer) error { return errors.Join(hello(w), io.ErrShortWrite) }} {
			f, err := CreateFile("--schedule", name)
			if err != nil {
				t.Fatal(err)
			}
			if fill != nil && f.Write(fill) == nil {
				t.Error("no error")
			}
			if err := f.Close(); err != nil || content(name) != before {
				t.Errorf("%s, %s: holds %q, %v", name, what, content(name), err)
			}
		}
		f, err := CreateFile("--schedule", name)
		if err != nil {
			t.Fatal(err)
		}
		if content(name) != before {
			t.Errorf("%s: holds %q while the new file is made", name, content(name))
		}
		if err := errors.Join(f.Write(hello), f.Close()); err != nil || content(name) != "this month" {
			t.Errorf("%s: holds %q, %v", name, content(name), err)
		}
		if err := os.WriteFile(old, []byte("last month"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the old file is %v, %v", info, err)
	}
	if got := entries(t, dir); got != "link.csv new.csv old.csv" {
		t.Errorf("the folder holds %s", got)
	}
	for name, says := range map[string]string{filepath.Join(dir, "no", "such"): "no such file", dir: "is a directory"} {
		if _, err := CreateFile("--report", name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	if f, err := CreateFile("--report", ""); f != nil || err != nil || f.Close() != nil {
		t.Errorf("no file: %v, %v", f, err)
	}
	// What a process has open cannot be replaced.
	for name, want := range map[string]bool{"/dev/stdout": true, "/dev/fd/1": true, "/proc/self/fd/1": true, old: false, link: false, "no/such": false} {
		if isStream(name) != want {
			t.Errorf("%s is a stream: %v, want %v", name, !want, want)
		}
	}
	f, err := CreateFile("--schedule", "/dev/null")
	if err != nil || f.place != "" || errors.Join(f.Write(hello), f.Close()) != nil {
		t.Errorf("/dev/null: %v, %v", f, err)
	}
}
