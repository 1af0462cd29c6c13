package transfer

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"kith/store/blobstore"
)

// A Reader reads a file of a set from the blob store, in any order and from
// any goroutine. Each chunk is verified when it is first touched; the reader
// keeps one of them open.
type Reader struct {
	store *blobstore.Store
	file  File

	mu    sync.Mutex
	index int // of chunk
	chunk *blobstore.Chunk
}

// OpenFile returns a reader of f. The caller closes it.
func OpenFile(store *blobstore.Store, f File) *Reader {
	return &Reader{store: store, file: f}
}

// Size returns the length of the file.
func (r *Reader) Size() int64 { return r.file.Size }

// ReadAt reads as [io.ReaderAt] does. It returns blobstore.ErrNotFound when a
// chunk is missing, or was damaged and is missing now.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, fmt.Errorf("read %q at %d: %w", clip(r.file.Path), offset, ErrBadRange)
	}
	n := 0
	for n < len(p) && offset < r.file.Size {
		got, err := r.readPiece(p[n:], offset)
		n += got
		offset += int64(got)
		if err != nil {
			return n, fmt.Errorf("read %q: %w", clip(r.file.Path), err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readPiece reads from the one chunk, or the inline content, at offset, which
// is inside the file. Without error it reads at least a byte.
func (r *Reader) readPiece(p []byte, offset int64) (int, error) {
	if len(r.file.Inline) > 0 {
		return copy(p, r.file.Inline[offset:]), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, within, left := r.file.Place(offset)
	if err := r.open(i); err != nil {
		return 0, err
	}
	want := min(int64(len(p)), left)
	return r.chunk.ReadAt(p[:want], within)
}

// open makes the i-th chunk the open one. The caller holds r.mu.
func (r *Reader) open(i int) error {
	if r.chunk != nil && r.index == i {
		return nil
	}
	if err := r.closeLocked(); err != nil {
		return err
	}
	chunk, err := r.store.OpenChunk(r.file.Chunks[i])
	if err != nil {
		return err
	}
	if chunk.Size() != r.file.ChunkSize(i) {
		return errors.Join(fmt.Errorf("chunk %d has %d bytes: %w", i, chunk.Size(), ErrBadSet), chunk.Close())
	}
	r.index, r.chunk = i, chunk
	return nil
}

// Close releases what the reader holds. It may be used again.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closeLocked()
}

// closeLocked closes the open chunk. The caller holds r.mu.
func (r *Reader) closeLocked() error {
	if r.chunk == nil {
		return nil
	}
	err := r.chunk.Close()
	r.chunk = nil
	return err
}
