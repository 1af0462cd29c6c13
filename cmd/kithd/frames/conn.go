package frames

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// ErrFlood is returned by [Conn.Read] of a connection that is closed because it sent nothing
// but frames that bring nothing, more than it may, and did not stop.
var ErrFlood = errors.New("more frames that bring nothing than this site reads")

// Bounds are those of the frames of a connection.
type Bounds struct {
	// Bucket pays for them; those of one sender share it. It must hold a token.
	Bucket *rate.Limiter
	// Begins is what a frame costs that begins a call, where a connection needs so few of
	// them that it counts as one that brings nothing; 0 where calls are what it is for.
	Begins int
	// Calls says that [Conn.Begin] is called for each call that is let in: data that comes
	// while there is none brings nothing.
	Calls bool
	// First is how long a connection may be without a call that was let in, before it is closed; 0 for
	// any time. Afterwards it may rest.
	First time.Duration
	// Dialled says that the other end is the server, which begins with a frame.
	Dialled bool
	// Idle is by how many tokens frames that bring nothing may outweigh the others while the
	// bucket is empty all the time; then the connection is closed. 0 for any number. Honest
	// callers send of both, and wait only.
	Idle int
	// Met is told when the connection begins to wait, and when it is closed. It must
	// not wait; nil for nobody.
	Met func(closed bool)
}

// smallRead is how many bytes a read brings that costs nothing if no frame begins in it.
// Frames can come a byte at a time, and each record of TLS has to be read and opened: that
// costs as much as smallReadCost frames that come together.
const (
	smallRead     = 1024
	smallReadCost = 4
)

// mostUncalled is how many tokens frames that bring nothing may have cost before the first call
// of a connection, if it is no flood that gRPC closes it for what it sends. Who says hello needs a dozen.
const mostUncalled = 100

// Conn is a connection that carries HTTP/2 to a server, and is read as fast as its bucket
// pays for the frames in it. One goroutine reads from it.
type Conn struct {
	net.Conn
	bounds Bounds
	calls  atomic.Int64 // under way
	first  *time.Timer  // until the first; nil for none
	// What a connection has brought that gRPC closes before its first call.
	called, over atomic.Bool
	uncalled     atomic.Int64

	// Of the goroutine that reads.
	follower follower
	waits    bool // since idle was 0 the bucket has been empty
	idle     int  // by how much frames that bring nothing outweigh the others since then
	timer    *time.Timer

	once   sync.Once
	closed chan struct{}
}

// Pace returns a connection of which nothing was read yet, with bounds.
func Pace(c net.Conn, b Bounds) *Conn {
	f := newFollower(b.Begins)
	if b.Dialled {
		f.skip = 0
	}
	paced := &Conn{Conn: c, bounds: b, follower: f, closed: make(chan struct{})}
	if b.First > 0 {
		paced.first = time.AfterFunc(b.First, func() { paced.end() }) //nolint:errcheck // nobody has called
	}
	return paced
}

// Read implements net.Conn. What it has read it returns once it is paid for.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.over.Store(true)
	}
	c.follower.uncalled = c.bounds.Calls && c.calls.Load() == 0
	cost := c.follower.follow(p[:n])
	if cost.All == 0 {
		if n == 0 || n >= smallRead {
			return n, err
		}
		cost = idle(smallReadCost)
	}
	if !c.called.Load() {
		c.uncalled.Add(int64(cost.Idle))
	}
	if wait := c.reserve(cost.All, time.Now()); wait > 0 {
		if err := c.hold(wait, cost); err != nil {
			return 0, err
		}
	} else {
		c.waits, c.idle = false, 0
	}
	return n, err
}

// Begin notes a call that was let in, until [Conn.End].
func (c *Conn) Begin() {
	c.calls.Add(1)
	c.called.Store(true)
	if c.first != nil {
		c.first.Stop()
	}
}

// End notes that a call is over.
func (c *Conn) End() { c.calls.Add(-1) }

// reserve takes tokens and returns after how long they are there.
func (c *Conn) reserve(n int, now time.Time) (wait time.Duration) {
	for most := c.bounds.Bucket.Burst(); n > 0; n -= most {
		wait = c.bounds.Bucket.ReserveN(now, min(n, most)).DelayFrom(now)
	}
	return wait
}

// hold waits for tokens. It returns why the connection was closed meanwhile.
func (c *Conn) hold(wait time.Duration, cost Cost) error {
	if !c.waits {
		c.waits = true
		c.met(false)
	}
	if c.idle = max(0, c.idle+2*cost.Idle-cost.All); c.bounds.Idle > 0 && c.idle > c.bounds.Idle {
		c.over.Store(true)
		c.met(true)
		c.Close() //nolint:errcheck // what it still brings is not wanted
		return ErrFlood
	}
	if c.timer == nil {
		c.timer = time.NewTimer(wait)
	} else {
		c.timer.Reset(wait)
	}
	select {
	case <-c.timer.C:
		return nil
	case <-c.closed:
		c.timer.Stop()
		return net.ErrClosed
	}
}

func (c *Conn) met(closed bool) {
	if c.bounds.Met != nil {
		c.bounds.Met(closed)
	}
}

// Close implements net.Conn. A reader that waits returns. That gRPC closes a connection for
// what it sends before its first call is told as a flood: lists of headers without an end, say.
func (c *Conn) Close() error {
	if c.bounds.First > 0 && !c.called.Load() && c.uncalled.Load() > mostUncalled && !c.over.Swap(true) {
		c.met(true)
	}
	if c.first != nil {
		c.first.Stop()
	}
	return c.end()
}

func (c *Conn) end() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
