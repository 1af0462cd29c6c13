// Package durable writes what must be there after a crash of the machine.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// SyncFolder makes the names in a folder durable: those that were given, and those that were taken away.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteFile puts data at path, mode 0600, so that a crash leaves the old file or the new one; when it
// returns the new one is durable. After an error either is there.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(dir)
}
