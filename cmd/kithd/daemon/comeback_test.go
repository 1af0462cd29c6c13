package daemon

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/meta/trust"
)

// Who is closed for a flood waits longer each time, until it has been quiet for a while. It
// owes no more than that, and others at its address wait as long and are let in.
func TestComebacksWait(t *testing.T) {
	var c comebacks
	b := newHandshakePace(100)
	now := time.Unix(1_800_000_000, 0)
	for n, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause, mostPause, mostPause} {
		pause := c.closed("a", now)
		if pause != want {
			t.Errorf("the pause after closing %d times is %v, want %v", n+1, pause, want)
		}
		b.owe("a", now, pause)
		b.owe("a", now, pause) // two connections that are closed at once
		after, ok := b.wait("a", now, handshakePatience)
		if slack := after - pause; !ok || slack < 0 || slack > 20*time.Millisecond {
			t.Errorf("it waits for %v, %v, want %v", after, ok, pause)
		}
		now = now.Add(10 * time.Second)
	}
	if after, ok := b.wait("b", now, handshakePatience); after != 0 || !ok {
		t.Errorf("another address waits for %v, %v", after, ok)
	}
	if pause := c.closed("a", now.Add(2*pausesFor)); pause != firstPause {
		t.Errorf("after a quiet while it is %v", pause)
	}
	for i := range 3 * mostBuckets {
		c.closed(net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)).String(), now)
	}
	if len(c.of) > mostBuckets {
		t.Errorf("%d addresses are kept", len(c.of))
	}
}

// A connection that is closed for frames that bring nothing has its address wait for the
// next handshake.
func TestFloodWaitsToComeBack(t *testing.T) {
	t.Parallel()
	a := attack(t, func(c *config.Config) { c.Rates.Frames, c.Rates.Handshakes = 1000, 20 })
	dial := func() *tls.Conn {
		conn, err := a.dialTLS(crude(nil, trust.ALPNUsers))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	conn := dial()
	defer conn.Close() //nolint:errcheck // a connection of this test
	pings := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for range 1000 {
		pings = append(pings, 0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	for err := error(nil); err == nil; {
		_, err = conn.Write(pings)
	}
	a.eventually("it was closed", func() bool { return a.d.port.pace.owed("127.0.0.1", time.Now()) })
	a.tells("refused-bound", "frames that bring nothing", "")
	again := dial()     // it waits and is let in
	defer again.Close() //nolint:errcheck // a connection of this test
}
