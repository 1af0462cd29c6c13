package boltstore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
)

// An image is the file of its instant. Commits that make the file many times larger wait for none.
func TestImageOfAFileThatGrows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, boltstore.FileName))
	s, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	commit := func(bytes int) {
		if err := s.Apply(store.SubmitJob{ID: s.NextID(), Payload: make([]byte, bytes), Request: job.Request{Processors: 1, Walltime: time.Hour}, Time: 1}); err != nil {
			t.Error(err)
		}
		if err := b.Seal(s).Commit(); err != nil {
			t.Error(err)
		}
	}
	commit(10)
	want := codec.Dump(s)
	image, err := b.Image()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 40 {
			commit(1 << 20)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("commits wait for an image")
	}
	var buf bytes.Buffer
	if n, err := image.WriteTo(&buf); err != nil || n != image.Size() || n != int64(buf.Len()) {
		t.Fatalf("%d bytes of %d, %v", n, image.Size(), err)
	}
	if err := image.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "image.db")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	settled, err := boltstore.Settle(path, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	got, err := settled.Load()
	if err != nil || !bytes.Equal(codec.Dump(got), want) {
		t.Errorf("%d jobs, %v", got.JobCount(), err)
	}
	for _, s := range []*boltstore.Store{settled, b} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
