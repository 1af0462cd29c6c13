package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/store/blobstore"
)

// served is a server with the store behind it and a count of what it asks.
type served struct {
	*Server
	store *blobstore.Store
	dir   string
	asked atomic.Int64
	set   atomic.Pointer[Set]
}

// serve returns a server that lets beta read a set of attempt.
func serve(t *testing.T, config ServeConfig, contents ...[]byte) (*served, Set) {
	t.Helper()
	s := &served{dir: filepath.Join(t.TempDir(), "blobs")}
	s.store = openStore(t, blobstore.Config{Dir: s.dir})
	source, set := newSource(contents...)
	for _, data := range source.chunks {
		if _, err := s.store.Put(data); err != nil {
			t.Fatal(err)
		}
	}
	s.set.Store(&set)
	config.Allowed = func(_ context.Context, peer job.SiteID, a job.AttemptID) (Set, error) {
		s.asked.Add(1)
		switch {
		case a != attempt:
			return Set{}, ErrNotFound
		case peer != "beta":
			return Set{}, ErrDenied
		}
		return *s.set.Load(), nil
	}
	s.Server = NewServer(s.store, config)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, set
}

func TestServePieces(t *testing.T) {
	data := random(1, 700000)
	s, set := serve(t, ServeConfig{}, data)
	chunk := set.Files[0].Chunks[0]
	for _, c := range []struct {
		offset int64
		limit  int
		want   int
		end    bool
	}{
		{0, 1000, 1000, false}, {0, 0, MaxPieceBytes, false}, {5, 1 << 30, MaxPieceBytes, false}, {0, -1, MaxPieceBytes, false},
		{600000, MaxPieceBytes, 100000, true}, {699999, 1, 1, true}, {700000, 10, 0, true}, {1 << 60, 10, 0, true},
	} {
		got, end, err := s.ReadChunk(background(), "beta", attempt, chunk, c.offset, c.limit)
		if err != nil || len(got) != c.want || end != c.end || len(got) > 0 && !equal(got, data[c.offset:c.offset+int64(c.want)]) {
			t.Errorf("at %d, limit %d: %d bytes, end %v, %v; want %d, %v", c.offset, c.limit, len(got), end, err, c.want, c.end)
		}
	}
	if s.asked.Load() != 1 {
		t.Errorf("membership was asked for %d times, want once", s.asked.Load())
	}
}

func TestServeRefuses(t *testing.T) {
	s, set := serve(t, ServeConfig{}, random(1, 5000), random(2, 5000))
	mine := set.Files[0].Chunks[0]
	other, err := s.store.Put([]byte("another attempt's"))
	if err != nil {
		t.Fatal(err)
	}
	gone := set.Files[1].Chunks[0]
	if err := os.Remove(filepath.Join(s.dir, "chunks", gone.String()[:2], gone.String())); err != nil {
		t.Fatal(err)
	}
	foreign := attempt
	foreign.Number = 2
	for name, c := range map[string]struct {
		peer    job.SiteID
		attempt job.AttemptID
		sum     blobstore.Sum
		offset  int64
		want    error
	}{
		"another site":          {"gamma", attempt, mine, 0, ErrDenied},
		"another attempt":       {"beta", foreign, mine, 0, ErrNotFound},
		"another job's chunk":   {"beta", attempt, other, 0, ErrDenied},
		"a chunk we never had":  {"beta", attempt, sum(1), 0, ErrDenied},
		"a chunk that is gone":  {"beta", attempt, gone, 0, ErrNotFound},
		"before the beginning":  {"beta", attempt, mine, -1, ErrBadRange},
		"far before everything": {"beta", attempt, mine, -1 << 63, ErrBadRange},
	} {
		if data, _, err := s.ReadChunk(background(), c.peer, c.attempt, c.sum, c.offset, 10); !errors.Is(err, c.want) || data != nil {
			t.Errorf("%s: %d bytes, %v; want %v", name, len(data), err, c.want)
		}
	}
}

