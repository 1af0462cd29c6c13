package executor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

const (
	// treeDepth is how many folders, one in another, are open at once while a tree is
	// removed. A job can make trees that are deeper than there are descriptors.
	treeDepth = 32
	// treeBatch is how many names of a folder are in memory at once.
	treeBatch = 1024
	// deepName begins the names under which the parts of a tree that lie too deep are
	// moved to its top.
	deepName = ".deep-"
)

// removeTree removes a folder in which a job may have taken rights from itself, however
// deep it is. It follows no links. What is left after an error is beside path or in it.
func removeTree(folder string) error {
	root, err := os.OpenRoot(filepath.Dir(folder))
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	return removeBelow(root, filepath.Base(folder))
}

// removeBelow removes what root has under that path. What lies too deep in it comes to
// the top of root first, under names of its own.
func removeBelow(root *os.Root, name string) error {
	base := path.Base(name)
	r := remover{root: root, prefix: deepName + base[:min(len(base), 32)] + "-", tops: []string{name}}
	var errs []error
	for len(r.tops) > 0 {
		top := r.tops[len(r.tops)-1]
		r.tops = r.tops[:len(r.tops)-1]
		errs = append(errs, r.remove(root, top, top, 0))
	}
	return errors.Join(errs...)
}

// remover removes trees with few descriptors.
type remover struct {
	root   *os.Root
	prefix string
	serial int
	tops   []string // paths below root that are still to be removed
}

// remove removes name from dir, which is so many folders deep; below is its path from the
// root. It goes on after an error and returns the first.
func (r *remover) remove(dir *os.Root, name, below string, depth int) error {
	err := dir.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, statErr := dir.Lstat(name)
	if statErr != nil || !info.IsDir() {
		return err
	}
	if err := ownRights(dir, name, info); err != nil {
		return err
	}
	child, err := dir.OpenRoot(name)
	if err != nil {
		return err
	}
	err = r.clear(child, below, depth+1)
	if err = errors.Join(err, child.Close()); err != nil {
		return err
	}
	return ignoreMissing(dir.Remove(name))
}

// clear removes what is in a folder, batch by batch, until nothing more can be removed.
func (r *remover) clear(dir *os.Root, path string, depth int) error {
	for {
		list, err := dir.Open(".")
		if err != nil {
			return err
		}
		entries, err := list.ReadDir(treeBatch)
		_ = list.Close()
		if len(entries) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		var first error
		removed := false
		for _, entry := range entries {
			below := path + "/" + entry.Name()
			var err error
			if entry.IsDir() && depth >= treeDepth {
				err = r.lift(dir, entry, below)
			} else {
				err = r.remove(dir, entry.Name(), below, depth)
			}
			removed = removed || err == nil
			if first == nil {
				first = err
			}
		}
		if !removed {
			return first
		}
	}
}

// lift moves a folder that lies too deep to the top of the root.
func (r *remover) lift(dir *os.Root, entry fs.DirEntry, path string) error {
	info, err := entry.Info()
	if err != nil {
		return ignoreMissing(err)
	}
	if err := ownRights(dir, entry.Name(), info); err != nil {
		return err
	}
	for range treeBatch { // an earlier daemon may have left some
		r.serial++
		top := fmt.Sprintf("%s%d", r.prefix, r.serial)
		if _, err = r.root.Lstat(top); err == nil {
			continue
		}
		if err = r.root.Rename(path, top); err == nil {
			r.tops = append(r.tops, top)
			return nil
		}
		break
	}
	return err
}

// ownRights gives the owner of a folder all rights on it.
func ownRights(dir *os.Root, name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o700 == 0o700 {
		return nil
	}
	return dir.Chmod(name, 0o700)
}
