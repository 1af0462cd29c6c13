package executor

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"kith/internal/job"
	"kith/internal/jobfile"
)

// Empty removes what an attempt that has finished left in its working folder and
// its folder for temporary files, to make room on a full disk. Of the working
// folder it keeps what has a name that matches one of the patterns keep
// (path.Match). An attempt that has not finished is left alone. It follows no
// links: what a job put in the place of a folder is left to Forget.
func (x *Executor) Empty(id job.AttemptID, keep []string) error {
	x.mu.Lock()
	a := x.attempts[id]
	over := a != nil && (a.phase == ended || a.phase == announced) && !a.kept // that is empty, and perhaps another's
	x.mu.Unlock()
	if !over {
		return nil
	}
	root, err := jobfile.Folder(x.folders.path(folderName(id)))
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	kept := func(name string) bool {
		for _, pattern := range keep {
			if match, err := path.Match(pattern, name); match || err != nil {
				return true
			}
		}
		return false
	}
	return errors.Join(emptyFolder(root, workName, kept), emptyFolder(root, tmpName, func(string) bool { return false }))
}

// emptyFolder removes what is in a folder, but for what is kept.
func emptyFolder(root *os.Root, name string, kept func(string) bool) error {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return ignoreMissing(err)
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer folder.Close() //nolint:errcheck // it was only read
	dir, err := folder.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	errs := []error{err, dir.Close()}
	for _, entry := range entries {
		if kept(entry.Name()) {
			continue
		}
		errs = append(errs, removeBelow(root, name+"/"+entry.Name()))
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
