package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/store/blobstore"
)

// A fakeSource serves chunks from memory and misbehaves as told.
type fakeSource struct {
	chunks map[blobstore.Sum][]byte
	delay  time.Duration
	// fault is called with the number of the request, from 1; what it returns
	// goes out instead of the chunk.
	fault func(n int, sum blobstore.Sum) ([]byte, error)

	mu       sync.Mutex
	requests int
	inFlight int
	most     int
	asked    map[string]int // pieces, "sum@offset"
}

// newSource returns a source of contents and the set that describes them.
func newSource(contents ...[]byte) (*fakeSource, Set) {
	s := &fakeSource{chunks: make(map[blobstore.Sum][]byte), asked: make(map[string]int)}
	var set Set
	for i, data := range contents {
		f := File{Path: fmt.Sprintf("f%04d", i), Size: int64(len(data))}
		for begin := 0; begin < len(data); begin += ChunkBytes {
			chunk := data[begin:min(begin+ChunkBytes, len(data))]
			sum := blobstore.SumOf(chunk)
			s.chunks[sum] = chunk
			f.Chunks = append(f.Chunks, sum)
		}
		set.Files = append(set.Files, f)
	}
	return s, set
}

// ReadChunk implements Source.
func (s *fakeSource) ReadChunk(ctx context.Context, a job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	s.mu.Lock()
	s.requests++
	n := s.requests
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.asked[fmt.Sprintf("%s@%d", sum.Short(), offset)]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inFlight--
		s.mu.Unlock()
	}()
	if s.delay > 0 {
		if !pause.For(ctx, s.delay) {
			return nil, ctx.Err()
		}
	}
	if a != attempt || limit < 1 || limit > MaxPieceBytes {
		return nil, fmt.Errorf("attempt %v, limit %d: %w", a, limit, ErrDenied)
	}
	if s.fault != nil {
		if data, err := s.fault(n, sum); data != nil || err != nil {
			return data, err
		}
	}
	chunk, ok := s.chunks[sum]
	if !ok {
		return nil, ErrNotFound
	}
	return chunk[offset:min(offset+int64(limit), int64(len(chunk)))], nil
}

// check fails the test unless the store has all of the source.
func (s *fakeSource) check(t *testing.T, store *blobstore.Store) {
	t.Helper()
	for sum, data := range s.chunks {
		if got, err := store.Get(sum); err != nil || !equal(got, data) {
			t.Errorf("chunk %s: %d bytes, %v", sum.Short(), len(got), err)
		}
	}
}

func TestFetch(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	source, set := newSource(random(1, 2*ChunkBytes+700000), random(2, 3000), random(3, ChunkBytes), random(2, 3000))
	if _, err := store.Put(source.chunks[set.Files[2].Chunks[0]]); err != nil {
		t.Fatal(err)
	}
	var steps []Progress
	f := NewFetcher(store, FetchConfig{Requests: 5, BufferBytes: 1})
	if err := f.Fetch(background(), attempt, set, source, func(p Progress) { steps = append(steps, p) }); err != nil {
		t.Fatal(err)
	}
	source.check(t, store)
	total := int64(2*ChunkBytes + 700000 + 3000)
	if last := steps[len(steps)-1]; len(steps) != 4 || last != (Progress{total, total}) {
		t.Errorf("progress %v, want 4 steps to %d", steps, total)
	}
	if source.most > 5 {
		t.Errorf("%d requests were in flight, want at most 5", source.most)
	}
	if want := 16 + 16 + 3 + 1; source.requests != want {
		t.Errorf("%d requests, want %d", source.requests, want)
	}
	if err := f.Fetch(background(), attempt, set, source, nil); err != nil || source.requests != 36 {
		t.Errorf("the second fetch made %d requests, %v", source.requests-36, err)
	}
}

