package backup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/store"
)

var head = Head{Site: "alpha", Generation: "abc", Made: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Version: "1.2"}

func made(t *testing.T, image string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alpha.backup")
	got, err := Make(path, func(w io.Writer) error { return Write(w, head, int64(len(image)), bytes.NewBufferString(image)) })
	want := head
	want.Size = int64(len(image))
	if err != nil || got != want {
		t.Fatalf("made %+v, %v", got, err)
	}
	return path
}

func TestWhatWasWrittenIsExtracted(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"", "x", strings.Repeat("facts", 100_000)} {
		path := made(t, image)
		to := filepath.Join(filepath.Dir(path), "facts")
		if _, err := Extract(path, "alpha", to); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(to); err != nil || string(text) != image {
			t.Errorf("%d bytes of %d, %v", len(text), len(image), err)
		}
		for _, file := range []string{path, to} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s is not secret: %v %v", file, info.Mode(), err)
			}
		}
		if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 2 {
			t.Errorf("the folder has %v, %v", list, err)
		}
	}
}

// Wherever a file is cut off, damaged or goes on, it is refused, and nothing is written.
func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	path := made(t, strings.Repeat("facts", 50))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "facts")
	refused := func(what string, at int, text []byte, want ...error) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Extract(path, "alpha", to)
		is := false
		for _, w := range want {
			is = is || errors.Is(err, w)
		}
		if !is || !strings.Contains(err.Error(), path) {
			t.Errorf("%s at %d: %v", what, at, err)
		}
		if _, err := os.Lstat(to); err == nil {
			t.Fatalf("%s at %d: something was extracted", what, at)
		}
	}
	for at := range good {
		refused("cut", at, good[:at], store.ErrCorrupt)
		broken := bytes.Clone(good)
		broken[at] ^= 0x41
		refused("damage", at, broken, store.ErrCorrupt, store.ErrNewerFormat)
	}
	refused("more", len(good), append(bytes.Clone(good), 0), store.ErrCorrupt)
	newer := bytes.Clone(good)
	newer[len(magic)]++
	refused("format", len(magic), newer, store.ErrNewerFormat)
}

func TestAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	path := made(t, "facts")
	if _, err := Extract(path, "beta", path+".facts"); !errors.Is(err, store.ErrOtherSite) {
		t.Error(err)
	}
}

// What is there is left alone, and what fails leaves nothing.
func TestNothingIsReplaced(t *testing.T) {
	t.Parallel()
	path := made(t, "facts")
	write := func(w io.Writer) error { return Write(w, head, 3, bytes.NewBufferString("new")) }
	if _, err := Make(path, write); !errors.Is(err, ErrThere) {
		t.Error(err)
	}
	if h, err := Check(path); err != nil || h.Size != 5 {
		t.Errorf("%+v, %v", h, err)
	}
	other := path + ".other"
	gone := errors.New("the site is gone")
	if _, err := Make(other, func(w io.Writer) error { return errors.Join(write(w), gone) }); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := Make(other, func(w io.Writer) error { _, err := w.Write([]byte("half")); return err }); !errors.Is(err, store.ErrCorrupt) {
		t.Error(err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
	if err := Write(io.Discard, head, 4, bytes.NewBufferString("facts")); err == nil {
		t.Error("an image of another size is written")
	}
}
