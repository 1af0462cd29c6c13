package blobstore

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Get returns the bytes of a chunk, verified; the caller owns them. It
// returns [ErrNotFound], with [ErrCorrupt] if the chunk was there but damaged,
// [ErrClosed], or an error of the file system, which says nothing about the chunk.
func (s *Store) Get(sum Sum) ([]byte, error) { return s.GetInto(nil, sum) }

// GetInto is [Store.Get] that uses the space of buf if it is large enough.
// The result is buf's first bytes or a new slice.
func (s *Store) GetInto(buf []byte, sum Sum) ([]byte, error) {
	f, size, err := s.openChunk(sum)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // Only read from.
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if err := s.verify(f, sum, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// A Chunk is a chunk that was verified when it was opened, for reading it in
// pieces. It can still be read after a sweep has taken it. Its methods may be
// called from any goroutine.
type Chunk struct {
	file *os.File
	size int64
}

// OpenChunk verifies a chunk and opens it. The errors are those of
// [Store.Get]; the caller closes the chunk.
func (s *Store) OpenChunk(sum Sum) (*Chunk, error) {
	f, size, err := s.openChunk(sum)
	if err != nil {
		return nil, err
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	if int64(len(*buf)) < size { // Written with a larger chunk size.
		*buf = make([]byte, size)
	}
	if err := s.verify(f, sum, (*buf)[:size]); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Chunk{file: f, size: size}, nil
}

// Size returns the length in bytes.
func (c *Chunk) Size() int64 { return c.size }

// ReadAt reads as [io.ReaderAt] does.
func (c *Chunk) ReadAt(p []byte, offset int64) (int, error) {
	return io.NewSectionReader(c.file, 0, c.size).ReadAt(p, offset)
}

// Close releases the chunk.
func (c *Chunk) Close() error { return c.file.Close() }

// openChunk opens the file of a chunk and returns its length.
func (s *Store) openChunk(sum Sum) (*os.File, int64, error) {
	if s.closed.Load() {
		return nil, 0, fmt.Errorf("get chunk %s: %w", sum.Short(), ErrClosed)
	}
	if !s.Has(sum) {
		if s.config.Copies == nil {
			return nil, 0, fmt.Errorf("get chunk %s: %w", sum.Short(), ErrNotFound)
		}
		if err := s.bring(sum); err != nil {
			return nil, 0, fmt.Errorf("get chunk %s: %w", sum.Short(), err)
		}
	}
	f, err := s.read(sum.path())
	if errors.Is(err, os.ErrNotExist) {
		s.forget(sum, nil)
		return nil, 0, fmt.Errorf("get chunk %s: %w", sum.Short(), ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("get chunk %s: %w", sum.Short(), s.explain(0, err))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("get chunk %s: %w", sum.Short(), err), f.Close())
	}
	if !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > MaxChunk {
		return nil, 0, errors.Join(s.damaged(sum, f), f.Close())
	}
	return f, info.Size(), nil
}

// bring takes a chunk up that another machine has.
func (s *Store) bring(sum Sum) error {
	data, err := s.config.Copies.Bring(sum)
	if err != nil {
		return err
	}
	b := s.NewBatch()
	defer b.Close()
	return b.PutSum(sum, data)
}

// verify fills buf from f and checks it against sum. A chunk with another sum is
// removed. A read that failed is no damage: that the disk gives an error now does not say
// that it will not give the bytes later, and nothing brings back what was removed here.
func (s *Store) verify(f *os.File, sum Sum, buf []byte) error {
	switch _, err := f.ReadAt(buf, 0); {
	case err == nil && SumOf(buf) == sum:
		return nil
	case err == nil, errors.Is(err, io.EOF): // shorter than it was a moment ago
		return s.damaged(sum, f)
	default:
		return fmt.Errorf("get chunk %s: %w", sum.Short(), s.explain(0, err))
	}
}

// damaged removes a chunk whose file f is not what its name says.
func (s *Store) damaged(sum Sum, f *os.File) error {
	s.log.Error("damaged chunk removed", "chunk", sum.String())
	s.forget(sum, f)
	return fmt.Errorf("get chunk %s: %w", sum.Short(), errors.Join(ErrCorrupt, ErrNotFound))
}

// forget drops a chunk unless its file was replaced since f was opened. With
// a nil f it drops the chunk if there is no file.
func (s *Store) forget(sum Sum, f *os.File) {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if _, ok := sh.chunks[sum]; !ok {
		return
	}
	switch now, err := s.root.Lstat(sum.path()); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil, f == nil:
		return // what lies there now is not known, or is not what was looked at
	default:
		if then, err := f.Stat(); err != nil || !os.SameFile(then, now) {
			return
		}
	}
	s.dropLocked(sh, sum)
}
