package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// Format is the version of both files. A later one is refused.
const Format = 1

// Errors of [Open], beside those of package store.
var (
	// ErrOtherCluster is returned when the files belong to another cluster of members.
	ErrOtherCluster = errors.New("belongs to another cluster")
	// ErrOtherMember is returned when the files are another member's.
	ErrOtherMember = errors.New("belongs to another member")
)

// Identity says whose files they are.
type Identity struct {
	Site job.SiteID
	// Cluster is drawn when the members of a site are first brought together.
	Cluster [16]byte
	// Member is the name of this member, unique in its cluster for all time, at most 63 bytes.
	Member string
}

// marshal returns the format and the identity as bytes.
func (id *Identity) marshal() []byte {
	b := []byte{Format, byte(len(id.Site))}
	b = append(b, id.Site...)
	b = append(b, id.Cluster[:]...)
	b = append(b, byte(len(id.Member)))
	return append(b, id.Member...)
}

// check compares what a file says of itself with whose it should be.
func (id *Identity) check(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("it does not say whose it is: %w", store.ErrCorrupt)
	}
	if b[0] > Format {
		return fmt.Errorf("format %d, this version knows up to %d: %w; upgrade kithd", b[0], Format, store.ErrNewerFormat)
	}
	b = b[1:]
	site, b, ok := text(b)
	if !ok || len(b) < len(id.Cluster) {
		return fmt.Errorf("it does not say whose it is: %w", store.ErrCorrupt)
	}
	cluster := b[:len(id.Cluster)]
	member, _, ok := text(b[len(id.Cluster):])
	switch {
	case !ok:
		return fmt.Errorf("it does not say whose it is: %w", store.ErrCorrupt)
	case site != string(id.Site):
		return fmt.Errorf("it is of site %q, not of %q: %w", site, id.Site, store.ErrOtherSite)
	case string(cluster) != string(id.Cluster[:]):
		return fmt.Errorf("it is of cluster %x, not of %x: %w", cluster, id.Cluster, ErrOtherCluster)
	case member != id.Member:
		return fmt.Errorf("it is of member %q, not of %q: %w", member, id.Member, ErrOtherMember)
	}
	return nil
}

// text takes a text with its length in front off b.
func text(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	return string(b[1 : 1+b[0]]), b[1+b[0]:], true
}

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }
