package wan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A site is a server that answers each line with the same line.
type site struct {
	listener net.Listener
	workers  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

// newSite starts a site that the test stops at its end.
func newSite(t testing.TB, serve func(net.Conn)) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{listener: listener}
	s.workers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.workers.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(s.stop)
	return s
}

// stop closes everything and waits.
func (s *site) stop() {
	s.listener.Close() // The test is over.
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close() //nolint:errcheck // The test is over.
	}
	s.mu.Unlock()
	s.workers.Wait()
}

// accepted returns how many connections have come.
func (s *site) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// echo sends back what comes, to the end.
func echo(conn net.Conn) {
	io.Copy(conn, conn)              //nolint:errcheck // The other side judges.
	conn.(*net.TCPConn).CloseWrite() //nolint:errcheck // The same.
	io.Copy(io.Discard, conn)        //nolint:errcheck // The same.
}

// startProxy starts a proxy with a link from alpha to beta.
func startProxy(t testing.TB, beta *site, change func(c *Config)) *Proxy {
	t.Helper()
	c := Config{Links: []LinkConfig{{From: "alpha", To: "beta", Listen: "127.0.0.1:0", Target: beta.listener.Addr().String()}}}
	if change != nil {
		change(&c)
	}
	p, err := Start(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return p
}

// dial connects as alpha to beta.
func dial(t testing.TB, p *Proxy) *net.TCPConn {
	t.Helper()
	addr, err := p.Addr("alpha", "beta")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // The test is over.
	return conn.(*net.TCPConn)
}

// expectRefusal connects as alpha to beta and fails the test unless the
// connection is reset, at once or when it is read from.
func expectRefusal(t testing.TB, p *Proxy) {
	t.Helper()
	addr, err := p.Addr("alpha", "beta")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr.String())
	if err == nil {
		defer conn.Close() //nolint:errcheck // It was reset.
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection got %v, want a reset", err)
	}
}

// eventually waits for something that is about to happen.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// do carries out a command that must succeed.
func do(t testing.TB, p *Proxy, line string) {
	t.Helper()
	if _, err := p.Do(line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

func TestProxyDelays(t *testing.T) {
	const delay = 40 * time.Millisecond
	p := startProxy(t, newSite(t, echo), func(c *Config) {
		c.Links[0].Delay = delay
		c.Links[0].Back = &Path{Delay: 2 * delay}
	})
	conn := dial(t, p)
	for range 3 {
		begin := time.Now()
		send(t, conn, "ping\n")
		if took := expect(t, conn, "ping\n").Sub(begin); took < 3*delay {
			t.Errorf("the round trip took %v, want at least %v", took, 3*delay)
		}
	}
	do(t, p, "delay alpha beta 0s")
	fastest := time.Hour
	for range 5 {
		begin := time.Now()
		send(t, conn, "ping\n")
		fastest = min(fastest, expect(t, conn, "ping\n").Sub(begin))
	}
	if fastest > 3*delay {
		t.Errorf("without delay the fastest round trip took %v", fastest)
	}
}

func TestProxyPassesEnds(t *testing.T) {
	p := startProxy(t, newSite(t, echo), nil)
	conn := dial(t, p)
	send(t, conn, "last words")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "last words" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the connection", func() bool { return p.Stats()[0].Open == 0 })
}

func TestProxyPassesResets(t *testing.T) {
	beta := newSite(t, func(conn net.Conn) {
		bufio.NewReader(conn).ReadString('\n') //nolint:errcheck // Whatever came, a reset follows.
		conn.(*net.TCPConn).SetLinger(0)       //nolint:errcheck // The test would see it.
		conn.Close()                           //nolint:errcheck // The same.
	})
	p := startProxy(t, beta, nil)
	conn := dial(t, p)
	send(t, conn, "reset me\n")
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read returned %v, want a reset", err)
	}
	beta.stop()
	expectRefusal(t, p)
	eventually(t, "the count", func() bool { return p.Stats()[0].Refused == 1 })
}

func TestProxyBlackhole(t *testing.T) {
	beta := newSite(t, echo)
	p := startProxy(t, beta, nil)
	old := dial(t, p)
	send(t, old, "a\n")
	expect(t, old, "a\n")
	do(t, p, "cut alpha beta")
	send(t, old, "b\n") // Into the kernel's buffer.
	silent(t, old, 50*time.Millisecond)
	fresh := dial(t, p)
	send(t, fresh, "c\n")
	silent(t, fresh, 50*time.Millisecond)
	if n := beta.accepted(); n != 1 {
		t.Errorf("beta has %d connections, want the old one", n)
	}
	if s := p.Stats()[0]; !s.Out.Cut || !s.Back.Cut || s.Waiting != 1 || s.Open != 1 || s.Out.HeldBytes != 0 {
		t.Errorf("stats %v", s)
	}
	do(t, p, "heal all")
	expect(t, old, "b\n")
	expect(t, fresh, "c\n")
}

// TestProxyStallsTheSender checks W2: a sender into a cut stalls, and every
// byte it got rid of arrives after the heal.
func TestProxyStallsTheSender(t *testing.T) {
	p := startProxy(t, newSite(t, echo), nil)
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
	do(t, p, "cut alpha beta oneway")
	piece := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	sent := 0
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Write(piece[sent%len(piece):])
		sent += n
		if err != nil {
			break
		}
		if sent > 64<<20 {
			t.Fatal("the sender never stalled")
		}
	}
	if s := p.Stats()[0].Out; s.HeldBytes != 0 || s.Bytes != 1 {
		t.Errorf("the proxy read %d bytes and passed %d during the cut", s.HeldBytes, s.Bytes)
	}
	do(t, p, "heal alpha beta")
	got := make([]byte, sent)
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if b != piece[i%len(piece)] {
			t.Fatalf("byte %d of %d is wrong", i, sent)
		}
	}
}

