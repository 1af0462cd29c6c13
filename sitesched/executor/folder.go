package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/internal/scarce"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// What an attempt's folder holds, beside the streams and the record, whose
// names the shim knows.
const (
	workName = "work"    // the job's working folder and HOME
	tmpName  = "tmp"     // its TMPDIR
	stopName = "stop"    // says that, and why, the attempt is to be stopped
	markName = "payload" // the caller's mark
)

// Names in the directory that no attempt can have: they begin with a dot.
const (
	spareName = ".spare"
	trashName = ".trash"
	begunName = ".begun" // a name of an empty file for each attempt that was given to a shim
	logName   = ".shims.log"
	// oneMarkName is that file's own name, in the folder of the marks.
	oneMarkName = ".mark"
)

// mostSpares bounds the empty folders that wait for their next attempt.
const mostSpares = 256

// folders makes and removes the folders of attempts.
//
// Making the three directories of an attempt and removing them again costs, on
// ext4, half as much as the fork and exec of the job itself. A job that leaves
// its folders as it found them therefore gives them to another attempt: two
// renames.
type folders struct {
	dir     string
	lock    *os.File // holds off a second executor
	id      string   // see openID; empty for none
	ledgers *ledgers

	// leasing is held while a lease is written, and while a folder changes hands: what is
	// written late must not be the lease of the next attempt.
	leasing sync.Mutex

	mu        sync.Mutex
	spares    []spare
	handedOut map[string]stamps // of spares that are attempts' folders now
	serial    uint64
}

// folderName makes an attempt's name safe as a file name: the '#' before the
// number becomes '-'. It stays unique, as what follows the last '-' is the number.
func folderName(id job.AttemptID) string {
	b := append(id.Job.Append(make([]byte, 0, 64)), '-')
	return string(strconv.AppendUint(b, uint64(id.Number), 10))
}

// ParseFolder returns the attempt whose folder in [Config].Dir has a name, and
// false for a name of another kind.
func ParseFolder(name string) (job.AttemptID, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return job.AttemptID{}, false
	}
	id, err := job.ParseAttemptID(name[:i] + "#" + name[i+1:])
	return id, err == nil
}

func openFolders(dir string) (*folders, error) {
	f := &folders{dir: dir, handedOut: make(map[string]stamps)}
	mode := fs.FileMode(0o700)
	if unix.Geteuid() == 0 {
		// Jobs may run as other users, who must get through to their folders.
		mode = 0o711
	}
	if err := pathkind.Folder(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return nil, err
	}
	var err error
	if f.lock, err = lockFolder(dir); err != nil {
		return nil, err
	}
	f.id, err = f.openID()
	if err == nil {
		err = errors.Join(f.makeDotted(), f.makeMark())
	}
	if err == nil {
		f.ledgers, err = openLedgers(dir)
	}
	if err == nil {
		err = f.giveRecords()
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

// lockPatience is how long a lock may outlive the daemon that held it: a child
// that it was just making has a copy until it executes its program.
const lockPatience = 5 * time.Second

var errInUse = errors.New("another executor uses this folder")

// lockFolder makes sure that one executor uses dir, and that its file system
// has locks at all.
func lockFolder(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
		}
		if waited >= lockPatience {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, errInUse), file.Close())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// clearFresh removes what an earlier daemon left among the fresh folders: it has no
// owner, and new names must not meet it. The folder itself stays: on a full disk there
// may be no room to make it again.
func (f *folders) clearFresh() error {
	fresh := f.path(freshName)
	if !isFolder(fresh) {
		return removeTree(fresh)
	}
	entries, err := os.ReadDir(fresh)
	errs := []error{err}
	for _, entry := range entries {
		errs = append(errs, removeTree(filepath.Join(fresh, entry.Name())))
	}
	return errors.Join(errs...)
}

// makeDotted makes the dotted folders.
func (f *folders) makeDotted() error {
	if err := f.clearFresh(); err != nil {
		return err
	}
	for _, name := range []string{spareName, trashName, freshName, begunName, shim.LedgersName} {
		if !isFolder(f.path(name)) { // what is in its place is nobody's
			if err := removeTree(f.path(name)); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(f.path(name), 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(f.path(name))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if n, err := strconv.ParseUint(entry.Name(), 10, 64); err == nil {
				f.serial = max(f.serial, n)
			}
		}
	}
	return nil
}

// mostNames is how many names the file of marks may have that a daemon finds: with those of
// its own there are fewer than the 65,000 of ext4 for long.
const mostNames = 1 << 14

// makeMark makes the file of which the marks of attempts are names, unless that of an earlier
// daemon can have many more: on a disk without a free inode it could not be made again while
// marks of what runs are names of the old one. Marks can do without.
func (f *folders) makeMark() error {
	path := f.begun(oneMarkName)
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink < mostNames {
		return nil
	}
	if err := removeTree(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil && !scarce.Passes(err) {
		return err
	}
	return nil
}

func (f *folders) path(name string) string { return filepath.Join(f.dir, name) }

// next returns a path in one of the dotted folders that is not in use.
func (f *folders) next(place string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	return filepath.Join(f.dir, place, strconv.FormatUint(f.serial, 10))
}

// prepare makes the folder of an attempt if it is not there.
func (f *folders) prepare(name string) error {
	path := f.path(name)
	if f.reuse(name, path) {
		return nil
	}
	if err := f.makeFresh(path); err != nil {
		return fmt.Errorf("make the folder of the attempt: %w", err)
	}
	return nil
}

// reuse makes a spare the folder of an attempt. It reports false if there is
// none or the attempt has a folder.
func (f *folders) reuse(name, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.spares) == 0 {
		return false
	}
	last := len(f.spares) - 1
	s := f.spares[last]
	err := unix.Renameat2(unix.AT_FDCWD, s.path, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return false
	}
	f.spares = f.spares[:last]
	if err == nil {
		f.handedOut[name] = s.seen
	}
	return err == nil
}

// keep adds a spare.
func (f *folders) keep(s spare) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spares = append(f.spares, s)
}

// mark keeps beside the folder of an attempt that it may run: a job can remove its folder,
// and one that ended meanwhile leaves no process that tells of it. All marks are names of one
// file: a name takes 12 µs, a file took 200 on an ext4 without a journal, which looks for an
// inode that was not freed lately.
func (f *folders) mark(name string) error {
	path := f.begun(name)
	err := unix.Linkat(unix.AT_FDCWD, f.begun(oneMarkName), unix.AT_FDCWD, path, 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		// It is gone, has as many names as it can, or the file system knows no links.
		err = unix.Mknod(path, unix.S_IFREG|0o600, 0) // one call; open and close are two
	}
	if errors.Is(err, unix.ENOENT) { // a job has removed the folder: nothing would start here any more
		if err = os.MkdirAll(f.path(begunName), 0o700); err == nil {
			err = unix.Mknod(path, unix.S_IFREG|0o600, 0)
		}
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("mark the attempt as begun: %w", err)
	}
	return nil
}

func (f *folders) begun(name string) string { return filepath.Join(f.dir, begunName, name) }

// give hands the work and tmp folders to another user.
func (f *folders) give(name string, a *work.Account) error {
	path := f.path(name)
	if err := os.Chmod(path, 0o711); err != nil {
		return fmt.Errorf("open the folder to the job's user: %w", err)
	}
	for _, dir := range []string{workName, tmpName} {
		err := filepath.WalkDir(filepath.Join(path, dir), func(p string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, int(a.UID), int(a.GID))
		})
		if err != nil {
			return fmt.Errorf("give the folder to the job's user: %w", err)
		}
	}
	return nil
}