// TestFetchFillsThePipe fetches small chunks over a long line: many requests
// have to be in flight at once.
func TestFetchFillsThePipe(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	var contents [][]byte
	for i := range 160 {
		contents = append(contents, random(uint64(i), 100+i))
	}
	source, set := newSource(contents...)
	source.delay = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := NewFetcher(store, FetchConfig{}).Fetch(t.Context(), attempt, set, source, nil); err != nil {
			t.Fatal(err)
		}
		if spent := time.Since(begin); spent != 500*time.Millisecond || source.most != 16 {
			t.Errorf("160 chunks over 50 ms took %v with %d in flight, want 500ms with 16", spent, source.most)
		}
	})
	source.check(t, store)
}

func TestFetchRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(n int, sum blobstore.Sum) ([]byte, error)
		takes time.Duration
	}{
		"busy":        {failFirst(3, ErrBusy), 350 * time.Millisecond},
		"unreachable": {failFirst(1, fmt.Errorf("dial: %w", ErrUnavailable)), 50 * time.Millisecond},
		"unknown":     {failFirst(2, errors.New("broken pipe")), 150 * time.Millisecond},
		"timed out":   {failFirst(1, context.DeadlineExceeded), 50 * time.Millisecond},
		"too long":    {sendFirst(make([]byte, MaxPieceBytes+1)), 50 * time.Millisecond},
		"empty":       {sendFirst([]byte{}), 50 * time.Millisecond},
		"wrong bytes": {sendFirst([]byte("wrong")), 0},
		"long outage": {failFirst(20, ErrUnavailable), 71350 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t, blobstore.Config{})
			source, set := newSource(random(1, 3000))
			source.fault = c.fault
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				if err := NewFetcher(store, FetchConfig{}).Fetch(t.Context(), attempt, set, source, nil); err != nil {
					t.Fatal(err)
				}
				if spent := time.Since(begin); spent != c.takes {
					t.Errorf("it took %v, want %v", spent, c.takes)
				}
			})
			source.check(t, store)
		})
	}
}

// failFirst fails the first requests.
func failFirst(requests int, err error) func(int, blobstore.Sum) ([]byte, error) {
	return func(n int, _ blobstore.Sum) ([]byte, error) {
		if n <= requests {
			return nil, err
		}
		return nil, nil
	}
}

// sendFirst answers the first request with other bytes.
func sendFirst(data []byte) func(int, blobstore.Sum) ([]byte, error) {
	return func(n int, _ blobstore.Sum) ([]byte, error) {
		if n == 1 {
			return data, nil
		}
		return nil, nil
	}
}

func TestFetchFails(t *testing.T) {
	wrong := func(_ int, _ blobstore.Sum) ([]byte, error) { return []byte("wrong"), nil }
	always := func(err error) func(int, blobstore.Sum) ([]byte, error) {
		return func(int, blobstore.Sum) ([]byte, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		store    blobstore.Config
		fault    func(int, blobstore.Sum) ([]byte, error)
		want     error
		requests int
	}{
		"not found":      {blobstore.Config{}, always(ErrNotFound), ErrNotFound, 1},
		"denied":         {blobstore.Config{}, always(fmt.Errorf("peer: %w", ErrDenied)), ErrDenied, 1},
		"wrong bytes":    {blobstore.Config{}, wrong, ErrBadReply, 3 * 600},
		"too many bytes": {blobstore.Config{}, func(int, blobstore.Sum) ([]byte, error) { return make([]byte, 3001), nil }, ErrGaveUp, 30},
		"always busy":    {blobstore.Config{}, always(ErrBusy), ErrBusy, 30},
		"over quota":     {blobstore.Config{QuotaBytes: 1}, nil, blobstore.ErrQuota, 0},
		"below a limit":  {blobstore.Config{LowWaterBytes: 1 << 60}, nil, blobstore.ErrDiskFull, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t, c.store)
			source, set := newSource(random(1, 3000))
			source.fault = c.fault
			synctest.Test(t, func(t *testing.T) {
				err := NewFetcher(store, FetchConfig{}).Fetch(t.Context(), attempt, set, source, nil)
				if !errors.Is(err, c.want) || source.requests != c.requests {
					t.Errorf("Fetch returned %v after %d requests, want %v after %d", err, source.requests, c.want, c.requests)
				}
			})
		})
	}
}

