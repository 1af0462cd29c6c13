package gossip

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kith/internal/job"
)

// Conn is a connection to a site that has been proved to be that site. Read and
// Write may be called at the same time, and Close ends both.
type Conn interface {
	io.ReadWriteCloser
}

// How long a lane may be still.
const (
	// beat is how often something is sent on a lane that has nothing to say.
	beat = 10 * time.Second
	// silence is how long nothing may come before the lane is given up.
	silence = 3 * beat
	// stuck is how long a write may take.
	stuck = 10 * time.Second
	// replyWait is how long a request may take to come whole, and its reply to follow.
	replyWait = 30 * time.Second
)

// Bounds of what waits for a lane.
const (
	maxQueuedPackets  = 64
	maxQueuedRefusals = 64
)

var (
	errLaneClosed = errors.New("the lane has ended")
	errBusy       = errors.New("two exchanges with the site are under way")
	errRefused    = errors.New("the site refused the exchange")
	errSlow       = errors.New("the exchange took too long")
	errTooLong    = errors.New("message of a gossip exchange beyond 1 MiB")
	errFlooded    = errors.New("the site opens more exchanges than it takes answers")
)

// lane is one connection to a site. Its reader calls got* in order.
type lane struct {
	site    job.SiteID
	dialled bool // by this side
	conn    Conn
	serve   laneServer
	pace    *rate.Limiter // of frames that come; nil for none

	mu       sync.Mutex
	packets  [][]byte
	pieces   []frame // requests and replies, in order of exchanges
	refusals []uint32
	next     uint32 // number of the latest request of this side
	asked    map[uint32]*exchange
	serving  map[uint32]*exchange
	ended    error
	wake     chan struct{}
	done     chan struct{}
}

// laneServer takes what comes over a lane.
type laneServer interface {
	gotPacket(l *lane, b []byte)
	// gotRequest takes a whole request; the exchange is to be closed.
	gotRequest(l *lane, e *exchange)
	// leaving and coming return what of a message of memberlist goes to the site, and what
	// of one of the site goes to memberlist. coming may have the reader wait.
	leaving(l *lane, b []byte) ([]byte, error)
	coming(l *lane, b []byte) ([]byte, error)
	laneEnded(l *lane)
}

func newLane(site job.SiteID, conn Conn, dialled bool, serve laneServer) *lane {
	return &lane{
		site: site, dialled: dialled, conn: conn, serve: serve,
		asked: make(map[uint32]*exchange), serving: make(map[uint32]*exchange),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// run carries the lane to its end.
func (l *lane) run() {
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		l.end(l.write())
	}()
	l.end(l.read())
	<-wrote
	l.serve.laneEnded(l)
}

// end closes the lane, and with it all its exchanges.
func (l *lane) end(err error) {
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errLaneClosed
	}
	l.ended = err
	var all []*exchange
	for _, m := range []map[uint32]*exchange{l.asked, l.serving} {
		for _, e := range m {
			all = append(all, e)
		}
	}
	l.packets, l.pieces = nil, nil
	close(l.done)
	l.mu.Unlock()
	l.conn.Close() //nolint:errcheck // it is of no use any more
	for _, e := range all {
		e.fail(err)
	}
}

// why returns what ended the lane, nil while it is up.
func (l *lane) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// send queues a packet. It is dropped where too many wait, as packets may be.
func (l *lane) send(b []byte) {
	l.mu.Lock()
	if l.ended == nil && len(l.packets) < maxQueuedPackets {
		l.packets = append(l.packets, b)
	}
	l.mu.Unlock()
	l.poke()
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ask begins an exchange.
func (l *lane) ask() (*exchange, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended != nil:
		return nil, l.ended
	case len(l.asked) >= maxExchanges:
		return nil, errBusy
	}
	l.next++
	e := newExchange(l, l.next, false)
	l.asked[l.next] = e
	return e, nil
}

// say queues the whole message of an exchange, which keeps its place until the message is
// written: so few messages wait.
func (l *lane) say(e *exchange, b []byte) error {
	piece, last := request, lastRequest
	if e.served {
		piece, last = reply, lastReply
	}
	if len(b) > maxMessage {
		return errTooLong
	}
	l.mu.Lock()
	if err := l.ended; err != nil || e.over {
		l.mu.Unlock()
		return cmp.Or(err, net.ErrClosed)
	}
	e.queued = true
	for len(b) > maxPiece {
		l.pieces = append(l.pieces, frame{piece, e.number, b[:maxPiece]})
		b = b[maxPiece:]
	}
	l.pieces = append(l.pieces, frame{last, e.number, b})
	l.mu.Unlock()
	l.poke()
	return nil
}

// forget ends an exchange. What it has said is still written.
func (l *lane) forget(e *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.over = true
	l.free(e)
}

