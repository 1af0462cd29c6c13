package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced whole, for its owner alone, and nothing else is left beside it.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"old and longer", "new"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err != nil || err2 != nil || string(b) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v", b, info.Mode(), err)
		}
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("%v beside it: %v", list, err)
	}
}

// What cannot be written leaves the old file, and nothing beside it.
func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, nil); err == nil {
		t.Error("a folder with files in it was replaced")
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("%v beside it: %v", list, err)
	}
	if err := SyncFolder(filepath.Join(path, "none")); err == nil {
		t.Error("a folder that is not there is durable")
	}
}
