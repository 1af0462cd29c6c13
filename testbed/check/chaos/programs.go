package chaos

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"kith/testbed/local"
	"kith/testbed/programs"
)

const shimProgram = programs.Shim

// ownPrograms copies kithd and kith-shim into a folder of the run, where faults may
// take them away, and returns the path of kithd; empty if the sites run in the very
// program that calls this and kithd is not beside it.
func (b *bed) ownPrograms(ctx context.Context) (kithd string, err error) {
	set, ok := programs.Beside(programs.Kithd, programs.Shim)
	if !ok && local.CanBeItself() {
		return "", nil
	}
	if !ok {
		if set, err = programs.Find(ctx, b.opt.Observe, programs.Kithd, programs.Shim); err != nil {
			return "", err
		}
	}
	dir, err := b.opt.folder("programs")
	if err != nil {
		return "", errors.Join(err, set.Remove())
	}
	for _, name := range []string{programs.Kithd, programs.Shim} {
		err = errors.Join(err, copyProgram(filepath.Join(dir, name), set.Path(name)))
	}
	return filepath.Join(dir, programs.Kithd), errors.Join(err, set.Remove())
}

func copyProgram(to, from string) error {
	src, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was only read
	dst, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
