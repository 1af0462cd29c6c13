package e2e

import (
	"os/exec"
	"path"
	"strings"
	"testing"
)

// Two clean containers, each in a network of its own without a way out. Between them stands
// a gate, which carries connections from the joiner's network to the port of the inviter
// and nothing else.
func TestOutboundOnlyInContainers(t *testing.T) {
	needEngine(t)
	b := &bed{t: t}
	b.must(b.command("..", "./up", "--image"))
	remove := func() {
		for _, name := range []string{"uni-a", "lab-b", "gate"} {
			exec.Command("docker", "rm", "--force", "--volumes", boxName(name)).Run() //nolint:errcheck // it may not be there
		}
		for _, name := range []string{"outside", "inside"} {
			exec.Command("docker", "network", "rm", boxName(name)).Run() //nolint:errcheck // likewise
		}
	}
	remove()
	t.Cleanup(remove)
	for _, name := range []string{"outside", "inside"} {
		b.docker("network", "create", "--internal", boxName(name))
	}
	run := func(name, network string, args ...string) {
		b.docker(append([]string{"run", "--detach", "--name", boxName(name), "--network", boxName(network)}, args...)...)
	}
	run("uni-a", "outside", "--network-alias", "uni-a", "--hostname", "kith.uni-a.example", "--entrypoint", "/bin/sleep", "kith-testbed", "86400")
	run("lab-b", "inside", "--hostname", "lab-b", "--entrypoint", "/bin/sleep", "kith-testbed", "86400")
	const link = `[[link]]\nfrom = "lab-b"\nto = "uni-a"\nlisten = "0.0.0.0:7410"\ntarget = "uni-a:7410"\ndelay = "5ms"\n`
	run("gate", "inside", "--network-alias", "kith.uni-a.example", "kith-testbed",
		"/bin/sh", "-c", "printf '"+link+"' >/tmp/gate.toml; exec kith-wan --config /tmp/gate.toml")
	b.docker("network", "connect", boxName("outside"), boxName("gate"))

	inside := strings.TrimSpace(b.docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", boxName("lab-b")))
	p := &pair{t: t, inviter: &box{b, boxName("uni-a")}, joiner: &box{b, boxName("lab-b")}, listen: "kith.uni-a.example:7410", inside: inside + ":7410"}
	p.outboundOnly()
}

func boxName(name string) string { return "kith-e2e-" + name }

// box is a container with the programs in it, and its name.
type box struct {
	*bed
	name string
}

func (b *box) in(user string, args ...string) *exec.Cmd {
	return exec.Command("docker", append([]string{"exec", "--interactive", "--user", user, b.name}, args...)...)
}

func (b *box) kithd(args ...string) *exec.Cmd {
	return b.in("kith", append([]string{"kithd"}, args...)...)
}

func (b *box) kith(args ...string) *exec.Cmd {
	return b.in("root", append([]string{"kith"}, args...)...)
}

func (b *box) begin() {
	b.docker("exec", "--detach", "--user", "kith", b.name, "/bin/sh", "-c", "exec kithd >>/tmp/kithd.log 2>&1")
}

func (b *box) kill() {
	b.must(b.in("root", "/bin/sh", "-c", "kill -9 $(pidof kithd)"))
}

func (b *box) sockets() string { return b.must(b.in("root", "cat", "/proc/net/tcp", "/proc/net/tcp6")) }

func (b *box) dial(address string) error {
	host, port, _ := strings.Cut(address, ":")
	return b.in("root", "nc", "-w", "5", host, port).Run()
}

func (b *box) put(name string, data []byte) string {
	file := path.Join("/tmp", name)
	c := b.in("root", "/bin/sh", "-c", "cat >"+file)
	c.Stdin = strings.NewReader(string(data))
	b.must(c)
	return file
}

func (b *box) get(folder, name string) []byte {
	return []byte(b.must(b.in("root", "cat", path.Join(folder, name))))
}

func (b *box) log() string {
	out, _ := b.in("root", "tail", "-n", "40", "/tmp/kithd.log").CombinedOutput()
	return string(out)
}
