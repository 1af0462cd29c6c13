package wan

import (
	"sync"
	"time"
)

// A packet is bytes that came together, and when they may leave. One without
// bytes is the end of the stream, or a reset.
type packet struct {
	data    []byte
	release time.Time
	reset   bool
}

// packetOverhead is what a packet counts besides its bytes, so that a stream
// of single bytes is bounded too.
const packetOverhead = 64

// cost is what a packet counts.
func (p packet) cost() int { return len(p.data) + packetOverhead }

// A queue holds the packets that are under way on one way of one connection.
// One goroutine takes packets out; any may put them in.
type queue struct {
	limit int
	// more and room get a token when there may be a packet or room.
	more, room chan struct{}

	mu      sync.Mutex
	packets []packet
	held    int
	latest  time.Time
}

// newQueue returns a queue that holds about limit bytes.
func newQueue(limit int) *queue {
	return &queue{limit: limit, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push puts a packet in. It leaves no earlier than those before it.
func (q *queue) push(p packet) {
	q.mu.Lock()
	if p.release.Before(q.latest) {
		p.release = q.latest
	}
	q.latest = p.release
	q.packets = append(q.packets, p)
	q.held += p.cost()
	q.mu.Unlock()
	signal(q.more)
}

// front returns the packet that leaves next, and keeps it.
func (q *queue) front() (packet, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.packets) == 0 {
		return packet{}, false
	}
	return q.packets[0], true
}

// pop drops the packet that front returned.
func (q *queue) pop() {
	q.mu.Lock()
	q.held -= q.packets[0].cost()
	q.packets[0] = packet{}
	if q.packets = q.packets[1:]; len(q.packets) == 0 {
		q.packets = nil // The space in front of a slice is never used again.
	}
	q.mu.Unlock()
	signal(q.room)
}

// free returns how many bytes may come in; none or fewer means to wait for room.
func (q *queue) free() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.packets) == 0 {
		return max(1, q.limit-packetOverhead)
	}
	return q.limit - q.held - packetOverhead
}

// bytes returns how many bytes are held.
func (q *queue) bytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.held - len(q.packets)*packetOverhead)
}

// signal leaves a token in c unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
