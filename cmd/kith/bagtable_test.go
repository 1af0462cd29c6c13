package main

import (
	"errors"
	"os"
	"testing"
)

// readerOf is a stream that looks around while it is read.
type readerOf func(p []byte) (int, error)

func (r readerOf) Read(p []byte) (int, error) { return r(p) }

// What comes by stdin is kept in a file that has no name while it comes, so that neither an
// interruption nor an error leaves one.
func TestSpoolHasNoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	torn := errors.New("torn")
	_, err := spooled(readerOf(func([]byte) (int, error) {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("while it is read: %v, %v", entries, err)
		}
		return 0, torn
	}))
	if !errors.Is(err, torn) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("after an error: %v, %v", entries, err)
	}
}
