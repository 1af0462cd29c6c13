package boltstore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
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

// A page that points to itself would keep bbolt going without end: such a file is refused.
func TestDamagedPagePointsAbove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole.db")
	written(t, rand.New(rand.NewPCG(3, 0)), path)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := []byte(tables()[0])
	if err := db.Update(func(tx *bolt.Tx) error {
		for i := range 1000 { // a tree with branches
			if err := tx.Bucket(table).Put(fmt.Appendf(nil, "%040d", i), make([]byte, 40)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	order, rings := binary.NativeEndian, 0
	for at := 2 * 4096; at+4096 <= len(whole); at += 4096 {
		id := uint64(at / 4096)
		if order.Uint64(whole[at:]) != id || order.Uint16(whole[at+8:]) != 1 {
			continue // no branch
		}
		damaged := bytes.Clone(whole)
		order.PutUint64(damaged[at+16+8:], id)
		_, err := loadDamaged(path, damaged)
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("page %d in a ring: %v, want ErrCorrupt", id, err)
		} else if strings.Contains(err.Error(), "reached twice") {
			rings++
		} // else the page is not in use
	}
	if rings == 0 {
		t.Error("no page of the file was put into a ring")
	}
}

// The page of a small table lies within its value: made a branch, it would be its own child.
func TestDamagedPageWithinTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole.db")
	written(t, rand.New(rand.NewPCG(3, 0)), path)
	whole := read(t, path)
	order, found := binary.NativeEndian, 0
	for _, name := range tables() {
		for at := bytes.Index(whole, []byte(name)); at >= 0 && at < len(whole)-40; {
			value := whole[at+len(name):]
			if order.Uint64(value) == 0 && order.Uint16(value[16+8:]) == 2 {
				damaged := bytes.Clone(whole)
				order.PutUint16(damaged[at+len(name)+16+8:], 1)
				if _, err := loadDamaged(path, damaged); errors.Is(err, store.ErrCorrupt) {
					found++
				} else if err != nil {
					t.Errorf("the page of %s a branch: %v, want ErrCorrupt", name, err)
				} // else this page is not in use
			}
			next := bytes.Index(whole[at+1:], []byte(name))
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	if found == 0 {
		t.Error("no table has its page within")
	}
}

// Bytes of users lie in the file as they are. What looks like a header with a later
// transaction, where none is, does not count.
func TestHeaderInARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole.db")
	written(t, rand.New(rand.NewPCG(3, 0)), path)
	whole, want := read(t, path), load(t, path)
	at := 1 << 14
	for at < len(whole) {
		at <<= 1
	}
	forged := append(whole, make([]byte, at+4096-len(whole))...)
	head := forged[at+16 : at+80]
	copy(head, whole[16:80])
	order := binary.NativeEndian
	order.PutUint64(head[40:], 1<<52) // pages: times 4,096 that is 0
	order.PutUint64(head[48:], 1<<62) // transaction
	h := fnv.New64a()
	h.Write(head[:56])
	order.PutUint64(head[56:], h.Sum64())
	if got, err := loadDamaged(path, forged); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a header behind the pages in use: %v, %d bytes of facts, want %d", err, len(got), len(want))
	}
}
