package daemon

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"kith/cmd/kithd/config"
	"kith/store"
	"kith/store/boltstore"
)

const minimal = `site = "alpha"` + "\n"

// testConfig is a small site on loopback.
func testConfig(t *testing.T, site string) config.Config {
	t.Helper()
	c := config.Default()
	c.Site, c.Data = site, filepath.Join(t.TempDir(), site)
	c.Listen.Address, c.Listen.InsecureLoopback = "127.0.0.1:0", true
	c.Scheduler.Processors = 2
	c.Executor.Pin = false
	c.Executor.Grace = 200 * time.Millisecond
	return c
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	expect := func(t *testing.T, c config.Config, want ...string) {
		t.Helper()
		d, err := Open(c, log)
		if err == nil {
			d.Close() //nolint:errcheck // the test has failed
			t.Fatal("opened")
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	t.Run("port in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := testConfig(t, "alpha")
		c.Listen.Address = l.Addr().String()
		expect(t, c, c.Listen.Address, "in use")
	})
	t.Run("port of figures in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := testConfig(t, "alpha")
		c.Listen.Metrics = l.Addr().String()
		expect(t, c, "listen.metrics", c.Listen.Metrics, "in use")
	})
	t.Run("data folder is a file", func(t *testing.T) {
		c := testConfig(t, "alpha")
		if err := os.WriteFile(c.Data, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, c, c.Data)
	})
	t.Run("data folder cannot be written", func(t *testing.T) {
		c := testConfig(t, "alpha")
		c.Data = "/proc/kith"
		expect(t, c, "/proc/kith")
	})
	t.Run("data folder in use", func(t *testing.T) {
		c := testConfig(t, "alpha")
		d, err := Open(c, log)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close() //nolint:errcheck // the test is over
		expect(t, c, "in use by another process", boltstore.FileName)
	})
	t.Run("data of a newer version", func(t *testing.T) {
		c := testConfig(t, "alpha")
		d, err := Open(c, log)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(filepath.Join(c.Data, boltstore.FileName), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{99}) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		expect(t, c, "format 99", "upgrade kithd")
		if _, err := Open(c, log); !errors.Is(err, store.ErrNewerFormat) {
			t.Errorf("%v, want ErrNewerFormat", err)
		}
	})
	t.Run("data of another site", func(t *testing.T) {
		c := testConfig(t, "alpha")
		d, err := Open(c, log)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		c.Site = "beta"
		expect(t, c, `"alpha"`, `"beta"`)
	})
}
