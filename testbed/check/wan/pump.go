package wan

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// readBytes is the most that one read takes: small enough that a rate is
// smooth, large enough that the machine is not busy with packets.
const readBytes = 64 << 10

// A pump moves the bytes of one connection one way: one goroutine reads and
// stamps, another waits and writes.
type pump struct {
	way      *way
	src, dst net.Conn
	queue    *queue
	// done is closed when the connection is over for both ways.
	done <-chan struct{}
	// abort resets the connection.
	abort func()
	// failed is called when dst does not take bytes any more.
	failed func()
}

// read takes bytes from src until its end.
func (p *pump) read() {
	buf := make([]byte, readBytes)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		room, ok := p.waitRoom(timer)
		if !ok || !p.enter(p.src.SetReadDeadline) {
			return
		}
		n, err := p.src.Read(buf[:min(room, len(buf))])
		p.way.exit(0)
		if n > 0 {
			data := append([]byte(nil), buf[:n]...)
			p.queue.push(packet{data: data, release: p.way.release(time.Now(), n)})
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		p.finish(!errors.Is(err, io.EOF))
		return
	}
}

// finish sends the end of the stream, or a reset, after the bytes under way.
func (p *pump) finish(reset bool) {
	p.queue.push(packet{reset: reset, release: p.way.release(time.Now(), 0)})
}

// waitRoom waits until the line and the queue take bytes, and returns how many,
// at least one; not ok when the connection is over.
func (p *pump) waitRoom(timer *time.Timer) (n int, ok bool) {
	for {
		most, wait := p.way.ready(time.Now())
		if wait > 0 {
			if !p.wait(timer, wait) {
				return 0, false
			}
			continue
		}
		if n := p.queue.free(); n > 0 {
			return min(n, most), true
		}
		select {
		case <-p.done:
			return 0, false
		case <-p.queue.room:
		}
	}
}

// write gives packets to dst when their time has come, until the end.
func (p *pump) write() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, ok := p.queue.front()
		if !ok {
			select {
			case <-p.done:
				return
			case <-p.queue.more:
			}
			continue
		}
		if !p.wait(timer, time.Until(next.release)) || !p.deliver(next) {
			return
		}
		p.queue.pop()
	}
}

// wait returns after d; false when the connection is over.
func (p *pump) wait(timer *time.Timer, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer.Reset(d)
	select {
	case <-p.done:
		return false
	case <-timer.C:
		return true
	}
}

// deliver gives one packet to dst. It reports false when it was the last.
func (p *pump) deliver(next packet) bool {
	if len(next.data) == 0 {
		if !p.enter(p.dst.SetWriteDeadline) {
			return false
		}
		defer p.way.exit(0)
		if next.reset {
			p.abort()
		} else {
			closeWrite(p.dst)
		}
		return false
	}
	for rest := next.data; len(rest) > 0; {
		if !p.enter(p.dst.SetWriteDeadline) {
			return false
		}
		n, err := p.dst.Write(rest)
		p.way.exit(n)
		rest = rest[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			p.failed()
			return false
		}
	}
	return true
}

// enter waits until the way is not cut and begins a read or a write, which
// way.exit ends. It reports false when the connection is over.
func (p *pump) enter(setDeadline func(time.Time) error) bool {
	for {
		select {
		case <-p.done:
			return false
		case <-p.way.gate():
		}
		if p.way.enter(setDeadline) {
			return true
		}
	}
}

// interrupt makes a read and a write under way return.
func (p *pump) interrupt() {
	past := time.Unix(1, 0)
	p.src.SetReadDeadline(past)  //nolint:errcheck // A closed connection needs no interruption.
	p.dst.SetWriteDeadline(past) //nolint:errcheck // The same.
}

// closeWrite ends the stream to conn, and leaves the one from it open.
func closeWrite(conn net.Conn) {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() //nolint:errcheck // It is over either way.
		return
	}
	conn.Close() //nolint:errcheck // The same.
}
