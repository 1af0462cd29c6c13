package daemon

import (
	"sync"

	"kith/internal/fifo"
	"kith/internal/job"
)

// Bounds of what waits for the loop.
const (
	// mostOfPeer is how many messages of one peer wait; its stream is not read while
	// there are so many.
	mostOfPeer = 256
	// mostInInstant is how many inputs of one lane the loop takes into one instant, which
	// all that is answered waits for.
	mostInInstant = 256
	// mostInRow is how many inputs of control are taken one after the other while others
	// wait.
	mostInRow = 3
)

// lane names what is taken in turn with others: the inputs of one peer, of one caller, or
// with both empty of the site itself.
type lane struct {
	peer   job.SiteID
	caller string
	// control is what a caller needs to look after its jobs or the site, see [controls].
	control bool
}

// turn holds a token for each input of one sender that waits for the loop.
type turn chan struct{}

// lanes are the inputs that wait for the loop, in a queue for each sender. The queues are
// served in turn, an input each, so that a sender of many waits for itself: the inputs
// of others wait for one input of each other lane. Lanes of control come before all others,
// which get one input of mostInRow+1. Within a lane the order is kept.
type lanes struct {
	mu sync.Mutex
	of map[lane]*queue
	// ready and urgent are the queues with inputs; rested are those that have given mostInInstant to
	// the instant under way, and emptied those that were empty in it.
	ready, urgent   fifo.Queue[*queue] // urgent are those of control
	row             int                // how many inputs of control were taken in a row
	rested, emptied []*queue
	wake            chan struct{}
}

// queue is what waits in a lane. One that is empty is forgotten at the end of the instant.
type queue struct {
	lane    lane
	waits   fifo.Queue[input]
	instant int // how many were taken into the instant under way
}

// wait puts a queue with inputs among those that are served.
func (s *lanes) wait(q *queue) {
	switch {
	case q.instant >= mostInInstant:
		s.rested = append(s.rested, q)
	case q.lane.control:
		s.urgent.Push(q)
	default:
		s.ready.Push(q)
	}
}

// next returns the queue whose turn it is.
func (s *lanes) next() (*queue, bool) {
	if s.row < mostInRow || s.ready.Len() == 0 {
		if q, ok := s.urgent.Pop(); ok {
			s.row++
			return q, true
		}
	}
	s.row = 0
	return s.ready.Pop()
}

func newLanes() *lanes {
	return &lanes{of: make(map[lane]*queue), wake: make(chan struct{}, 1)}
}

// put adds an input. The bound of how many wait is its sender's to keep.
func (s *lanes) put(k lane, in input) {
	s.mu.Lock()
	q := s.of[k]
	if q == nil {
		q = &queue{lane: k}
		s.of[k] = q
	}
	q.waits.Push(in)
	if q.waits.Len() == 1 {
		s.wait(q)
	}
	s.mu.Unlock()
	s.poke()
}

// take returns the next input in turn, false if the instant has all that it may have.
func (s *lanes) take() (input, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.next()
	if !ok {
		return input{}, false
	}
	in, _ := q.waits.Pop()
	q.instant++
	if q.waits.Len() > 0 {
		s.wait(q)
	} else {
		s.emptied = append(s.emptied, q)
	}
	return in, true
}

// end ends an instant: what was held back is for the next one.
func (s *lanes) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.emptied {
		if q.instant = 0; q.waits.Len() == 0 {
			delete(s.of, q.lane)
		}
	}
	for _, q := range s.rested {
		q.instant = 0
		s.wait(q)
	}
	clear(s.emptied)
	clear(s.rested)
	s.emptied, s.rested = s.emptied[:0], s.rested[:0]
	for _, waiting := range []*fifo.Queue[*queue]{&s.ready, &s.urgent} {
		waiting.All(func(q *queue) bool {
			q.instant = 0
			return true
		})
	}
	if s.ready.Len()+s.urgent.Len() > 0 {
		s.poke()
	}
}

func (s *lanes) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// turns are the tokens of the peers to which a stream is up.
type turns struct {
	mu sync.Mutex
	of map[job.SiteID]turn
}

func (t *turns) get(site job.SiteID) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[job.SiteID]turn)
	}
	if t.of[site] == nil {
		t.of[site] = make(turn, mostOfPeer)
	}
	return t.of[site]
}

func (t *turns) forget(site job.SiteID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, site)
}
