package blobstore

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/pathkind"
)

// Names inside the folder.
const (
	formatFile = "format"
	lockFile   = "lock"
	tempDir    = "tmp"
	chunksDir  = "chunks"
)

// shardCount is how many folders the chunks are spread over.
const shardCount = 256

// A Store is an open folder of chunks. Its methods may be called from any
// goroutine.
type Store struct {
	config  Config
	log     *slog.Logger
	root    *os.Root
	lock    *os.File
	ledger  ledger
	shards  [shardCount]shard
	temps   atomic.Uint64
	buffers sync.Pool // *[]byte of MaxChunkBytes
	sweep   sync.Mutex
	closed  atomic.Bool

	released   atomic.Uint64 // holds that were closed
	lingering  sync.Mutex    // guards the next two
	lingers    []linger
	lingerRest int // how many were left when they were looked through last
}

// A shard is one folder of chunks with its part of the index.
type shard struct {
	// mu guards the fields below and makes a change of the folder and of the
	// index one step.
	mu     sync.Mutex
	chunks map[Sum]entry
	// held counts the holds of each chunk, there or not.
	held map[Sum]int
	// named counts renames into the folder.
	named uint64

	// syncing is held during an fsync of the folder and guards synced, the
	// number of renames that are known to be on disk. A caller that waits
	// for it mostly finds its own work done.
	syncing sync.Mutex
	synced  uint64
}

// An entry is what the index knows of a chunk.
type entry struct {
	size int64
	// touched is when it was last put or found by Missing; the grace period
	// of a sweep counts from here.
	touched time.Time
}

// Open opens the store in config.Dir, makes it if the folder is empty or
// missing, removes what a crash left half-written and counts what is there.
// It returns [ErrBadConfig], [ErrLocked], [ErrFormat], [ErrForeign] or an
// error of the file system. The caller closes the store.
func Open(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("open file store: %w", err)
	}
	s := &Store{config: config.withDefaults()}
	s.log = s.config.Log
	s.buffers.New = func() any {
		b := make([]byte, s.config.MaxChunkBytes)
		return &b
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open file store %s: %w", config.Dir, errors.Join(err, s.Close()))
	}
	return s, nil
}

// open does the work of Open; what it opened is closed by Close.
func (s *Store) open() error {
	if err := pathkind.Folder(s.config.Dir); err != nil {
		return err
	}
	if err := os.Mkdir(s.config.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(s.config.Dir)
	if err != nil {
		return err
	}
	s.root = root
	for _, step := range []func() error{s.refuseForeign, s.takeLock, s.checkFormat, s.makeLayout, s.clearTemp, s.scan} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the folder. Calls under way may fail with [ErrClosed];
// whatever was acknowledged is on disk. Closing twice is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	var errs []error
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	return errors.Join(errs...)
}

// MaxChunkBytes returns where the store cuts files.
func (s *Store) MaxChunkBytes() int { return s.config.MaxChunkBytes }

// Has reports whether the store has the chunk. It promises nothing for later;
// see [Store.Missing].
func (s *Store) Has(sum Sum) bool {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	_, ok := sh.chunks[sum]
	return ok
}

// Missing returns those of sums that the store does not have, in the order
// given, each once. Those it has are kept by sweeps for another grace period,
// as if they had been put now, so that the caller can name them in a record.
func (s *Store) Missing(sums []Sum) []Sum {
	var missing []Sum
	seen := make(map[Sum]struct{}, len(sums))
	for _, sum := range sums {
		if _, again := seen[sum]; again {
			continue
		}
		seen[sum] = struct{}{}
		if !s.renew(sum) {
			missing = append(missing, sum)
		}
	}
	return missing
}

// touchEvery is how far the time of a chunk's file may lag behind the index:
// it matters only to the first sweep after a restart.
const touchEvery = time.Minute

// renew marks a chunk as put now. It reports false if the store does not have
// it; a chunk that vanished behind the store's back is dropped from the index.
func (s *Store) renew(sum Sum) bool {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, ok := sh.chunks[sum]
	if !ok {
		return false
	}
	info, err := s.root.Lstat(sum.path())
	gone := errors.Is(err, os.ErrNotExist)
	if gone || err == nil && (!info.Mode().IsRegular() || info.Size() != e.size) {
		s.dropLocked(sh, sum)
		return false
	}
	sh.chunks[sum] = s.touch(sum, e, s.config.Now())
	return true
}

// dropLocked takes a bad chunk out of the index and its file out of the
// folder. If the file cannot be removed the next put replaces it. The caller
// holds sh.mu.
func (s *Store) dropLocked(sh *shard, sum Sum) {
	e := sh.chunks[sum]
	if err := s.root.Remove(sum.path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("chunk not removed", "chunk", sum.Short(), "error", err)
	}
	delete(sh.chunks, sum)
	s.ledger.remove(e.size)
}

// Info is what is known of a chunk without reading it.
type Info struct {
	// Size is its length in bytes.
	Size int64
	// Age is how long ago it was last put, found by [Store.Missing] or let go by a hold.
	Age time.Duration
}

// All yields the chunks that are there, in no order. It may be slow: other calls go on
// meanwhile, and what they change may be seen or not.
func (s *Store) All() iter.Seq2[Sum, Info] {
	return func(yield func(Sum, Info) bool) {
		for i := range s.shards {
			sh := &s.shards[i]
			sh.mu.Lock()
			chunks := maps.Clone(sh.chunks)
			sh.mu.Unlock()
			for sum, e := range chunks {
				if !yield(sum, Info{Size: e.size, Age: s.config.Now().Sub(e.touched)}) {
					return
				}
			}
		}
	}
}

// Backdate has a chunk count, after a restart, as put so long before now. Until then
// nothing changes.
func (s *Store) Backdate(sum Sum, age time.Duration) error {
	sh := &s.shards[sum[0]]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if _, ok := sh.chunks[sum]; !ok {
		return nil
	}
	then := s.config.Now().Add(-age)
	return s.root.Chtimes(sum.path(), then, then)
}
