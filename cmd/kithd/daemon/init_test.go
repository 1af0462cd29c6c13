package daemon

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/cmd/kithd/config"
	"kith/meta/trust"
)

// kithd runs a command line and returns its exit code and what it wrote.
func kithd(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	t.Setenv(asRootVariable, "1") // tests may run as root
	var b bytes.Buffer
	code = Main(t.Context(), args, &b, &b)
	return code, b.String()
}

// What init makes is a site that starts.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "etc", "kithd.toml"), filepath.Join(dir, "data")
	args := []string{"init", "--site", "alpha", "--data", data, "--config", file, "--listen", "127.0.0.1:0"}
	code, out := kithd(t, append(args, "--output", "json")...)
	var made madeSite
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || len(made.Fingerprint) != 64 || made.Site != "alpha" || made.Config != file {
		t.Fatalf("code %d, %v: %s", code, err, out)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Site != "alpha" || c.Data != data || c.Listen.InsecureLoopback {
		t.Errorf("configuration %+v", c)
	}
	before, err := os.ReadFile(filepath.Join(data, "keys", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for what, more := range map[string][]string{
		"the same": nil, "another file": {"--config", file + "2"}, "other data": {"--data", data + "2"},
	} {
		if code, out := kithd(t, append(args, more...)...); code == 0 || !strings.Contains(out, "already") {
			t.Errorf("%s: code %d: %s", what, code, out)
		}
	}
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("a configuration without keys was left")
	}
	if after, err := os.ReadFile(filepath.Join(data, "keys", "ca.crt")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the keys were changed: %v", err)
	}
	c.Executor.Pin, c.Listen.Socket = false, filepath.Join(t.TempDir(), "s")
	c.Listen.AllowOwnUID = true
	s := startSecure(t, c, Options{})
	s.waitState(s.submit(shell("true")), completed)
}

func TestInitRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":    {nil, "--site is missing"},
		"bad name":   {[]string{"--site", "Alpha"}, "1 to 32 of a-z"},
		"bad listen": {[]string{"--site", "alpha", "--listen", "here"}, "host:port"},
		"long data":  {[]string{"--site", "alpha", "--data", "/" + strings.Repeat("d", 100)}, "shorter"},
	} {
		args := append([]string{"init", "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "kithd.toml")}, c.args...)
		if code, out := kithd(t, args...); code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%s: code %d, %s", name, code, out)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The key of the CA is not at the site, and renews its certificate from a file.
func TestInitOffline(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "kithd.toml"), filepath.Join(dir, "data")
	code, out := kithd(t, "init", "--site", "alpha", "--data", data, "--config", file, "--listen", "0.0.0.0:7410", "--ca-offline")
	caKey := filepath.Join(data, "alpha-ca.key")
	if code != 0 || !strings.Contains(out, caKey) || !strings.Contains(out, "not renewed by the site itself") {
		t.Fatalf("code %d: %s", code, out)
	}
	away := filepath.Join(t.TempDir(), "stick")
	if err := os.Rename(caKey, away); err != nil {
		t.Fatal(err)
	}
	leaf := filepath.Join(data, "keys", "leaf.pem")
	before, err := os.ReadFile(leaf)
	if err != nil {
		t.Fatal(err)
	}
	if code, out := kithd(t, "renew", "--config", file, "--ca-key", away); code != 0 || !strings.Contains(out, "SIGHUP") {
		t.Errorf("code %d: %s", code, out)
	}
	if after, err := os.ReadFile(leaf); err != nil || bytes.Equal(before, after) {
		t.Errorf("the certificate is the old one: %v", err)
	}
	if code, out := kithd(t, "renew", "--config", file, "--ca-key", away, "--void"); code != 0 {
		t.Errorf("void: code %d: %s", code, out)
	}
	next := filepath.Join(t.TempDir(), "next")
	if code, out := kithd(t, "renew", "--config", file, "--ca-key", away, "--next-ca-key", next); code != 0 || !strings.Contains(out, next) || !strings.Contains(out, "SIGHUP") {
		t.Errorf("next CA: code %d: %s", code, out)
	}
	if code, out := kithd(t, "renew", "--config", file, "--ca-key", away, "--void"); code != 1 || !strings.Contains(out, "--next-ca-key") {
		t.Errorf("void while a CA is replaced: code %d: %s", code, out)
	}
	if code, out := kithd(t, "renew", "--config", file, "--ca-key", away, "--next-ca-key", next, "--void", "--output", "json"); code != 0 || !strings.Contains(out, `"next_ca": "`) {
		t.Errorf("both: code %d: %s", code, out)
	}
	if code, _ := kithd(t, "renew", "--config", file, "--next-ca-key", next); code != 2 {
		t.Errorf("next CA without the key of this one: code %d", code)
	}
	if code, out := kithd(t, "renew", "--config", file, "--token-key"); code != 0 || !strings.Contains(out, "tokens of before are void") {
		t.Errorf("token key: code %d: %s", code, out)
	}
	if code, _ := kithd(t, "renew", "--config", file, "--void"); code != 2 {
		t.Errorf("void without a file: code %d", code)
	}
	if code, _ := kithd(t, "renew", "--config", file); code != 2 {
		t.Errorf("without a file: code %d", code)
	}
}

// What is wrong with flags is said of the flags: there is no file yet. What may not be made is
// said with the flag that chooses another place.
func TestInitNamesItsFlags(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "file")
	if err := os.WriteFile(closed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"init", "--site", "Lab B"}, 2, `kithd: --site "Lab B": give 1 to 32`},
		{[]string{"init", "--site", "lab-b", "--listen", "nonsense"}, 2, `kithd: --listen "nonsense": give host:port`},
		{[]string{"init", "--site", "lab-b", "--advertise", "nonsense"}, 2, `kithd: --advertise "nonsense": `},
		{[]string{"init", "--site", "lab-b", "--config", filepath.Join(closed, "kithd.toml")}, 1, "name another file with --config"},
		{[]string{"--config", filepath.Join(dir, "none.toml")}, 2, "make one with: kithd init --site NAME, or name it with --config FILE"},
	} {
		if c.args[0] == "init" {
			c.args = append(c.args, "--data", filepath.Join(dir, "data"))
		}
		if code, out := kithd(t, c.args...); code != c.code || !strings.Contains(out, c.want) || strings.Contains(out, "line ") {
			t.Errorf("%q: code %d: %s", c.args, code, out)
		}
	}
}

