// Package jobfile opens files in folders that a job can change.
//
// A job can put anything in the place of any file of its attempt: a FIFO without
// a writer, a link to a file of another user, a folder, a device, a file of a
// terabyte. Nothing of an attempt's folder is opened but by this package, which follows
// no link in any element of the name, does not wait, takes regular files only, and
// reads no more than it is asked to.
package jobfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// ErrNotFile is returned for what is no regular file, or is reached by a link. A
	// job put it there: it does not pass.
	ErrNotFile = errors.New("not a regular file in a folder of the attempt")
	// ErrNotFolder is returned for what is no folder, or is a link to one.
	ErrNotFolder = errors.New("not a folder of the attempt")
	// ErrTooLarge is returned for a file with more content than it can have.
	ErrTooLarge = errors.New("the file is larger than it can be")
)

// Open opens name, a relative path with '/' between its elements, below the folder
// root, which no job can replace. flags are those of open(2) beside O_CREAT. The error
// wraps fs.ErrNotExist if there is nothing, [ErrNotFile] if it is something else.
func Open(root, name string, flags int) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s in %s: %w", name, root, ErrNotFile)
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	path := filepath.Join(root, name)
	elements := strings.Split(filepath.ToSlash(filepath.Clean(name)), "/")
	for _, e := range elements[:len(elements)-1] {
		next, err := openat(dir, e, unix.O_PATH|unix.O_DIRECTORY)
		_ = unix.Close(dir)
		if err != nil {
			return nil, explain(path, err)
		}
		dir = next
	}
	fd, err := openat(dir, elements[len(elements)-1], flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	_ = unix.Close(dir)
	if err != nil {
		return nil, explain(path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return nil, explain(path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Reopened is [Folder] for a folder that its job may have closed: one of this account gets the
// rights of its owner back.
func Reopened(path string) (*os.Root, error) {
	root, err := Folder(path)
	if !errors.Is(err, unix.EACCES) {
		return root, err
	}
	// What is opened like this can be replaced no more.
	fd, err2 := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err2 != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // only a handle
	var st unix.Stat_t
	if err2 := unix.Fstat(fd, &st); err2 != nil || int(st.Uid) != os.Geteuid() {
		return nil, err
	}
	if err2 := os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), os.FileMode(st.Mode&0o777|0o700)); err2 != nil {
		return nil, err
	}
	return Folder(path)
}

// Folder opens a folder that a job can replace. It does not wait, whatever is in its
// place, and does not follow a link in the last element of path.
// The error wraps fs.ErrNotExist if there is nothing, [ErrNotFolder] if it is something
// else. The caller closes the root.
func Folder(path string) (*os.Root, error) {
	path = filepath.Clean(path) // lstat follows a link with a slash behind it
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFolder)
	}
	// os.OpenRoot opens whatever is there, and waits for the writer of a FIFO. The
	// dot makes the kernel refuse what has become no folder since.
	root, err := os.OpenRoot(path + "/.")
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrNotFolder), err, root.Close())
	}
	return root, nil
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// explain names what a job did apart from what may pass. Opening a link, a FIFO
// without a reader, a socket or a device without a driver has its own errors.
func explain(path string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", path, ErrNotFile)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV),
		errors.Is(err, unix.EISDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w: %w", path, ErrNotFile, err) // one line: it may be a job's outcome
	}
	return &os.PathError{Op: "open", Path: path, Err: err}
}

// Read reads a file of at most most bytes; see [Open]. The error wraps [ErrTooLarge]
// if there is more.
func Read(root, name string, most int64) ([]byte, error) {
	f, err := Open(root, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: %w: more than %d bytes", f.Name(), ErrTooLarge, most)
	}
	return b, err
}

// Replace makes or replaces name, a relative path as of [Open], in one step, whatever is in
// its place, unless that is a folder. What an earlier try left is removed, whatever a job
// made of it. No link leads it out of root.
func Replace(root, name string, content []byte) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only a handle
	if err := dir.RemoveAll(name + ".new"); err != nil {
		return err
	}
	f, err := dir.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return dir.Rename(name+".new", name)
}