func TestProxyHalfCut(t *testing.T) {
	received := make(chan string, 10)
	beta := newSite(t, func(conn net.Conn) {
		for r := bufio.NewReader(conn); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			received <- line
			io.WriteString(conn, line) //nolint:errcheck // The other side judges.
		}
	})
	p := startProxy(t, beta, nil)
	conn := dial(t, p)
	send(t, conn, "1\n")
	expect(t, conn, "1\n")
	<-received
	do(t, p, "cut beta alpha oneway")
	send(t, conn, "2\n")
	if got := <-received; got != "2\n" {
		t.Errorf("beta received %q", got)
	}
	silent(t, conn, 50*time.Millisecond)
	if s := p.Stats()[0]; s.Out.Cut || !s.Back.Cut {
		t.Errorf("stats %v", s)
	}
	do(t, p, "heal beta alpha oneway")
	expect(t, conn, "2\n")
}

func TestProxyResets(t *testing.T) {
	beta := newSite(t, echo)
	p := startProxy(t, beta, nil)
	old := dial(t, p)
	send(t, old, "a\n")
	expect(t, old, "a\n")
	do(t, p, "cut alpha beta") // A reset also ends what hangs.
	waiting := dial(t, p)
	eventually(t, "the waiting connection", func() bool { return p.Stats()[0].Waiting == 1 })
	do(t, p, "cut alpha beta reset")
	for name, conn := range map[string]net.Conn{"old": old, "waiting": waiting} {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: read returned %v, want a reset", name, err)
		}
	}
	expectRefusal(t, p)
	if n := beta.accepted(); n != 1 {
		t.Errorf("beta has %d connections, want the old one", n)
	}
	do(t, p, "heal alpha beta")
	conn := dial(t, p)
	send(t, conn, "b\n")
	expect(t, conn, "b\n")
	if s := p.Stats()[0]; s.Reset != 3 || s.Resetting {
		t.Errorf("stats %v", s)
	}
}

func TestProxyForgetsWhoGaveUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells without reading whether a connection was closed")
	}
	beta := newSite(t, echo)
	p := startProxy(t, beta, nil)
	do(t, p, "cut beta *")
	for range 3 {
		conn := dial(t, p)
		send(t, conn, "hello?")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the proxy notices", func() bool { s := p.Stats()[0]; return s.Abandoned == 3 && s.Waiting == 0 })
	do(t, p, "heal beta *")
	conn := dial(t, p)
	send(t, conn, "hello!")
	expect(t, conn, "hello!")
	if n := beta.accepted(); n != 1 {
		t.Errorf("beta has %d connections, want one", n)
	}
}

func TestProxyBoundsConnections(t *testing.T) {
	beta := newSite(t, echo)
	p := startProxy(t, beta, func(c *Config) { c.MaxConnections = 2 })
	first, second, third := dial(t, p), dial(t, p), dial(t, p)
	send(t, first, "1")
	expect(t, first, "1")
	send(t, second, "2")
	expect(t, second, "2")
	send(t, third, "3")
	silent(t, third, 50*time.Millisecond)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, third, "3")
}

