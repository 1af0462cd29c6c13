package gossip

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// retransmits is how often a note is sent on by each site that has it, for each power of
// ten of members.
const retransmits = 4

// queue are the notes that are to be sent on, the one sent least often first. It stands
// for memberlist's own, which loses messages of equal length: it gives them equal
// names when it has been empty in between (v0.7.0, TransmitLimitedQueue.deleteItem).
type queue struct {
	members func() int // alive ones, this site too

	mu    sync.Mutex
	items []*queued // by how often each was sent, the latest first
	named map[string]*queued
	next  uint64
}

// queued is a note on its way; one that comes later under the same name replaces it.
type queued struct {
	name string
	data []byte
	sent int
	age  uint64 // higher is later
}

func (a *queued) compare(b *queued) int {
	return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(b.age, a.age))
}

func (q *queue) insert(n *queued) {
	i, _ := slices.BinarySearchFunc(q.items, n, (*queued).compare)
	q.items = slices.Insert(q.items, i, n)
}

// add has a note sent. There is one of a name at a time, so names bound the queue.
func (q *queue) add(name string, data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.named[name]; old != nil {
		i, _ := slices.BinarySearchFunc(q.items, old, (*queued).compare)
		q.items = slices.Delete(q.items, i, i+1)
	}
	if q.named == nil {
		q.named = make(map[string]*queued)
	}
	q.next++
	n := &queued{name: name, data: data, age: q.next}
	q.named[name] = n
	q.insert(n)
}

// take returns notes for one packet, each of which costs overhead beside its bytes.
func (q *queue) take(overhead, limit int) (notes [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil
	}
	most := retransmits * int(math.Ceil(math.Log10(float64(q.members()+1))))
	var taken []*queued
	q.items = slices.DeleteFunc(q.items, func(n *queued) bool {
		cost := overhead + len(n.data)
		if cost > limit {
			return false
		}
		limit -= cost
		taken = append(taken, n)
		return true
	})
	for _, n := range taken {
		notes = append(notes, n.data)
		if n.sent++; n.sent < most {
			q.insert(n)
		} else {
			delete(q.named, n.name)
		}
	}
	return notes
}
