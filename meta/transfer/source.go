package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openFlags open a file for reading without waiting for the other end of a
// pipe and without making a terminal ours.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// openSource opens a regular file inside one of roots. Links are followed as
// long as they stay in the root. The errors name the path and the roots.
func openSource(roots []string, path string) (*os.File, fs.FileInfo, error) {
	explain := func(err error) (*os.File, fs.FileInfo, error) {
		return nil, nil, fmt.Errorf("%q: %w (allowed folders: %s)", clip(path), err, folderList(roots))
	}
	if strings.ContainsRune(path, 0) || !filepath.IsAbs(path) {
		return explain(fmt.Errorf("must be an absolute path: %w", ErrOutsideRoot))
	}
	dir, rel, ok := findRoot(roots, filepath.Clean(path))
	if !ok {
		return explain(ErrOutsideRoot)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return explain(fmt.Errorf("the allowed folder cannot be opened: %w", err))
	}
	defer root.Close() //nolint:errcheck // Nothing was written through it.
	f, info, err := openRegular(root, rel)
	switch {
	case err == nil:
		return f, info, nil
	case errors.Is(err, fs.ErrNotExist):
		return explain(ErrNotFound)
	case isEscape(root, err):
		return explain(ErrOutsideRoot)
	}
	return explain(err)
}

// findRoot returns the innermost of roots that path lies in, and the path in it.
func findRoot(roots []string, path string) (root, rel string, ok bool) {
	for _, r := range roots {
		r = filepath.Clean(r)
		inside, err := filepath.Rel(r, path)
		if err != nil || !filepath.IsLocal(inside) || inside == "." {
			continue
		}
		if len(r) > len(root) {
			root, rel, ok = r, inside, true
		}
	}
	return root, rel, ok
}

// folderList joins the roots for a message.
func folderList(roots []string) string {
	if len(roots) == 0 {
		return "none"
	}
	return clip(strings.Join(roots, ", "))
}

// openRegular opens a regular file in root. It looks before it opens, because
// opening a device can do something, and after, because the file may have
// been replaced in between.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, kindError(info.Mode())
	}
	f, err := root.OpenFile(name, openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	return statRegular(f)
}

// statRegular returns f and what it is, or closes it if it is not a regular file.
func statRegular(f *os.File) (*os.File, fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = kindError(info.Mode())
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// kindError says what a file is that is not a regular one.
func kindError(mode fs.FileMode) error {
	kind := "something else"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeSymlink != 0:
		kind = "a link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%w but %s", ErrNotRegular, kind)
}

// isEscape reports whether err says that a path leads out of root. Package os
// does not name that error, so it is asked for one.
func isEscape(root *os.Root, err error) bool {
	_, probe := root.Lstat("..")
	pathErr, ok := errors.AsType[*fs.PathError](probe)
	return ok && errors.Is(err, pathErr.Err)
}
