package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A file that is there is not replaced, also if it came while the new one was made.
func TestCreateNew(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "new.swf")
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	f, err := CreateNew("export", name)
	if err == nil {
		err = errors.Join(f.Write(hello), f.Close())
	}
	if b, read := os.ReadFile(name); err != nil || string(b) != "hello" || entries(t, dir) != "new.swf" {
		t.Fatalf("%q, %v, %v; the folder has %s", b, err, read, entries(t, dir))
	}
	if _, err := CreateNew("export", name); err == nil {
		t.Error("a file that is there is taken")
	}
	late := filepath.Join(dir, "late.swf")
	if f, err = CreateNew("export", late); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(late, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(hello); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that came meanwhile: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(late); err != nil || string(b) != "another's" || entries(t, dir) != "late.swf new.swf" {
		t.Errorf("it holds %q, %v; the folder has %s", b, err, entries(t, dir))
	}
}
