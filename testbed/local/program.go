package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"kith/cmd/kithd/config"
	"kith/cmd/kithd/daemon"
	"kith/sitesched/executor"
)

// daemonArgument makes a program that begins with [Main] a kithd.
const daemonArgument = "__kithd"

// Main makes the calling program able to be the sites of a federation, so that
// a demo, a benchmark or a test needs nothing but itself. A program calls it
// first of all, and exits with the code if handled is true: then it was
// started as a site or as the shim of a site's job, and has been that.
func Main(args []string) (handled bool, code int) {
	if isShim, code := executor.ShimMain(args); isShim {
		return true, code
	}
	if len(args) > 1 && args[1] == daemonArgument {
		return true, daemon.Main(context.Background(), args[2:], os.Stdout, os.Stderr)
	}
	return false, 0
}

// self is the command that starts a kithd from this very program.
func self() (program string, args []string, err error) {
	program, err = os.Executable()
	return program, []string{daemonArgument}, err
}

// program is how a kithd is started.
type program struct {
	path string
	args []string
	// unknown are keys of the configuration that this version does not know.
	unknown []string
}

func (p *program) command(args ...string) *exec.Cmd {
	return exec.Command(p.path, append(append([]string(nil), p.args...), args...)...)
}

// Use makes the site's kithd another program from its next start on, for
// example an earlier version; without a path it is again this very program.
// What an earlier version does not know is left out of its configuration.
func (n *Node) Use(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if path == "" {
		n.program = program{path: n.f.cfg.Program, args: n.f.cfg.Args}
		return nil
	}
	p := program{path: path}
	trial := filepath.Join(n.f.cfg.Dir, n.Name+".trial.toml")
	defer os.Remove(trial) //nolint:errcheck // it lies in a folder of our own
	if err := writeConfig(trial, n.Config, nil); err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	text, err := p.command("config", "check", trial).CombinedOutput()
	if p.unknown = unknownKeys(text); err != nil && len(p.unknown) == 0 {
		return fmt.Errorf("site %s: %s refuses its configuration: %w: %s", n.Name, path, err, bytes.TrimSpace(text))
	}
	n.program = p
	return nil
}

var unknownKey = regexp.MustCompile(`key (\S+) is not known`)

// unknownKeys reads which keys a kithd does not know from what it says.
func unknownKeys(text []byte) []string {
	var keys []string
	for _, m := range unknownKey.FindAllSubmatch(text, -1) {
		keys = append(keys, string(m[1]))
	}
	return keys
}

// writeConfig writes a configuration without some keys of its tables.
func writeConfig(path string, c config.Config, without []string) error {
	text := bytes.NewBuffer(c.TOML())
	if len(without) > 0 {
		var all map[string]any
		if _, err := toml.Decode(text.String(), &all); err != nil {
			return err
		}
		for _, key := range without {
			table, name, _ := strings.Cut(key, ".")
			if t, ok := all[table].(map[string]any); ok && name != "" {
				delete(t, name)
			} else {
				delete(all, table)
			}
		}
		text.Reset()
		if err := toml.NewEncoder(text).Encode(all); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	return errors.Join(err, f.Close())
}
