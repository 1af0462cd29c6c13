// Package programs finds the programs of Kith that another program of Kith
// starts: beside itself where Kith is installed, else by building them where
// it is run from its source.
package programs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The programs that there are.
const (
	Kith  = "kith"
	Kithd = "kithd"
	Shim  = "kith-shim"
)

// Set is some programs in one folder.
type Set struct {
	dir   string
	built bool // dir is temporary
}

// Path returns the file of one of the programs that were asked for.
func (s *Set) Path(name string) string { return filepath.Join(s.dir, name) }

// Remove removes what was built. Call it when none of the programs is needed
// any more: what runs then goes on, but is not started again.
func (s *Set) Remove() error {
	if !s.built {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Beside returns the named programs if all are beside the running program.
func Beside(names ...string) (*Set, bool) {
	self, err := os.Executable()
	if err != nil || !allIn(filepath.Dir(self), names) {
		return nil, false
	}
	return &Set{dir: filepath.Dir(self)}, true
}

// Find returns the named programs. They are those beside the running program
// if all are there. Else they are built from the source that the working
// folder is in, which takes Go and some seconds; note, if not nil, is told
// before. The error says what to do where neither works.
func Find(ctx context.Context, note func(string), names ...string) (*Set, error) {
	if set, ok := Beside(names...); ok {
		return set, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return build(ctx, filepath.Dir(self), note, names)
}

// allIn reports whether a folder has all of the programs.
func allIn(dir string, names []string) bool {
	for _, name := range names {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// Build builds the named programs from the source that the working folder is in.
func Build(ctx context.Context, names ...string) (*Set, error) {
	return build(ctx, "", nil, names)
}

func build(ctx context.Context, beside string, note func(string), names []string) (*Set, error) {
	all := strings.Join(names, " and ")
	missing := func(why string) error {
		if beside == "" {
			return fmt.Errorf("build %s: %s", all, why)
		}
		return fmt.Errorf("%s: not in %s, and %s; install Kith's programs into one folder, or run this one where the source of Kith is, with Go installed",
			all, beside, why)
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return nil, missing("there is no go command to build with")
	}
	// Only a module of that name has packages under kith/.
	out, err := exec.CommandContext(ctx, compiler, "list", "-m").Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || strings.TrimSpace(string(out)) != "kith" {
		return nil, missing("the working folder is not in the source of Kith")
	}
	if note != nil {
		note("building " + all)
	}
	dir, err := os.MkdirTemp("", "kith-programs-")
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir, built: true}
	args := []string{"build", "-trimpath", "-o", dir + string(filepath.Separator)}
	for _, name := range names {
		args = append(args, "kith/cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		s.Remove() //nolint:errcheck // a temporary folder
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, missing(fmt.Sprintf("go %s failed: %v\n%s", strings.Join(args, " "), err, bytes.TrimSpace(text)))
	}
	return s, nil
}
