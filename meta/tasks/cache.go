package tasks

import (
	"container/list"
	"sync"

	"kith/internal/job"
)

// Bounds on a [Cache].
const (
	maxCached      = 64
	maxCachedBytes = 32 << 20 // of payloads; the latest stays whatever it has
)

// Cache keeps the payloads that were read last. The zero value is empty. It is safe for use
// by several goroutines.
type Cache struct {
	mu    sync.Mutex
	known map[job.AttemptID]*list.Element
	order list.List // of entries, the latest first
	bytes int
}

type entry struct {
	id  job.AttemptID
	bag *Bag
}

// Get returns a payload by the name of a bundle, or by that of a bag with number 0, and
// reads it, as [Parse] does, if it is not kept. Several may read it at the same time. What cannot be read or
// parsed is not kept.
func (c *Cache) Get(id job.AttemptID, read func() ([]byte, error), open OpenTable) (*Bag, error) {
	if b := c.find(id); b != nil {
		return b, nil
	}
	raw, err := read()
	if err != nil {
		return nil, err
	}
	b, err := Parse(raw, open)
	if err != nil {
		return nil, err
	}
	c.add(id, b)
	return b, nil
}

func (c *Cache) find(id job.AttemptID) *Bag {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[id]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(entry).bag
}

func (c *Cache) add(id job.AttemptID, b *Bag) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[id] != nil {
		return
	}
	if c.known == nil {
		c.known = make(map[job.AttemptID]*list.Element)
	}
	c.known[id] = c.order.PushFront(entry{id, b})
	c.bytes += b.Size()
	for len(c.known) > 1 && (len(c.known) > maxCached || c.bytes > maxCachedBytes) {
		last := c.order.Back()
		old := c.order.Remove(last).(entry)
		delete(c.known, old.id)
		c.bytes -= old.bag.Size()
	}
}
