package transfer

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"kith/store/blobstore"
)

// ordinary runs the calling test again as an account that has to be let in, and reports whether
// it did: root reads what nobody may.
func ordinary(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	const nobody = 65534
	tmp, err := os.MkdirTemp("/tmp", "closed-") //nolint:usetesting // nobody has to get into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return true
}

// A job that takes all rights on its private folder away brings its outputs home all the same.
// What it took them away from within is noted by its name.
func TestCollectFromAClosedFolder(t *testing.T) {
	if ordinary(t) {
		return
	}
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "x", "d/y", "*.txt")
	write(t, dir, "x", []byte("of x"))
	write(t, dir, "a.txt", []byte("of a"))
	write(t, dir, "d/y", []byte("of y"))
	closeDir(t, dir+"/d")
	closeDir(t, dir)
	if n := (&Collector{Store: store}).Bytes(background(), l); n < 8 {
		t.Errorf("%d bytes are to be collected", n)
	}
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{"x": "of x", "a.txt": "of a"})
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], `"d/y": permission denied`) {
		t.Errorf("notes %q", got.Notes)
	}
}

// closeDir takes all rights on a folder away, until the test is over.
func closeDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
}

// Without the private folder the note names an output that was declared.
func TestCollectWithoutAFolder(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "x", "d/y")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got.Notes, "; "); text != `"x": the private folder is gone, and the other outputs with it: 1` || !got.Incomplete {
		t.Errorf("notes %q", text)
	}
}