// remove removes the folder of an attempt, or keeps it as a spare, and then its mark and its
// entry.
func (f *folders) remove(name string) error {
	if !f.recycle(name) {
		if err := f.discard(name); err != nil {
			return err
		}
	}
	err := unix.Unlink(f.begun(name))
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // a job's
		err = removeTree(f.begun(name))
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the mark of the attempt: %w", err)
	}
	return f.ledgers.forget(name)
}

func (f *folders) discard(name string) error {
	// Out of the way in one step: after a crash there is a folder or there is none.
	trash := f.next(trashName)
	err := os.Rename(f.path(name), trash)
	if errors.Is(err, fs.ErrPermission) { // its job took all rights on it away
		err = f.moveClosed(name, trash)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove the folder of the attempt: %w", err)
	}
	return removeTree(trash)
}

// moveClosed moves the folder of an attempt to path with the rights of its owner.
func (f *folders) moveClosed(name, path string) error {
	dir, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only a handle
	if info, err := dir.Lstat(name); err != nil || !info.IsDir() {
		return errors.Join(err, fs.ErrPermission)
	} else if err := ownRights(dir, name, info); err != nil {
		return err
	}
	return os.Rename(f.path(name), path)
}

// empty removes what an earlier daemon left in the dotted folders.
func (f *folders) empty() error {
	var errs []error
	for _, name := range []string{spareName, trashName} {
		entries, err := os.ReadDir(f.path(name))
		errs = append(errs, err)
		for _, entry := range entries {
			path := filepath.Join(f.dir, name, entry.Name())
			if !f.isSpare(path) {
				errs = append(errs, removeTree(path))
			}
		}
	}
	return errors.Join(errs...)
}

func (f *folders) isSpare(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, spare := range f.spares {
		if spare.path == path {
			return true
		}
	}
	return false
}

// list returns the attempts that have a folder, or a mark or an entry of a ledger alone.
func (f *folders) list() ([]job.AttemptID, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	marks, err := os.ReadDir(f.path(begunName))
	if err != nil {
		return nil, err
	}
	var ids []job.AttemptID
	for _, entry := range entries {
		if id, ok := ParseFolder(entry.Name()); ok && entry.IsDir() {
			ids = append(ids, id)
		}
	}
	for _, entry := range marks {
		if id, ok := ParseFolder(entry.Name()); ok && !isFolder(f.path(entry.Name())) {
			ids = append(ids, id)
		}
	}
	for _, name := range f.ledgers.names() {
		if id, ok := ParseFolder(name); ok && !isFolder(f.path(name)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// busy reports whether a shim still holds the attempt's record.
func (f *folders) busy(name string) bool {
	record, err := f.openRecord(name)
	if err != nil {
		return false
	}
	defer func() { _ = record.Close() }()
	if r, err := readRecord(record, name); err == nil && r.Exit != nil {
		return false // its shim may hold the ledger for another
	}
	return errors.Is(unix.Flock(int(record.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
