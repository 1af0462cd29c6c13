package transfer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kith/internal/job"
	"kith/store/blobstore"
)

// A link is a Source that asks a server in the same process, as one peer.
type link struct {
	server *Server
	peer   job.SiteID
}

// ReadChunk implements Source.
func (l link) ReadChunk(ctx context.Context, a job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	data, _, err := l.server.ReadChunk(ctx, l.peer, a, sum, offset, limit)
	return data, err
}

// serving returns a server that lets one peer read one set of attempt.
func serving(t *testing.T, store *blobstore.Store, peer job.SiteID, set Set) *Server {
	t.Helper()
	s := NewServer(store, ServeConfig{Allowed: func(_ context.Context, p job.SiteID, a job.AttemptID) (Set, error) {
		if p != peer || a != attempt {
			return Set{}, ErrDenied
		}
		return set, nil
	}})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// resent returns a set as it arrives at the other site.
func resent(t *testing.T, set Set) Set {
	t.Helper()
	b, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestJourney takes the files of a job from its origin to its host and back.
func TestJourney(t *testing.T) {
	origin, host := openStore(t, blobstore.Config{}), openStore(t, blobstore.Config{})
	inputs := []Input{{Path: ".kith/script", Data: []byte("#!/bin/sh\ncat in/* > out/all\n"), Executable: true}}
	want := ""
	for i := range 40 {
		data := random(uint64(i), 15000*i)
		inputs = append(inputs, Input{Path: fmt.Sprintf("in/%02d", i), Data: data})
		want += string(data)
	}
	sent := mustPack(t, origin, inputs...)
	arrived := resent(t, sent)

	fetcher := NewFetcher(host, FetchConfig{})
	if err := fetcher.Fetch(background(), attempt, arrived, link{serving(t, origin, "host", sent), "host"}, nil); err != nil {
		t.Fatal(err)
	}
	l, dir := leave(t, "out/*")
	if err := (&Unpacker{Store: host}).Unpack(background(), arrived, dir); err != nil {
		t.Fatal(err)
	}
	all := ""
	for i := range 40 { // The job.
		data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("in/%02d", i)))
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	write(t, dir, "out/all", []byte(all))
	write(t, filepath.Dir(dir), "out", []byte("done\n"))

	left, err := (&Collector{Store: host}).Collect(background(), l)
	if err != nil || len(left.Notes) != 0 {
		t.Fatal(err, left.Notes)
	}
	back := resent(t, left.Set)
	if err := NewFetcher(origin, FetchConfig{}).Fetch(background(), attempt, back, link{serving(t, host, "origin", left.Set), "origin"}, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, origin, back), map[string]string{"stdout": "done\n", "out/all": want})
}

// TestDamagedChunkIsFetchedAgain damages a chunk at the host between fetching
// and unpacking.
func TestDamagedChunkIsFetchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	origin, host := openStore(t, blobstore.Config{}), openStore(t, blobstore.Config{Dir: dir})
	set := mustPack(t, origin, Input{Path: "f", Data: random(1, 10000)})
	source := link{serving(t, origin, "host", set), "host"}
	fetcher := NewFetcher(host, FetchConfig{})
	fetch := func() {
		t.Helper()
		if err := fetcher.Fetch(background(), attempt, set, source, nil); err != nil {
			t.Fatal(err)
		}
	}
	fetch()
	name := set.Files[0].Chunks[0].String()
	damaged := random(1, 10000)
	damaged[77] ^= 4
	write(t, dir, "chunks/"+name[:2]+"/"+name, damaged)
	unpacker := &Unpacker{Store: host}
	if err := unpacker.Unpack(background(), set, t.TempDir()); err == nil {
		t.Fatal("a damaged chunk was unpacked")
	}
	fetch()
	to := t.TempDir()
	if err := unpacker.Unpack(background(), set, to); err != nil {
		t.Fatal(err)
	}
	same(t, "files", contents(t, to), map[string]string{"f": string(random(1, 10000))})
}
