package daemon

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile puts data at path, mode 0600, so that a crash leaves the old file or the new one;
// when it returns the new one is durable.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	t, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	err = errors.Join(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
