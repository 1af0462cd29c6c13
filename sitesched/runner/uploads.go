package runner

import (
	"sync"
	"time"

	"kith/meta/transfer"
	"kith/store/blobstore"
)

// recordedWithin is how long after the end of a submission's call its job is
// recorded at the latest.
const recordedWithin = 10 * time.Second

// uploads are the files that wait for their jobs. Each is held for
// [transfer.HeldFor], or until a submission has used it: what a job names is kept by
// its record, and what a job named is the first to go when the store is full.
type uploads struct {
	store *blobstore.Store

	mu   sync.Mutex
	held map[blobstore.Sum][]upload // by manifest; the same file may come twice
	// rest is how many manifests were left when those that have ended were looked for
	// the last time, looked how many were looked at in all.
	rest, looked int
}

// leastUploads is how many manifests may be held before those that have come to their end
// are looked for. After that they are looked for whenever their number has doubled: an
// upload looks at few others, however many wait.
const leastUploads = 64

type upload struct {
	hold *blobstore.Hold
	end  time.Time
}

// add takes up an upload that is held for at most left.
func (u *uploads) add(manifest blobstore.Sum, hold *blobstore.Hold, left time.Duration) {
	hold.CloseAfter(left)
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held == nil {
		u.held = make(map[blobstore.Sum][]upload)
	}
	u.held[manifest] = append(u.held[manifest], upload{hold, now.Add(left)})
	if len(u.held) > max(leastUploads, 2*u.rest) {
		u.forgetEnded(now)
	}
}

// forgetEnded removes what has come to its end. The mutex is held.
func (u *uploads) forgetEnded(now time.Time) {
	u.looked += len(u.held)
	for sum, list := range u.held {
		if !list[len(list)-1].end.After(now) {
			delete(u.held, sum)
		}
	}
	u.rest = len(u.held)
}

// used says that a submission named an upload.
func (u *uploads) used(id string) {
	if id == "" {
		return
	}
	name, err := transfer.ParseUploadID(id)
	if err != nil {
		return
	}
	u.mu.Lock()
	list := u.held[name.Manifest]
	var first upload
	if len(list) > 0 {
		first = list[0]
		if u.held[name.Manifest] = list[1:]; len(list) == 1 {
			delete(u.held, name.Manifest)
		}
	}
	u.mu.Unlock()
	if len(list) <= 1 {
		// The next daemon is not to take it for one that waits.
		_ = u.store.Backdate(name.Manifest, transfer.HeldFor)
	}
	if first.hold != nil {
		first.hold.CloseAfter(recordedWithin)
	}
}
