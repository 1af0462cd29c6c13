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
	"time"

	"github.com/BurntSushi/toml"

	"kith/cmd/kithd/config"
	"kith/testbed/programs"
)

// itself are the arguments that make the running program a kithd; nil if it
// cannot be one.
var itself []string

// UseItself has sites run in the very program that calls it, started with these
// arguments, where a federation names no program. It is for package inprocess,
// before any federation starts.
func UseItself(args ...string) { itself = args }

// find finds the kithd of a federation that names none: the running program
// itself if it can be one, else kithd with kith-shim beside it.
func (f *Federation) find(ctx context.Context) error {
	if itself != nil {
		path, err := os.Executable()
		f.cfg.Program, f.cfg.Args = path, itself
		return err
	}
	set, err := programs.Find(ctx, f.cfg.Note, programs.Kithd, programs.Shim)
	if err != nil {
		return err
	}
	f.found, f.cfg.Program = set, set.Path(programs.Kithd)
	return nil
}

// CanBeItself reports whether the running program is the kithd of federations that
// name none.
func CanBeItself() bool { return itself != nil }

// program is how a kithd is started.
type program struct {
	path string
	args []string
	// unknown are keys of the configuration that this version does not know.
	unknown []string
}

// command is a kithd that outlives who starts it.
func (p *program) command(args ...string) *exec.Cmd {
	return p.asRoot(exec.Command(p.path, p.with(args)...))
}

// run runs a kithd to its end, or that of ctx, and returns what it says.
func (p *program) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := p.asRoot(exec.CommandContext(ctx, p.path, p.with(args)...))
	cmd.WaitDelay = time.Second // for what it has started and left behind
	text, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return text, err
}

func (p *program) with(args []string) []string {
	return append(append([]string(nil), p.args...), args...)
}

// asRoot lets a federation for tests and demonstrations be root's. Earlier versions do not
// know the flag.
func (*program) asRoot(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "KITH_AS_ROOT=1")
	return cmd
}

// Use makes the site's kithd another program from its next start on, for
// example an earlier version; without a path it is again that of the federation.
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

// unknownKeys reads which keys a kithd does not know from what it says.
func unknownKeys(text []byte) []string {
	var keys []string
	for _, m := range regexp.MustCompile(`key (\S+) is not known`).FindAllSubmatch(text, -1) {
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
