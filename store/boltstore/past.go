package boltstore

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"kith/store"
	"kith/store/codec"
)

// Past implements [store.Backend].
func (s *Store) Past(from uint64) ([]store.Past, error) {
	var list []store.Past
	err := s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(codec.Past))
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, v := c.Seek(codec.PastKey(from)); k != nil && len(list) < store.PastStretch; k, v = c.Next() {
			number, err := codec.PastNumber(k)
			if err != nil {
				return err
			}
			p, err := codec.PastRecord(number, v)
			if err != nil {
				return err
			}
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", s.db.Path(), err)
	}
	return list, nil
}
