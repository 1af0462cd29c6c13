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

	"kith/store"
	"kith/store/boltstore"
)

const minimal = `site = "alpha"` + "\n"

func TestDefaultsAreGood(t *testing.T) {
	c, err := ParseConfig(minimal)
	if err != nil {
		t.Fatal(err)
	}
	if c.Placement.Copies != 3 || c.Scheduler.Queues != "dual-backfill" || c.Listen.Address != "127.0.0.1:7410" {
		t.Errorf("defaults %+v", c)
	}
}

func TestConfigUnits(t *testing.T) {
	c, err := ParseConfig(minimal + `
[executor]
grace = "90s"
max_output = "1.5GiB"
[files]
quota = "10GB"
keep_free = 4096
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Executor.Grace.D() != 90*time.Second || c.Executor.MaxOutput != 3<<29 || c.Files.Quota != 1e10 || c.Files.KeepFree != 4096 {
		t.Errorf("units: %+v %+v", c.Executor, c.Files)
	}
}

// What is wrong with a configuration is told with key, value and remedy.
func TestConfigRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown key":          {minimal + "[scheduler]\nprocesors = 4", []string{"scheduler.procesors", "did you mean scheduler.processors?"}},
		"unknown table":        {minimal + "[nonsense]\nx = 1", []string{"nonsense", "docs/operations.md"}},
		"no site":              {"data = \"/x\"", []string{"site is missing"}},
		"bad site":             {`site = "Alpha Site"`, []string{`"Alpha Site"`, "a-z"}},
		"not toml":             {"site = ", []string{"line 1"}},
		"bad duration":         {minimal + "[timing]\nclaim = \"5 apples\"", []string{"5 apples", "5s"}},
		"bad size":             {minimal + "[files]\nquota = \"many\"", []string{"many", "GB"}},
		"relative data":        {minimal + `data = "here"`, []string{`data "here"`, "absolute"}},
		"open to the world":    {minimal + "[listen]\naddress = \"0.0.0.0:7410\"", []string{"0.0.0.0:7410", "insecure_no_authentication"}},
		"no port":              {minimal + "[listen]\naddress = \"localhost\"", []string{"listen.address", "host:port"}},
		"bad backfill":         {minimal + "[scheduler]\nbackfill = \"magic\"", []string{"magic", "easy"}},
		"negative processors":  {minimal + "[scheduler]\nprocessors = -2", []string{"-2"}},
		"bad scheme":           {minimal + "[placement]\nscheme = \"best\"", []string{"best", "k-dual"}},
		"bad rank":             {minimal + "[placement]\nrank = \"luck\"", []string{"luck", "work"}},
		"no copies":            {minimal + "[placement]\ncopies = 0", []string{"copies 0"}},
		"zero timeout":         {minimal + "[timing]\nclaim = \"0s\"", []string{"timing claim", "positive"}},
		"peer is itself":       {minimal + "[[peers]]\nsite = \"alpha\"", []string{`peers[0].site "alpha"`, "once"}},
		"peer twice":           {minimal + "[[peers]]\nsite = \"beta\"\n[[peers]]\nsite = \"beta\"", []string{`peers[1].site "beta"`}},
		"peer address":         {minimal + "[[peers]]\nsite = \"beta\"\naddress = \"beta\"", []string{`"beta"`, "host:port"}},
		"join without gossip":  {minimal + "[gossip]\njoin = [\"h:1\"]", []string{"gossip.listen"}},
		"bad level":            {minimal + "[log]\nlevel = \"loud\"", []string{"loud", "warn"}},
		"bad format":           {minimal + "[log]\nformat = \"xml\"", []string{"xml", "json"}},
		"relative directories": {minimal + "[executor]\ndirectories = [\"scratch\"]", []string{"scratch", "absolute"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig(c.text)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestLoadConfigNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kithd.toml")
	if _, err := LoadConfig(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(missing, []byte("oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a bad file: %v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(minimal)
	f.Add("[[peers]]\nsite=1")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseConfig(text); err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("parsed, but %v", err)
			}
		}
	})
}

// testConfig is a small site on loopback.
func testConfig(t *testing.T, site string) Config {
	t.Helper()
	c := DefaultConfig()
	c.Site, c.Data = site, filepath.Join(t.TempDir(), site)
	c.Listen.Address = "127.0.0.1:0"
	c.Scheduler.Processors = 2
	c.Executor.Pin = false
	c.Executor.Grace = Duration(200 * time.Millisecond)
	c.Timing.Heartbeat = Duration(200 * time.Millisecond)
	return c
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	expect := func(t *testing.T, c Config, want ...string) {
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
