package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every way to start kithd badly has its exit code and a sentence that names
// what is wrong.
func TestMainRefuses(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(minimal+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"no file":         {[]string{"--config", dir + "/none"}, 2, []string{dir + "/none", "no such file"}},
		"unknown key":     {[]string{"--config", config("key", "colour = 1")}, 2, []string{"colour", "is not known"}},
		"unknown flag":    {[]string{"--colour"}, 2, []string{"--colour"}},
		"an argument":     {[]string{"start"}, 2, []string{"start"}},
		"unknown command": {[]string{"versoin"}, 2, []string{`kithd: unknown command "versoin" for "kithd"; did you mean version?`}},
		"below config":    {[]string{"config", "nosuch"}, 2, []string{`kithd: unknown command "nosuch" for "kithd config"; "kithd help config" lists the commands`}},
		"config alone":    {[]string{"config"}, 2, []string{`kithd: missing command; "kithd help config" lists them`}},
		"no such help":    {[]string{"help", "colour"}, 2, []string{`kithd: there is no help on "colour"`}},
		"check, bad":      {[]string{"config", "check", config("bad", "[scheduler]\nbackfill = \"magic\"")}, 2, []string{"magic", "easy"}},
		"check, nothing":  {[]string{"config", "check", dir + "/none"}, 2, []string{dir + "/none"}},
		"port in use": {
			[]string{"--config", config("port", "data = \""+dir+"/p\"\n[listen]\ninsecure_loopback = true\naddress = \""+taken.Addr().String()+"\"")},
			1, []string{taken.Addr().String(), "in use"},
		},
		"data folder": {
			[]string{"--config", config("data", "data = \"/proc/kith\"\n[listen]\ninsecure_loopback = true\naddress = \"127.0.0.1:0\"")},
			1, []string{"/proc/kith"},
		},
		"data folder is a file": {
			[]string{"--config", config("file", "data = \""+config("plain", "")+"\"\n[listen]\ninsecure_loopback = true\naddress = \"127.0.0.1:0\"")},
			1, []string{"plain"},
		},
	} {
		var stdout, stderr bytes.Buffer
		if code := Main(t.Context(), c.args, &stdout, &stderr); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, c.code, stderr.String())
		}
		for _, want := range c.says {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: %q does not say %q", name, stderr.String(), want)
			}
		}
		if !strings.HasPrefix(stderr.String(), "kithd: ") || strings.Contains(stderr.String(), "goroutine") {
			t.Errorf("%s: %q", name, stderr.String())
		}
	}
}

// A site that is told to stop ends with 0, and all that it logged is JSON.
func TestMainRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kithd.toml")
	text := minimal + "data = \"" + dir + "/data\"\n[listen]\ninsecure_loopback = true\naddress = \"127.0.0.1:0\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := Main(t.Context(), []string{"config", "check", path}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), path+": ok\n") {
		t.Errorf("check: %d, %s%s", code, stdout.String(), stderr.String())
	}
	for _, word := range []string{"version", "--version"} {
		stdout.Reset()
		if code := Main(t.Context(), []string{word}, &stdout, &stderr); code != 0 || !regexp.MustCompile(`(?m)^kithd .+, revision .+, go1.+, .+/.+$`).MatchString(stdout.String()) {
			t.Errorf("%s: %d, %s%s", word, code, stdout.String(), stderr.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	stderr.Reset()
	if code := Main(ctx, []string{"--config", path}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	seen := map[string]bool{}
	for line := range strings.Lines(stderr.String()) {
		var l struct {
			Msg  string
			Site string `json:"site_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Site != "alpha" {
			t.Errorf("log line %q, %v", line, err)
		}
		seen[l.Msg] = true
	}
	for _, want := range []string{"site ready", "site stopping", "site stopped"} {
		if !seen[want] {
			t.Errorf("nobody logged %q", want)
		}
	}
}
