package daemon

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/meta/trust"
)

// stranded is a port alone, whose handshakes may take so long, and what it says.
type stranded struct {
	*port
	t     *testing.T
	beta  *insider
	start func() // begins to accept
	stop  func() // ends the port and what is in a handshake

	mu      sync.Mutex
	refused []string
	met     map[string]int // by bound and address
}

func strand(t *testing.T, wait time.Duration, perSecond int) *stranded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := strandAt(t, l, wait, perSecond)
	s.start()
	return s
}

// strandAt is strand with another listener; it does not accept yet.
func strandAt(t *testing.T, l net.Listener, wait time.Duration, perSecond int) *stranded {
	t.Helper()
	_, keys := secureConfig(t, "alpha")
	s := &stranded{t: t, beta: newInsider(t, "beta"), met: make(map[string]int)}
	trusted := new(trust.Set)
	if err := trusted.Put(s.beta.bundle()); err != nil {
		t.Fatal(err)
	}
	s.port = newPort(l, (&trust.Endpoint{Keys: keys, Trusted: trusted, Now: time.Now}).ServerTLS(), newHandshakePace(perSecond), func(address string, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, address+": "+err.Error())
	}, func(bound, address string, _ int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.met[bound+" "+address]++
	})
	if s.wait != tlsWait || tlsWait > 5*time.Second {
		t.Errorf("a handshake may take %v", s.wait)
	}
	s.wait = wait
	done := make(chan error, 1)
	s.start = func() { go func() { done <- s.run() }() }
	s.stop = sync.OnceFunc(func() {
		l.Close() // a listener of this test
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.close()
	})
	t.Cleanup(s.stop)
	return s
}

func (s *stranded) dial(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	c, err := d.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })          //nolint:errcheck // a connection of this test
	c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a TCP connection takes it
	return c
}

// enter has beta come in from an address.
func (s *stranded) enter(from string) {
	s.t.Helper()
	conn := tls.Client(s.dial(from), crude(s.beta.keys.Leaf(), trust.ALPNPeer))
	if err := conn.Handshake(); err != nil {
		s.t.Errorf("beta at %s: %v", from, err)
	}
	select {
	case c := <-s.peers.conns:
		c.Close() //nolint:errcheck // a connection of this test
	case <-time.After(time.Minute):
		s.t.Errorf("beta at %s is not let in", from)
	}
}

// An address that begins handshakes faster than it may waits, and what would wait longer than
// three seconds is closed and told of; another address does not notice.
func TestHandshakesHaveAPace(t *testing.T) {
	t.Parallel()
	const perSecond, dialled = 10, 60 // fewer than may be under way at a time
	s := strand(t, time.Hour, perSecond)
	began := time.Now()
	for range dialled {
		s.dial("127.0.0.2")
	}
	s.enter("127.0.0.3")
	const bound = "handshakes of one address in a second 127.0.0.2"
	refused := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.met[bound]
	}
	for refused()+s.under.count() < dialled {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d refused and %d under way, want %d together", refused(), s.under.count(), dialled)
		}
		time.Sleep(10 * time.Millisecond)
	}
	// One of ten a second together, and those that wait for three seconds.
	const least = 1 + 3*perSecond
	if in, most := s.under.count(), least+int(perSecond*time.Since(began).Seconds()); in < least-1 || in > most {
		t.Errorf("%d were let in after %v, at most %d", in, time.Since(began), most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.met) != 1 {
		t.Errorf("bounds met: %v", s.met)
	}
}

// owed reports whether one who comes now has to wait.
func (b *buckets[K]) owed(k K, now time.Time) bool { return b.bucketOf(k, now).TokensAt(now) < 0 }

func TestBucketsWait(t *testing.T) {
	b := newBuckets[string](10)
	now := time.Unix(1_800_000_000, 0)
	for n, want := range []time.Duration{19: 0, 20: 100 * time.Millisecond, 29: time.Second, 30: -1, 31: -1} {
		after, ok := b.wait("a", now, time.Second)
		if n == 19 || n >= 20 && want != 0 {
			if ok != (want >= 0) || ok && after != want {
				t.Errorf("number %d waits %v, %v, want %v", n+1, after, ok, want)
			}
		}
	}
	if after, ok := b.wait("b", now, time.Second); after != 0 || !ok {
		t.Errorf("another one waits %v, %v", after, ok)
	}
	if after, ok := b.wait("a", now.Add(100*time.Millisecond), time.Second); after != time.Second || !ok {
		t.Errorf("a tenth of a second later it waits %v, %v", after, ok) // who was refused has taken none
	}
}

// Handshakes that never end keep nobody out, not even from their own address, and cost
// little. They may take for ever here.
func TestHostileHandshakes(t *testing.T) {
	s := strand(t, time.Hour, 100*mostHandshakes) // their pace is none here
	idle := memory()
	for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"} {
		for range 100 {
			s.dial(from)
		}
	}
	s.enter("127.0.0.1")
	s.enter("127.0.0.2")
	n := s.under.count()
	each := (memory() - idle) / int64(n)
	t.Logf("%d handshakes that do not go on, %d bytes for each, with its other end", n, each)
	if n > mostHandshakes || each > 64<<10 {
		t.Errorf("%d handshakes of %d bytes", n, each)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met["handshakes of one address 127.0.0.2"] < 36 || s.met["handshakes of one address 127.0.0.1"] > 0 {
		t.Errorf("bounds met: %v", s.met)
	}
}

// A handshake of a byte at a time is closed by its deadline, whatever still comes.
func TestHostileSlowHandshake(t *testing.T) {
	t.Parallel()
	s := strand(t, 300*time.Millisecond, 100)
	c := s.dial("127.0.0.2")
	go func() {
		hello := []byte{22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3}
		for i := 0; ; i++ {
			if _, err := c.Write(append(hello, make([]byte, 200)...)[i%200:][:1]); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	if _, err := c.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("it is let go on: %v", err)
	}
	// The connection is closed before the port says why.
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) != 1 || !strings.Contains(s.refused[0], "not over within 300ms") {
		t.Errorf("the port says %q", s.refused)
	}
}

// count is how many are under way.
func (h *handshakes) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.many
}

// Of an address that has begun so many handshakes that one was closed, the kernel drops what
// it asks for, so that it costs the site next to nothing. That is for a moment: then it
// is let in again. Another address does not notice.
func TestFloodedPortIsShut(t *testing.T) {
	t.Parallel()
	l, err := listen("listen.address", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newBorder(defaultBounds(4096), slog.New(slog.DiscardHandler))
	s := strandAt(t, b.listener(l), time.Hour, 10)
	s.shut = b.shut
	s.start()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}, Timeout: 500 * time.Millisecond}
	began, dropped := time.Now(), false
	for !dropped && time.Since(began) < time.Minute {
		c, err := d.Dial("tcp", l.Addr().String())
		if err == nil {
			defer c.Close() //nolint:errcheck // a connection of this test
			continue
		}
		var late net.Error
		if dropped = errors.As(err, &late) && late.Timeout(); !dropped {
			t.Fatal(err)
		}
	}
	if !dropped {
		t.Fatal("no connection of the flood is dropped")
	}
	s.enter("127.0.0.3")
	s.dial("127.0.0.2") // within a minute
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.met) != 1 || s.met["handshakes of one address in a second 127.0.0.2"] == 0 {
		t.Errorf("bounds met: %v", s.met)
	}
}
