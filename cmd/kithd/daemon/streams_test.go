package daemon

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// Frames of HTTP/2 (RFC 9113): their types, flags and codes.
const (
	headersFrame, resetFrame, settingsFrame = 1, 3, 4
	acknowledged, endOfHeaders              = 1, 4
	mostStreamsSetting, refusedStream       = 3, 7
)

// crudeStreams is a connection of a site that keeps to no bound of the other side.
type crudeStreams struct {
	t    *testing.T
	conn *tls.Conn
	r    *bufio.Reader
	most uint32            // streams at a time, as the other side said
	over map[uint32]uint32 // codes of the streams that it has ended
}

func (c *crudeStreams) write(kind, flags byte, stream uint32, payload []byte) {
	c.t.Helper()
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)) //nolint:gosec // a few bytes
	b = append(binary.BigEndian.AppendUint32(append(b, flags), stream), payload...)
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// open opens a stream as a call of Connect and sends nothing on it.
func (c *crudeStreams) open(stream uint32) {
	var block []byte
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", kithv1.PeerService_Connect_FullMethodName}, {":authority", "alpha"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		block = append(append(block, 0, byte(len(h[0]))), h[0]...)
		block = append(append(block, byte(len(h[1]))), h[1]...)
	}
	c.write(headersFrame, endOfHeaders, stream, block)
}

// settled returns when all that was written has been looked at, and its answers were read:
// settings are acknowledged in order, as often as one likes.
func (c *crudeStreams) settled() {
	c.t.Helper()
	c.write(settingsFrame, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.r, head[:]); err != nil {
			c.t.Fatalf("the connection was ended: %v", err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.r, payload); err != nil {
			c.t.Fatal(err)
		}
		switch kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:]); {
		case kind == settingsFrame && flags&acknowledged == 0:
			for ; len(payload) >= 6; payload = payload[6:] {
				if binary.BigEndian.Uint16(payload) == mostStreamsSetting {
					c.most = binary.BigEndian.Uint32(payload[2:])
				}
			}
			c.write(settingsFrame, acknowledged, 0, nil)
		case kind == settingsFrame:
			return
		case kind == resetFrame:
			c.over[stream] = binary.BigEndian.Uint32(payload)
		}
	}
}

// A connection of a site has 8 streams at a time: the site says so, and refuses what a peer
// opens beyond them, whatever that has heard. The others stay, and one that ends makes room.
func TestPeerConnectionHasFewStreams(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	conn, err := a.dialTLS(a.beta.end.ClientTLS("alpha", trust.ALPNPeer))
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a TCP connection takes it
	c := &crudeStreams{t: t, conn: conn, r: bufio.NewReader(conn), over: make(map[uint32]uint32)}
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	c.settled()
	const most = 8 // docs/protocol.md
	if c.most != most {
		t.Errorf("the site says that %d streams are taken, want %d", c.most, most)
	}
	next := uint32(1)
	open := func() (stream uint32) {
		stream = next
		next += 2
		c.open(stream)
		return stream
	}
	for range most {
		open()
	}
	c.settled()
	if len(c.over) > 0 {
		t.Fatalf("of %d streams some were ended: %v", most, c.over)
	}
	for range 20 {
		stream := open()
		c.settled()
		if code, ok := c.over[stream]; !ok || code != refusedStream {
			t.Errorf("stream %d of %d at a time: ended %v, with code %d", (stream+1)/2, most, ok, code)
		}
	}
	if len(c.over) != 20 {
		t.Errorf("streams that were let in have ended: %v", c.over)
	}
	c.write(resetFrame, 0, 1, []byte{0, 0, 0, 8}) // given up by beta
	c.settled()
	stream := open()
	c.settled()
	if code, ended := c.over[stream]; ended {
		t.Errorf("a stream in the place of one that has ended is refused with code %d", code)
	}
}
