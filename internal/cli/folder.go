package cli

import (
	"fmt"
	"os"
	"path/filepath"
)

// OwnFolder makes an empty folder where --dir says, or a temporary one with
// the prefix in its name if dir is empty, and says how to remove it: a folder
// that the user named stays. Afterwards dir is its absolute path.
func OwnFolder(dir *string, prefix string) (remove func(), err error) {
	if *dir == "" {
		*dir, err = os.MkdirTemp("", prefix)
		made := *dir
		return func() { os.RemoveAll(made) }, err //nolint:errcheck // what is left in a temporary folder does no harm
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(*dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("--dir %s: is not empty; choose another folder, or remove it", *dir)
	}
	return func() {}, os.MkdirAll(*dir, 0o700)
}