// TestProxyThroughput compares a delayed line with what 256 KiB a round trip
// would allow: the delay must not be a pause.
func TestProxyThroughput(t *testing.T) {
	const size, delay = 32 << 20, 50 * time.Millisecond
	p := startProxy(t, newSite(t, echo), func(c *Config) { c.Links[0].Delay = delay })
	conn := dial(t, p)
	begin := time.Now()
	var sender sync.WaitGroup
	sender.Go(func() {
		piece := make([]byte, 256<<10)
		for sent := 0; sent < size; sent += len(piece) {
			if _, err := conn.Write(piece); err != nil {
				t.Errorf("write: %v", err)
				return
			}
		}
	})
	if _, err := io.CopyN(io.Discard, conn, size); err != nil {
		t.Fatal(err)
	}
	sender.Wait()
	took := time.Since(begin)
	t.Logf("%d MiB there and back over %v each way: %v, %.0f MB/s", size>>20, delay, took, size/1e6/took.Seconds())
	if paused := size / readBytes * delay; took > paused/2 {
		t.Errorf("it took %v; a pause a packet would take %v", took, paused)
	}
}

func TestProxyRate(t *testing.T) {
	p := startProxy(t, newSite(t, echo), nil)
	do(t, p, "rate alpha beta 1M oneway")
	begin := time.Now()
	var clients sync.WaitGroup
	for range 3 { // They share the line.
		conn := dial(t, p)
		clients.Go(func() {
			text := strings.Repeat("0123456789", 10_000)
			go send(t, conn, text)
			expect(t, conn, text)
		})
	}
	clients.Wait()
	if took := time.Since(begin); took < 290*time.Millisecond {
		t.Errorf("300 kB at 1 MB/s took %v", took)
	}
}

func TestProxyLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	beta := newSite(t, echo)
	p := startProxy(t, beta, func(c *Config) {
		c.Control = "unix:" + filepath.Join(t.TempDir(), "s")
		c.Links[0].Delay = time.Minute
	})
	control, err := net.Dial("unix", p.ControlAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close() //nolint:errcheck // The proxy closes it.
	for i := range 20 {
		conn := dial(t, p)
		send(t, conn, "hello")
		if i%2 == 0 {
			conn.Close() //nolint:errcheck // A client that goes away.
		}
		if i == 10 {
			eventually(t, "the open connections", func() bool { return p.Stats()[0].Open == 11 })
			do(t, p, "cut alpha beta")
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	beta.stop()
	eventually(t, "the last goroutine ends", func() bool { return runtime.NumGoroutine() <= before })
}

func TestStartRefuses(t *testing.T) {
	beta := newSite(t, echo)
	taken := beta.listener.Addr().String()
	before := runtime.NumGoroutine()
	link := LinkConfig{From: "a", To: "b", Listen: "127.0.0.1:0", Target: taken}
	busy := link
	busy.Listen = taken
	for name, c := range map[string]Config{
		"nothing":          {},
		"port is taken":    {Links: []LinkConfig{link, busy}},
		"control is taken": {Links: []LinkConfig{link}, Control: taken},
		"no such folder":   {Links: []LinkConfig{link}, Control: "unix:/does/not/exist"},
	} {
		if p, err := Start(c, nil); err == nil || p != nil {
			t.Errorf("%s: Start = %v, %v", name, p, err)
		}
	}
	eventually(t, "nothing is left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestScope(t *testing.T) {
	for _, c := range []struct {
		scope    Scope
		from, to string
		want     bool
	}{
		{Between("a", "b"), "a", "b", true}, {Between("a", "b"), "b", "a", true}, {Between("a", "b"), "a", "c", false},
		{OnlyFrom("a", "b"), "a", "b", true}, {OnlyFrom("a", "b"), "b", "a", false},
		{OnlyFrom("a", ""), "a", "c", true}, {OnlyFrom("a", ""), "c", "a", false}, {OnlyFrom("", "a"), "c", "a", true},
		{Around("a"), "a", "x", true}, {Around("a"), "x", "a", true}, {Around("a"), "x", "y", false},
		{Everything(), "x", "y", true},
	} {
		if got := c.scope.selects(c.from, c.to); got != c.want {
			t.Errorf("%s selects %s to %s: %v, want %v", c.scope, c.from, c.to, got, c.want)
		}
	}
}

func BenchmarkProxyThroughput(b *testing.B) {
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
		b.Run(fmt.Sprint(delay), func(b *testing.B) {
			p := startProxy(b, newSite(b, func(conn net.Conn) { io.Copy(io.Discard, conn); conn.Close() }), func(c *Config) { c.Links[0].Delay = delay }) //nolint:errcheck // The sender judges.
			conn := dial(b, p)
			piece := make([]byte, 1<<20)
			b.SetBytes(int64(len(piece)))
			for b.Loop() {
				if _, err := conn.Write(piece); err != nil {
					b.Fatal(err)
				}
			}
			conn.CloseWrite()         //nolint:errcheck // The read tells.
			io.Copy(io.Discard, conn) //nolint:errcheck // Everything has arrived.
		})
	}
}
