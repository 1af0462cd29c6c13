package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"kith/internal/cli"
)

// maxInputs is the most files that a job may bring along.
const maxInputs = 1000

// An inputFile is a regular file of the caller that a job takes along. Nothing
// of it has been read yet.
type inputFile struct {
	path       string // where the job finds it
	local      string // what the caller calls it
	size       int64
	executable bool

	root *os.Root // the folder that it must not leave
	name string   // in root
}

// inputFiles are all files that a job takes along.
type inputFiles struct {
	files []*inputFile
	roots []*os.Root
	taken map[string]string // path to local
}

// newInputFiles returns an empty set. The caller closes it.
func newInputFiles() *inputFiles { return &inputFiles{taken: make(map[string]string)} }

// collect finds the files that the specifications LOCAL[:PATH] name.
func (in *inputFiles) collect(specs []string) error {
	for _, spec := range specs {
		if err := in.add(spec); err != nil {
			return cli.Usagef("--input %s: %v", spec, err)
		}
	}
	return nil
}

// Close lets go of the folders.
func (in *inputFiles) Close() {
	for _, root := range in.roots {
		_ = root.Close() // only a handle
	}
}

// add adds what one specification names. The last colon divides it, so that a
// name with a colon in it needs a PATH.
func (in *inputFiles) add(spec string) error {
	local, target := spec, ""
	if i := strings.LastIndexByte(spec, ':'); i >= 0 {
		local, target = spec[:i], spec[i+1:]
		if target == "" {
			return errors.New("nothing follows the colon; write LOCAL or LOCAL:PATH")
		}
	}
	if local == "" {
		return errors.New("names no file")
	}
	root, name, err := in.open(filepath.Clean(local))
	if err != nil {
		return err
	}
	info, err := lookAt(root, name)
	if err != nil {
		return err
	}
	if target == "" {
		if target, err = defaultTarget(local); err != nil {
			return err
		}
	} else if strings.HasSuffix(target, "/") && !info.IsDir() {
		target += filepath.Base(local)
	}
	if !filepath.IsLocal(target) {
		return fmt.Errorf("its place %q is not inside the job's private folder", target)
	}
	target = path.Clean(filepath.ToSlash(target))
	if info.IsDir() {
		return in.walk(root, name, local, target)
	}
	if target == "." {
		return errors.New("write LOCAL:NAME, or LOCAL alone")
	}
	return in.file(&inputFile{path: target, local: local, root: root, name: name}, info)
}

// open returns a root around the folder that holds a file, and its name there.
func (in *inputFiles) open(local string) (*os.Root, string, error) {
	dir, name := filepath.Dir(local), filepath.Base(local)
	if name == "." || name == ".." || name == string(filepath.Separator) {
		dir, name = local, "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", plain(err)
	}
	in.roots = append(in.roots, root)
	return root, name, nil
}

// defaultTarget is where a job finds a file without a PATH: where the caller
// has it, if that is inside the current folder, else under its last name.
func defaultTarget(local string) (string, error) {
	if filepath.IsLocal(local) {
		return filepath.ToSlash(filepath.Clean(local)), nil
	}
	whole, err := filepath.Abs(local)
	if err != nil {
		return "", err
	}
	if base := filepath.Base(whole); base != string(filepath.Separator) {
		return base, nil
	}
	return "", errors.New("has no name; write LOCAL:PATH")
}

// walk adds all files in a folder and below. Links are followed as long as
// they stay in it and lead to files.
func (in *inputFiles) walk(parent *os.Root, name, local, target string) error {
	root, err := parent.OpenRoot(name)
	if err != nil {
		return plain(err)
	}
	in.roots = append(in.roots, root)
	before := len(in.files)
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", filepath.Join(local, p), plain(err))
		case d.IsDir():
			return nil
		}
		where := filepath.Join(local, p)
		info, err := lookAt(root, p)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", where, err)
		case info.IsDir():
			return fmt.Errorf("%s: is a link to a folder; name that folder itself in another --input", where)
		}
		err = in.file(&inputFile{path: path.Join(target, p), local: where, root: root, name: p}, info)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	})
	if err == nil && len(in.files) == before {
		return errors.New("has no file in it")
	}
	return err
}

// file adds a file if it is one that can be sent.
func (in *inputFiles) file(f *inputFile, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("is %s, not a regular file", kindOf(info.Mode()))
	case !utf8.ValidString(f.path):
		return errors.New("its name is not UTF-8 text; write LOCAL:PATH")
	case in.taken[f.path] != "":
		return fmt.Errorf("its place %s is taken by %s", f.path, in.taken[f.path])
	case len(in.files) == maxInputs:
		return fmt.Errorf("is one more than %d files; pack them into one, for example with tar", maxInputs)
	}
	f.size, f.executable = info.Size(), info.Mode()&0o111 != 0
	in.taken[f.path] = f.local
	in.files = append(in.files, f)
	// That it can be opened is found out now, before anything is sent.
	opened, err := f.open()
	if err != nil {
		return err
	}
	return opened.Close()
}

// lookAt returns what a name stands for, following links inside root.
func lookAt(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err == nil {
		return info, nil
	}
	if link, lerr := root.Lstat(name); lerr == nil && link.Mode()&fs.ModeSymlink != 0 {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("is a link that leads nowhere")
		}
		return nil, errors.New("is a link that leads out of its folder; name the file itself")
	}
	return nil, plain(err)
}

// open opens the file for reading.
func (f *inputFile) open() (*os.File, error) {
	file, err := f.root.Open(f.name)
	if err != nil {
		return nil, plain(err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.New("was replaced while it was being read")
	}
	return file, nil
}

// read returns the content of a small file.
func (f *inputFile) read() ([]byte, error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // Only read from.
	content, err := io.ReadAll(io.LimitReader(file, f.size+1))
	switch {
	case err != nil:
		return nil, plain(err)
	case int64(len(content)) != f.size:
		return nil, errors.New("changed while it was being read")
	}
	return content, nil
}

// plain is bare with words for what happens most.
func plain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("you may not read it")
	}
	return cli.Bare(err)
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
