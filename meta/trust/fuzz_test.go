package trust

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// saidConn is a connection whose other side has said all that it says.
type saidConn struct {
	net.Conn
	said *bytes.Reader
	// heard keeps what this side says.
	heard bytes.Buffer
}

func (c *saidConn) Read(b []byte) (int, error)       { return c.said.Read(b) }
func (c *saidConn) Write(b []byte) (int, error)      { return c.heard.Write(b) }
func (c *saidConn) Close() error                     { return nil }
func (c *saidConn) SetDeadline(time.Time) error      { return nil }
func (c *saidConn) SetReadDeadline(time.Time) error  { return nil }
func (c *saidConn) SetWriteDeadline(time.Time) error { return nil }

// helloBytes is how a client with these protocols begins, with nothing random in it: the
// inputs of a fuzz test have to be the same in each of its processes.
func helloBytes(protocols ...string) []byte {
	sized := func(n int, b []byte) []byte { // behind its length in n bytes
		size := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		return append(size[4-n:], b...)
	}
	var extensions, names []byte
	extension := func(kind uint16, b []byte) {
		extensions = append(binary.BigEndian.AppendUint16(extensions, kind), sized(2, b)...)
	}
	extension(43, []byte{2, 3, 4})                                                           // TLS 1.3
	extension(10, []byte{0, 2, 0, 29})                                                       // X25519
	extension(13, []byte{0, 2, 4, 3})                                                        // ECDSA with P-256
	extension(51, sized(2, append([]byte{0, 29}, sized(2, bytes.Repeat([]byte{9}, 32))...))) // a share of a key
	extension(0, sized(2, append([]byte{0}, sized(2, []byte("alpha"))...)))                  // whom it calls
	if protocols != nil {
		for _, name := range protocols {
			names = append(names, sized(1, []byte(name))...)
		}
		extension(16, sized(2, names))
	}
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0)                                     // no session
	body = append(body, 0, 2, 0x13, 0x01)                      // AES-128-GCM
	body = append(append(body, 1, 0), sized(2, extensions)...) // no compression
	message := append([]byte{1}, sized(3, body)...)
	return append([]byte{22, 3, 1}, sized(2, message)...)
}

var errSeen = errors.New("the first message was read")

// Whatever bytes a stranger sends first: before a hello is read that names a protocol of
// the port nothing is chosen and nothing can be read, and little is answered. What comes
// behind the hello is random, and is left to the tests of handshakes.
func FuzzClientHello(f *testing.F) {
	_, beta := pair(f)
	beta.JoinOpen = func() bool { return true }
	conf := beta.ServerTLS()
	choose := conf.GetConfigForClient
	var seeds []string
	for _, protocols := range [][]string{{ALPNUsers}, {ALPNPeer}, {ALPNGossip}, {ALPNJoin}, nil, {"http/1.1", ALPNPeer}, {strings.Repeat("x", 255)}} {
		hello := helloBytes(protocols...)
		seeds = append(seeds, string(hello))
		f.Add(hello)
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &saidConn{said: bytes.NewReader(b)}
		this, seen := conf.Clone(), 0
		this.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			seen++
			chosen, err := choose(hello)
			if err == nil && !slices.Contains(hello.SupportedProtos, chosen.NextProtos[0]) {
				t.Errorf("of %q it chose %q", hello.SupportedProtos, chosen.NextProtos)
			}
			return nil, errors.Join(errSeen, err)
		}
		s := tls.Server(c, this)
		if err := s.Handshake(); err == nil || s.ConnectionState().HandshakeComplete {
			t.Errorf("let in: %+v", s.ConnectionState())
		}
		if known := slices.Contains(seeds, string(b)); known && seen != 1 {
			t.Error("a hello that is one is not read")
		}
		if c.heard.Len() > 64 {
			t.Errorf("%d bytes are answered with %d", len(b), c.heard.Len())
		}
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Error("something can be read")
		}
	})
}

// The first protocol of a client's list that is served decides, and that one alone is
// then spoken: who names a protocol of sites has to show a certificate.
func FuzzProtocols(f *testing.F) {
	_, beta := pair(f)
	open := false
	beta.JoinOpen = func() bool { return open }
	for _, list := range []string{ALPNUsers, ALPNPeer, ALPNGossip, ALPNJoin, "", "h2,kith-peer/1", "kith-peer/1\x00", "kith-join/1,h2", "H2", "kith-peer/1 ,h2"} {
		f.Add(list, true)
		f.Add(list, false)
	}
	f.Fuzz(func(t *testing.T, list string, joining bool) {
		open = joining
		offered := strings.Split(list, ",")
		c, err := beta.configFor(offered)
		first := slices.IndexFunc(offered, func(p string) bool {
			return p == ALPNUsers || p == ALPNPeer || p == ALPNGossip || p == ALPNJoin && joining
		})
		if (err == nil) != (first >= 0) {
			t.Fatalf("%q: %v", offered, err)
		}
		if err != nil {
			return
		}
		if len(c.NextProtos) != 1 || c.NextProtos[0] != offered[first] || !c.SessionTicketsDisabled || c.MinVersion != tls.VersionTLS13 {
			t.Errorf("%q: serves %q", offered, c.NextProtos)
		}
		if users := offered[first] == ALPNUsers; users != (c.ClientAuth == tls.NoClientCert) || users != (c.VerifyConnection == nil) {
			t.Errorf("%q: asks for a certificate: %v", offered, c.ClientAuth)
		}
	})
}
