package pathkind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("file", at("link")),
		os.Symlink("folder", at("link to a folder")), os.Symlink("nowhere", at("dangling")),
	); err != nil {
		t.Fatal(err)
	}
	const ok = ""
	for name, want := range map[string]struct{ file, folder string }{
		"file":             {ok, "is a file, and is to be a folder"},
		"folder":           {"is a folder, and is to be a regular file", ok},
		"pipe":             {"is a pipe, and is to be a regular file", "is a pipe, and is to be a folder"},
		"link":             {ok, "is a file, and is to be a folder"},
		"link to a folder": {"is a folder, and is to be a regular file", ok},
		"dangling":         {"is a link to nowhere, which is not there", "is a link to nowhere, which is not there"},
		"nothing":          {ok, ok},
		"/dev/null":        {"is a device, and is to be a regular file", "is a device, and is to be a folder"},
	} {
		path := at(name)
		if filepath.IsAbs(name) {
			path = name
		}
		for kind, c := range map[string]struct {
			err  error
			want string
		}{"file": {File(path), want.file}, "folder": {Folder(path), want.folder}} {
			switch {
			case c.want == ok && c.err != nil:
				t.Errorf("%s as a %s: %v", name, kind, c.err)
			case c.want != ok && (!errors.Is(c.err, ErrKind) || !strings.Contains(c.err.Error(), path+" "+c.want)):
				t.Errorf("%s as a %s: %v, want %q", name, kind, c.err, c.want)
			}
		}
	}
}