func TestServeBusy(t *testing.T) {
	release := make(chan struct{})
	store := openStore(t, blobstore.Config{})
	s := NewServer(store, ServeConfig{PeerRequests: 2, Allowed: func(ctx context.Context, _ job.SiteID, _ job.AttemptID) (Set, error) {
		select {
		case <-release:
			return Set{}, nil
		case <-ctx.Done():
			return Set{}, ctx.Err()
		}
	}})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, _, err := s.ReadChunk(background(), "beta", attempt, sum(1), 0, 1); !errors.Is(err, ErrDenied) {
				t.Errorf("ReadChunk returned %v, want ErrDenied", err)
			}
		})
	}
	for busy := 0; busy < 2; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		busy = s.busy["beta"]
		s.mu.Unlock()
	}
	soon, end := context.WithTimeout(background(), time.Second) // one that is taken would wait as the two do
	defer end()
	if _, _, err := s.ReadChunk(soon, "beta", attempt, sum(1), 0, 1); !errors.Is(err, ErrBusy) {
		t.Errorf("the third request returned %v, want ErrBusy", err)
	}
	cancelled, cancel := context.WithCancel(background())
	cancel()
	if _, _, err := s.ReadChunk(cancelled, "gamma", attempt, sum(1), 0, 1); errors.Is(err, ErrBusy) {
		t.Error("one peer's requests make another one wait")
	}
	close(release)
	group.Wait()
	if len(s.busy) != 0 {
		t.Errorf("busy %v after all requests", s.busy)
	}
}

func TestServeMembership(t *testing.T) {
	s, set := serve(t, ServeConfig{}, random(1, 5000), random(2, 5000))
	first, second := set.Files[0].Chunks[0], set.Files[1].Chunks[0]
	small := Set{Files: set.Files[:1]}
	s.set.Store(&small)
	read := func(peer job.SiteID, sum blobstore.Sum) error {
		_, _, err := s.ReadChunk(background(), peer, attempt, sum, 0, 1)
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		step := func(what string, err, want error, asked int64) {
			t.Helper()
			if !errors.Is(err, want) || s.asked.Load() != asked {
				t.Errorf("%s: %v after asking %d times; want %v after %d", what, err, s.asked.Load(), want, asked)
			}
		}
		step("first", read("beta", first), nil, 1)
		step("not yet a member", read("beta", second), ErrDenied, 1)
		s.set.Store(&set)
		step("at once", read("beta", second), ErrDenied, 1)
		time.Sleep(2 * time.Second)
		step("2 s later", read("beta", second), nil, 2)
		time.Sleep(29 * time.Second)
		step("kept", read("beta", first), nil, 2)
		time.Sleep(2 * time.Second)
		step("too old", read("beta", first), nil, 3)
		s.Forget(attempt)
		step("forgotten", read("beta", first), nil, 4)
		step("refused", read("gamma", first), ErrDenied, 5)
		step("refusals are not kept", read("gamma", first), ErrDenied, 6)
	})
}

// TestServeMembershipIsShared asks for many pieces before the first answer.
func TestServeMembershipIsShared(t *testing.T) {
	asked := 0
	synctest.Test(t, func(t *testing.T) {
		m := newMemberships(func(ctx context.Context, _ job.SiteID, _ job.AttemptID) (Set, error) {
			asked++
			pause.For(ctx, time.Second)
			return Set{Files: []File{{Size: 1, Chunks: []blobstore.Sum{sum(1)}}}}, ctx.Err()
		}, 10, time.Minute)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := m.has(impatient, "beta", attempt, sum(1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient one got %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() {
				if ok, err := m.has(t.Context(), "beta", attempt, sum(1)); !ok || err != nil {
					t.Errorf("has = %v, %v", ok, err)
				}
			})
		}
		group.Wait()
	})
	if asked != 2 {
		t.Errorf("asked %d times, want 2: once by the one who went away, once for the others", asked)
	}
}

func TestServeMembershipsAreBounded(t *testing.T) {
	m := newMemberships(func(context.Context, job.SiteID, job.AttemptID) (Set, error) { return Set{}, nil }, 10, time.Minute)
	for i := range uint32(100) {
		a := attempt
		a.Number = i + 1
		if ok, err := m.has(background(), "beta", a, sum(1)); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := m.entries.order.Len(); n != 10 || len(m.entries.entries) != n {
		t.Errorf("%d answers are kept, want 10", n)
	}
}

func TestOpenChunksAreBounded(t *testing.T) {
	var contents [][]byte
	for i := range 20 {
		contents = append(contents, random(uint64(i), 5000))
	}
	s, set := serve(t, ServeConfig{OpenChunks: 3, PeerRequests: 100}, contents...)
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			data, _, err := s.ReadChunk(background(), "beta", attempt, set.Files[i%20].Chunks[0], 100, 1000)
			if errors.Is(err, ErrBusy) {
				return
			}
			if err != nil || !equal(data, contents[i%20][100:1100]) {
				t.Errorf("chunk %d: %d bytes, %v", i%20, len(data), err)
			}
		})
	}
	group.Wait()
	if n := s.chunks.entries.order.Len(); n > 3 {
		t.Errorf("%d chunks are open, want at most 3", n)
	}
}
