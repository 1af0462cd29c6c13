package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/internal/pause"
	"kith/store/blobstore"
)

// mismatches is how often a chunk may arrive with the wrong sum before the
// source is given up: once is a broken line, three times is a broken site.
const mismatches = 3

// assemble brings the pieces of one chunk together and stores it.
func (t *transferral) assemble(ctx context.Context, w wanted) error {
	pieces := (w.size + MaxPieceBytes - 1) / MaxPieceBytes
	if err := t.memory.Acquire(ctx, pieces); err != nil {
		return err
	}
	defer t.memory.Release(pieces)
	buf := make([]byte, w.size)
	for try := 1; ; try++ {
		if err := t.pieces(ctx, w, buf); err != nil {
			return fmt.Errorf("chunk %s: %w", w.sum.Short(), err)
		}
		err := t.batch.PutSum(w.sum, buf)
		switch {
		case !errors.Is(err, blobstore.ErrMismatch):
			return err
		case try == mismatches:
			return fmt.Errorf("%w: %w", ErrBadReply, err)
		}
	}
}

// pieces fills buf with a chunk.
func (t *transferral) pieces(ctx context.Context, w wanted, buf []byte) error {
	if len(buf) <= MaxPieceBytes {
		return t.piece(ctx, w.sum, 0, buf)
	}
	g, ctx := errgroup.WithContext(ctx)
	for begin := 0; begin < len(buf); begin += MaxPieceBytes {
		part := buf[begin:min(begin+MaxPieceBytes, len(buf))]
		g.Go(func() error { return t.piece(ctx, w.sum, int64(begin), part) })
	}
	return g.Wait()
}

// piece fills part with the bytes of a chunk from offset on. It repeats
// requests that fail, with growing pauses, as long as some come through.
func (t *transferral) piece(ctx context.Context, sum blobstore.Sum, offset int64, part []byte) error {
	var failing time.Time // When the present row of failures began.
	wait := t.config.FirstWait
	for len(part) > 0 {
		n, err := t.request(ctx, sum, offset, part)
		if err == nil {
			offset, part = offset+int64(n), part[n:]
			failing, wait = time.Time{}, t.config.FirstWait
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDenied) {
			return err
		}
		if failing.IsZero() {
			failing = time.Now()
		} else if row := time.Since(failing); row+wait > t.config.Patience {
			return fmt.Errorf("%w after %v: %w", ErrGaveUp, row.Round(time.Millisecond), err)
		}
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
		wait = min(2*wait, t.config.LongestWait)
	}
	return nil
}

// request asks once for the bytes of part and returns how many came.
func (t *transferral) request(ctx context.Context, sum blobstore.Sum, offset int64, part []byte) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case t.requests <- struct{}{}:
	}
	defer func() { <-t.requests }()
	ctx, cancel := context.WithTimeout(ctx, t.config.RequestTimeout)
	defer cancel()
	data, err := t.source.ReadChunk(ctx, t.attempt, sum, offset, len(part))
	if err != nil {
		return 0, err
	}
	if len(data) == 0 || len(data) > len(part) {
		return 0, fmt.Errorf("asked for 1 to %d bytes at %d, got %d: %w", len(part), offset, len(data), ErrBadReply)
	}
	return copy(part, data), nil
}
