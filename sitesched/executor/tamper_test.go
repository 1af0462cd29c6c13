package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// replacements are what a job may put in the place of a file, by what it does.
var replacements = map[string]func(path string) error{
	"nothing":       func(string) error { return nil },
	"fifo":          func(p string) error { return unix.Mkfifo(p, 0o600) },
	"link":          func(p string) error { return os.Symlink("/etc/passwd", p) },
	"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
	"folder":        func(p string) error { return os.Mkdir(p, 0o700) },
	"empty file":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
	"sparse file": func(p string) error {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			return err
		}
		return os.Truncate(p, 1<<30)
	},
	"device": func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) },
}

// Whatever a job does to the files of its own attempt, a restart of the daemon is not
// held up by it, and the job has run once: `rm ../record` made one that runs look like
// one that had never begun, and it was started again beside itself.
func TestWhateverAJobDoesToItsFolderItRunsOnce(t *testing.T) {
	places := []string{shim.RecordName, shim.LeaseName, stopName, markName, shim.StdoutName, shim.StderrName, workName, tmpName}
	inEachIsolation(t, func(t *testing.T, c Config) {
		dir := t.TempDir()
		c.Grace = -1
		c.Processors = 1000
		c.KeepIdle = -1
		b := openBench(t, c)
		var specs []work.Spec
		for _, place := range places {
			for kind, make := range replacements {
				if kind == "device" && os.Geteuid() != 0 {
					continue
				}
				n := len(specs) + 1
				spec := shell(n, fmt.Sprintf("echo x >>%s/count%d; touch %s/ready%d; while [ ! -e %s/go ]; do sleep 0.2; done", dir, n, dir, n, dir))
				spec.Name = kind + " for " + place
				b.Start(spec)
				eventually(t, "start", func() bool { return exists(fmt.Sprintf("%s/ready%d", dir, n)) })
				path := filepath.Join(b.config.Dir, folderName(spec.Attempt), place)
				if err := errors.Join(os.RemoveAll(path), make(path)); errors.Is(err, unix.EPERM) && kind == "device" {
					t.Logf("%s: %v", spec.Name, err)
				} else if err != nil {
					t.Fatalf("%s: %v", spec.Name, err)
				}
				specs = append(specs, spec)
			}
		}
		b2 := b.reopen()
		for _, spec := range specs {
			b2.Adopt(spec, b.BootID())
		}
		if o := b2.run(shell(len(specs)+1, "exit 4")); o.ExitCode != 4 {
			t.Errorf("another job after the restart: %+v", o)
		}
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for i, spec := range specs {
			o := b2.wait(spec.Attempt)
			if runs := readFile(fmt.Sprintf("%s/count%d", dir, i+1)); runs != "x\n" {
				t.Errorf("%s: it ran %d times; %+v", spec.Name, len(runs)/2, o)
			}
			lostRecord := strings.HasSuffix(spec.Name, " for "+shim.RecordName)
			if lostRecord != (o.Kind == job.Loss) {
				t.Errorf("%s: %+v", spec.Name, o)
			}
		}
	})
}

// A job that wrote an end into its own record and ran on was COMPLETED after a restart
// of the daemon, and its processors went to the next one.
func TestAnEndThatAJobWroteIsNone(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		b := openBench(t, c)
		spec := shell(1, "touch ready; while [ ! -e go ]; do sleep 0.05; done; exit 7")
		b.Start(spec)
		b.untilFile(spec.Attempt, "ready")
		ended := shell(2, "exit 0")
		b.run(ended)
		of := func(s work.Spec) string {
			return filepath.Join(b.config.Dir, folderName(s.Attempt), shim.RecordName)
		}
		theirs, own := readFile(of(ended)), readFile(of(spec))
		if len(theirs) != shim.RecordSize || len(own) != shim.RecordSize {
			t.Fatalf("records of %d and %d bytes", len(theirs), len(own))
		}
		// The file stays the same one, with the lock on it.
		forged := own[:shim.RecordSize/2] + theirs[shim.RecordSize/2:]
		if err := os.WriteFile(of(spec), []byte(forged), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := shim.ParseRecord([]byte(forged)); err != nil || r.Exit == nil {
			t.Fatalf("no forged end: %+v, %v", r, err)
		}
		b2 := b.reopen()
		b2.Adopt(spec, b.BootID())
		b2.until("a look at the record", func() bool { return b2.started[spec.Attempt] > 0 || len(b2.finished[spec.Attempt]) > 0 })
		if err := os.WriteFile(filepath.Join(b.WorkPath(spec.Attempt), "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if o := b2.wait(spec.Attempt); o.ExitCode != 7 || o.Kind != job.Failure {
			t.Errorf("%+v", o)
		}
	})
}

