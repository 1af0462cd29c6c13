package transfer

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"kith/store/blobstore"
)

// openChunks keeps the chunks that were read last open and verified: a peer
// asks for a chunk in sixteen pieces, a bundle for some rows of a table, and hashing it for
// each would cost many times the work. A chunk that a sweep takes meanwhile stays on disk
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
	if limit <= 0 || limit > MaxPieceBytes {
		limit = MaxPieceBytes
	}
	rest, err := c.readAt(sum, offset, func(rest int64) []byte {
		data = make([]byte, min(int64(limit), rest))
		return data
	})
	if err != nil {
		return nil, false, err
	}
	return data, int64(len(data)) >= rest, nil
}

// readAt fills what piece returns, at most rest bytes, from an offset of a chunk on. Rest is
// how many bytes the chunk has from there; piece is not called if it has none.
func (c *openChunks) readAt(sum blobstore.Sum, offset int64, piece func(rest int64) []byte) (rest int64, err error) {
	o := c.acquire(sum)
	defer c.release(o)
	o.opening.Do(func() { o.chunk, o.err = c.store.OpenChunk(sum) })
	if o.err != nil {
		c.drop(o)
		if errors.Is(o.err, blobstore.ErrNotFound) {
			return 0, fmt.Errorf("%w: %w", ErrNotFound, o.err)
		}
		return 0, o.err
	}
	if rest = o.chunk.Size() - offset; rest <= 0 {
		return 0, nil
	}
	if _, err := o.chunk.ReadAt(piece(rest), offset); err != nil {
		return 0, fmt.Errorf("read chunk %s: %w", sum.Short(), err)
	}
	return rest, nil
}

// fileAt reads a file through the open chunks, so that none has to be closed.
type fileAt struct {
	chunks *openChunks
	file   File
}

// ReadAt implements [io.ReaderAt]. A chunk of another length than the file says is an error.
func (f fileAt) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("read %q at %d: %w", clip(f.file.Path), offset, ErrBadRange)
	}
	for n < len(p) && offset < f.file.Size {
		if len(f.file.Inline) > 0 {
			n += copy(p, f.file.Inline[offset:])
			break
		}
		i, within, left := f.file.Place(offset)
		got := 0
		rest, err := f.chunks.readAt(f.file.Chunks[i], within, func(rest int64) []byte {
			if within+rest == f.file.ChunkSize(i) {
				got = int(min(int64(len(p)-n), left))
			}
			return p[n : n+got]
		})
		if err == nil && got == 0 {
			err = fmt.Errorf("chunk %d has %d bytes from %d on: %w", i, rest, within, ErrBadSet)
		}
		if err != nil {
			return n, fmt.Errorf("read %q: %w", clip(f.file.Path), err)
		}
		n, offset = n+got, offset+int64(got)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
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
