package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// An Object is a content cut into chunks.
type Object struct {
	// Size is its length in bytes.
	Size int64
	// Chunks are its pieces in order, all of MaxChunkBytes but the last. An
	// empty content has none.
	Chunks []Sum
}

// writersPerObject is how many chunks of one object are hashed and synced at
// a time while the next is read. Each holds a buffer of MaxChunkBytes.
const writersPerObject = 2

// PutReader stores what r has, cut into chunks. When it returns nil the chunks
// are durable. It returns [ErrTooLong] as soon as r has more than limit bytes,
// the errors of [Store.Put], those of r, and ctx's; chunks stored until then
// stay for a sweep. A Read of r that blocks is not interrupted by ctx.
func (s *Store) PutReader(ctx context.Context, r io.Reader, limit int64) (Object, error) {
	b := s.NewBatch()
	defer b.Close()
	o, err := b.PutReader(ctx, r, limit)
	if err != nil {
		return Object{}, err
	}
	return o, b.Commit()
}

// PutReader is [Store.PutReader] without the promise that the chunks are
// durable, which [Batch.Commit] gives.
func (b *Batch) PutReader(ctx context.Context, r io.Reader, limit int64) (Object, error) {
	w := &objectWriter{batch: b, slots: make(chan struct{}, writersPerObject)}
	err := w.copy(ctx, r, limit)
	w.workers.Wait()
	if err = errors.Join(err, w.failure()); err != nil {
		return Object{}, err
	}
	return Object{Size: w.size, Chunks: w.sums}, nil
}

// An objectWriter is one PutReader under way.
type objectWriter struct {
	batch   *Batch
	slots   chan struct{}
	workers sync.WaitGroup
	size    int64

	mu   sync.Mutex // guards what follows
	sums []Sum
	err  error
}

// copy reads r to its end and puts its chunks.
func (w *objectWriter) copy(ctx context.Context, r io.Reader, limit int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf := w.batch.store.buffers.Get().(*[]byte)
		n, err := io.ReadFull(r, *buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("read after %d bytes: %w", w.size+int64(n), err)
		}
		w.size += int64(n)
		if w.size > limit {
			return fmt.Errorf("more than %d bytes: %w", limit, ErrTooLong)
		}
		if n > 0 && !w.start(buf, n, last) {
			return nil
		}
		if last {
			return nil
		}
	}
}

// start puts the first n bytes of buf, in a goroutine unless it is the last
// chunk. It reports false when an earlier chunk failed.
func (w *objectWriter) start(buf *[]byte, n int, last bool) bool {
	w.slots <- struct{}{}
	w.mu.Lock()
	i, failed := len(w.sums), w.err != nil
	w.sums = append(w.sums, Sum{})
	w.mu.Unlock()
	put := func() {
		sum, err := w.batch.Put((*buf)[:n])
		w.batch.store.buffers.Put(buf)
		w.mu.Lock()
		w.sums[i] = sum
		if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
		<-w.slots
	}
	switch {
	case failed:
		return false
	case last:
		put()
	default:
		w.workers.Go(put)
	}
	return true
}

// failure returns the first error of a put.
func (w *objectWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
