package transfer

import (
	"errors"
	"fmt"
	"sync"

	"kith/store/blobstore"
)

// openChunks keeps the chunks that were read last open and verified: a peer
// asks for a chunk in sixteen pieces, and hashing it for each would cost
// sixteen times the work. A chunk that a sweep takes meanwhile stays on disk
// until it is closed, so the number is small.
type openChunks struct {
	store *blobstore.Store

	mu      sync.Mutex
	entries *lru[blobstore.Sum, *openChunk]
}

// An openChunk is a chunk with the number of its readers. It is closed when
// it has left the cache and the last of them is done.
type openChunk struct {
	sum     blobstore.Sum
	opening sync.Once
	chunk   *blobstore.Chunk
	err     error

	readers int  // guarded by the cache's mutex
	out     bool // of the cache
}

// newOpenChunks returns a cache of up to most chunks of store.
func newOpenChunks(store *blobstore.Store, most int) *openChunks {
	return &openChunks{store: store, entries: newLRU[blobstore.Sum](most, (*openChunk).leave)}
}

// read returns a piece of a chunk, and whether the chunk ends with it.
func (c *openChunks) read(sum blobstore.Sum, offset int64, limit int) (data []byte, end bool, err error) {
	o := c.acquire(sum)
	defer c.release(o)
	o.opening.Do(func() { o.chunk, o.err = c.store.OpenChunk(sum) })
	if o.err != nil {
		c.drop(o)
		if errors.Is(o.err, blobstore.ErrNotFound) {
			return nil, false, fmt.Errorf("%w: %w", ErrNotFound, o.err)
		}
		return nil, false, o.err
	}
	if limit <= 0 || limit > MaxPieceBytes {
		limit = MaxPieceBytes
	}
	rest := o.chunk.Size() - offset
	if rest <= 0 {
		return nil, true, nil
	}
	data = make([]byte, min(int64(limit), rest))
	if _, err := o.chunk.ReadAt(data, offset); err != nil {
		return nil, false, fmt.Errorf("read chunk %s: %w", sum.Short(), err)
	}
	return data, int64(len(data)) == rest, nil
}

// acquire returns the entry of a chunk, for one reader more.
func (c *openChunks) acquire(sum blobstore.Sum) *openChunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.entries.get(sum); ok {
		o.readers++
		return o
	}
	o := &openChunk{sum: sum, readers: 1}
	c.entries.put(sum, o)
	return o
}

// release ends a reader's use.
func (c *openChunks) release(o *openChunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.readers--
	o.closeIfUnused()
}

// drop takes an entry out of the cache, if it is still in.
func (c *openChunks) drop(o *openChunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.entries.get(o.sum); ok && kept == o {
		c.entries.remove(o.sum)
	}
}

// leave is told that the entry has left the cache, whose mutex is held.
func (o *openChunk) leave() {
	o.out = true
	o.closeIfUnused()
}

// closeIfUnused closes a chunk that cannot be found any more and is not being read. The
// caller holds the cache's mutex.
func (o *openChunk) closeIfUnused() {
	if o.out && o.readers == 0 && o.chunk != nil {
		o.chunk.Close() //nolint:errcheck // Only read from.
		o.chunk = nil
	}
}

// close empties the cache.
func (c *openChunks) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sum := range c.entries.entries {
		c.entries.remove(sum)
	}
	return nil
}
