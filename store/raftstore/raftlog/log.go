package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"kith/store"
	"kith/store/boltstore"
)

// FileName is the name of the log in a member's folder.
const FileName = "raft.db"

// deleted is how many entries a transaction deletes at most: appends wait for it.
const deleted = 256

var (
	identityBucket = []byte("identity")
	entriesBucket  = []byte("entries")
	identityKey    = []byte("identity")
)

// Log is a [raft.LogStore] in a bbolt file. It is safe for use by several goroutines.
type Log struct {
	db *bolt.DB

	mu          sync.Mutex // held while the log is changed, too
	first, last uint64     // 0 and 0 for none
}

var (
	_ raft.LogStore          = (*Log)(nil)
	_ raft.MonotonicLogStore = (*Log)(nil)
)

// Open opens the log at path, or makes it, for the member it should belong to.
//
// It returns an error wrapping [store.ErrNewerFormat], [store.ErrOtherSite], [ErrOtherCluster],
// [ErrOtherMember], [store.ErrCorrupt] or [store.ErrLocked]; each names the file.
func Open(path string, id Identity) (*Log, error) {
	l, err := open(path, id)
	if errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("%w; remove this member and have it join anew with an empty folder", err)
	}
	if err != nil {
		return nil, fmt.Errorf("raft log %s: %w", path, err)
	}
	return l, nil
}

func open(path string, id Identity) (*Log, error) {
	isNew, err := boltstore.CheckPages(path)
	if err != nil {
		return nil, err
	}
	if !isNew { // before it is opened for writing
		if err := boltstore.Read(path, func(tx *bolt.Tx) error { return verify(tx, &id) }); err != nil {
			return nil, err
		}
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%w; is another kithd running on this data folder?", store.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	l := &Log{db: db}
	if err := l.prepare(&id); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

// verify looks at whose file it is and at all entries: each as it was written, and no hole
// between them. A file without tables was never finished.
func verify(tx *bolt.Tx, id *Identity) error {
	if name, _ := tx.Cursor().First(); name == nil {
		return nil
	}
	whose, entries := tx.Bucket(identityBucket), tx.Bucket(entriesBucket)
	if whose == nil || entries == nil {
		return fmt.Errorf("it is no log of raft: %w", store.ErrCorrupt)
	}
	if err := id.check(whose.Get(identityKey)); err != nil {
		return err
	}
	var last uint64
	empty := true
	return entries.ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("key of %d bytes: %w", len(k), store.ErrCorrupt)
		}
		index := binary.BigEndian.Uint64(k)
		if !empty && index != last+1 {
			return fmt.Errorf("a hole: entry %d follows %d: %w", index, last, store.ErrCorrupt)
		}
		last, empty = index, false
		return checkEntry(index, v)
	})
}

func (l *Log) prepare(id *Identity) error {
	return l.db.Update(func(tx *bolt.Tx) error {
		if entries := tx.Bucket(entriesBucket); entries != nil {
			if k, _ := entries.Cursor().First(); k != nil {
				l.first = binary.BigEndian.Uint64(k)
				k, _ = entries.Cursor().Last()
				l.last = binary.BigEndian.Uint64(k)
			}
			return nil
		}
		whose, err := tx.CreateBucket(identityBucket)
		if err != nil {
			return err
		}
		if err := whose.Put(identityKey, id.marshal()); err != nil {
			return err
		}
		_, err = tx.CreateBucket(entriesBucket)
		return err
	})
}

// IsMonotonic implements [raft.MonotonicLogStore]: there are no holes.
func (l *Log) IsMonotonic() bool { return true }

// FirstIndex implements [raft.LogStore].
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, nil
}

// LastIndex implements [raft.LogStore].
func (l *Log) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, nil
}

// GetLog implements [raft.LogStore]: it returns [raft.ErrLogNotFound] for an index that is not
// in the log. The caller owns what is put into entry.
func (l *Log) GetLog(index uint64, entry *raft.Log) error {
	err := l.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(entriesBucket).Get(indexKey(index))
		if v == nil {
			return raft.ErrLogNotFound
		}
		return decodeEntry(index, v, entry)
	})
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		err = fmt.Errorf("raft log %s: %w", l.db.Path(), err)
	}
	return err
}

// StoreLog implements [raft.LogStore].
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries durably, in one transaction. They must follow each other, and the
// first one must be the next of the log or an earlier one, whose place they take with all that
// is behind it. An empty log begins anywhere.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	from := entries[0].Index
	if l.last != 0 && (from > l.last+1 || from < l.first) {
		return fmt.Errorf("raft log %s: entry %d would not follow on %d to %d: a hole", l.db.Path(), from, l.first, l.last)
	}
	for i, e := range entries {
		if e.Index != from+uint64(i) {
			return fmt.Errorf("raft log %s: entry %d after %d: a hole", l.db.Path(), e.Index, from+uint64(i)-1)
		}
		if size := len(e.Data) + len(e.Extensions); size > MaxEntry {
			return fmt.Errorf("raft log %s: entry %d has %d bytes, at most %d are taken", l.db.Path(), e.Index, size, MaxEntry)
		}
	}
	err := l.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(entriesBucket)
		b.FillPercent = 0.95 // appended to at the end, deleted from the beginning
		// What an append that failed may have left counts as well.
		if err := deleteFrom(b, from+uint64(len(entries))); err != nil {
			return err
		}
		for _, e := range entries {
			if err := b.Put(indexKey(e.Index), appendEntry(nil, e)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("raft log %s: append of %d entries: %w", l.db.Path(), len(entries), boltstore.FullAsSuch(err))
	}
	if l.last == 0 {
		l.first = from
	}
	l.last = from + uint64(len(entries)) - 1
	return nil
}

// deleteFrom deletes all entries from an index on.
func deleteFrom(b *bolt.Bucket, index uint64) error {
	c := b.Cursor()
	for k, _ := c.Seek(indexKey(index)); k != nil; k, _ = c.Seek(indexKey(index)) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// DeleteRange deletes the entries from one index to another, both included, of which one must be
// an end of the log. It goes from that end on in small transactions, so that appends come
// between and no hole is left if the process dies.
func (l *Log) DeleteRange(from, to uint64) error {
	for {
		more, err := l.deleteSome(from, to)
		if err != nil {
			return fmt.Errorf("raft log %s: delete %d to %d: %w", l.db.Path(), from, to, boltstore.FullAsSuch(err))
		}
		if !more {
			return nil
		}
	}
}

func (l *Log) deleteSome(from, to uint64) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == 0 {
		return false, nil
	}
	from, to = max(from, l.first), min(to, l.last)
	if from > to {
		return false, nil
	}
	atBegin, atEnd := from == l.first, to == l.last
	switch {
	case !atBegin && !atEnd:
		return false, fmt.Errorf("the log has %d to %d: it would leave a hole", l.first, l.last)
	case to-from >= deleted && atBegin:
		to = from + deleted - 1
	case to-from >= deleted:
		from = to - deleted + 1
	}
	err = l.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(entriesBucket)
		for index := from; index <= to; index++ {
			if err := b.Delete(indexKey(index)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	switch {
	case from == l.first && to == l.last:
		l.first, l.last = 0, 0
	case from == l.first:
		l.first = to + 1
	default:
		l.last = from - 1
	}
	return true, nil
}

// Close releases the file.
func (l *Log) Close() error { return l.db.Close() }
