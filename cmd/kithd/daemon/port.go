package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"kith/internal/pause"
	"kith/meta/trust"
)

// tlsWait is how long a connection may take for its handshake.
const tlsWait = 5 * time.Second

// handshakePatience is how long a handshake of an address that has begun too many waits for
// its turn: a script that calls too often is slowed. What would wait longer is closed.
const handshakePatience = 3 * time.Second

// newHandshakePace returns the buckets of handshakes of an address, of which a twentieth of a
// second may begin together: each takes a millisecond of a processor, which others wait for.
func newHandshakePace(perSecond int) *buckets[string] {
	return newBucketsOf[string](perSecond, max(1, perSecond/20))
}

// port is the one TCP port of a site with keys. A connection comes out of its TLS
// handshake with a protocol that its client has named, and goes to what serves that.
type port struct {
	listener net.Listener
	config   *tls.Config
	// refused is told of handshakes that failed.
	refused func(address string, err error)
	// shut is told of addresses that began so many that one was closed; nil for nobody.
	shut func(address string)

	users, peers *handoff
	// gossip and join take connections over; nil: they are closed.
	gossip, join func(*tls.Conn)

	ctx       context.Context
	cancel    context.CancelFunc
	wait      time.Duration    // for a handshake, tlsWait but in tests
	pace      *buckets[string] // of handshakes of an address
	under     handshakes       // way
	comebacks comebacks
	wg        sync.WaitGroup
}

// newPort makes a port, on which handshakes of an address have a pace. met is told which
// bound an address has met.
func newPort(l net.Listener, config *tls.Config, pace *buckets[string], refused func(string, error), met func(bound, address string, most int)) *port {
	p := &port{
		listener: l, config: config, refused: refused,
		users: newHandoff(l.Addr()), peers: newHandoff(l.Addr()), wait: tlsWait, pace: pace, under: handshakes{met: met},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// run accepts until the listener is closed.
func (p *port) run() error {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // too many files, say
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-p.ctx.Done():
				return nil
			}
		}
		host := hostOf(conn.RemoteAddr())
		after, ok := p.pace.wait(host, time.Now(), handshakePatience)
		switch {
		case !ok:
			conn.Close() //nolint:errcheck // it was not let in
			if p.shut != nil {
				p.shut(host)
			}
			p.under.met("handshakes of one address in a second", host, p.pace.perSecond)
		case after == 0:
			p.begin(conn, host)
		default:
			p.wg.Go(func() {
				if !pause.For(p.ctx, after) {
					conn.Close() //nolint:errcheck // the site stops
					return
				}
				p.begin(conn, host)
			})
		}
	}
}

// begin begins the handshake of a connection.
func (p *port) begin(conn net.Conn, host string) {
	ctx, end := context.WithTimeout(p.ctx, p.wait)
	over := p.under.begin(host, end)
	p.wg.Go(func() {
		secured, err := p.handshake(ctx, conn)
		over()
		end()
		if err != nil {
			conn.Close() //nolint:errcheck // it was not let in
			return
		}
		p.hand(secured)
	})
}

// handshake returns a connection whose client has proved what its protocol asks for.
func (p *port) handshake(ctx context.Context, conn net.Conn) (*tls.Conn, error) {
	secured := tls.Server(conn, p.config)
	err := secured.HandshakeContext(ctx)
	switch {
	case err == nil:
		return secured, nil
	case errors.Is(err, context.Canceled): // it made room, or the site stops
		return nil, err
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the handshake was not over within %v", p.wait)
	}
	p.refused(hostOf(conn.RemoteAddr()), err)
	return nil, err
}

// hand gives a connection to what serves its protocol.
func (p *port) hand(c *tls.Conn) {
	take := func(*tls.Conn) { c.Close() } //nolint:errcheck // nothing serves it
	switch c.ConnectionState().NegotiatedProtocol {
	case trust.ALPNUsers:
		take = p.users.give
	case trust.ALPNPeer:
		take = p.peers.give
	case trust.ALPNGossip:
		if p.gossip != nil {
			take = p.gossip
		}
	case trust.ALPNJoin:
		if p.join != nil {
			take = p.join
		}
	}
	take(c)
}

// close ends what is in a handshake. The listener must be closed before.
func (p *port) close() {
	p.cancel()
	p.users.Close() //nolint:errcheck // it has no error
	p.peers.Close() //nolint:errcheck // it has no error
	p.wg.Wait()
}

// handoff is a listener whose connections come from a port.
type handoff struct {
	address net.Addr
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func newHandoff(address net.Addr) *handoff {
	return &handoff{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// give is put for a connection of the port.
func (h *handoff) give(c *tls.Conn) { h.put(c) }

// put hands a connection over, or closes it when nothing listens any more.
func (h *handoff) put(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		c.Close() //nolint:errcheck // the site stops
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return h.address }
