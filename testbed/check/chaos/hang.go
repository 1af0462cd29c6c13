package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hanging is a file system of its own that can be made to hang: what writes to it
// waits, without an error and without an end.
type hanging struct {
	path, image string
	dir         *os.File // to hang it by; nil once unmounted
}

// mountHanging makes a file system of that many bytes at a path, in a file beside
// it. It needs the right to mount, a loop device and mkfs.ext4.
func mountHanging(path string, bytes int64) (*hanging, error) {
	h := &hanging{path: path, image: path + ".image"}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(h.image, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(bytes), f.Close()); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-m", "0", h.image},
		{"mount", "-o", "loop,nosuid,nodev", h.image, path},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:gosec // words of this file and a folder of the run
			return nil, errors.Join(fmt.Errorf("%s: %w: %s", args[0], err, out), os.Remove(h.image))
		}
	}
	if h.dir, err = os.Open(filepath.Clean(path)); err != nil {
		return nil, errors.Join(err, h.unmount())
	}
	return h, os.Chmod(path, 0o700)
}

// FIFREEZE and FITHAW of linux/fs.h.
const fiFreeze, fiThaw = 0xC0045877, 0xC0045878

// hang makes every write wait from now on.
func (h *hanging) hang() error { return unix.IoctlSetInt(int(h.dir.Fd()), fiFreeze, 0) }

// release lets what waits go on.
func (h *hanging) release() error {
	if err := unix.IoctlSetInt(int(h.dir.Fd()), fiThaw, 0); !errors.Is(err, unix.EINVAL) { // it does not hang
		return err
	}
	return nil
}

// unmount removes the file system with all that is on it.
func (h *hanging) unmount() error {
	var errs []error
	if h.dir != nil {
		errs = append(errs, h.release(), h.dir.Close())
		h.dir = nil
	}
	return errors.Join(append(errs, unix.Unmount(h.path, unix.MNT_DETACH), os.Remove(h.image))...)
}