// TestFetchTimesOut asks a source that never answers.
func TestFetchTimesOut(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	source, set := newSource(random(1, 3000))
	source.delay = time.Hour
	synctest.Test(t, func(t *testing.T) {
		err := NewFetcher(store, FetchConfig{}).Fetch(t.Context(), attempt, set, source, nil)
		if !errors.Is(err, context.DeadlineExceeded) || source.requests != 5 {
			t.Errorf("Fetch returned %v after %d requests", err, source.requests)
		}
	})
}

// TestFetchGoesOn cancels a fetch and checks that the next one asks only for
// what is missing.
func TestFetchGoesOn(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	source, set := newSource(random(1, 8*ChunkBytes))
	ctx, cancel := context.WithCancel(background())
	f := NewFetcher(store, FetchConfig{BufferBytes: ChunkBytes})
	err := f.Fetch(ctx, attempt, set, source, func(p Progress) {
		if p.Done >= 3*ChunkBytes {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Fetch returned %v, want Canceled", err)
	}
	missing := store.Missing(set.Sums())
	if len(missing) > 5 || len(missing) == 0 {
		t.Fatalf("%d chunks are missing, want 1 to 5", len(missing))
	}
	source.requests = 0
	if err := f.Fetch(background(), attempt, set, source, nil); err != nil {
		t.Fatal(err)
	}
	if source.requests != len(missing)*16 {
		t.Errorf("%d requests for %d missing chunks", source.requests, len(missing))
	}
	source.check(t, store)
}

// TestFetchKeepsPieces loses the line in the middle of a chunk: what came is
// not asked for again.
func TestFetchKeepsPieces(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	source, set := newSource(random(1, ChunkBytes))
	source.fault = func(n int, _ blobstore.Sum) ([]byte, error) {
		if n > 8 && n < 40 {
			return nil, ErrUnavailable
		}
		return nil, nil
	}
	synctest.Test(t, func(t *testing.T) {
		if err := NewFetcher(store, FetchConfig{Requests: 1}).Fetch(t.Context(), attempt, set, source, nil); err != nil {
			t.Fatal(err)
		}
	})
	source.check(t, store)
	once := 0
	for _, n := range source.asked {
		if n == 1 {
			once++
		}
	}
	if len(source.asked) != 16 || once != 8 {
		t.Errorf("%d pieces were asked for, %d of them once; want 16 and 8", len(source.asked), once)
	}
}

// TestFetchTogether lets many jobs want the same chunks at once.
func TestFetchTogether(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	source, set := newSource(random(1, ChunkBytes+1000), random(2, 5000))
	source.delay = time.Millisecond
	f := NewFetcher(store, FetchConfig{})
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			last := Progress{}
			if err := f.Fetch(background(), attempt, set, source, func(p Progress) { last = p }); err != nil {
				t.Errorf("Fetch: %v", err)
			}
			if last.Done != last.Total {
				t.Errorf("the last progress is %v", last)
			}
		})
	}
	group.Wait()
	source.check(t, store)
	if source.requests != 18 {
		t.Errorf("%d requests, want 18: each piece once", source.requests)
	}
	if len(f.flights) != 0 {
		t.Errorf("%d chunks are still on their way", len(f.flights))
	}
}

// TestFetchTakesOver fails the fetch that brings a chunk: another one that
// waits for it asks its own source.
func TestFetchTakesOver(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	bad, set := newSource(random(1, 3000))
	good, _ := newSource(random(1, 3000))
	bad.delay, bad.fault = time.Second, failFirst(1, ErrNotFound)
	synctest.Test(t, func(t *testing.T) {
		f := NewFetcher(store, FetchConfig{})
		var group sync.WaitGroup
		group.Go(func() {
			if err := f.Fetch(t.Context(), attempt, set, bad, nil); !errors.Is(err, ErrNotFound) {
				t.Errorf("the first fetch returned %v, want ErrNotFound", err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if err := f.Fetch(t.Context(), attempt, set, good, nil); err != nil {
				t.Errorf("the second fetch returned %v", err)
			}
		})
		group.Wait()
	})
	good.check(t, store)
}
