package wan

import (
	"net"
	"sync"
)

// A connection is a client and a target with two pumps between them.
type connection struct {
	client, target net.Conn
	out, back      *pump
	once           sync.Once
	done           chan struct{}
}

// newConnection joins client and target over the two ways of a link.
func newConnection(client, target net.Conn, out, back *way, bufferBytes int) *connection {
	c := &connection{client: client, target: target, done: make(chan struct{})}
	c.out = &pump{way: out, src: client, dst: target, queue: newQueue(bufferBytes), done: c.done, abort: c.reset}
	c.back = &pump{way: back, src: target, dst: client, queue: newQueue(bufferBytes), done: c.done, abort: c.reset}
	// What a side that went away answers travels the other way, and takes its time.
	c.out.failed = func() { c.back.finish(true) }
	c.back.failed = func() { c.out.finish(true) }
	return c
}

// run moves bytes until both streams have ended, or one was reset.
func (c *connection) run() {
	c.out.way.join(c.out)
	c.back.way.join(c.back)
	var readers, writers sync.WaitGroup
	for _, p := range []*pump{c.out, c.back} {
		readers.Go(p.read)
		writers.Go(p.write)
	}
	writers.Wait()
	c.end(false)
	readers.Wait()
	c.out.way.leave(c.out)
	c.back.way.leave(c.back)
}

// reset ends the connection with a reset to both sides.
func (c *connection) reset() { c.end(true) }

// end ends the connection. Only the first call counts.
func (c *connection) end(reset bool) {
	c.once.Do(func() {
		close(c.done)
		for _, conn := range []net.Conn{c.client, c.target} {
			if reset {
				refuse(conn)
			} else {
				conn.Close() //nolint:errcheck // Everything was delivered.
			}
		}
	})
}

// refuse closes a connection with a reset instead of an end.
func refuse(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // Then it is an end.
	}
	conn.Close() //nolint:errcheck // It is over.
}
