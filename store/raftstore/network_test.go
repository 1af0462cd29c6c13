package raftstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// network connects members within a process. It is cut and healed by address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	alone     map[string]bool // cut off from all others
	lines     map[*line]bool
	// wrote is called before each write of a member; the network is not locked.
	wrote func(from, to string, bytes int)
	// delay is how long a write takes, nil for no time.
	delay func() time.Duration
}

func newNetwork() *network {
	return &network{listeners: make(map[string]*listener), alone: make(map[string]bool), lines: make(map[*line]bool)}
}

var errCut = errors.New("the network is cut")

type listener struct {
	net     *network
	address string
	come    chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (n *network) listen(address string) net.Listener {
	l := &listener{net: n, address: address, come: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return memberAddr(l.address) }

// dialer returns how the member at an address dials.
func (n *network) dialer(from string) func(ctx context.Context, to string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[to]
		apart := n.apart(from, to)
		n.mu.Unlock()
		if l == nil || apart {
			return nil, errCut
		}
		here, there := net.Pipe()
		out, back := &line{Conn: here, net: n, from: from, to: to}, &line{Conn: there, net: n, from: to, to: from}
		select {
		case l.come <- back:
		case <-l.closed:
			return nil, errCut
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.apart(from, to) { // it was cut meanwhile
			here.Close()  //nolint:errcheck // it is a pipe
			there.Close() //nolint:errcheck // it is a pipe
			return nil, errCut
		}
		n.lines[out], n.lines[back] = true, true
		return out, nil
	}
}

func (n *network) apart(a, b string) bool { return a != b && (n.alone[a] != n.alone[b] || n.alone[a]) }

// cut keeps members from speaking with anybody, from now on.
func (n *network) cut(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range addresses {
		n.alone[a] = true
	}
	for l := range n.lines {
		if n.apart(l.from, l.to) {
			l.Conn.Close() //nolint:errcheck // it is a pipe
			delete(n.lines, l)
		}
	}
}

// heal connects everybody with everybody.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.alone)
}

// line is one end of a connection.
type line struct {
	net.Conn
	net      *network
	from, to string
}

func (l *line) Write(b []byte) (int, error) {
	l.net.mu.Lock()
	wrote := l.net.wrote
	var delay time.Duration
	if l.net.delay != nil {
		delay = l.net.delay()
	}
	l.net.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if wrote != nil {
		wrote(l.from, l.to, len(b))
	}
	return l.Conn.Write(b)
}

func (l *line) Close() error {
	l.net.mu.Lock()
	delete(l.net.lines, l)
	l.net.mu.Unlock()
	return l.Conn.Close()
}