// free gives up the place of an exchange that is over and has nothing to write. The mutex
// is held.
func (l *lane) free(e *exchange) {
	if all := l.exchanges(e.served); e.over && !e.queued && all[e.number] == e {
		delete(all, e.number)
	}
}

// exchanges returns those that the other side asked for, or this side. The mutex is held.
func (l *lane) exchanges(served bool) map[uint32]*exchange {
	if served {
		return l.serving
	}
	return l.asked
}

// nextFrames takes what is to be written next: all packets, then one piece.
func (l *lane) nextFrames(b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.packets {
		b = appendFrame(b, frame{kind: packet, data: p})
	}
	clear(l.packets)
	l.packets = l.packets[:0]
	for _, n := range l.refusals {
		b = appendFrame(b, frame{kind: refuse, exchange: n})
	}
	l.refusals = l.refusals[:0]
	if len(l.pieces) > 0 {
		f := l.pieces[0]
		b = appendFrame(b, f)
		l.pieces[0].data = nil
		if l.pieces = l.pieces[1:]; len(l.pieces) == 0 {
			l.pieces = nil
		}
		if f.kind == lastRequest || f.kind == lastReply {
			e := l.exchanges(f.kind == lastReply)[f.exchange]
			e.queued = false
			l.free(e)
		}
	}
	return b
}

func (l *lane) write() error {
	idleTimer := time.NewTicker(beat)
	defer idleTimer.Stop()
	var b []byte
	for {
		for b = l.nextFrames(b[:0]); len(b) > 0; b = l.nextFrames(b[:0]) {
			if err := l.put(b); err != nil {
				return err
			}
		}
		if cap(b) > 2*maxPiece {
			b = nil
		}
		select {
		case <-l.wake:
		case <-idleTimer.C:
			if err := l.put(appendFrame(nil, frame{})); err != nil {
				return err
			}
		case <-l.done:
			return nil
		}
	}
}

// put writes; a side that does not read has its lane closed.
func (l *lane) put(b []byte) error {
	late := time.AfterFunc(stuck, func() { l.conn.Close() }) //nolint:errcheck // the write says it
	defer late.Stop()
	_, err := l.conn.Write(b)
	return err
}

func (l *lane) read() error {
	late := time.AfterFunc(silence, func() { l.conn.Close() }) //nolint:errcheck // the read says it
	defer late.Stop()
	r := bufio.NewReaderSize(l.conn, 4096)
	for {
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		late.Reset(silence)
		if !l.paced() {
			return l.why()
		}
		late.Reset(silence) // that nothing was read is this side's doing
		if err := l.got(f); err != nil {
			return err
		}
	}
}

// paced waits until a frame may be taken, and reports whether the lane is up still.
func (l *lane) paced() bool {
	if l.pace == nil {
		return true
	}
	wait := l.pace.Reserve().Delay()
	if wait <= 0 {
		return true
	}
	select {
	case <-time.After(wait):
		return true
	case <-l.done:
		return false
	}
}

// got takes a frame. An error ends the lane.
func (l *lane) got(f frame) error {
	switch f.kind {
	case packet:
		l.serve.gotPacket(l, f.data)
	case request, lastRequest:
		return l.gotPiece(f)
	case reply, lastReply, refuse:
		l.mu.Lock()
		e := l.asked[f.exchange]
		l.mu.Unlock()
		switch {
		case e == nil: // given up here meanwhile
		case f.kind == refuse:
			e.fail(errRefused)
		case !e.take(f.data, f.kind == lastReply):
			return errTooLong
		}
	}
	return nil
}

// refuse tells the other side that its request gets no reply. The lane ends if the other
// side asks on without taking that in.
func (l *lane) refuse(number uint32) {
	l.mu.Lock()
	flooded := len(l.refusals) >= maxQueuedRefusals
	if !flooded {
		l.refusals = append(l.refusals, number)
	}
	l.mu.Unlock()
	if flooded {
		l.end(errFlooded)
	}
	l.poke()
}

// gotPiece takes a piece of a request of the other side.
func (l *lane) gotPiece(f frame) error {
	l.mu.Lock()
	e := l.serving[f.exchange]
	if e == nil && len(l.serving) >= maxExchanges {
		l.mu.Unlock()
		if f.kind == lastRequest {
			l.refuse(f.exchange)
		}
		return nil
	}
	if e == nil {
		e = newExchange(l, f.exchange, true)
		l.serving[f.exchange] = e
	}
	l.mu.Unlock()
	if e.whole() {
		return errFrame // a request goes on behind its end
	}
	if !e.take(f.data, f.kind == lastRequest) {
		return errTooLong
	}
	if f.kind == lastRequest {
		l.serve.gotRequest(l, e)
	}
	return nil
}
