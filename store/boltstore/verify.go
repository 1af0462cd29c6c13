package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"

	"kith/internal/pathkind"
	"kith/store"
	"kith/store/codec"
)

// verify walks through the whole file without writing to it: its length, its trees, the
// order of all keys, the checksum of every record. bbolt trusts what it maps;
// a damaged page can send it anywhere, in goroutines of its own where no caller
// can recover, so it is kept from opening such a file for writing.
func verify(path string) error {
	isNew, err := CheckPages(path)
	if err != nil || isNew {
		return err
	}
	return Read(path, func(tx *bolt.Tx) error {
		if err := tx.ForEach(func(name []byte, b *bolt.Bucket) error { return verifyBucket(string(name), b) }); err != nil {
			return err
		}
		return verifyTables(tx)
	})
}

// CheckPages looks at what bbolt trusts in a file before it is mapped: what kind of file it
// is, its length, its trees. A file that is not there or empty is new. The error wraps
// [store.ErrCorrupt].
func CheckPages(path string) (isNew bool, err error) {
	if err := pathkind.File(path); errors.Is(err, pathkind.ErrKind) {
		return false, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	} else if err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Size() == 0) {
		return true, nil // or made by a process that died at once
	}
	if err != nil {
		return false, err
	}
	return false, guarded(func() error { return checkPages(path, info.Size()) })
}

// Read has a file read that [CheckPages] has looked at. It is not written to, and what damage
// makes the reader panic over is an error that wraps [store.ErrCorrupt].
func Read(path string, read func(tx *bolt.Tx) error) error {
	return guarded(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, ReadOnly: true})
		if err != nil {
			return explain(err)
		}
		defer db.Close() //nolint:errcheck // it was only read
		return db.View(read)
	})
}

// verifyTables checks that a file has all tables, or none as it was never
// finished: their names have no checksum.
func verifyTables(tx *bolt.Tx) error {
	if first, _ := tx.Cursor().First(); first == nil {
		return nil
	}
	format := byte(codec.PlainFormat)
	if meta := tx.Bucket(metaBucket); meta != nil {
		if v := meta.Get(formatKey); len(v) == 1 && v[0] <= codec.Format { // a later one is refused by name
			format = v[0]
		}
	}
	names := [][]byte{metaBucket}
	for _, t := range codec.TablesOf(format) {
		names = append(names, []byte(t))
	}
	for _, name := range names {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("there is no table %s: %w", name, store.ErrCorrupt)
		}
	}
	return nil
}

func verifyBucket(name string, b *bolt.Bucket) error {
	var last []byte
	return b.ForEach(func(k, v []byte) error {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("keys of %s out of order: %w", name, store.ErrCorrupt)
		}
		last = append(last[:0], k...)
		if name == string(metaBucket) {
			return nil
		}
		if err := codec.Verify(v); err != nil {
			return fmt.Errorf("record of %s: %w", name, err)
		}
		return nil
	})
}

// guarded runs read and makes an error of whatever damage makes it panic over,
// a page that is not there included.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it failed: %v: %w", p, store.ErrCorrupt)
		}
	}()
	return read()
}

// checkPages compares the file's length with what its newer header page says, and looks
// at the trees in it.
func checkPages(path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	h, err := newestHeader(f, size)
	if err != nil {
		return err
	}
	if h.pages > uint64(size)/h.pageSize {
		return fmt.Errorf("%w: it has %d bytes and its header speaks of %d pages of %d bytes; its end was cut off",
			store.ErrCorrupt, size, h.pages, h.pageSize)
	}
	return checkTrees(f, h)
}
