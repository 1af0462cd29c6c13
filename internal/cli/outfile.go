package cli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OutFile is a file that a flag names. It is written beside its place and takes
// it when it is complete: what was there before stays if the work comes to
// nothing.
type OutFile struct {
	file *os.File
	// place is the name that it will have, "" if it is written where it is: to a
	// terminal, a pipe or a device.
	place string
	// free says that nothing may be at place by then.
	free bool
}

// CreateNew is [CreateFile] for a file that must not be there yet, also not by the time
// when it is complete. What is no file, such as a pipe, is written to all the same.
func CreateNew(flag, name string) (*OutFile, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !isStream(name) {
		return nil, Refusedf("%s is there already; --force overwrites it", name)
	}
	f, err := CreateFile(flag, name)
	if f != nil {
		f.free = true
	}
	return f, err
}

// CreateFile makes the file that a flag names, nil if it names none. It is made
// before the work begins, so that a mistake shows at once. Close it in any case.
func CreateFile(flag, name string) (*OutFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := newOutFile(name)
	if err != nil {
		return nil, Usagef("%s %s: %v", flag, name, Bare(err))
	}
	return f, nil
}

func newOutFile(name string) (*OutFile, error) {
	mode := fs.FileMode(0o666) // less what the user's mask takes away
	info, err := os.Stat(name)
	switch {
	case err == nil && (!info.Mode().IsRegular() || isStream(name)):
		f, err := os.Create(name)
		return &OutFile{file: f}, err
	case err == nil:
		// It must be one that may be written, and a link stays a link.
		old, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		old.Close() //nolint:errcheck // nothing was written
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), ".kith-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	out := &OutFile{file: f, place: name}
	if info != nil {
		if err := f.Chmod(mode); err != nil { // the mask does not count for a file that is there
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}

// isStream reports whether a name stands for what a process has open, such as
// /dev/stdout, even if that is a file: others write there, too.
func isStream(name string) bool {
	const links = 40 // more are a circle
	for range links {
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return false
		}
		if strings.HasPrefix(dir+"/", "/proc/") {
			return true
		}
		target, err := os.Readlink(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			return false
		}
		if name = target; !filepath.IsAbs(target) {
			name = filepath.Join(dir, target)
		}
	}
	return false
}

// Write fills the file and gives it its name.
func (f *OutFile) Write(fill func(io.Writer) error) error {
	if err := WritePage(f.file, fill); err != nil {
		return err
	}
	if f.place == "" {
		return nil
	}
	if f.free {
		// A link fails where there is something by now; a rename would not.
		err := os.Link(f.file.Name(), f.place)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err // Close removes the other name
		}
		if _, err := os.Lstat(f.place); err == nil { // a file system without links
			return fs.ErrExist
		}
	}
	if err := os.Rename(f.file.Name(), f.place); err != nil {
		return err
	}
	f.place = ""
	return nil
}

// Close removes what was not completed, and the name that a file had until then. It does
// nothing else to a complete file, or to none.
func (f *OutFile) Close() error {
	if f == nil {
		return nil
	}
	f.file.Close() //nolint:errcheck // complete, or of no use
	if f.place == "" {
		return nil
	}
	f.place = ""
	return os.Remove(f.file.Name())
}

// WritePage lets write fill a file, through a buffer, and closes it unless
// that failed.
func WritePage(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(f, 1<<16)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Close()
}
