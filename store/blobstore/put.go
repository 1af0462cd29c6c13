package blobstore

import (
	"errors"
	"fmt"
	"os"
)

// Put stores a chunk of 1 to MaxChunkBytes bytes and returns its name. When it
// returns nil the chunk is durable. It does not keep data. Errors:
// [ErrChunkSize], [ErrQuota], [ErrDiskFull], [ErrClosed], or one of the file system.
func (s *Store) Put(data []byte) (Sum, error) {
	b := s.NewBatch()
	defer b.Close()
	sum, err := b.Put(data)
	if err != nil {
		return Sum{}, err
	}
	return sum, b.Commit()
}

// PutSum is [Store.Put] for bytes that came from elsewhere under a name: it
// returns [ErrMismatch] and stores nothing if data does not have the sum want.
func (s *Store) PutSum(want Sum, data []byte) error {
	b := s.NewBatch()
	defer b.Close()
	if err := b.PutSum(want, data); err != nil {
		return err
	}
	return b.Commit()
}

// Put is [Store.Put] without the promise that the chunk is durable, which
// [Batch.Commit] gives.
func (b *Batch) Put(data []byte) (Sum, error) {
	sum := SumOf(data)
	return sum, b.put(sum, data)
}

// PutSum is [Store.PutSum] without the promise that the chunk is durable,
// which [Batch.Commit] gives.
func (b *Batch) PutSum(want Sum, data []byte) error {
	if got := SumOf(data); got != want {
		return fmt.Errorf("chunk %s has sum %s: %w", want.Short(), got.Short(), ErrMismatch)
	}
	return b.put(want, data)
}

// put stores data under its sum.
func (b *Batch) put(sum Sum, data []byte) error {
	s := b.store
	if len(data) == 0 || len(data) > s.config.MaxChunkBytes {
		return fmt.Errorf("chunk of %d bytes, chunk size %d: %w", len(data), s.config.MaxChunkBytes, ErrChunkSize)
	}
	if s.closed.Load() {
		return fmt.Errorf("put chunk %s: %w", sum.Short(), ErrClosed)
	}
	b.hold.Add(sum)
	if s.renew(sum) {
		b.note(sum)
		return nil
	}
	size := int64(len(data))
	if err := s.reserve(size); err != nil {
		return err
	}
	temp, err := s.writeTemp(data)
	if err != nil {
		s.ledger.release(charge(size))
		return fmt.Errorf("put chunk %s: %w", sum.Short(), s.explain(size, err))
	}
	if err := s.adopt(temp, sum, size); err != nil {
		return fmt.Errorf("put chunk %s: %w", sum.Short(), s.explain(size, err))
	}
	b.note(sum)
	return nil
}

// writeTemp writes data to a new file and syncs it; on error nothing is left.
func (s *Store) writeTemp(data []byte) (string, error) {
	name := tempName(s.temps.Add(1))
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, s.root.Remove(name))
	}
	return name, nil
}

// adopt gives a written file its name and settles its reservation. If another
// put was faster the file is dropped: both are the same bytes.
func (s *Store) adopt(temp string, sum Sum, size int64) error {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e, ok := sh.chunks[sum]; ok {
		s.ledger.release(charge(size))
		e.touched = s.config.Now()
		sh.chunks[sum] = e
		return s.root.Remove(temp)
	}
	if err := s.root.Rename(temp, sum.path()); err != nil {
		s.ledger.release(charge(size))
		return errors.Join(err, s.root.Remove(temp))
	}
	sh.named++
	sh.chunks[sum] = entry{size: size, touched: s.config.Now()}
	s.ledger.add(size, charge(size))
	return nil
}

// explain turns an error of the file system into one of this package.
// needBytes is what was to be written.
func (s *Store) explain(needBytes int64, err error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return CheckFull(s.config.Dir, needBytes, err)
}
