package executor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// deepTree makes a chain of folders in dir that is far deeper than there are descriptors,
// the deepest without rights, and files and folders beside it.
func deepTree(t *testing.T, dir string) {
	t.Helper()
	const links = 500
	top, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range links {
		if err := top.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := top.WriteFile("f", nil, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := top.Symlink("..", "l"); err != nil {
			t.Fatal(err)
		}
		next, err := top.OpenRoot("d")
		_ = top.Close()
		if err != nil {
			t.Fatal(err)
		}
		top = next
	}
	if err := top.Mkdir("shut", 0); err != nil {
		t.Fatal(err)
	}
	_ = top.Close()
	for i := range treeBatch + 10 {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o500); err != nil {
			t.Fatal(err)
		}
	}
}

// fewDescriptors runs the calling test again in a process of its own that may have few
// descriptors, and reports whether this is that process.
func fewDescriptors(t *testing.T) bool {
	t.Helper()
	const mark = "KITH_TEST_FEW_DESCRIPTORS"
	if os.Getenv(mark) != "" {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 128, Max: 128}); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1", "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// A job can nest folders deeper than the site has descriptors: removing them took all, so
// that nothing could be started meanwhile, failed, and the disk stayed taken for good.
func TestRemoveTreeTakesFewDescriptors(t *testing.T) {
	if !fewDescriptors(t) {
		return
	}
	dir := t.TempDir()
	tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
	for _, d := range []string{tree, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(outside+"/kept", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, tree+"/link"); err != nil {
		t.Fatal(err)
	}
	deepTree(t, tree)
	if err := removeTree(tree); err != nil {
		t.Errorf("remove: %.300s", err.Error())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || !exists(outside+"/kept") {
		t.Errorf("%v is left, %v; want the folder outside, with its file", entries, err)
	}
	if t.Failed() { // what is left is too deep for TempDir, too
		_ = exec.CommandContext(t.Context(), "rm", "-rf", tree).Run()
	}
}

// On a full disk, room is made below the working folder, however deep its folders are.
func TestEmptyFolderTakesFewDescriptors(t *testing.T) {
	if !fewDescriptors(t) {
		return
	}
	dir := t.TempDir()
	work := filepath.Join(dir, workName)
	if err := os.MkdirAll(work+"/result", 0o700); err != nil {
		t.Fatal(err)
	}
	deepTree(t, work)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := emptyFolder(root, workName, func(name string) bool { return name == "result" }); err != nil {
		t.Errorf("empty: %.300s", err.Error())
	}
	left := ""
	for _, d := range []string{dir, work} {
		entries, err := os.ReadDir(d)
		left += fmt.Sprint(entries, err)
	}
	if want := "[d work/] <nil>[d result/] <nil>"; left != want {
		t.Errorf("%.300s is left, want %s", left, want)
	}
	if t.Failed() {
		_ = exec.CommandContext(t.Context(), "rm", "-rf", work).Run()
	}
}
