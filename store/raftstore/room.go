package raftstore

import (
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"kith/internal/scarce"
)

// room notices when the disk of the log is full. A member whose disk is full must not lead: it
// would be elected, fail to write, and step down, again and again.
type room struct {
	raft.LogStore
	folder string
	free   func() (int64, error) // nil for the disk of the folder

	mu   sync.Mutex
	full bool
}

// enough is how many bytes must be free for a member to lead after its disk was full.
const enough = 16 << 20

// StoreLog implements [raft.LogStore].
func (r *room) StoreLog(l *raft.Log) error { return r.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements [raft.LogStore].
func (r *room) StoreLogs(logs []*raft.Log) error {
	err := r.LogStore.StoreLogs(logs)
	if scarce.Full(err) {
		r.mu.Lock()
		r.full = true
		r.mu.Unlock()
	}
	return err
}

// IsMonotonic implements [raft.MonotonicLogStore].
func (r *room) IsMonotonic() bool { return true }

// check returns an error while the disk is full.
func (r *room) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full {
		return nil
	}
	free := r.free
	if free == nil {
		free = func() (int64, error) {
			var s unix.Statfs_t
			err := unix.Statfs(r.folder, &s)
			return int64(s.Bavail) * s.Bsize, err
		}
	}
	n, err := free()
	if err != nil {
		return err
	}
	if n < enough {
		return fmt.Errorf("the disk of %s was full, and %d bytes are free, of %d at least: %w", r.folder, n, enough, unix.ENOSPC)
	}
	r.full = false
	return nil
}
