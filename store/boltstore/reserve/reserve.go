// Package reserve keeps room on a disk for what must be written when nothing else
// can be: a file that takes the room as long as all is well, and is removed when
// the disk is full.
package reserve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is the name of the file in a site's data folder.
const Name = "reserve"

// ErrNoRoom is returned by [File.Take] while the disk has not room enough.
var ErrNoRoom = errors.New("the disk has no room for the reserve yet")

// File is a reserve. It is safe for use by several goroutines.
type File struct {
	path string
	size int64

	mu   sync.Mutex
	held bool
}

// mostOfDisk is the part of a disk that a reserve takes at most: a small disk has
// a small reserve.
const mostOfDisk = 8

// New returns the reserve of a folder: size bytes, an eighth of the disk if that is
// less, 0 for none. It takes nothing yet. What an earlier process holds there counts
// as held if it has the size; any other is removed.
func New(dir string, size int64) (*File, error) {
	_, total, err := space(dir)
	if err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	size = min(size, total/mostOfDisk) &^ 0xffff
	f := &File{path: filepath.Join(dir, Name), size: size}
	switch info, err := os.Lstat(f.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reserve: %w", err)
	case size > 0 && info.Mode().IsRegular() && info.Size() == size && allocated(info) >= size:
		f.held = true
	default:
		if err := os.Remove(f.path); err != nil {
			return nil, fmt.Errorf("reserve: %w", err)
		}
	}
	return f, nil
}

// allocated returns how many bytes of the disk a file takes.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// Missing reports whether the reserve is wanted and not there.
func (f *File) Missing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size > 0 && !f.held
}

// Size is how many bytes are wanted, 0 for none.
func (f *File) Size() int64 { return f.size }

// Take takes the room, if it is not taken. It leaves as much free again, so that
// taking the reserve does not fill the disk; until there is so much it returns an
// error that wraps [ErrNoRoom].
func (f *File) Take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size == 0 || f.held {
		return nil
	}
	free, _, err := space(filepath.Dir(f.path))
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	if free < 2*f.size {
		return fmt.Errorf("%w: %d bytes are free, %d must be", ErrNoRoom, free, 2*f.size)
	}
	if err := allocate(f.path, f.size); err != nil {
		return errors.Join(fmt.Errorf("reserve %s: %w", f.path, err), removed(f.path))
	}
	f.held = true
	return nil
}

// Give gives the room back to the disk, and reports whether there was any.
func (f *File) Give() (given bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		return false, nil
	}
	if err := removed(f.path); err != nil {
		return false, fmt.Errorf("reserve: %w", err)
	}
	f.held = false
	return true, nil
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// space returns how many bytes of a disk are free for this process, and how many
// it has.
func space(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	size := int64(st.Bsize) //nolint:unconvert // its type differs between machines
	return int64(min(st.Bavail, 1<<40)) * size, int64(min(st.Blocks, 1<<40)) * size, nil
}

// allocate makes a file that has its blocks.
func allocate(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = fill(file, size)
	}
	return errors.Join(err, file.Close())
}

// fill writes what a file system cannot be asked to allocate. A file of zeros may
// take no room on some.
func fill(file *os.File, size int64) error {
	page := make([]byte, 1<<20)
	for i := range page {
		page[i] = byte(i*7 + i>>8)
	}
	for size > 0 {
		n, err := file.Write(page[:min(size, int64(len(page)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

// Grow allocates room behind the end of a file, so that what it grows by next is
// its own even if others fill the disk. A file system that cannot do that, or
// that has not so much, is no error.
func Grow(path string, bytes int64) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return
	}
	for ; bytes >= 1<<16; bytes /= 2 {
		if unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), bytes) == nil {
			return
		}
	}
}
