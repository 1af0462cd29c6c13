package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestParseCgroup(t *testing.T) {
	mounts := []byte(`24 30 0:22 / /proc rw,relatime - proc proc rw
35 24 0:30 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
36 35 0:31 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate
`)
	for _, c := range []struct {
		mounts, membership []byte
		root, path         string
		ok                 bool
	}{
		{mounts, []byte("9:name=systemd:/\n0::/system.slice/kithd.service\n"), "/sys/fs/cgroup/unified", "/system.slice/kithd.service", true},
		{mounts, []byte("9:name=systemd:/\n"), "/sys/fs/cgroup/unified", "", false},
		{mounts[:60], []byte("0::/\n"), "", "/", false},
		{nil, nil, "", "", false},
	} {
		root, path, ok := parseCgroup(c.mounts, c.membership)
		if root != c.root || path != c.path || ok != c.ok {
			t.Errorf("%q: %q, %q, %v", c.membership, root, path, ok)
		}
	}
}

// testCgroup makes a cgroup for the test, with whatever controllers this
// machine's version 2 hierarchy has.
func testCgroup(t *testing.T) string {
	t.Helper()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	membership, _ := os.ReadFile("/proc/self/cgroup")
	root, path, ok := parseCgroup(mounts, membership)
	if !ok {
		t.Skip("no version 2 cgroup hierarchy is mounted")
	}
	dir := filepath.Join(root, path, fmt.Sprintf("kith-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cannot make a cgroup: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestCgroups(t *testing.T) {
	parent := testCgroup(t)
	for _, isolation := range isolations(t) {
		t.Run(string(isolation), func(t *testing.T) {
			b := openBench(t, Config{Isolation: isolation, CgroupParent: parent})
			for _, c := range b.Capabilities() {
				if c.Name == CapCgroup {
					t.Logf("%+v", c)
					if !c.Available {
						t.Skipf("no cgroup can be made for jobs: %s", c.Detail)
					}
				}
			}
			spec := shell(1, daemonise+"grep ^0:: /proc/self/cgroup")
			spec.MemoryBytes = 1 << 30
			e := b.run(spec)
			if got := readFile(b.StdoutPath(number(1))); e.ExitCode != 0 || !strings.HasSuffix(got, "/"+folderName(number(1))+"\n") {
				t.Errorf("%+v, in cgroup %q", e, got)
			}
			if exists(filepath.Join(parent, folderName(number(1)))) {
				t.Error("the cgroup is left")
			}
			b.Start(shell(2, daemonise+"sleep 60"))
			b.untilFile(number(2), "ready")
			for _, pid := range shimProcesses(b.config.ShimPath) {
				signalProcess(t, pid, syscall.SIGKILL)
			}
			if e := b.wait(number(2)); !lost(e) {
				t.Errorf("%+v", e)
			}
			if exists(filepath.Join(parent, folderName(number(2)))) {
				t.Error("the cgroup of a lost attempt is left")
			}
			if left := jobProcesses(b.config.Dir); len(left) > 0 {
				t.Errorf("processes %v live after the loss was reported", left)
			}
		})
	}
}
