package shim

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(path string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/plain", 0o644)
	write("b/plain", 0o755)
	write("a/locked", 0o644)
	write("work/bin/own", 0o755)
	if err := os.MkdirAll(filepath.Join(dir, "a/folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + dir + "/a:" + dir + "/b:bin"
	for name, c := range map[string]struct {
		env   []string
		name  string
		want  string
		errno syscall.Errno
	}{
		"absolute":                  {nil, "/no/such", "/no/such", 0},
		"relative":                  {nil, "./x", "./x", 0},
		"in the default path":       {nil, "sh", "", 0},
		"first that can execute":    {[]string{path}, "plain", dir + "/b/plain", 0},
		"there but not executable":  {[]string{path}, "locked", "locked", syscall.EACCES},
		"a folder is no program":    {[]string{path}, "folder", "folder", errNotInPath},
		"relative to the directory": {[]string{path}, "own", dir + "/work/bin/own", 0},
		"nowhere":                   {[]string{path}, "nowhere", "nowhere", errNotInPath},
		"empty name":                {[]string{path}, "", "", errNotInPath},
	} {
		got, errno := findProgram(&Run{Argv: []string{c.name}, Env: c.env, Directory: dir + "/work"})
		if errno != c.errno || c.want != "" && got != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, errno, c.want, c.errno)
		}
	}
}
