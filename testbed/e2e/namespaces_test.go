package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kith/testbed/programs"
)

// Two network namespaces on one cable. A packet filter at the joiner's end drops whoever
// wants to connect there, without an answer.
func TestOutboundOnlyInNamespaces(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it builds the programs and runs daemons")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may make network namespaces")
	}
	bin, err := programs.Build(t.Context(), programs.Kith, programs.Kithd, programs.Shim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bin.Remove() })                                             //nolint:errcheck // a temporary folder
	if err := os.Chmod(filepath.Dir(bin.Path(programs.Kith)), 0o755); err != nil { //nolint:gosec // other accounts run them
		t.Fatal(err)
	}
	root := temporary(t)
	cable := fmt.Sprintf("kith%d", os.Getpid())
	a := newNamespace(t, bin, root, cable+"a", 20001)
	b := newNamespace(t, bin, root, cable+"b", 20002)
	need(t, "ip", "link", "add", a.name, "netns", a.name, "type", "veth", "peer", "name", b.name, "netns", b.name)
	for n, address := range map[*namespace]string{a: "192.0.2.1/30", b: "192.0.2.2/30"} {
		need(t, "ip", "-n", n.name, "address", "add", address, "dev", n.name)
		need(t, "ip", "-n", n.name, "link", "set", n.name, "up")
		need(t, "ip", "-n", n.name, "link", "set", "lo", "up")
	}
	p := &pair{t: t, inviter: a, joiner: b, listen: "192.0.2.1:7410", inside: "192.0.2.2:7410"}
	b.dropIncoming()
	p.outboundOnly()
}

// need runs a command that a machine may not have, or may not let the test do: then the test
// is skipped.
func need(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// namespace is a network with a machine in it that shares all else with this one. Its kithd
// runs as an account of its own, which need not be in /etc/passwd.
type namespace struct {
	t         *testing.T
	bin       *programs.Set
	name, dir string
	account   uint32
	process   *exec.Cmd
}

func newNamespace(t *testing.T, bin *programs.Set, root, name string, account uint32) *namespace {
	t.Helper()
	need(t, "ip", "netns", "add", name)
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", name).Run() }) //nolint:errcheck // it ends with its last process
	n := &namespace{t: t, bin: bin, name: name, dir: filepath.Join(root, name), account: account}
	for dir, owner := range map[string]int{n.dir: int(account), n.mine(): 0} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(n.kill)
	return n
}

// dropIncoming drops the first packet of each connection from elsewhere. It needs no
// memory of connections, so a kernel without conntrack does.
func (n *namespace) dropIncoming() {
	n.t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		need(n.t, "ip", "netns", "exec", n.name, "iptables", "-A", "INPUT", "-i", n.name, "-p", "tcp", "--syn", "-j", "DROP")
		return
	}
	need(n.t, "ip", "netns", "exec", n.name, "nft", "add table inet kith; add chain inet kith in { type filter hook input priority 0; }; "+
		"add rule inet kith in iifname "+n.name+" tcp flags & (syn | ack) == syn drop")
}

// mine is the folder of its operator.
func (n *namespace) mine() string { return n.dir + "-operator" }

func (n *namespace) config() string { return filepath.Join(n.dir, "kithd.toml") }

func (n *namespace) kithd(args ...string) *exec.Cmd {
	if len(args) > 0 && args[0] == "init" {
		args = append(args, "--data", filepath.Join(n.dir, "data"))
	}
	c := exec.Command(n.bin.Path(programs.Kithd), append(args, "--config", n.config())...) //nolint:gosec // the test's own
	c.Dir = n.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: n.account, Gid: n.account}}
	return c
}

func (n *namespace) kith(args ...string) *exec.Cmd {
	return exec.Command(n.bin.Path(programs.Kith), append([]string{"--site", "unix:" + filepath.Join(n.dir, "data", "kith.sock")}, args...)...) //nolint:gosec // likewise
}

func (n *namespace) begin() {
	n.t.Helper()
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process writes it
	n.process = n.kithd()
	n.process.Stdout, n.process.Stderr = log, log
	if err := n.within(n.process.Start); err != nil {
		n.t.Fatal(err)
	}
}

func (n *namespace) kill() {
	if n.process != nil {
		n.process.Process.Kill() //nolint:errcheck // it may have ended
		n.process.Wait()         //nolint:errcheck // likewise
		n.process = nil
	}
}

// within does something in the namespace, on a thread that ends with it.
func (n *namespace) within(do func() error) error {
	over := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		f, err := os.Open(filepath.Join("/run/netns", n.name))
		if err == nil {
			defer f.Close() //nolint:errcheck // it was only opened
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		over <- err
	}()
	return <-over
}

func (n *namespace) sockets() string {
	n.t.Helper()
	var all strings.Builder
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", n.process.Process.Pid, table))
		if err != nil {
			n.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func (n *namespace) dial(address string) error {
	return n.within(func() error {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err == nil {
			c.Close() //nolint:errcheck // it was only tried
		}
		return err
	})
}

func (n *namespace) put(name string, data []byte) string {
	n.t.Helper()
	file := filepath.Join(n.mine(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		n.t.Fatal(err)
	}
	return file
}

func (n *namespace) get(folder, name string) []byte {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		n.t.Fatal(err)
	}
	return data
}

func (n *namespace) logFile() string { return filepath.Join(n.mine(), "log") }

func (n *namespace) log() string {
	text, _ := os.ReadFile(n.logFile())
	return string(text[max(0, len(text)-6000):])
}