// The same for a job that removes its whole folder: its processes tell of it.
func TestAJobThatRemovesItsFolderRunsOnce(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		dir := t.TempDir()
		b := openBench(t, c)
		spec := shell(1, fmt.Sprintf("echo x >>%s/count; touch %s/ready; while [ ! -e %s/go ]; do sleep 0.05; done", dir, dir, dir))
		b.Start(spec)
		eventually(t, "start", func() bool { return exists(dir + "/ready") })
		if err := os.RemoveAll(filepath.Join(b.config.Dir, folderName(spec.Attempt))); err != nil {
			t.Fatal(err)
		}
		b2 := b.reopen()
		b2.Adopt(spec, b.BootID())
		o := b2.wait(spec.Attempt)
		if runs := readFile(dir + "/count"); o.Kind != job.Loss || runs != "x\n" {
			t.Errorf("it ran %d times: %+v", len(runs)/2, o)
		}
	})
}

// The same if it has ended when the daemon comes back, so that no process tells of it.
func TestAJobThatRemovedItsFolderAndEndedRanOnce(t *testing.T) {
	inEachIsolation(t, func(t *testing.T, c Config) {
		dir := t.TempDir()
		b := openBench(t, c)
		spec := shell(1, fmt.Sprintf("echo x >>%s/count; touch %s/ready; while [ ! -e %s/go ]; do sleep 0.05; done; touch %s/over", dir, dir, dir, dir))
		b.Start(spec)
		eventually(t, "start", func() bool { return exists(dir + "/ready") })
		if err := os.RemoveAll(filepath.Join(b.config.Dir, folderName(spec.Attempt))); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, "end", func() bool { return exists(dir + "/over") })
		b2 := b.reopen()
		eventually(t, "end of its processes", func() bool { return len(b2.marked(folderName(spec.Attempt))) == 0 })
		if !b2.Begun(spec.Attempt) {
			t.Error("it counts as never begun")
		}
		b2.Adopt(spec, b.BootID())
		o := b2.wait(spec.Attempt)
		if runs := readFile(dir + "/count"); o.Kind != job.Loss || runs != "x\n" {
			t.Errorf("it ran %d times: %+v", len(runs)/2, o)
		}
		b2.Forget(spec.Attempt)
		eventually(t, "removal of its mark", func() bool {
			ids, err := b2.Folders()
			return err == nil && len(ids) == 0
		})
	})
}

// What an earlier version made and did not begin is begun.
func TestFoldersOfAnEarlierVersionGetRecords(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	folder := filepath.Join(b.config.Dir, folderName(number(1)))
	b.Close()
	err := errors.Join(os.Remove(filepath.Join(b.config.Dir, layoutName)), os.MkdirAll(folder+"/work", 0o700), os.Mkdir(folder+"/tmp", 0o700))
	if err != nil {
		t.Fatal(err)
	}
	b2 := b.reopen()
	b2.Adopt(shell(1, "exit 6"), b.BootID())
	if o := b2.wait(number(1)); o.ExitCode != 6 {
		t.Errorf("%+v", o)
	}
}
