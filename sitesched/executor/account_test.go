package executor

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kith/sitesched/work"
)

// nobody is the user of that name, which owns nothing.
const nobody = 65534

// openToAll makes a folder that every user can reach, unlike t.TempDir.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kith") //nolint:usetesting // t.TempDir lies in a folder that only its owner may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for above := filepath.Dir(dir); above != "/"; above = filepath.Dir(above) {
		if st, err := os.Stat(above); err != nil || st.Mode()&1 == 0 {
			t.Skipf("other users cannot enter %s: choose another TMPDIR", above)
		}
	}
	return dir
}

func TestAccounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as other users")
	}
	for _, isolation := range isolations(t) {
		t.Run(string(isolation), func(t *testing.T) {
			b := openBench(t, Config{Isolation: isolation, Dir: filepath.Join(openToAll(t), "attempts")})
			if err := b.Prepare(number(1)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.WorkPath(number(1)), "input"), []byte("staged\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			spec := shell(1, `id -u; id -g; id -G; cat input; echo x > output; echo y > $TMPDIR/z; echo again >> /dev/stdout
				cat ../record || echo private; echo $USER`)
			spec.Account = &work.Account{UID: nobody, GID: nobody, Groups: []uint32{nobody, 12345}, Name: "nobody"}
			e := b.run(spec)
			if isolation == UserNamespace {
				if e.Start != 0 || !strings.Contains(e.Reason, "only root") {
					t.Errorf("in a user namespace: %+v", e)
				}
				return
			}
			want := "65534\n65534\n65534 12345\nstaged\nagain\nprivate\nnobody\n"
			if got := readFile(b.StdoutPath(number(1))); got != want || e.ExitCode != 0 {
				t.Errorf("%+v, stdout %q, stderr %q", e, got, readFile(b.StderrPath(number(1))))
			}
			// The next attempt must not get the folder of another user.
			b.Forget(number(1))
			eventually(t, "the folder is gone", func() bool { return !exists(filepath.Dir(b.WorkPath(number(1)))) })
			if e := b.run(shell(2, "stat -c %u . .. ../tmp")); e.ExitCode != 0 {
				t.Errorf("%+v", e)
			}
			if got := readFile(b.StdoutPath(number(2))); got != "0\n0\n0\n" {
				t.Errorf("owners %q", got)
			}
		})
	}
}

// TestStubbornFolder has a job take away its own rights on what it leaves.
func TestStubbornFolder(t *testing.T) {
	b := openBench(t, Config{})
	b.run(shell(1, "mkdir -p a/b/c; touch a/b/c/d; chmod 0 a/b/c a/b a; ln -s / root"))
	b.Forget(number(1))
	eventually(t, "the folder is gone", func() bool { return !exists(filepath.Dir(b.WorkPath(number(1)))) })
	eventually(t, "the trash is empty", func() bool { return len(names(b.folders.path(trashName))) == 0 })
}

// TestAsNobody runs the other tests as a user without any rights.
func TestAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as other users")
	}
	dir := openToAll(t)
	program, shimPath, tmp := filepath.Join(dir, "test"), filepath.Join(dir, "kith-shim"), filepath.Join(dir, "tmp")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, self, program)
	copyProgram(t, shimBinary(t), shimPath)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	run := "Exits|Streams|Inherits|StopRunning|Nothing|Forks|KilledShim|AdoptWithout|MemoryLimit|Stubborn|ClosedFolder"
	if testing.Short() {
		run = "Exits|StopRunning|Nothing|Stubborn|ClosedFolder"
	}
	cmd := exec.Command(program, "-test.run", run, "-test.v", "-test.short")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp, shimVariable + "=" + shimPath}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- SKIP") || strings.Contains(line, "--- PASS") {
			t.Logf("as nobody: %s", strings.TrimRight(line, "\n"))
		}
	}
	if !slices.Contains(strings.Fields(string(out)), "PASS") {
		t.Errorf("nothing was run: %s", out)
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
