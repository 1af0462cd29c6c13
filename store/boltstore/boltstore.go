package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"kith/internal/job"
	"kith/internal/scarce"
	"kith/store"
	"kith/store/boltstore/reserve"
	"kith/store/codec"
)

// FileName is the name of the file in a site's data folder.
const FileName = "kith.db"

// Store is a [store.Backend] in a bbolt file.
type Store struct {
	db   *bolt.DB
	site job.SiteID
	// reserve is given up when the disk is full; nil for none. gave is told then.
	reserve *reserve.File
	gave    func(full error)
}

var _ store.Backend = (*Store)(nil)

// Open opens the file at path, or makes it, for the given site. An empty site
// takes whichever the file belongs to.
//
// It returns an error wrapping [store.ErrNewerFormat], [store.ErrOtherSite],
// [store.ErrCorrupt] or [store.ErrLocked]; each names the file.
func Open(path string, site job.SiteID) (*Store, error) {
	if err := verify(path); err != nil {
		if errors.Is(err, store.ErrCorrupt) {
			err = fmt.Errorf("%w; restore it from a backup", err)
		}
		return nil, fmt.Errorf("data file %s: %w", path, err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: time.Second,
		// The list of free pages is found again at opening, so that it need
		// not be written with every commit.
		NoFreelistSync:  true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: mapped(),
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, explain(err))
	}
	db.AllocSize = growth
	s := &Store{db: db, site: site}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, errors.Join(err, db.Close()))
	}
	return s, nil
}

// explain turns bbolt's errors into ours where a caller can do something about them.
func explain(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w; is another kithd running on this data folder?", store.ErrLocked)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	return err
}

var metaBucket = []byte("meta")
var formatKey = []byte("format")

// prepare checks the format of an old file and makes the buckets of a new one.
// It writes only to a new one.
func (s *Store) prepare() error {
	isNew := false
	err := s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			isNew = true
			return nil
		}
		v := meta.Get(formatKey)
		if len(v) != 1 {
			return fmt.Errorf("format of %d bytes: %w", len(v), store.ErrCorrupt)
		}
		if v[0] > codec.Format {
			return fmt.Errorf("format %d, this version knows up to %d: %w; upgrade kithd", v[0], codec.Format, store.ErrNewerFormat)
		}
		return nil
	})
	if err != nil || !isNew {
		return err
	}
	return s.db.Update(s.create)
}

