package transfer

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"kith/store/blobstore"
)

func TestReader(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	for name, size := range map[string]int{"empty": 0, "inline": 100, "one chunk": 5000, "three chunks": 2*ChunkBytes + 5} {
		t.Run(name, func(t *testing.T) {
			data := random(1, size)
			set := mustPack(t, store, Input{Path: "f", Data: data})
			r := OpenFile(store, set.Files[0])
			if r.Size() != int64(size) {
				t.Errorf("Size = %d", r.Size())
			}
			rng := rand.New(rand.NewPCG(uint64(size), 0))
			for range 50 {
				offset, n := rng.IntN(size+1), rng.IntN(20000)
				got := make([]byte, n)
				read, err := r.ReadAt(got, int64(offset))
				want := data[offset:min(size, offset+n)]
				if !equal(got[:read], want) || (err == io.EOF) != (read < n) { //nolint:errorlint // ReaderAt promises io.EOF itself.
					t.Fatalf("ReadAt %d bytes at %d = %d, %v; want %d", n, offset, read, err, len(want))
				}
			}
			if size < 10000 {
				if err := iotest.TestReader(io.NewSectionReader(r, 0, int64(size)), data); err != nil {
					t.Error(err)
				}
			}
			if err := errors.Join(r.Close(), r.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	r := OpenFile(store, File{Path: "f", Size: 5, Chunks: []blobstore.Sum{sum(1)}})
	if _, err := r.ReadAt(make([]byte, 1), -1); !errors.Is(err, ErrBadRange) {
		t.Errorf("ReadAt(-1) returned %v", err)
	}
	if _, err := r.ReadAt(make([]byte, 1), 0); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("ReadAt of a missing chunk returned %v", err)
	}
	short, err := store.Put(bytes.Repeat([]byte("x"), 10))
	if err != nil {
		t.Fatal(err)
	}
	r = OpenFile(store, File{Path: "f", Size: 11, Chunks: []blobstore.Sum{short}})
	if _, err := r.ReadAt(make([]byte, 11), 0); !errors.Is(err, ErrBadSet) {
		t.Errorf("ReadAt of a chunk of another length returned %v", err)
	}
}
