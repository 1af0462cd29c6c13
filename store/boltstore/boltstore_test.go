package boltstore_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
	"kith/store/storetest"
)

func open(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	b, err := boltstore.Open(path, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t *testing.T, path string) []byte {
	t.Helper()
	b := open(t, path)
	defer b.Close() //nolint:errcheck // it was only read
	s, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	return codec.Dump(s)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), boltstore.FileName)
		return func(t *testing.T) store.Backend { return open(t, path) }
	})
}

// written makes one commit to the file at path.
func written(t *testing.T, rng *rand.Rand, path string) {
	b := open(t, path)
	s, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	for range 40 + rng.IntN(80) {
		s.Apply(storetest.Walk(rng, s)) //nolint:errcheck // a walk takes wrong steps too
	}
	if err := b.Seal(s).Commit(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// A commit that is interrupted has written some of its pages but not its
// header, or half of the header. The file must hold the state before it.
func TestTornCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	written(t, rand.New(rand.NewPCG(0, 1)), path)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		before := read(t, path)
		want := load(t, path)
		written(t, rng, path)
		after := read(t, path)
		if bytes.Equal(load(t, path), want) {
			continue // the walk changed nothing
		}
		torn := tear(rng, before, after)
		tornPath := filepath.Join(dir, "torn.db")
		if err := os.WriteFile(tornPath, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := load(t, tornPath); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: after a torn commit the state is not the acknowledged one", seed)
		}
	}
}

// tear writes a random part of the sectors that differ into before, but of the
// two headers at most the beginning of the new one.
func tear(rng *rand.Rand, before, after []byte) []byte {
	const page = 4096
	torn := make([]byte, max(len(before), len(after)))
	copy(torn, before)
	const sector = 512 // what a disk writes whole
	for at := 2 * page; at < len(after); at += sector {
		if rng.IntN(2) == 0 {
			copy(torn[at:at+sector], after[at:at+sector])
		}
	}
	if rng.IntN(2) == 0 { // half of the new header: its checksum does not match
		at := 0
		if bytes.Equal(before[:page], after[:page]) {
			at = page
		}
		copy(torn[at+16+24:at+16+60], after[at+16+24:at+16+60])
	}
	return torn
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file that lost its end either still has all that is in use, or is refused.
func TestTailCutOff(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	rng := rand.New(rand.NewPCG(0, 0))
	for range 5 {
		written(t, rng, path)
	}
	whole, want := read(t, path), load(t, path)
	refused, opened := 0, 0
	for i := range 60 {
		size := 1 + rng.IntN(len(whole)-1)
		if i%3 == 0 {
			size = len(whole) - 1 - rng.IntN(4096)
		}
		cut := filepath.Join(dir, "cut.db")
		if err := os.WriteFile(cut, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := boltstore.Open(cut, "alpha")
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), cut) {
				t.Errorf("cut to %d of %d bytes: %v; want ErrCorrupt with the file's name", size, len(whole), err)
			}
			refused++
			continue
		}
		s, err := b.Load()
		b.Close() //nolint:errcheck // it was only read
		if err != nil {
			t.Errorf("cut to %d of %d bytes: opened, but %v", size, len(whole), err)
		} else if !bytes.Equal(codec.Dump(s), want) {
			t.Errorf("cut to %d of %d bytes: opened with another state", size, len(whole))
		}
		opened++
	}
	if refused == 0 {
		t.Error("no cut was refused")
	}
	t.Logf("%d refused, %d opened whole", refused, opened)
}

// Flipped bits in records are found; none leads to a wrong state or a crash.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	rng := rand.New(rand.NewPCG(3, 0))
	for range 3 {
		written(t, rng, path)
	}
	whole, want := read(t, path), load(t, path)
	found := 0
	for range 150 {
		damaged := bytes.Clone(whole)
		for range 1 + rng.IntN(3) {
			damaged[2*4096+rng.IntN(len(damaged)-2*4096)] ^= byte(1 + rng.IntN(255))
		}
		if got, err := loadDamaged(filepath.Join(dir, "damaged.db"), damaged); err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("damage: %v; want ErrCorrupt", err)
			}
			found++
		} else if !bytes.Equal(got, want) {
			// Keys and page headers carry no checksum of their own. What must
			// not happen is a record whose content was changed.
			t.Logf("damage outside of records went unnoticed")
		}
	}
	if found == 0 {
		t.Error("no damage was found")
	}
}

// A table whose name is damaged is missed, and does not make kithd crash.
func TestDamagedTableName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	written(t, rand.New(rand.NewPCG(3, 0)), path)
	whole := read(t, path)
	for _, name := range append([]string{"meta"}, tables()...) {
		damaged := bytes.ReplaceAll(whole, []byte(name), append([]byte{name[0] ^ 1}, name[1:]...))
		if bytes.Equal(damaged, whole) {
			t.Errorf("%s is nowhere in the file", name)
		}
		if _, err := loadDamaged(filepath.Join(dir, "damaged.db"), damaged); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("without %s: %v, want ErrCorrupt", name, err)
		}
	}
}

func tables() (names []string) {
	for _, t := range codec.Tables() {
		names = append(names, string(t))
	}
	return names
}

func loadDamaged(path string, content []byte) (dump []byte, err error) {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, err
	}
	b, err := boltstore.Open(path, "alpha")
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // it was only read
	s, err := b.Load()
	if err != nil {
		return nil, err
	}
	return codec.Dump(s), nil
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, boltstore.FileName)
	b := open(t, path)
	if _, err := boltstore.Open(path, "alpha"); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a file in use: %v, want ErrLocked", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	other, err := boltstore.Open(path, "beta")
	if err == nil {
		_, err = other.Load()
		other.Close() //nolint:errcheck // it is refused anyhow
	}
	if !errors.Is(err, store.ErrOtherSite) || !strings.Contains(err.Error(), path) {
		t.Errorf("another site's file: %v, want ErrOtherSite with the file's name", err)
	}

	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{codec.Format + 1})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Open(path, "alpha"); !errors.Is(err, store.ErrNewerFormat) || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a newer file: %v, want ErrNewerFormat with the remedy", err)
	}

	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Open(text, "alpha"); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a text: %v, want ErrCorrupt", err)
	}
	if _, err := boltstore.Open(filepath.Join(dir, "new.db"), ""); !errors.Is(err, job.ErrBadSiteID) {
		t.Errorf("a new file without a site: %v, want ErrBadSiteID", err)
	}
}
