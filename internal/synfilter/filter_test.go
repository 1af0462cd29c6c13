package synfilter

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// server is a listener that keeps what it accepts.
func server(t *testing.T, address string) (*Filter, string) {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("cannot listen at %s: %v", address, err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() }) //nolint:errcheck // a connection of this test
		}
	}()
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return New(l), port
}

// connects returns whether an address gets a connection to another one soon.
func connects(t *testing.T, from, to, port string) (net.Conn, bool) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 300 * time.Millisecond}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(to, port))
	if err != nil {
		return nil, false
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // a connection of this test
	return c, true
}

func check(t *testing.T, to, port string, want map[string]bool) {
	t.Helper()
	for from, want := range want {
		if _, got := connects(t, from, to, port); got != want {
			t.Errorf("%s connects to %s: %v, want %v", from, to, got, want)
		}
	}
}

// Whom the filter shuts out gets no connection until its time is over, what it has stays, and
// nobody else notices.
func TestShut(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::]:0"} { // IPv4 within IPv6, too
		t.Run(at, func(t *testing.T) {
			f, port := server(t, at)
			const to = "127.0.0.1"
			old, is := connects(t, "127.0.0.2", to, port)
			if !is {
				t.Fatal("no connection before anybody is shut out")
			}
			if !f.Shut("127.0.0.2", time.Hour) || !f.Shut("127.0.0.3", time.Hour) {
				t.Fatal("the kernel takes no filter")
			}
			check(t, to, port, map[string]bool{"127.0.0.1": true, "127.0.0.2": false, "127.0.0.3": false, "127.0.0.4": true})
			if _, err := old.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			f.Shut("127.0.0.2", time.Millisecond)
			for range 100 {
				if _, is = connects(t, "127.0.0.2", to, port); is {
					break
				}
			}
			if !is {
				t.Error("127.0.0.2 is shut out for longer than its time")
			}
			check(t, to, port, map[string]bool{"127.0.0.3": false})
		})
	}
}

// namespace gives the test a network of its own, as long as it calls from its goroutine alone.
func namespace(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	runtime.LockOSThread() // and never unlocks: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	ip(t, "link", "set", "lo", "up")
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Skipf("this network cannot be set up: ip %q: %v: %s", args, err, out)
	}
}

// Where the kernel has no room for a filter of so many, nobody stays shut out for longer than
// was said, and fewer can be shut out again.
func TestShutWithoutRoom(t *testing.T) {
	namespace(t)
	// Kernels that count it for all networks together do not show it in this one.
	if err := os.WriteFile("/proc/sys/net/core/optmem_max", []byte("1500"), 0); err != nil {
		t.Skipf("the room for filters of this network cannot be bounded: %v", err)
	}
	f, port := server(t, "127.0.0.1:0")
	if !f.Shut("127.0.0.2", time.Hour) {
		t.Skip("so small a filter finds no room here")
	}
	n := 3
	for n < mostShut && f.Shut(net.IPv4(127, 0, 0, byte(n)).String(), time.Hour) {
		n++
	}
	if n == mostShut {
		t.Skipf("%d filters find room here", n)
	}
	check(t, "127.0.0.1", port, map[string]bool{"127.0.0.2": true, "127.0.0.3": true})
	for from := range f.shut {
		f.open(from)
	}
	if !f.Shut("127.0.0.2", time.Hour) {
		t.Error("the kernel takes no filter any more")
	}
	check(t, "127.0.0.1", port, map[string]bool{"127.0.0.1": true, "127.0.0.2": false})
}

// One of IPv6 is shut out with all addresses of its /64, and with no others.
func TestShutNetworks(t *testing.T) {
	namespace(t)
	for _, a := range []string{"2001:db8::1", "2001:db8::2:3", "2001:db8:0:1::1", "2001:db9::1"} {
		ip(t, "addr", "add", a+"/128", "dev", "lo")
	}
	f, port := server(t, "[::]:0")
	if !f.Shut("2001:db8::/64", time.Hour) || !f.Shut("2001:db9::/64", time.Hour) || !f.Shut("::1", time.Hour) || !f.Shut("127.0.0.2", time.Hour) {
		t.Fatal("the kernel takes no filter")
	}
	check(t, "2001:db8:0:1::1", port, map[string]bool{
		"2001:db8::1": false, "2001:db8::2:3": false, "2001:db8:0:1::1": true, "2001:db9::1": false,
	})
	check(t, "::1", port, map[string]bool{"::1": false})
	check(t, "127.0.0.1", port, map[string]bool{"127.0.0.1": true, "127.0.0.2": false})
}

// So many can be shut out, and who is beyond that, or no address, is not.
func TestShutHasBounds(t *testing.T) {
	f, port := server(t, "127.0.0.1:0")
	for _, sender := range []string{"", "@", "fe80::/64%eth0", "fe80::1%eth0", "10.0.0.0/8", "2001:db8::/63", "::/0"} {
		if f.Shut(sender, time.Hour) {
			t.Errorf("%q is shut out", sender)
		}
	}
	for n := range mostShut {
		sender := net.IPv4(127, 0, 1, byte(n)).String()
		if n%2 == 0 {
			sender = net.IP{0x20, 1, 0xd, 0xb8, 0, 0, 0, byte(n), 15: 0}.String() + "/64"
		}
		if !f.Shut(sender, time.Hour) {
			t.Fatalf("%s is not shut out", sender)
		}
	}
	if f.Shut("127.0.0.1", time.Hour) {
		t.Error("one more than the bound is shut out")
	}
	check(t, "127.0.0.1", port, map[string]bool{"127.0.0.1": true, "127.0.1.1": false, "127.0.1.63": false})
}

// A listener without a filter shuts nobody out.
func TestNoFilter(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f := New(l); f != nil || f.Shut("127.0.0.1", time.Hour) {
		t.Error("a unix socket shuts an address out")
	}
}
