package wan

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const goodConfig = `
seed = 7
control = "127.0.0.1:0"
buffer_bytes = 65536

[[link]]
from = "alpha"
to = "beta"
listen = "127.0.0.1:7101"
target = "127.0.0.1:7001"
delay = "20ms"
jitter = "2ms"
bytes_per_second = 1_000_000

[[link]]
from = "beta"
to = "alpha"
listen = ":7102"
target = "localhost:7002"
back = { delay = "80ms" }
`

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wan.toml")
	if err := os.WriteFile(path, []byte(goodConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Seed: 7, Control: "127.0.0.1:0", BufferBytes: 65536, Links: []LinkConfig{
		{From: "alpha", To: "beta", Listen: "127.0.0.1:7101", Target: "127.0.0.1:7001",
			Path: Path{Delay: 20 * time.Millisecond, Jitter: 2 * time.Millisecond, BytesPerSecond: 1_000_000}},
		{From: "beta", To: "alpha", Listen: ":7102", Target: "localhost:7002", Back: &Path{Delay: 80 * time.Millisecond}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadConfig of no file returned %v", err)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, new, says string }{
		"unknown key":         {"seed = 7", "sead = 7", `unknown key "sead"`},
		"unknown key in link": {`from = "alpha"`, "from = \"alpha\"\ncolour = 1", `unknown key "link.colour"`},
		"unknown key in back": {`back = {`, `back = { loss = 1, `, `unknown key "link.back.loss"`},
		"not TOML":            {"seed = 7", "seed =", "expected value"},
		"number for a delay":  {`delay = "20ms"`, "delay = 20", `link[0].delay 20ns: must be 0 to 1 min`},
		"negative delay":      {`delay = "20ms"`, `delay = "-20ms"`, "link[0].delay -20ms"},
		"long delay":          {`delay = "80ms"`, `delay = "61s"`, "link[1].back.delay 1m1s"},
		"negative rate":       {"1_000_000", "-1", "link[0].bytes_per_second -1"},
		"bad name":            {`from = "alpha"`, `from = "al pha"`, `link[0].from "al pha": must be 1 to 64`},
		"the name all":        {`from = "alpha"`, `from = "all"`, `link[0].from "all"`},
		"no name":             {`from = "alpha"`, ``, `link[0].from ""`},
		"to itself":           {`from = "alpha"`, `from = "beta"`, `link[0].to "beta": must be another site`},
		"no port":             {`"127.0.0.1:7101"`, `"127.0.0.1"`, `link[0].listen "127.0.0.1": must be HOST:PORT`},
		"open control":        {`"127.0.0.1:0"`, `"0.0.0.0:9"`, `control "0.0.0.0:9": is not a loopback address`},
		"control everywhere":  {`"127.0.0.1:0"`, `":9"`, "not a loopback"},
		"control nowhere":     {`"127.0.0.1:0"`, `"unix:"`, "the path after"},
		"control nothing":     {`"127.0.0.1:0"`, `"here"`, "must be \"unix:PATH\""},
		"negative buffer":     {"65536", "-1", "buffer_bytes -1"},
		"negative bound":      {"buffer_bytes = 65536", "max_connections = -1", "max_connections -1"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(goodConfig, c.old, c.new, 1)
			if _, err := ParseConfig(text); !errors.Is(err, ErrBadConfig) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("ParseConfig returned %v, want ErrBadConfig with %q", err, c.says)
			}
		})
	}
	if _, err := ParseConfig(""); !errors.Is(err, ErrBadConfig) {
		t.Errorf("ParseConfig of nothing returned %v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(goodConfig)
	f.Add("[[link]]\nback = {}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig(text)
		if err != nil {
			if !errors.Is(err, ErrBadConfig) {
				t.Errorf("ParseConfig returned %v", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("what ParseConfig accepts Validate refuses: %v", err)
		}
	})
}
