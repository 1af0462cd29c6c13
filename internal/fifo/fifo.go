// Package fifo is a queue: what was pushed first comes out first.
package fifo

// Queue is a first-in, first-out queue. The zero value is empty and ready. Its
// memory is used again, and what has left it is not kept alive.
type Queue[T any] struct {
	items []T
	head  int
}

// Push appends v.
func (q *Queue[T]) Push(v T) { q.items = append(q.items, v) }

// First returns the oldest item, which stays; false if there is none.
func (q *Queue[T]) First() (v T, ok bool) {
	if q.head == len(q.items) {
		return v, false
	}
	return q.items[q.head], true
}

// Pop removes and returns the oldest item; false if there is none.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.head == len(q.items) {
		return v, false
	}
	v = q.items[q.head]
	var none T
	q.items[q.head] = none
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 64 && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v, true
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// All goes over the items, the oldest first. The queue must not change meanwhile.
func (q *Queue[T]) All(yield func(T) bool) {
	for _, v := range q.items[q.head:] {
		if !yield(v) {
			return
		}
	}
}
