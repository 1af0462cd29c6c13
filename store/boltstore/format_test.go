package boltstore_test

import (
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
)

// format returns the format of a file and whether it has the tables of the trust.
func format(t *testing.T, path string, change func(*bolt.Tx) error) (number byte, trust int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if change != nil {
			if err := change(tx); err != nil {
				return err
			}
		}
		number = tx.Bucket([]byte("meta")).Get([]byte("format"))[0]
		for _, name := range codec.TrustTables() {
			if tx.Bucket([]byte(name)) != nil {
				trust++
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return number, trust
}

// A file of an earlier version opens, and becomes one of this version with the first
// record of the trust table, which an earlier version would not know.
func TestTrustMakesANewerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), boltstore.FileName)
	with := func(change func(*store.State)) {
		t.Helper()
		b, err := boltstore.Open(path, "alpha")
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Load()
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		if err := errors.Join(b.Seal(s).Commit(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	with(func(s *store.State) {
		if err := s.Apply(store.ForgetTrust{Site: "beta"}); err == nil {
			t.Error("a site was forgotten that is not in the table")
		}
	})
	if n, tables := format(t, path, nil); n != codec.PlainFormat || tables != 0 {
		t.Fatalf("a file without trust has format %d and %d tables of it: an earlier version cannot read it", n, tables)
	}
	with(func(s *store.State) {
		if err := s.Apply(store.AdmitSite{Site: "beta", Bundle: store.Bundle{Data: []byte("b"), Keys: []store.KeyID{{1}}, Sequence: 1}}); err != nil {
			t.Fatal(err)
		}
	})
	if n, tables := format(t, path, nil); n != codec.TrustFormat || tables != 3 {
		t.Fatalf("with a trusted site the file has format %d and %d tables", n, tables)
	}
	with(func(s *store.State) {
		if s.TrustedSite("beta") == nil {
			t.Error("the trusted site is gone")
		}
	})
	format(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(codec.Trusted)) })
	if _, err := boltstore.Open(path, "alpha"); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("without its trust table: %v, want ErrCorrupt", err)
	}
}
