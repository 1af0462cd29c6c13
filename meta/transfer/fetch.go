package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"kith/internal/job"
	"kith/store/blobstore"
)

// MaxPieceBytes is the most bytes that one request asks for or one reply carries.
const MaxPieceBytes = 256 << 10

// A Source is a site that has the chunks of an attempt we share with it.
type Source interface {
	// ReadChunk returns bytes of a chunk from offset on: at least one and at
	// most limit, which is 1 to MaxPieceBytes. The caller owns them. It returns
	// ErrNotFound or ErrDenied when asking again is of no use; after any other
	// error the caller asks again. It returns when ctx is done. It is called
	// from several goroutines.
	ReadChunk(ctx context.Context, attempt job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error)
}

// FetchConfig bounds what all fetches of a site take together.
type FetchConfig struct {
	// Requests is how many requests are in flight at a time, over all sources;
	// times 256 KiB it should cover bandwidth times round trip. Zero means 16.
	Requests int
	// BufferBytes is the memory for chunks that are not complete; at least
	// 4 MiB. Zero means 16 MiB.
	BufferBytes int64
	// RequestTimeout is how long to wait for one reply. Zero means 30 s.
	RequestTimeout time.Duration
	// FirstWait and LongestWait are the pauses before a request is repeated;
	// each is twice the one before. Zero means 50 ms and 5 s.
	FirstWait, LongestWait time.Duration
	// Patience is how long one piece may fail to come before the fetch gives
	// up. Until then its buffers are kept from other fetches. Zero means 2 min.
	Patience time.Duration
}

// withDefaults fills in what zero stands for.
func (c FetchConfig) withDefaults() FetchConfig {
	if c.Requests <= 0 {
		c.Requests = 16
	}
	if c.BufferBytes < ChunkBytes {
		c.BufferBytes = max(c.BufferBytes, 0)
		if c.BufferBytes == 0 {
			c.BufferBytes = 16 << 20
		}
		c.BufferBytes = max(c.BufferBytes, ChunkBytes)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.RequestTimeout, 30 * time.Second},
		{&c.FirstWait, 50 * time.Millisecond},
		{&c.LongestWait, 5 * time.Second},
		{&c.Patience, 2 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return c
}

// A Fetcher brings chunks from other sites into the blob store. One serves a
// whole site, so that its bounds hold over all jobs, and a chunk that many
// jobs want at the same time travels once. Its methods may be called from any
// goroutine.
type Fetcher struct {
	store    *blobstore.Store
	config   FetchConfig
	requests chan struct{}
	memory   *semaphore.Weighted

	mu      sync.Mutex
	flights map[blobstore.Sum]*flight
}

// A flight is a chunk on its way; others that want it wait for landed.
type flight struct {
	landed chan struct{}
	ok     bool // valid once landed is closed
}

// NewFetcher returns a fetcher that stores in store.
func NewFetcher(store *blobstore.Store, config FetchConfig) *Fetcher {
	config = config.withDefaults()
	return &Fetcher{
		store:    store,
		config:   config,
		requests: make(chan struct{}, config.Requests),
		memory:   semaphore.NewWeighted(config.BufferBytes / MaxPieceBytes),
		flights:  make(map[blobstore.Sum]*flight),
	}
}

// Progress is how far a fetch is, in bytes of the chunks that were missing
// when it began.
type Progress struct {
	Done, Total int64
}

// Fetch brings every chunk of set that the store lacks from source; when it
// returns nil all chunks of set are there and durable. progress, if not nil,
// is called after each chunk, by one goroutine at a time. set keeps the rules of sets, as [Decode]
// makes sure, or is of several that do.
//
// No sweep takes a chunk of set while the fetch is under way; the caller holds them
// before, if it needs them afterwards.
//
// What is complete stays in the store when a fetch fails or is cancelled, so
// that the next one goes on from there; within one fetch, pieces of a chunk
// are kept while a lost connection comes back. Errors: [ErrNotFound],
// [ErrDenied], [ErrBadReply] (wrong bytes three times), blobstore.ErrQuota,
// blobstore.ErrDiskFull, ctx's, or, after Patience, [ErrGaveUp] with the last
// one of source.
func (f *Fetcher) Fetch(ctx context.Context, attempt job.AttemptID, set Set, source Source, progress func(Progress)) error {
	t := &transferral{Fetcher: f, attempt: attempt, source: source, batch: f.store.NewBatch(), report: progress}
	defer t.batch.Close()
	missing := t.plan(set)
	if len(missing) > 0 {
		if err := f.store.Room(t.progress.Total); err != nil {
			return fmt.Errorf("fetch files of %s: %w", attempt, err)
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(f.config.Requests)
	for _, m := range missing {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error { return t.chunk(inner, m) })
	}
	err := g.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err := errors.Join(err, t.batch.Commit()); err != nil {
		return fmt.Errorf("fetch files of %s: %w", attempt, err)
	}
	return nil
}

// A transferral is one Fetch under way.
type transferral struct {
	*Fetcher
	attempt job.AttemptID
	source  Source
	batch   *blobstore.Batch

	reporting sync.Mutex // guards progress and calls of report
	progress  Progress
	report    func(Progress)
}

// A wanted is a chunk to fetch.
type wanted struct {
	sum  blobstore.Sum
	size int64
}

// plan returns the chunks of set that are missing, each once, in order.
func (t *transferral) plan(set Set) []wanted {
	sizes := make(map[blobstore.Sum]int64)
	for sum, size := range set.Chunks() {
		sizes[sum] = size
	}
	sums := t.batch.Missing(set.Sums())
	missing := make([]wanted, len(sums))
	for i, sum := range sums {
		missing[i] = wanted{sum, sizes[sum]}
		t.progress.Total += sizes[sum]
	}
	return missing
}

// advance reports n more bytes.
func (t *transferral) advance(n int64) {
	t.reporting.Lock()
	defer t.reporting.Unlock()
	t.progress.Done += n
	if t.report != nil {
		t.report(t.progress)
	}
}

// chunk brings one chunk, or waits until another fetch has brought it.
func (t *transferral) chunk(ctx context.Context, w wanted) error {
	for {
		other := t.join(w.sum)
		if other == nil {
			err := t.bring(ctx, w)
			t.land(w.sum, err == nil)
			if err == nil {
				t.advance(w.size)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-other.landed:
		}
		if other.ok && t.present(w.sum) {
			t.advance(w.size)
			return nil
		}
	}
}

// bring fetches one chunk unless another flight brought it since the plan was made.
func (t *transferral) bring(ctx context.Context, w wanted) error {
	if t.present(w.sum) {
		return nil
	}
	return t.assemble(ctx, w)
}

// present reports whether the store has a chunk by now. The batch takes it
// over then: the fetch that brought it may not have committed it yet.
func (t *transferral) present(sum blobstore.Sum) bool {
	return len(t.batch.Missing([]blobstore.Sum{sum})) == 0
}

// join returns the flight that brings a chunk already; nil means that the
// caller is the flight now, and has to land it.
func (f *Fetcher) join(sum blobstore.Sum) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, ok := f.flights[sum]; ok {
		return other
	}
	f.flights[sum] = &flight{landed: make(chan struct{})}
	return nil
}

// land ends a flight.
func (f *Fetcher) land(sum blobstore.Sum, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.flights[sum]
	delete(f.flights, sum)
	fl.ok = ok
	close(fl.landed)
}
