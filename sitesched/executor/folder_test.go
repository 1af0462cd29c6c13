package executor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

func TestFolderNames(t *testing.T) {
	for _, id := range []job.AttemptID{
		number(1),
		{Job: job.ID{Origin: "a-b", Generation: 1 << 31, Seq: 1 << 63}, Number: 1<<32 - 1},
	} {
		name := folderName(id)
		if got, ok := ParseFolder(name); !ok || got != id {
			t.Errorf("%q is read as %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", spareName, trashName, logName, "a", "a.1.1", "a.1.1-", "a.1.1-0", "a.1.1-01", "a.1.1-x", "-1"} {
		if id, ok := ParseFolder(name); ok {
			t.Errorf("%q is read as %v", name, id)
		}
	}
}

// testFolders opens folders and makes that of an attempt as a job would leave it
// that does nothing.
func testFolders(t *testing.T) (*folders, string) {
	t.Helper()
	f, err := openFolders(filepath.Join(t.TempDir(), "attempts"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.lock.Close() })
	usedFolder(t, f, "a.1.1-1")
	return f, f.path("a.1.1-1")
}

func usedFolder(t *testing.T, f *folders, name string) {
	t.Helper()
	if err := f.prepare(name); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{shim.StdoutName, shim.StderrName} {
		file, err := os.OpenFile(filepath.Join(f.path(name), stream), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	record := make([]byte, shim.RecordSize)
	copy(record, "something")
	if err := os.WriteFile(filepath.Join(f.path(name), shim.RecordName), record, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFoldersAreUsedAgain(t *testing.T) {
	f, path := testFolders(t)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if n == 1 {
			// From now on the times alone tell that nothing was touched.
			time.Sleep(2 * stampGrain)
		}
		if err := f.remove("a.1.1-1"); err != nil || exists(path) {
			t.Fatalf("round %d: %v", n, err)
		}
		if len(f.spares) != 1 {
			t.Fatalf("round %d: %d spares", n, len(f.spares))
		}
		if err := f.prepare("a.1.1-1"); err != nil {
			t.Fatal(err)
		}
		if err := f.prepare("a.1.1-1"); err != nil {
			t.Fatalf("again: %v", err)
		}
		now, err := os.Stat(path)
		if err != nil || !os.SameFile(st, now) {
			t.Fatalf("round %d: another folder, %v", n, err)
		}
		record, err := os.ReadFile(filepath.Join(path, shim.RecordName))
		if _, parseErr := shim.ParseRecord(record); err != nil || !errors.Is(parseErr, shim.ErrNoRecord) {
			t.Fatalf("round %d: the record reads %q", n, record)
		}
		if n == 1 && f.handedOut["a.1.1-1"] == (stamps{}) {
			t.Error("the times of an old folder are not trusted")
		}
		usedFolder(t, f, "a.1.1-1")
	}
}

// TestFolderOfALeaseIsUsedAgain has attempts under a lease follow each other in one folder:
// the next must not have the lease of the last, which may be the longer one.
func TestFolderOfALeaseIsUsedAgain(t *testing.T) {
	f, path := testFolders(t)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for n, l := range []work.Lease{{Stop: 90, Gone: 100}, {Stop: 9, Gone: 10}} {
		if got := f.readLease("a.1.1-1"); got != (work.Lease{}) {
			t.Errorf("round %d: it begins with the lease %+v", n, got)
		}
		if err := f.writeLease("a.1.1-1", l); err != nil {
			t.Fatal(err)
		}
		if got := f.readLease("a.1.1-1"); got != l {
			t.Errorf("round %d: lease %+v, want %+v", n, got, l)
		}
		if err := f.remove("a.1.1-1"); err != nil || len(f.spares) != 1 {
			t.Fatalf("round %d: %d spares, %v", n, len(f.spares), err)
		}
		usedFolder(t, f, "a.1.1-1")
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(st, now) {
		t.Errorf("another folder, %v", err)
	}
}

// TestTouchedFoldersAreNot has jobs leave their folders in every other way than
// they found them, as the first user of the folder and as a later one.
func TestTouchedFoldersAreNot(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(path string) error{
		"file in work":      func(p string) error { return os.WriteFile(p+"/work/x", nil, 0o600) },
		"hidden file":       func(p string) error { return os.WriteFile(p+"/tmp/.x", nil, 0o600) },
		"folder in tmp":     func(p string) error { return os.Mkdir(p+"/tmp/x", 0o700) },
		"file beside":       func(p string) error { return os.WriteFile(p+"/x", nil, 0o600) },
		"folder beside":     func(p string) error { return os.Mkdir(p+"/x", 0o700) },
		"stop":              func(p string) error { return os.WriteFile(p+"/stop", nil, 0o600) },
		"rights":            func(p string) error { return os.Chmod(p+"/work", 0o777) },
		"rights above":      func(p string) error { return os.Chmod(p, 0o755) },
		"link for a folder": func(p string) error { return replace(p+"/tmp", func() error { return os.Symlink("work", p+"/tmp") }) },
		"no folder":         func(p string) error { return os.Remove(p + "/tmp") },
		"link for record": func(p string) error {
			return replace(p+"/record", func() error { return os.Symlink("stdout", p+"/record") })
		},
		"link for lease": func(p string) error { return os.Symlink("record", p+"/lease") },
		"short lease":    func(p string) error { return os.WriteFile(p+"/lease", []byte("x"), 0o600) },
		"second name":    func(p string) error { return os.Link(p+"/record", filepath.Dir(p)+"/other") },
		"long record":    func(p string) error { return os.Truncate(p+"/record", 1<<20) },
		"pipe for record": func(p string) error {
			return replace(p+"/record", func() error { return unix.Mkfifo(p+"/record", 0o600) })
		},
		"attribute": func(p string) error { return unix.Setxattr(p+"/work", "user.x", []byte("y"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, later := range []bool{false, true} {
				f, path := testFolders(t)
				if later {
					time.Sleep(2 * stampGrain)
					if err := f.remove("a.1.1-1"); err != nil {
						t.Fatal(err)
					}
					usedFolder(t, f, "a.1.1-1")
				}
				if err := touch(path); err != nil {
					if name == "attribute" {
						t.Skipf("this file system keeps no extended attributes: %v", err)
					}
					t.Fatal(err)
				}
				if err := f.remove("a.1.1-1"); err != nil || exists(path) {
					t.Fatal(err)
				}
				if len(f.spares) != 0 {
					t.Errorf("used again although touched (later: %v)", later)
				}
				if left := names(f.path(trashName)); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			}
		})
	}
}

func replace(path string, make func() error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return make()
}

// TestWrittenStreams are replaced while the rest of the folder is used again.
func TestWrittenStreams(t *testing.T) {
	f, path := testFolders(t)
	for name, touch := range map[string]func(p string) error{
		"written": func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) },
		"rights":  func(p string) error { return os.Chmod(p, 0o644) },
		"linked":  func(p string) error { return os.Link(p, filepath.Join(filepath.Dir(f.dir), "kept")) },
		"removed": os.Remove,
	} {
		if err := touch(filepath.Join(path, shim.StdoutName)); err != nil {
			t.Fatal(err)
		}
		if err := f.remove("a.1.1-1"); err != nil || len(f.spares) != 1 {
			t.Fatalf("%s: %v, %d spares", name, err, len(f.spares))
		}
		if exists(filepath.Join(f.spares[0].path, shim.StdoutName)) {
			t.Errorf("%s: the stream is kept", name)
		}
		usedFolder(t, f, "a.1.1-1")
	}
}

// TestMarkedFoldersAreUsedAgain without the mark: each attempt of another origin has one.
func TestMarkedFoldersAreUsedAgain(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	f, path := testFolders(t)
	mark := filepath.Join(path, markName)
	for name, touch := range map[string]func() error{
		"as it was": func() error { return nil },
		"linked":    func() error { return os.Link(mark, kept) },
		"a link":    func() error { return replace(mark, func() error { return os.Symlink("stdout", mark) }) },
		"a pipe":    func() error { return replace(mark, func() error { return unix.Mkfifo(mark, 0o600) }) },
	} {
		if err := errors.Join(os.WriteFile(mark, []byte("secret"), 0o600), touch()); err != nil {
			t.Fatal(err)
		}
		if err := f.remove("a.1.1-1"); err != nil || len(f.spares) != 1 {
			t.Fatalf("%s: %v, %d spares", name, err, len(f.spares))
		}
		if exists(filepath.Join(f.spares[0].path, markName)) {
			t.Errorf("%s: the mark is kept", name)
		}
		usedFolder(t, f, "a.1.1-1")
	}
	// A folder in its place may hold anything.
	if err := os.Mkdir(mark, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.remove("a.1.1-1"); err != nil || exists(path) || len(f.spares) != 0 {
		t.Errorf("a folder for the mark: %v, %d spares", err, len(f.spares))
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	f, _ := testFolders(t)
	if err := f.remove("a.1.1-1"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(f.path(trashName)+"/7/x/y", 0o700); err != nil {
		t.Fatal(err)
	}
	_ = f.lock.Close()
	f2, err := openFolders(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f2.lock.Close() }()
	if err := f2.empty(); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{spareName, trashName} {
		if left := names(f.path(place)); len(left) > 0 {
			t.Errorf("%s still holds %v", place, left)
		}
	}
	if f2.serial < 7 {
		t.Errorf("serial %d may meet an older folder", f2.serial)
	}
}

// A start on a full disk makes no folder anew: a site whose jobs had filled its disk
// could not be started again before room was made.
func TestAStartKeepsItsFolders(t *testing.T) {
	f, _ := testFolders(t)
	places := []string{spareName, trashName, freshName}
	before := map[string]os.FileInfo{}
	for _, place := range places {
		open, err := os.Open(f.path(place)) // so that no other folder gets its inode
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close() //nolint:errcheck // it was only read
		if before[place], err = open.Stat(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(f.path(freshName)+"/9/"+workName, 0o700); err != nil {
		t.Fatal(err)
	}
	_ = f.lock.Close()
	f2, err := openFolders(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f2.lock.Close() }()
	for _, place := range places {
		if now, err := os.Lstat(f2.path(place)); err != nil || !os.SameFile(now, before[place]) {
			t.Errorf("%s is another folder than before, %v", place, err)
		}
	}
	if left := names(f2.path(freshName)); len(left) > 0 {
		t.Errorf("%s still holds %v", freshName, left)
	}
}

// A job that took all rights on its folder away does not have it stay.
func TestClosedFolderIsRemoved(t *testing.T) {
	f, _ := testFolders(t)
	const name = "alpha.1.1-1"
	if err := f.prepare(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.path(name), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(name); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(f.path(name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

// A daemon comes back on a disk without a free inode while its jobs run: their marks are names
// of the file that new ones are to be names of, which must not have to be made again.
func TestFoldersOpenWithoutInodes(t *testing.T) {
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	// A tmpfs counts names as inodes.
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 4<<20)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", "-N", "64", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a small disk takes root, a loop device and %s: %v %s", command[0], err, out)
		}
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) //nolint:errcheck // the test is over
	open := func() *folders {
		t.Helper()
		f, err := openFolders(filepath.Join(dir, "attempts"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	if err := errors.Join(f.prepare("a.1.1-1"), f.mark("a.1.1-1"), f.lock.Close()); err != nil {
		t.Fatal(err)
	}
	for n, err := 0, error(nil); err == nil; n++ {
		err = unix.Mknod(filepath.Join(dir, fmt.Sprint("filler-", n)), unix.S_IFREG|0o600, 0)
	}
	f = open()
	if err := f.remove("a.1.1-1"); err != nil {
		t.Error(err)
	}
	if ids, err := f.list(); err != nil || len(ids) != 0 {
		t.Errorf("listed: %v, %v", ids, err)
	}
	_ = f.lock.Close()
}

// What a job puts into the place of a mark goes with the attempt, and the folder of marks is
// made again if a job removes it.
func TestMarksThatJobsChange(t *testing.T) {
	f, _ := testFolders(t)
	const name = "a.1.1-2"
	if err := os.MkdirAll(f.begun(name)+"/in/it", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.prepare(name), f.mark(name), f.remove(name)); err != nil {
		t.Error(err)
	}
	if exists(f.begun(name)) {
		t.Error("a folder in the place of its mark is left")
	}
	if err := os.RemoveAll(f.path(begunName)); err != nil {
		t.Fatal(err)
	}
	if err := f.mark(name); err != nil {
		t.Errorf("without a folder of marks: %v", err)
	}
	if _, err := f.openRecord(name); !errors.Is(err, errNoFolder) {
		t.Errorf("a marked attempt without a folder: %v", err)
	}
}

// The mark of an attempt is there whatever has become of the file that marks are names of.
func TestMarksDoNotHangOnTheirFile(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"as it was made": func(string) error { return nil },
		"gone":           os.Remove,
		"a folder":       func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"a link":         func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/nowhere", p)) },
	} {
		t.Run(what, func(t *testing.T) {
			f, _ := testFolders(t)
			if err := spoil(f.begun(oneMarkName)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // it may be made again
				if err := f.mark("a.1.1-1"); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(f.path("a.1.1-1")); err != nil {
				t.Fatal(err)
			}
			if _, err := f.openRecord("a.1.1-1"); !errors.Is(err, errNoFolder) {
				t.Errorf("of a marked attempt without a folder: %v", err)
			}
			if ids, err := f.list(); err != nil || len(ids) != 1 {
				t.Errorf("listed: %v, %v", ids, err)
			}
			if err := f.remove("a.1.1-1"); err != nil {
				t.Fatal(err)
			}
			if ids, err := f.list(); err != nil || len(ids) != 0 {
				t.Errorf("listed after the removal: %v, %v", ids, err)
			}
		})
	}
}
