package members

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// maxHello bounds what is read of a connection before its protocol is known, in bytes: a record
// of TLS and some more.
const maxHello = 32 << 10

// ErrHello is returned for a connection that does not begin as TLS does.
var ErrHello = errors.New("the connection does not begin with a ClientHello of TLS")

// Hello reads the beginning of a connection, until ctx ends, and returns the protocols that its
// client offers (ALPN), and a connection that begins with what was read. Nothing is sent.
func Hello(ctx context.Context, conn net.Conn) (offered []string, again net.Conn, err error) {
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) }) //nolint:errcheck // it ends the read
	r := &recorder{Conn: conn}
	heard := false
	tls.Server(r, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) { //nolint:gosec // there is no handshake
		heard, offered = true, h.SupportedProtos
		return nil, errHeard
	}}).HandshakeContext(context.Background()) //nolint:errcheck // it ends with errHeard
	if !stop() {
		return nil, nil, context.Cause(ctx)
	}
	if !heard {
		return nil, nil, ErrHello
	}
	return offered, &replayed{Conn: conn, first: bytes.NewReader(r.read.Bytes())}, nil
}

var errHeard = errors.New("heard")

// recorder keeps what is read of a connection, and swallows what is written to it.
type recorder struct {
	net.Conn
	read bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	room := maxHello - r.read.Len()
	if room <= 0 {
		return 0, ErrHello
	}
	n, err := r.Conn.Read(b[:min(len(b), room)])
	r.read.Write(b[:n])
	return n, err
}

func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) Close() error                { return nil }

// replayed is a connection of which the first bytes were read already. They come first.
type replayed struct {
	net.Conn
	first *bytes.Reader
}

func (c *replayed) Read(b []byte) (int, error) {
	if c.first.Len() > 0 {
		return c.first.Read(b)
	}
	return c.Conn.Read(b)
}
