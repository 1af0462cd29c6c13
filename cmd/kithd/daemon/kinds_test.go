package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Something of another kind in a place of the data folder neither has kithd wait for ever nor
// mislead: it names the place and what is there, or mends what it can.
func TestDataFolderOfOtherKinds(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	_, closed := openSecure(t, c, Options{})
	closed()
	kinds := map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a file":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("nothing-is-here", path) },
	}
	const starts = ""
	for path, remedy := range map[string]string{
		"kith.db":                        "restore it from a backup",
		"attempts":                       "move it away",
		"attempts/.spare":                starts,
		"attempts/.trash":                starts,
		"attempts/.fresh":                starts,
		"audit":                          "move it away",
		"audit/audit-000000000001.jsonl": "move it away",
		"audit/audit-000000000099.jsonl": "move it away",
		"blobs":                          "move it away",
		"blobs/tmp":                      "move it away",
		"blobs/chunks":                   "move it away",
		"blobs/chunks/a7":                "move it away",
		"attempts/.shims.log":            starts,
		"reserve":                        starts,
	} {
		path := filepath.Join(c.Data, path)
		was, err := os.Stat(path)
		there := err == nil
		aside := filepath.Join(c.Data, "..", "aside")
		for kind, make := range kinds {
			if kind == "a file" && (!there || was.Mode().IsRegular()) || kind == "a folder" && there && was.IsDir() {
				continue // it is what it should be
			}
			if there {
				err = os.Rename(path, aside)
			} else {
				err = nil
			}
			if err := errors.Join(err, make(path)); err != nil {
				t.Fatal(err)
			}
			d, err := OpenWith(c, slog.New(slog.DiscardHandler), Options{})
			switch {
			case err == nil && remedy != starts:
				t.Errorf("%s is %s: kithd starts", path, kind)
			case err != nil && (remedy == starts || !strings.Contains(err.Error(), path+" is "+kind) || !strings.Contains(err.Error(), remedy)):
				t.Errorf("%s is %s: %v", path, kind, err)
			}
			if err == nil {
				err = d.Close()
			} else {
				err = nil
			}
			if err := errors.Join(err, os.RemoveAll(path)); err != nil {
				t.Fatal(err)
			}
			if there {
				if err := os.Rename(aside, path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
