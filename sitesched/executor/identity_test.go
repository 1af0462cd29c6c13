package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An emptied directory says nothing of what was begun before: none of that is started again, whether it
// runs, has ended or was never started, and what runs is ended.
func TestAdoptAfterTheFolderWasEmptied(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	b.run(shell(1, "exit 3"))
	b.Start(shell(2, "touch ready; sleep 60"))
	b.untilFile(number(2), "ready")
	b.Close()
	entries, err := os.ReadDir(b.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(b.config.Dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	b2 := b.reopen()
	if b2.BootID() == b.BootID() {
		t.Errorf("the boot is %s still", b.BootID())
	}
	for n := 1; n <= 3; n++ {
		b2.Adopt(shell(n, "echo must not run"), b.BootID())
	}
	for n := 1; n <= 3; n++ {
		if e := b2.wait(number(n)); !lost(e) || !strings.Contains(e.Reason, "was emptied or replaced") {
			t.Errorf("attempt %d: %+v", n, e)
		}
	}
	if left := b2.marked(folderName(number(2))); len(left) > 0 {
		t.Errorf("processes %v run on", left)
	}
	// What is begun from now on is adopted as ever.
	b2.Start(shell(4, "touch ready; sleep 0.5; exit 4"))
	b2.untilFile(number(4), "ready")
	b3 := b2.reopen()
	b3.Adopt(shell(4, "echo must not run"), b2.BootID())
	if e := b3.wait(number(4)); e.ExitCode != 4 {
		t.Errorf("%+v", e)
	}
}

// A directory of an executor that drew no id goes on without, so that what runs there is adopted.
func TestAnOlderFolderHasNoID(t *testing.T) {
	beside(t)
	b := openBench(t, Config{})
	b.Close()
	path := filepath.Join(b.config.Dir, idName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b2 := b.reopen()
	if b2.BootID() != b2.boot {
		t.Errorf("its boot is %s", b2.BootID())
	}
	b2.Adopt(shell(1, "exit 5"), b2.boot)
	if e := b2.wait(number(1)); e.ExitCode != 5 {
		t.Errorf("%+v", e)
	}
	b2.Close()
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if x, err := Open(b.config, nil); err == nil || !strings.Contains(err.Error(), path) {
		if x != nil {
			x.Close()
		}
		t.Errorf("an id that is none: %v", err)
	}
}
