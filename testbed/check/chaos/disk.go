package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// disk is a small file system of its own, which can be filled.
type disk struct {
	path   string
	filler string
}

// diskBytes is the size of a disk: room for a site's facts and the files of as
// many jobs as end in so much time.
func diskBytes(d time.Duration) int64 {
	return min(96<<20+int64(d.Minutes()*(8<<20)), 2<<30)
}

// mountDisk makes a small disk at a path. It needs the right to mount.
func mountDisk(path string, bytes int64) (*disk, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0700", bytes)); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	return &disk{path: path, filler: filepath.Join(path, ".filler")}, nil
}

// fill takes all the room that is left.
func (d *disk) fill() error {
	f, err := os.OpenFile(d.filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		n, err := f.Write(block)
		if err != nil && !errors.Is(err, unix.ENOSPC) {
			return errors.Join(err, f.Close())
		}
		if n < len(block) {
			block = block[:len(block)/2]
		}
	}
	return f.Close()
}

// free gives the room back.
func (d *disk) free() error {
	if err := os.Remove(d.filler); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// unmount removes the disk with all that is on it.
func (d *disk) unmount() error { return unix.Unmount(d.path, unix.MNT_DETACH) }
