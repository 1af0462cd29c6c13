package runner

import (
	"sync"
	"time"

	"kith/internal/scarce"
	"kith/store/blobstore"
)

// A look at a disk with plenty of room holds for roomHolds: no disk takes so much in that
// time. Where there is less room, each question is answered by a look of its own.
const (
	roomHolds = 50 * time.Millisecond
	plenty    = 1 << 30
)

// Room answers whether there is room on the disk of a folder, which each submission and
// each attempt asks. It is safe for use by several goroutines.
type Room struct {
	dir string
	// Tests have a clock and a disk of their own.
	now  func() time.Time
	look func(dir string) (free int64, err error)

	mu    sync.Mutex
	free  int64     // bytes, by the latest look
	until time.Time // it holds
}

// NewRoom returns the room on the disk of dir.
func NewRoom(dir string) *Room { return &Room{dir: dir, now: time.Now, look: blobstore.FreeBytes} }

// Check returns an error if less than keep bytes would stay free after need more. Whatever
// else is wrong, writing itself will tell.
func (r *Room) Check(need, keep int64) error {
	if r.known(need, keep) {
		return nil
	}
	if err := blobstore.CheckFree(r.dir, need, keep); scarce.Full(err) {
		return err
	}
	return nil
}

// Low returns an error while an attempt would leave less than keep bytes free. Once that was
// so (was), it is until there is an eighth more, so that it does not change with each file
// that comes and goes.
func (r *Room) Low(was bool, keep int64) error {
	if was {
		return r.Check(2*startBytes+keep/8, keep)
	}
	return r.Check(startBytes, keep)
}

// known reports whether there is plenty beyond what is asked for.
func (r *Room) known(need, keep int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); !now.Before(r.until) {
		free, err := r.look(r.dir)
		if err != nil {
			return false
		}
		r.free, r.until = free, now
		if free > plenty {
			r.until = now.Add(roomHolds)
		}
	}
	return r.free-plenty-need >= keep
}
