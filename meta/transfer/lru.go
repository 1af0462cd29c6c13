package transfer

import "container/list"

// An lru keeps up to most values, those that were used last. Its owner guards
// it with a mutex. golang-lru v1, which gossip brings along, knows no types: the
// assertions that it would need are longer than this.
type lru[K comparable, V any] struct {
	most    int
	removed func(V) // is told of each value that goes; may be nil
	entries map[K]*list.Element
	order   list.List // of lruEntry, the latest used first
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

// newLRU returns an empty one.
func newLRU[K comparable, V any](most int, removed func(V)) *lru[K, V] {
	return &lru[K, V]{most: most, removed: removed, entries: make(map[K]*list.Element)}
}

// get returns the value of a key, which counts as used now.
func (c *lru[K, V]) get(key K) (value V, ok bool) {
	e, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(lruEntry[K, V]).value, true
}

// put adds a value under a key that has none, and removes what is too much.
func (c *lru[K, V]) put(key K, value V) {
	c.entries[key] = c.order.PushFront(lruEntry[K, V]{key, value})
	for c.order.Len() > c.most {
		c.remove(c.order.Back().Value.(lruEntry[K, V]).key)
	}
}

// remove takes out a key's value, if it has one.
func (c *lru[K, V]) remove(key K) {
	e, ok := c.entries[key]
	if !ok {
		return
	}
	value := c.order.Remove(e).(lruEntry[K, V]).value
	delete(c.entries, key)
	if c.removed != nil {
		c.removed(value)
	}
}
