package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/executor/shim"
)

// freshName is where folders of attempts are made. layoutName says that all folders
// beside it have had a record since they were made.
const (
	freshName  = ".fresh"
	layoutName = ".layout-2"
)

// errNoRecord is what is known of an attempt whose record is gone: a folder comes into
// its place with a blank one, so the job, or another, has removed it. Then the attempt
// may have run; it is lost, not one that never began.
var errNoRecord = errors.New("its record was removed from its folder")

// errNoFolder is the same of an attempt whose whole folder is gone, and that was marked.
var errNoFolder = errors.New("its folder was removed")

// makeFresh makes the folder of an attempt, with a blank record, elsewhere and moves it
// into its place in one step. If there is one already it stays.
func (f *folders) makeFresh(path string) error {
	if isFolder(path) {
		return nil
	}
	fresh := f.next(freshName)
	for _, dir := range []string{fresh, fresh + "/" + workName, fresh + "/" + tmpName} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return errors.Join(err, os.RemoveAll(fresh))
		}
	}
	err := os.WriteFile(fresh+"/"+shim.RecordName, shim.BlankRecord(), 0o600)
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.EEXIST) && isFolder(path) {
		err = nil // another process was quicker
	}
	return errors.Join(err, os.RemoveAll(fresh))
}

func isFolder(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// giveRecords gives the folders that an earlier version made a blank record where they
// have none, once: of those it is not known whether they ever had one, and most were
// made and not begun.
func (f *folders) giveRecords() error {
	layout := f.path(layoutName)
	if _, err := os.Lstat(layout); err == nil {
		return nil
	}
	ids, err := f.list()
	if err != nil {
		return err
	}
	for _, id := range ids {
		record := filepath.Join(f.path(folderName(id)), shim.RecordName)
		file, err := os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("record of attempt %v: %w", id, err)
		}
		_, err = file.Write(shim.BlankRecord())
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("record of attempt %v: %w", id, err)
		}
	}
	return os.WriteFile(layout, nil, 0o600)
}

// recordFile is the file that has an attempt's record, and where in it that is.
type recordFile struct {
	*os.File
	at int64
}

// openRecord opens an attempt's record. Without one the error is errNoLedger if it was an
// entry of a ledger, errNoRecord if there is a folder, errNoFolder if there was one when the
// attempt was given to a shim, else fs.ErrNotExist.
func (f *folders) openRecord(name string) (recordFile, error) {
	if e, ok := f.ledgers.find(name); ok {
		file, err := f.ledgers.open(e)
		return recordFile{file, e.offset()}, err
	}
	file, err := jobfile.Open(f.dir, name+"/"+shim.RecordName, unix.O_RDONLY)
	if !errors.Is(err, fs.ErrNotExist) {
		return recordFile{file, 0}, err
	}
	if _, statErr := os.Lstat(f.path(name)); statErr == nil {
		return recordFile{}, errNoRecord
	}
	if _, markErr := os.Lstat(f.begun(name)); markErr == nil {
		return recordFile{}, errNoFolder
	}
	return recordFile{}, err
}

// Begun reports whether an attempt has left a trace of having been started, whatever
// its job did to its folder. It waits for the disk.
func (x *Executor) Begun(id job.AttemptID) bool {
	name := folderName(id)
	file, err := x.folders.openRecord(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close() //nolint:errcheck // it was only read
	_, err = readRecord(file, name)
	return !errors.Is(err, shim.ErrNoRecord)
}
