package boltstore

import (
	"fmt"
	"strings"
	"syscall"

	"kith/internal/scarce"
	"kith/store/boltstore/reserve"
)

// Keep has the store give up a reserve when the disk has no room for a batch, and
// try again at once. gave is told, with the error of the disk, on the goroutine
// that commits. Keep is called before the first commit.
func (s *Store) Keep(r *reserve.File, gave func(full error)) { s.reserve, s.gave = r, gave }

// giveUp gives up the reserve, and reports whether there was one. Half of it is
// the file's own from then on: what fills the disk would take the rest as well.
func (s *Store) giveUp(full error) bool {
	if s.reserve == nil {
		return false
	}
	if given, err := s.reserve.Give(); err != nil || !given {
		return false
	}
	reserve.Grow(s.db.Path(), s.reserve.Size()/2)
	s.gave(full)
	return true
}

// FullAsSuch returns err so that [errors.Is] finds that a disk is full: bbolt
// keeps the text only of some of its errors.
func FullAsSuch(err error) error {
	if err == nil || scarce.Full(err) {
		return err
	}
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(err.Error(), full.Error()) {
			return fmt.Errorf("%w: %w", err, full)
		}
	}
	return err
}
