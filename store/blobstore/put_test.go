package blobstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
)

func TestPutAndGet(t *testing.T) {
	s := open(t, Config{})
	for name, size := range map[string]int{"one byte": 1, "small": 2048, "a block": 4096, "largest": MaxChunk} {
		t.Run(name, func(t *testing.T) {
			data := random(1, size)
			sum := mustPut(t, s, data)
			if sum != SumOf(data) {
				t.Errorf("Put named the chunk %s, want %s", sum, SumOf(data))
			}
			checkContent(t, s, sum, data)
			if !s.Has(sum) {
				t.Error("Has says no")
			}
		})
	}
	if got := s.Usage().Chunks; got != 4 {
		t.Errorf("Usage counts %d chunks, want 4", got)
	}
	if n := leftovers(t, s); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
}

func TestPutRefusesSizes(t *testing.T) {
	s := open(t, Config{MaxChunkBytes: 100})
	for name, data := range map[string][]byte{"nil": nil, "empty": {}, "too long": random(1, 101)} {
		if _, err := s.Put(data); !errors.Is(err, ErrChunkSize) {
			t.Errorf("%s: Put returned %v, want ErrChunkSize", name, err)
		}
	}
}

func TestPutSumVerifies(t *testing.T) {
	s := open(t, Config{})
	data := random(2, 1000)
	want := SumOf(data)
	data[999] ^= 1
	if err := s.PutSum(want, data); !errors.Is(err, ErrMismatch) {
		t.Errorf("PutSum of other bytes returned %v, want ErrMismatch", err)
	}
	if s.Has(want) || s.Usage().Chunks != 0 {
		t.Error("something was stored nevertheless")
	}
	data[999] ^= 1
	if err := s.PutSum(want, data); err != nil {
		t.Errorf("PutSum: %v", err)
	}
	checkContent(t, s, want, data)
}

func TestPutTwiceIsOneFile(t *testing.T) {
	s := open(t, Config{})
	data := random(3, 5000)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if _, err := s.Put(data); err != nil {
				t.Errorf("Put: %v", err)
			}
		})
	}
	group.Wait()
	if u := s.Usage(); u.Chunks != 1 || u.Bytes != 8192 {
		t.Errorf("usage %+v, want 1 chunk of 8192 bytes", u)
	}
	files, err := filepath.Glob(filepath.Join(s.config.Dir, chunksDir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want one", files, err)
	}
	if s.ledger.pending() != 0 || leftovers(t, s) != 0 {
		t.Errorf("%d bytes stay reserved, %d temporary files are left", s.ledger.pending(), leftovers(t, s))
	}
}

func TestPutReplacesAVanishedChunk(t *testing.T) {
	s := open(t, Config{})
	data := random(4, 100)
	sum := mustPut(t, s, data)
	if err := os.Remove(chunkFile(s, sum)); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, data)
	checkContent(t, s, sum, data)
	if err := os.Truncate(chunkFile(s, sum), 50); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, data)
	checkContent(t, s, sum, data)
}

// TestPutReaderCuts compares with the plain way to cut a slice.
func TestPutReaderCuts(t *testing.T) {
	const chunk = 64
	s := open(t, Config{MaxChunkBytes: chunk})
	for size := range 5*chunk + 2 {
		data := random(uint64(size), size)
		var want []Sum
		for piece := range slices.Chunk(data, chunk) {
			want = append(want, SumOf(piece))
		}
		got, err := s.PutReader(background(), slow(data), int64(size))
		if err != nil || got.Size != int64(size) || !slices.Equal(got.Chunks, want) {
			t.Fatalf("size %d: PutReader = %d bytes in %d chunks, %v; want %d chunks", size, got.Size, len(got.Chunks), err, len(want))
		}
		var back []byte
		for _, sum := range got.Chunks {
			piece, err := s.Get(sum)
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, piece...)
		}
		if !bytes.Equal(back, data) {
			t.Fatalf("size %d: other bytes came back", size)
		}
	}
}

func TestPutReaderFails(t *testing.T) {
	s := open(t, Config{MaxChunkBytes: 10})
	broken := errors.New("the wire is cut")
	cancelled, cancel := context.WithCancel(background())
	cancel()
	full := open(t, Config{MaxChunkBytes: 10, QuotaBytes: 3 * blockBytes})
	for name, c := range map[string]struct {
		store *Store
		ctx   context.Context
		r     io.Reader
		limit int64
		want  error
	}{
		"one too many":   {s, background(), bytes.NewReader(random(1, 31)), 30, ErrTooLong},
		"endless":        {s, background(), endless{}, 1000, ErrTooLong},
		"nothing fits":   {s, background(), bytes.NewReader(random(1, 1)), 0, ErrTooLong},
		"broken":         {s, background(), io.MultiReader(bytes.NewReader(random(1, 25)), iotest.ErrReader(broken)), math.MaxInt64, broken},
		"cancelled":      {s, cancelled, endless{}, math.MaxInt64, context.Canceled},
		"over the quota": {full, background(), bytes.NewReader(random(9, 1000)), math.MaxInt64, ErrQuota},
	} {
		t.Run(name, func(t *testing.T) {
			if o, err := c.store.PutReader(c.ctx, c.r, c.limit); !errors.Is(err, c.want) {
				t.Errorf("PutReader = %v, %v; want %v", o, err, c.want)
			}
			if n := leftovers(t, c.store); n != 0 {
				t.Errorf("%d temporary files are left", n)
			}
		})
	}
}

// endless is a reader without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestBatchCommits(t *testing.T) {
	s := open(t, Config{})
	first, second := s.NewBatch(), s.NewBatch()
	data := random(5, 10)
	sum, err := first.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	sh := &s.shards[sum[0]]
	if sh.synced == sh.named {
		t.Fatal("Put synced the folder, want Commit to do it")
	}
	if missing := second.Missing([]Sum{sum}); len(missing) != 0 {
		t.Fatalf("Missing = %v", missing)
	}
	if err := second.Commit(); err != nil {
		t.Fatal(err)
	}
	if sh.synced != sh.named {
		t.Error("a batch that found the chunk committed without syncing its folder")
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, Config{})
	sum := mustPut(t, s, []byte("x"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put([]byte("y")); !errors.Is(err, ErrClosed) {
		t.Errorf("Put returned %v, want ErrClosed", err)
	}
	if _, err := s.Get(sum); !errors.Is(err, ErrClosed) {
		t.Errorf("Get returned %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func FuzzParseSum(f *testing.F) {
	f.Add(SumOf(nil).String())
	f.Add("")
	f.Add("../../../../../../../../../../../../../../../../../../../etc/passwd")
	f.Fuzz(func(t *testing.T, text string) {
		sum, err := ParseSum(text)
		switch {
		case err != nil && !errors.Is(err, ErrBadSum):
			t.Errorf("ParseSum(%q) returned %v, want ErrBadSum", text, err)
		case err == nil && sum.String() != text:
			t.Errorf("ParseSum(%q) = %s: a chunk has two names", text, sum)
		}
	})
}