// After a copy was put back the operator steps over what other sites know, whoever has the CA's key.
func TestRenewAbove(t *testing.T) {
	for _, offline := range []bool{true, false} {
		dir := t.TempDir()
		file, data := filepath.Join(dir, "kithd.toml"), filepath.Join(dir, "data")
		args, renew := []string{"init", "--site", "alpha", "--data", data, "--config", file}, []string{"renew", "--config", file}
		if offline {
			args, renew = append(args, "--ca-offline"), append(renew, "--ca-key", filepath.Join(data, "alpha-ca.key"))
		}
		if code, out := kithd(t, args...); code != 0 {
			t.Fatalf("code %d: %s", code, out)
		}
		if code, out := kithd(t, append(renew, "--void", "--above", "7")...); code != 0 {
			t.Errorf("code %d: %s", code, out)
		}
		b, err := trust.OwnBundle(filepath.Join(data, "keys"))
		if err != nil || b.Sequence != 8 || b.Floor.IsZero() {
			t.Errorf("bundle %d with floor %v: %v", b.Sequence, b.Floor, err)
		}
		for _, wrong := range [][]string{{"--above", "7"}, {"--void", "--above", "1000000001"}, {"--void", "--above", "-1"}} {
			if code, out := kithd(t, append(renew, wrong...)...); code != 2 || !strings.Contains(out, "--above") {
				t.Errorf("%q: code %d: %s", wrong, code, out)
			}
		}
	}
}

// A site tells others the name that it was given, not what this machine's name service makes
// of it, and nothing where nobody can come in.
func TestAdvertised(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 7411}
	for _, c := range []struct{ address, advertise, want string }{
		{"kith.uni-a.example:7411", "", "kith.uni-a.example:7411"},
		{"10.0.0.7:0", "", "10.0.0.7:7411"},
		{"[::1]:0", "", "[::1]:7411"},
		{"0.0.0.0:7411", "uni-a.example:443", "uni-a.example:443"},
		{"0.0.0.0:7411", "none", ""},
	} {
		if got := advertised(config.Listen{Address: c.address, Advertise: c.advertise}, at); got != c.want {
			t.Errorf("listening at %s, advertise %q: it tells %q, want %q", c.address, c.advertise, got, c.want)
		}
	}
	own := []string{"127.0.0.1:7410", "localhost:7410", "[::1]:7410", "a.example:7410"}
	for _, c := range []struct{ known, want []string }{
		{[]string{"b.example:7410"}, own[3:]},
		{[]string{"127.0.0.1:7", "10.0.0.8:7410"}, own[3:]},
		{[]string{"[::1]:7410"}, own}, // of this machine
		{nil, own},
	} {
		if got := addressesFor(c.known, own); !slices.Equal(got, c.want) {
			t.Errorf("a site reached at %q is told %q", c.known, got)
		}
	}
}

func TestInitAdvertises(t *testing.T) {
	for advertise, want := range map[string]string{"none": "none", "uni-a.example:443": "uni-a.example:443", "": "none"} {
		n := newSite{site: "alpha", data: t.TempDir(), listen: "0.0.0.0:7410", advertise: advertise}
		if _, c, err := n.configuration(); err != nil || c.Listen.Advertise != want {
			t.Errorf("--advertise %q: %q, %v", advertise, c.Listen.Advertise, err)
		}
	}
	n := newSite{site: "alpha", data: t.TempDir(), listen: "0.0.0.0:7410", advertise: "here"}
	if _, _, err := n.configuration(); err == nil {
		t.Error("--advertise here was taken")
	}
}
