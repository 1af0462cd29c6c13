package daemon

import (
	"fmt"
	"sync"
	"time"
)

// lowTold is for how long a site says that it refused new jobs for lack of room.
const lowTold = time.Minute

// lowRoom remembers new jobs that were refused for lack of room on the disk, so that the
// operator hears of them too. Whoever asks what it tells does not wait for the disk, which
// may hang.
type lowRoom struct {
	check func() error // looks at the disk
	now   func() time.Time

	mu    sync.Mutex
	err   error // of the latest look
	at    time.Time
	times int // refusals in a row, each within lowTold of the one before
}

// room returns an error if there is no room for another job.
func (r *lowRoom) room() error {
	err := r.check()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if err == nil || now.Sub(r.at) > lowTold {
		r.times = 0
	}
	if r.err = err; err != nil {
		r.at = now
		r.times++
	}
	return err
}

// tells says in a sentence that new jobs are refused, empty if the latest was not or is
// more than [lowTold] ago.
func (r *lowRoom) tells() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ago := r.now().Sub(r.at)
	if r.err == nil || ago > lowTold {
		return ""
	}
	return fmt.Sprintf("new jobs are refused (%d, the latest %s ago): %v", r.times, ago.Round(time.Second), r.err)
}
