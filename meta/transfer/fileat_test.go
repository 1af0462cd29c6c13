package transfer

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"kith/store/blobstore"
)

// A file is read through the open chunks as it is, from any place and across chunks; a part
// of it that is gone is an error.
func TestFileAt(t *testing.T) {
	store := openStore(t, blobstore.Config{Dir: t.TempDir()})
	content := make([]byte, 2*ChunkBytes+1000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(rng.Uint32())
	}
	id, hold, err := Upload(t.Context(), store, bytes.NewReader(content), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	f, kept, err := (&Packer{Store: store}).Uploaded(id.String(), id.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	server := NewServer(store, ServeConfig{OpenChunks: 2})
	defer server.Close() //nolint:errcheck // it was only read
	at := server.FileAt(f)
	for range 200 {
		offset, n := rng.IntN(len(content)+10), rng.IntN(9000)
		if rng.IntN(5) == 0 {
			n = ChunkBytes + rng.IntN(ChunkBytes)
		}
		want := content[min(offset, len(content)):min(offset+n, len(content))]
		got := make([]byte, n)
		read, err := at.ReadAt(got, int64(offset))
		if !bytes.Equal(got[:read], want) || (read < n) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes at %d: %d bytes, %v", n, offset, read, err)
		}
	}
	if text, err := io.ReadAll(io.NewSectionReader(server.FileAt(File{Size: 3, Inline: []byte("abc")}), 0, 3)); string(text) != "abc" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	f.Chunks[1] = blobstore.SumOf([]byte("gone"))
	if _, err := at.ReadAt(make([]byte, 10), ChunkBytes-5); !errors.Is(err, ErrNotFound) {
		t.Errorf("a chunk that is gone: %v", err)
	}
}

// A file is read from its place in a container; a chunk of another length is none of its.
func TestFileAtInContainer(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	content := random(1, 5000)
	sum, err := store.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(store, ServeConfig{})
	defer server.Close() //nolint:errcheck // it was only read
	f := File{Path: "stdout", Size: 1000, Chunks: []blobstore.Sum{sum}, Container: 5000, Offset: 3000}
	got := make([]byte, 600)
	if n, err := server.FileAt(f).ReadAt(got, 300); n != 600 || err != nil || !bytes.Equal(got, content[3300:3900]) {
		t.Errorf("in the middle: %d bytes, %v", n, err)
	}
	if n, err := server.FileAt(f).ReadAt(got, 700); n != 300 || !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], content[3700:4000]) {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	f.Container++
	if _, err := server.FileAt(f).ReadAt(got, 0); !errors.Is(err, ErrBadSet) {
		t.Errorf("a container of another length: %v", err)
	}
}
