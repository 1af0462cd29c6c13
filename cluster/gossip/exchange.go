package gossip

import (
	"io"
	"net"
	"sync"
	"time"
)

// exchange is one request and its reply over a lane, each a message of at most 1 MiB.
// To memberlist it is a connection: what one side writes with one Write, the other
// side reads to its end.
type exchange struct {
	lane   *lane
	number uint32
	served bool // the request came from the other side
	late   *time.Timer
	// over and queued are guarded by the lane's mutex: nobody reads or writes it any more;
	// a message of it waits to be written.
	over, queued bool

	mu       sync.Mutex
	came     []byte // what has come and was not read yet
	ended    bool   // came is all there is
	said     bool
	err      error
	deadline *time.Timer
	changed  chan struct{} // closed and replaced when any of these changes
}

func newExchange(l *lane, number uint32, served bool) *exchange {
	e := &exchange{lane: l, number: number, served: served, changed: make(chan struct{})}
	e.late = time.AfterFunc(replyWait, func() {
		e.fail(errSlow)
		l.forget(e)
	})
	return e
}

// change tells a reader that waits. The mutex is held.
func (e *exchange) change() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// take adds a piece of what comes, and reports whether it is within the bound. With
// the last one, the guard looks at the whole. Only the reader of the lane calls it.
func (e *exchange) take(b []byte, last bool) bool {
	e.mu.Lock()
	if e.err != nil || e.ended {
		e.mu.Unlock()
		return true
	}
	within := len(e.came)+len(b) <= maxMessage
	if within {
		e.came = append(e.came, b...)
	} else {
		e.came, e.err = nil, errTooLong
		e.change()
	}
	whole := e.came
	e.mu.Unlock()
	if !within || !last {
		return within
	}
	// The guard has the reader of a lying site wait, so the mutex is not held.
	whole, err := e.lane.serve.coming(e.lane, whole)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.came, e.err, e.ended = whole, err, true
		e.change()
	}
	return true
}

func (e *exchange) failed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

func (e *exchange) whole() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

func (e *exchange) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.came, e.err = nil, err
		e.change()
	}
}

// Read implements net.Conn. It waits for the whole message.
func (e *exchange) Read(b []byte) (int, error) {
	for {
		e.mu.Lock()
		switch {
		case e.ended && len(e.came) > 0 && e.err == nil:
			n := copy(b, e.came)
			e.came = e.came[n:]
			e.mu.Unlock()
			return n, nil
		case e.err != nil:
			err := e.err
			e.mu.Unlock()
			return 0, err
		case e.ended:
			e.mu.Unlock()
			return 0, io.EOF
		}
		changed := e.changed
		e.mu.Unlock()
		<-changed
	}
}

// Write implements net.Conn. It takes one whole message and does not wait.
func (e *exchange) Write(b []byte) (int, error) {
	e.mu.Lock()
	err := e.err
	if err == nil && e.said {
		err = errFrame
	}
	e.said = true
	e.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n := len(b)
	if b, err = e.lane.serve.leaving(e.lane, b); err == nil {
		err = e.lane.say(e, b)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Close implements net.Conn.
func (e *exchange) Close() error {
	e.late.Stop()
	e.mu.Lock()
	if e.deadline != nil {
		e.deadline.Stop()
	}
	said := e.said
	e.mu.Unlock()
	e.fail(net.ErrClosed)
	if e.served && !said {
		e.lane.refuse(e.number)
	}
	e.lane.forget(e)
	return nil
}

// SetDeadline implements net.Conn.
func (e *exchange) SetDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deadline != nil {
		e.deadline.Stop()
	}
	e.deadline = nil
	if !t.IsZero() {
		e.deadline = time.AfterFunc(time.Until(t), func() { e.fail(errSlow) })
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (e *exchange) SetReadDeadline(t time.Time) error { return e.SetDeadline(t) }

// SetWriteDeadline implements net.Conn. A write does not wait.
func (e *exchange) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (e *exchange) LocalAddr() net.Addr { return nowhere }

// RemoteAddr implements net.Conn.
func (e *exchange) RemoteAddr() net.Addr { return siteAddr(e.lane.site) }
