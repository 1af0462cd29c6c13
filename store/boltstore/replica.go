package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"

	"kith/internal/job"
	"kith/store/codec"
)

var (
	positionKey = []byte("position")
	keptBucket  = []byte("kept")
)

// Replica is the file of facts of a member of a site that several members keep. What makes it
// durable is elsewhere: it is written without a sync, and must not be used again by another
// process. It is a file of facts like any other, with a note of how far it has come.
type Replica struct{ *Store }

// NewReplica makes a file without facts at path, in place of what is there.
func NewReplica(path string, site job.SiteID) (*Replica, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	r, err := openReplica(path, site)
	if err != nil {
		return nil, err
	}
	err = r.db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		for _, t := range codec.Tables() {
			if _, err := tx.CreateBucket([]byte(t)); err != nil {
				return err
			}
		}
		return meta.Put(formatKey, []byte{codec.PlainFormat})
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, errors.Join(err, r.Close()))
	}
	return r, nil
}

// OpenReplica opens a file that [Image.WriteTo] wrote. All of it is checked, as [Open] does.
func OpenReplica(path string, site job.SiteID) (*Replica, error) {
	if err := verify(path); err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, err)
	}
	r, err := openReplica(path, site)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, errors.Join(err, r.Close()))
	}
	return r, nil
}

func openReplica(path string, site job.SiteID) (*Replica, error) {
	options := &bolt.Options{
		NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapped(),
	}
	db, err := bolt.Open(path, 0o600, options)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", path, explain(err))
	}
	return &Replica{&Store{db: db, site: site}}, nil
}

// Update has change write to the file, all of it or, after an error, nothing.
func (r *Replica) Update(change func(tx *ReplicaTx) error) error {
	err := r.db.Update(func(tx *bolt.Tx) error { return change(&ReplicaTx{tx}) })
	if err != nil {
		return fmt.Errorf("data file %s: %w", r.db.Path(), FullAsSuch(err))
	}
	return nil
}

// Path returns where the file is.
func (r *Replica) Path() string { return r.db.Path() }

// Position returns the note that [ReplicaTx.SetPosition] left, nil if there is none.
func (r *Replica) Position() (note []byte, err error) {
	err = r.db.View(func(tx *bolt.Tx) error {
		note = append(note, tx.Bucket(metaBucket).Get(positionKey)...)
		return nil
	})
	return note, err
}

// Fresh reports whether no site has been recorded yet, so that nothing can be loaded.
func (r *Replica) Fresh() (fresh bool, err error) {
	err = r.db.View(func(tx *bolt.Tx) error {
		first, _ := tx.Bucket([]byte(codec.Sites)).Cursor().First()
		fresh = first == nil
		return nil
	})
	return fresh, err
}

// ReplicaTx is a change to a replica under way.
type ReplicaTx struct{ tx *bolt.Tx }

// Write makes changes to the records.
func (t *ReplicaTx) Write(writes []codec.Write) error { return putAll(t.tx, writes) }

// SetPosition notes how far the file has come.
func (t *ReplicaTx) SetPosition(note []byte) error {
	return t.tx.Bucket(metaBucket).Put(positionKey, note)
}

// Keep puts a part of something larger aside. It begins with its checksum, as a record does.
func (t *ReplicaTx) Keep(part uint32, data []byte) error {
	b, err := t.tx.CreateBucketIfNotExists(keptBucket)
	if err != nil {
		return err
	}
	return b.Put(binary.BigEndian.AppendUint32(nil, part), data)
}

// Kept hands over what was put aside, in the order of parts. The data is valid during the call.
func (t *ReplicaTx) Kept(each func(data []byte) error) error {
	b := t.tx.Bucket(keptBucket)
	if b == nil {
		return nil
	}
	return b.ForEach(func(_, data []byte) error { return each(data) })
}

// Forget drops all that was put aside.
func (t *ReplicaTx) Forget() error {
	if t.tx.Bucket(keptBucket) == nil {
		return nil
	}
	return t.tx.DeleteBucket(keptBucket)
}
