package blobstore

import (
	"errors"
	"slices"
	"sync"
)

// A Batch gathers puts that become durable together: each chunk's bytes are
// synced as it is put, the names of all of them once, by [Batch.Commit]. That
// spares one fsync of a folder for every chunk.
//
// Until Commit has returned nil a crash may lose chunks of the batch; they
// can be read at once. No sweep takes a chunk of the batch until it is closed, or
// what [Batch.Keep] returned. Its methods may be called from any goroutine.
type Batch struct {
	store   *Store
	hold    *Hold
	mu      sync.Mutex
	touched [shardCount]bool
	// uncopied are chunks that Commit has not had copied, see [Config].Copies.
	uncopied []Sum
}

// NewBatch begins a batch. The caller closes it.
func (s *Store) NewBatch() *Batch { return &Batch{store: s, hold: s.Hold()} }

// Close lets sweeps take what no record names. It does not commit.
func (b *Batch) Close() { b.hold.Close() }

// Keep returns the hold of the batch's chunks, which the caller closes instead of
// the batch.
func (b *Batch) Keep() *Hold { return b.hold }

// Missing is [Store.Missing]; those the store has become part of the batch,
// because another batch may have put them and not committed them yet.
func (b *Batch) Missing(sums []Sum) []Sum {
	b.hold.Add(sums...)
	missing := b.store.Missing(sums)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sum := range sums {
		b.touched[sum[0]] = true
	}
	if b.store.config.Copies != nil {
		away := make(map[Sum]bool, len(missing))
		for _, sum := range missing {
			away[sum] = true
		}
		b.uncopied = append(b.uncopied, slices.DeleteFunc(slices.Clone(sums), func(sum Sum) bool { return away[sum] })...)
	}
	return missing
}

// Commit returns once all that was put is durable. It may be called again
// after more puts, or after an error.
func (b *Batch) Commit() error {
	b.mu.Lock()
	touched, uncopied := b.touched, b.uncopied
	b.mu.Unlock()
	var errs []error
	for i, was := range touched {
		if was {
			errs = append(errs, b.store.syncShard(byte(i)))
		}
	}
	if err := errors.Join(errs...); err != nil || len(uncopied) == 0 {
		return err
	}
	if err := b.store.config.Copies.Keep(b.store, uncopied); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uncopied = b.uncopied[len(uncopied):]
	return nil
}

// note remembers that a chunk of the batch lies in the folder of sum.
func (b *Batch) note(sum Sum) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touched[sum[0]] = true
	if b.store.config.Copies != nil {
		b.uncopied = append(b.uncopied, sum)
	}
}

// syncShard makes all renames into a folder durable that happened before the
// call. Concurrent calls share one fsync.
func (s *Store) syncShard(b byte) error {
	sh := &s.shards[b]
	mine := sh.renames()
	sh.syncing.Lock()
	defer sh.syncing.Unlock()
	if sh.synced >= mine {
		return nil
	}
	covered := sh.renames()
	if err := s.syncDir(shardDir(b)); err != nil {
		return s.explain(0, err)
	}
	sh.synced = covered
	return nil
}

// renames returns how many chunks were named in the folder since Open.
func (sh *shard) renames() uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.named
}
