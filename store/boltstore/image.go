package boltstore

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"kith/internal/job"
)

// mapped is how much of the address space a file is mapped to. bbolt maps anew when a
// file outgrows that, for which it waits until everybody has finished reading: an image would
// hold commits up. It costs no memory.
func mapped() int {
	const most = 16 << 30
	if strconv.IntSize == 64 {
		return most & math.MaxInt
	}
	return 0
}

// growth is by how much a durable file grows at a time. bbolt would take 16 MiB for a file that is mapped
// to more than it has, also for that of a site with three jobs.
const growth = 1 << 20

// Image is a file as it was at an instant. It must be closed before the store is.
type Image struct{ tx *bolt.Tx }

// Image returns the file as it is now, at once: later changes leave it alone. All that is in it
// was committed.
func (s *Store) Image() (*Image, error) {
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", s.db.Path(), err)
	}
	return &Image{tx}, nil
}

// Size returns how many bytes WriteTo writes.
func (i *Image) Size() int64 { return i.tx.Size() }

// WriteTo writes the whole file, in small pieces. It may run while the file is changed, which
// grows meanwhile.
func (i *Image) WriteTo(w io.Writer) (int64, error) { return i.tx.WriteTo(w) }

// Close lets go of the image.
func (i *Image) Close() error { return i.tx.Rollback() }

// Settle makes the file that an [Image] wrote to path the durable file of a site: all of it is
// checked, as [Open] does, and what a [Replica] has beside facts is taken out.
func Settle(path string, site job.SiteID) (*Store, error) {
	s, err := Open(path, site)
	if err != nil {
		return nil, err
	}
	err = s.db.Update(func(tx *bolt.Tx) error {
		if tx.Bucket(keptBucket) != nil {
			if err := tx.DeleteBucket(keptBucket); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Delete(positionKey)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data file %s: %w", path, err), s.Close())
	}
	return s, nil
}