// create makes all that a new file has, in one transaction: a process that
// dies meanwhile leaves an empty file.
func (s *Store) create(tx *bolt.Tx) error {
	if s.site == "" {
		return fmt.Errorf("new file without a site name: %w", job.ErrBadSiteID)
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	if err := meta.Put(formatKey, []byte{codec.PlainFormat}); err != nil {
		return err
	}
	for _, t := range codec.Tables() {
		if _, err := tx.CreateBucket([]byte(t)); err != nil {
			return err
		}
	}
	return putAll(tx, codec.Writes(store.NewState(s.site, NewGeneration(time.Now()))))
}

// NewGeneration names a folder that is made now: it counts 64ths of a minute since 2026: later folders sort later, and
// two that a site made a second apart differ. What tells folders apart for certain
// is [store.Site].Folder. No folder has generation 0, see [store.HeldBundle].
func NewGeneration(now time.Time) uint32 {
	since := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return max(1, uint32(since/(time.Minute/64)))
}

// widen makes a file one of a format at least, with all its tables.
func widen(tx *bolt.Tx, format byte) error {
	meta := tx.Bucket(metaBucket)
	if v := meta.Get(formatKey); len(v) == 1 && v[0] > format {
		format = v[0]
	}
	for _, t := range codec.TablesOf(format) {
		if _, err := tx.CreateBucketIfNotExists([]byte(t)); err != nil {
			return err
		}
	}
	return meta.Put(formatKey, []byte{format})
}

func putAll(tx *bolt.Tx, writes []codec.Write) error {
	for _, w := range writes {
		b := tx.Bucket([]byte(w.Table))
		if b == nil { // a table that a file gets with its first record
			if w.Value == nil {
				continue
			}
			if err := widen(tx, codec.FormatOf(w.Table)); err != nil {
				return fmt.Errorf("new table %s: %w", w.Table, err)
			}
			var err error
			if b, err = tx.CreateBucketIfNotExists([]byte(w.Table)); err != nil {
				return fmt.Errorf("new table %s: %w", w.Table, err)
			}
		}
		if err := put(b, w); err != nil {
			return fmt.Errorf("write to %s: %w", w.Table, err)
		}
	}
	return nil
}

func put(b *bolt.Bucket, w codec.Write) error {
	switch {
	case w.Prefix:
		c := b.Cursor()
		for k, _ := c.Seek(w.Key); bytes.HasPrefix(k, w.Key); k, _ = c.Seek(w.Key) {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	case w.Merge:
		block, err := codec.MergeResults(b.Get(w.Key), w.Value)
		if err != nil {
			return err
		}
		return b.Put(w.Key, block)
	case w.Value == nil:
		return b.Delete(w.Key)
	default:
		return b.Put(w.Key, w.Value)
	}
}

// Load reads the whole state and checks every record.
func (s *Store) Load() (*store.State, error) {
	var state *store.State
	err := s.db.View(func(tx *bolt.Tx) error {
		var r codec.Reader
		_, site := tx.Bucket([]byte(codec.Sites)).Cursor().First()
		if err := r.Site(site, s.site); err != nil {
			return err
		}
		each := func(t codec.Table, read func([]byte) error) error {
			return tx.Bucket([]byte(t)).ForEach(func(_, v []byte) error { return read(v) })
		}
		if err := each(codec.Jobs, r.Job); err != nil {
			return err
		}
		if err := each(codec.Copies, r.Copy); err != nil {
			return err
		}
		read := r.TrustReaders()
		for _, t := range codec.TrustTables() {
			if tx.Bucket([]byte(t)) == nil {
				continue // see verifyTables
			}
			if err := each(t, read[t]); err != nil {
				return err
			}
		}
		for _, t := range r.BagReaders() {
			if tx.Bucket([]byte(t.Table)) == nil {
				continue
			}
			if err := each(t.Table, t.Read); err != nil {
				return err
			}
		}
		if tx.Bucket([]byte(codec.Calibration)) != nil {
			if err := each(codec.Calibration, r.Calibration); err != nil {
				return err
			}
		}
		if b := tx.Bucket([]byte(codec.Past)); b != nil {
			first, _ := b.Cursor().First()
			last, _ := b.Cursor().Last()
			if first != nil {
				if err := r.PastNumbers(first, last); err != nil {
					return err
				}
			}
		}
		var err error
		state, err = r.State()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", s.db.Path(), err)
	}
	return state, nil
}

// Seal implements [store.Backend].
func (s *Store) Seal(state *store.State) store.Batch {
	return &batch{store: s, writes: codec.Writes(state)}
}

type batch struct {
	store  *Store
	writes []codec.Write
}

func (b *batch) Empty() bool { return len(b.writes) == 0 }

func (b *batch) Commit() error {
	update := func() error {
		return FullAsSuch(b.store.db.Update(func(tx *bolt.Tx) error { return putAll(tx, b.writes) }))
	}
	err := update()
	if scarce.Full(err) && b.store.giveUp(err) {
		err = update()
	}
	if err != nil {
		return fmt.Errorf("data file %s: commit of %d records: %w", b.store.db.Path(), len(b.writes), err)
	}
	return nil
}

// Payload implements [store.Backend].
func (s *Store) Payload(id job.ID) ([]byte, error) {
	var data []byte
	err := s.read(codec.Payloads, id, func(v []byte) (err error) {
		if v == nil {
			return store.ErrUnknown
		}
		data, err = codec.SideRecord(v)
		return err
	})
	return data, err
}

// Outputs implements [store.Backend].
func (s *Store) Outputs(id job.ID) ([]byte, error) {
	var data []byte
	err := s.read(codec.Outputs, id, func(v []byte) (err error) {
		if v != nil {
			data, err = codec.SideRecord(v)
		}
		return err
	})
	return data, err
}

// AttemptFiles implements [store.Backend].
func (s *Store) AttemptFiles(a job.AttemptID) (data []byte, err error) {
	err = s.readKey(codec.AttemptFiles, codec.AttemptKey(a), func(v []byte) (err error) {
		if v != nil {
			data, err = codec.SideRecord(v)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: files of attempt %v: %w", s.db.Path(), a, err)
	}
	return data, nil
}

// Decision implements [store.Backend].
func (s *Store) Decision(id job.ID) (*store.Decision, error) {
	var d *store.Decision
	err := s.read(codec.Decisions, id, func(v []byte) (err error) {
		if v != nil {
			d, err = codec.Decision(v)
		}
		return err
	})
	return d, err
}

// TaskResults implements [store.Backend].
func (s *Store) TaskResults(bag job.ID, block uint32) (records []store.TaskRecord, err error) {
	err = s.readKey(codec.Results, codec.ResultsKey(bag, block), func(v []byte) (err error) {
		if v != nil {
			records, err = codec.TaskRecords(v, block*store.ResultBlock)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: results of bag %v: %w", s.db.Path(), bag, err)
	}
	return records, nil
}

// TaskFiles implements [store.Backend].
func (s *Store) TaskFiles(bag job.ID, task uint32) (set []byte, err error) {
	err = s.readKey(codec.TaskFiles, codec.TaskFilesKey(bag, task), func(v []byte) (err error) {
		if v != nil {
			set, err = codec.SideRecord(v)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: files of task %d of bag %v: %w", s.db.Path(), task, bag, err)
	}
	return set, nil
}

// TaskFilesFrom implements [store.Backend].
func (s *Store) TaskFilesFrom(bag job.ID, task uint32) ([]store.TaskFiles, error) {
	var files codec.FilesStretch
	err := s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(codec.TaskFiles))
		if b == nil {
			return nil
		}
		c := b.Cursor()
		of := codec.JobKey(bag)
		for k, v := c.Seek(codec.TaskFilesKey(bag, task)); bytes.HasPrefix(k, of); k, v = c.Next() {
			if more, err := files.Add(k, v); err != nil || !more {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: files of tasks of bag %v: %w", s.db.Path(), bag, err)
	}
	return files.Files, nil
}

// HeldPayload implements [store.Backend].
func (s *Store) HeldPayload(bundle job.AttemptID) (data []byte, err error) {
	err = s.readKey(codec.HeldPayloads, codec.HeldKey(bundle), func(v []byte) (err error) {
		if v == nil {
			return store.ErrUnknown
		}
		data, err = codec.SideRecord(v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: payload of bundle %v: %w", s.db.Path(), bundle, err)
	}
	return data, nil
}

// readKey uses what a table has under a key, nil if there is nothing, or no such table.
func (s *Store) readKey(t codec.Table, key []byte, use func([]byte) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(t))
		if b == nil {
			return use(nil)
		}
		return use(b.Get(key))
	})
}

func (s *Store) read(t codec.Table, id job.ID, use func([]byte) error) error {
	if err := s.readKey(t, codec.JobKey(id), use); err != nil {
		return fmt.Errorf("data file %s: %s of job %v: %w", s.db.Path(), t, id, err)
	}
	return nil
}

// Close implements [store.Backend].
func (s *Store) Close() error { return s.db.Close() }
