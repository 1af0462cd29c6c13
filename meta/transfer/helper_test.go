package transfer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"kith/internal/job"
	"kith/store/blobstore"
)

// attempt is the attempt that most tests are about.
var attempt = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}

// openStore opens a store that the test closes at its end.
func openStore(t testing.TB, config blobstore.Config) *blobstore.Store {
	t.Helper()
	if config.Dir == "" {
		config.Dir = filepath.Join(t.TempDir(), "blobs")
	}
	s, err := blobstore.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// random returns n bytes that depend on seed and n alone.
func random(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1], key[2] = byte(seed), byte(seed>>8), byte(n)
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b) //nolint:errcheck // It never fails.
	return b
}

// write makes a file with its folders and returns its path.
func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder makes a folder in dir.
func folder(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// symlink makes a link in dir.
func symlink(t testing.TB, target, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents returns the files below dir and what is in them.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// setContents returns the files of a set and what is in them.
func setContents(t testing.TB, store *blobstore.Store, set Set) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for _, f := range set.Files {
		r := OpenFile(store, f)
		data := make([]byte, f.Size)
		if _, err := r.ReadAt(data, 0); err != nil {
			t.Errorf("read %q: %v", f.Path, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		got[f.Path] = string(data)
	}
	return got
}

// mustPack packs inputs or fails the test.
func mustPack(t testing.TB, store *blobstore.Store, inputs ...Input) Set {
	t.Helper()
	set, _, err := (&Packer{Store: store}).Pack(background(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// same fails the test unless got equals want.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, brief(got), brief(want))
	}
}

// brief keeps long contents out of messages.
func brief(v any) any {
	m, ok := v.(map[string]string)
	if !ok {
		return v
	}
	short := make(map[string]string)
	for k, text := range m {
		if len(text) > 40 {
			text = text[:40] + "…"
		}
		short[k] = text
	}
	return short
}

// background is for calls that are not cancelled.
func background() context.Context { return context.Background() }

// equal reports whether two byte slices are.
func equal(a, b []byte) bool { return bytes.Equal(a, b) }
