package sim

import "kith/internal/job"

// class orders what happens at one instant (spec 001 section 2.1).
type class uint8

const (
	completion class = iota
	cancellation
	arrival
	message
	housekeeping
)

// happening is something that will happen. Of one instant and class, the
// lower key goes first, then what was put on the agenda first.
type happening struct {
	at   job.Time
	key  uint64
	seq  uint64
	what action
}

// action is what happens.
type action interface{ act() }

// call is an action that is a function.
type call func()

func (c call) act() { c() }

func (c class) key(order uint64) uint64 { return uint64(c)<<classShift | order }

const (
	classShift = 56
	seqBits    = 36 // jobs of one origin
)

// jobOrder orders jobs of one instant by id. Generations of one origin are
// told apart by the sequence on the agenda only.
func jobOrder(origin int, seq uint64) uint64 {
	return (uint64(origin)<<seqBits | seq&(1<<seqBits-1)) & (1<<classShift - 1) // sites are few
}

func (h *happening) before(o *happening) bool {
	if h.at != o.at {
		return h.at < o.at
	}
	if h.key != o.key {
		return h.key < o.key
	}
	return h.seq < o.seq
}

// agenda holds what will happen in order: a heap of four branches.
type agenda struct {
	heap []happening
	seq  uint64
}

// add notes what will happen. What would happen at [job.Never] does not.
func (a *agenda) add(at job.Time, c class, order uint64, what action) {
	if at == job.Never {
		return
	}
	a.seq++
	h := happening{at: at, key: c.key(order), seq: a.seq, what: what}
	a.heap = append(a.heap, h)
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !h.before(&a.heap[up]) {
			break
		}
		a.heap[i] = a.heap[up]
		i = up
	}
	a.heap[i] = h
}

// next returns when the next thing happens, and its class.
func (a *agenda) next() (job.Time, class, bool) {
	if len(a.heap) == 0 {
		return job.Never, 0, false
	}
	return a.heap[0].at, class(a.heap[0].key >> classShift), true
}

func (a *agenda) take() action {
	what := a.heap[0].what
	last := len(a.heap) - 1
	h := a.heap[last]
	a.heap[last] = happening{}
	a.heap = a.heap[:last]
	if last == 0 {
		return what
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= last {
			break
		}
		child := first
		for c := first + 1; c < min(first+4, last); c++ {
			if a.heap[c].before(&a.heap[child]) {
				child = c
			}
		}
		if !a.heap[child].before(&h) {
			break
		}
		a.heap[i] = a.heap[child]
		i = child
	}
	a.heap[i] = h
	return what
}
