package hierarchy

import "kith/internal/job"

type eventKind uint8

// The kinds of events, in their order within an instant.
const (
	ends eventKind = iota
	breaks
	estimated
	arrives
	sends
	moves // owners
	ticks
)

type event struct {
	at   job.Time
	seq  uint64
	kind eventKind
	n    int // task, sub-job or site
	g    int // site of a sub-job
	mark uint32
}

// eventHeap is a heap of events, the first on top.
type eventHeap []event

func (e *event) before(o *event) bool {
	switch {
	case e.at != o.at:
		return e.at < o.at
	case e.kind != o.kind:
		return e.kind < o.kind
	}
	return e.seq < o.seq
}

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	list, i := *h, len(*h)-1
	for up := (i - 1) / 2; i > 0 && e.before(&list[up]); i, up = up, (up-1)/2 {
		list[i] = list[up]
	}
	list[i] = e
}

func (h *eventHeap) pop() event {
	top, n := (*h)[0], len(*h)-1
	e := (*h)[n]
	*h = (*h)[:n]
	list, i := *h, 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && list[c+1].before(&list[c]) {
			c++
		}
		if e.before(&list[c]) {
			break
		}
		list[i] = list[c]
		i = c
	}
	if n > 0 {
		list[i] = e
	}
	return top
}
