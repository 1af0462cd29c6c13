package sim

import (
	"container/heap"

	"kith/internal/job"
)

// class orders events of one instant.
type class uint8

const (
	completion class = iota
	cancellation
	arrival
	message
	housekeeping
)

// happening is something that will happen.
type happening struct {
	at    job.Time
	class class
	seq   uint64
	do    func()
}

// agenda is a heap of happenings by (time, class, sequence).
type agenda struct {
	items []happening
	seq   uint64
}

func (a *agenda) add(at job.Time, c class, do func()) {
	a.seq++
	heap.Push(a, happening{at: at, class: c, seq: a.seq, do: do})
}

func (a *agenda) next() (job.Time, bool) {
	if len(a.items) == 0 {
		return job.Never, false
	}
	return a.items[0].at, true
}

func (a *agenda) take() happening { return heap.Pop(a).(happening) }

// Len implements heap.Interface.
func (a *agenda) Len() int { return len(a.items) }

// Less implements heap.Interface.
func (a *agenda) Less(i, j int) bool {
	x, y := &a.items[i], &a.items[j]
	if x.at != y.at {
		return x.at < y.at
	}
	if x.class != y.class {
		return x.class < y.class
	}
	return x.seq < y.seq
}

// Swap implements heap.Interface.
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { a.items = append(a.items, x.(happening)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(a.items) - 1
	h := a.items[last]
	a.items[last] = happening{}
	a.items = a.items[:last]
	return h
}
