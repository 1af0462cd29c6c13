package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/cmd/kithd/config"
)

// The tests of this package may run as root.
var _ = os.Setenv(asRootVariable, "1")

// kithd as root said nothing, and every job was root.
func TestRootIsNoAccident(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid      int
		flag     bool
		variable string
		want     error
	}{
		"a user":             {1000, false, "", nil},
		"root":               {0, false, "", errRoot},
		"root, another word": {0, false, "yes", errRoot},
		"root with the flag": {0, true, "", nil},
		"root, by variable":  {0, false, "1", nil},
	} {
		if err := mayRun(c.uid, c.flag, c.variable); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The program as a whole: refused with the remedy, unless told.
func TestMainRefusesRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root is refused without --as-root")
	}
	t.Setenv(asRootVariable, "")
	path := filepath.Join(t.TempDir(), "kithd.toml")
	if err := os.WriteFile(path, []byte(minimal+"data = \""+t.TempDir()+"/data\"\n[listen]\ninsecure_loopback = true\naddress = \"127.0.0.1:0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := Main(t.Context(), []string{"--config", path}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "--as-root") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// A data folder that was there already, open to everybody, stayed so.
func TestTheDataFolderIsClosed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // what is tested
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := closeFolder(dir, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 || !strings.Contains(log.String(), "0755") {
		t.Errorf("%v, %v, %s", st.Mode(), err, log.String())
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Skipf("this file system does not let root give a folder away: %v", err)
	}
	if err := closeFolder(dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "12345") {
		t.Errorf("a folder of somebody else: %v", err)
	}
}

// A site with 100 processors and 128 descriptors claimed for 100 jobs and failed them.
func TestProcessorsFitTheDescriptors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		processors int32
		limit      uint64
		want       int32
	}{{100, 128, 32}, {2, 1024, 2}, {100, 1 << 20, 100}, {600, 1024, 256}, {8, 1, 1}} {
		cfg := config.Default()
		cfg.Scheduler.Processors = c.processors
		var log bytes.Buffer
		fitting := withinDescriptors(cfg, c.limit, slog.New(slog.NewTextHandler(&log, nil)))
		got := fitting.Processors()
		if got != c.want || (got < c.processors) != strings.Contains(log.String(), "LimitNOFILE") {
			t.Errorf("%+v: %d, %s", c, got, log.String())
		}
	}
}
