// Package pathkind says what is wrong where a path leads to something of another kind than
// what is to be opened there, before it is opened: to open a pipe waits for ever, and what
// the system says of the others misleads.
package pathkind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrKind is wrapped by what [File] and [Folder] return.
var ErrKind = errors.New("something else is in its place; move it away")

// File returns an error if path leads to something that is no regular file, nil if nothing
// is there. Links are followed.
func File(path string) error { return check(path, "a regular file", fs.FileMode.IsRegular) }

// Folder is [File] for a folder.
func Folder(path string) error { return check(path, "a folder", fs.FileMode.IsDir) }

func check(path, want string, is func(fs.FileMode) bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && is(info.Mode()):
		return nil
	case err == nil:
		return fmt.Errorf("%s is %s, and is to be %s: %w", path, Of(info.Mode()), want, ErrKind)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if to, err := os.Readlink(path); err == nil {
		return fmt.Errorf("%s is a link to %s, which is not there: %w, or make what it leads to", path, to, ErrKind)
	}
	return nil
}

// Of returns what a mode is that of, in words.
func Of(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
