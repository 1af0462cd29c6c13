package jobfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// put makes what a job may put in the place of a file. It reports false where this
// user may not.
func put(t *testing.T, kind, path string) bool {
	t.Helper()
	var err error
	switch kind {
	case "fifo":
		err = unix.Mkfifo(path, 0o600)
	case "link":
		err = os.Symlink("/etc/passwd", path)
	case "dangling link":
		err = os.Symlink("nowhere", path)
	case "link to itself":
		err = os.Symlink(filepath.Base(path), path)
	case "folder":
		err = os.Mkdir(path, 0o700)
	case "socket":
		err = unix.Mknod(path, unix.S_IFSOCK|0o600, 0)
	case "device":
		if os.Geteuid() != 0 {
			return false
		}
		if err = unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); errors.Is(err, unix.EPERM) {
			return false
		}
	case "sparse file":
		var f *os.File
		if f, err = os.Create(path); err == nil { //nolint:gosec // a file of the test
			err = errors.Join(f.Truncate(1<<40), f.Close())
		}
	case "nothing":
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

var kinds = []string{"fifo", "link", "dangling link", "link to itself", "folder", "socket", "device", "sparse file", "nothing"}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	for _, kind := range kinds {
		root := t.TempDir()
		if err := os.Mkdir(root+"/a", 0o700); err != nil {
			t.Fatal(err)
		}
		if !put(t, kind, root+"/a/x") {
			continue
		}
		_, err := Read(root, "a/x", 100)
		want := ErrNotFile
		switch kind {
		case "nothing":
			want = fs.ErrNotExist
		case "sparse file":
			want = ErrTooLarge
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", kind, err, want)
		}
		err = Replace(root, "a/x", []byte("y"))
		b, readErr := Read(root, "a/x", 100)
		if kind != "folder" && (err != nil || readErr != nil || string(b) != "y") {
			t.Errorf("%s replaced: %v, %v, %q", kind, err, readErr, b)
		}
	}
}

func TestNoLinkOnTheWayIsFollowed(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(other+"/x", []byte("secret"), 0o600), os.Symlink(other, root+"/a")); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(root, "a/x", 100); !errors.Is(err, ErrNotFile) {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := Read(root, "../"+filepath.Base(other)+"/x", 100); !errors.Is(err, ErrNotFile) {
		t.Errorf("above: %q, %v", b, err)
	}
}

// A job that puts a link in the place of its folder does not lead Replace out of the root.
func TestReplaceStaysInside(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "attempt")); err != nil {
		t.Fatal(err)
	}
	if err := Replace(root, "attempt/lease", []byte("x")); err == nil {
		t.Error("a file is written through a link")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

// TestFolderIsAFolder opens folders that a job replaced. A FIFO without a writer would
// make it wait for ever.
func TestFolderIsAFolder(t *testing.T) {
	for _, kind := range kinds {
		root := t.TempDir()
		if !put(t, kind, root+"/x") {
			continue
		}
		opened := make(chan error, 1)
		go func() {
			r, err := Folder(root + "/x")
			if err == nil {
				err = r.Close()
			}
			opened <- err
		}()
		var err error
		select {
		case err = <-opened:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", kind)
		}
		switch {
		case kind == "folder" && err != nil,
			kind == "nothing" && !errors.Is(err, fs.ErrNotExist),
			kind != "folder" && kind != "nothing" && !errors.Is(err, ErrNotFolder):
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestFolderFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("/etc", root+"/x"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{root + "/x", root + "/x/"} {
		if _, err := Folder(path); !errors.Is(err, ErrNotFolder) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
