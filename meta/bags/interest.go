package bags

import (
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// How long a host that got no tasks for an ask, of those that it was offered, waits before
// it asks again.
const (
	FirstWait = time.Second
	MaxWait   = 30 * time.Second
)

// Interest is a host's interest in an origin's tasks of one shape: whether it should start
// pilots for them and ask. What is offered may be gone, kept for others or kept from this
// site ([Elsewhere]) when the ask comes; then a pilot would start only to end, again and
// again. The zero value has no offer.
type Interest struct {
	offered int
	wait    time.Duration // after the latest ask that got none, 0 if it got some
	until   job.Time
	last    bool // the offer was withdrawn, and no ask since got none
}

// Offer notes what the origin offers. Something after nothing, or more than before, is
// news, which ends the wait.
func (i *Interest) Offer(tasks int) {
	if tasks > i.offered {
		i.wait, i.until = 0, 0
	}
	i.last = tasks <= 0 && (i.last || i.offered > 0)
	i.offered = max(0, tasks)
}

// Answer notes how many tasks an ask got. After none the next one waits, a random half
// to the whole of a time that doubles.
func (i *Interest) Answer(tasks int, now job.Time, rng *rand.Rand) {
	if tasks > 0 {
		i.wait, i.until = 0, 0
		return
	}
	i.last = false
	i.wait = min(max(2*i.wait, FirstWait), MaxWait)
	i.until = now.Add(i.wait/2 + time.Duration(rng.Int64N(int64(i.wait/2)+1)))
}

// Recorded notes that the origin has recorded results of this host. What kept it from tasks
// may be over, as where its bags let it have so many at once: the wait ends. The next one is
// as long as it would have been.
func (i *Interest) Recorded() { i.until = 0 }

// Last reports whether pilots that run should ask though nothing is offered any more: once,
// so that the origin knows that they are idle and can [Recall] tasks for them. What it
// recalls it offers.
func (i *Interest) Last() bool { return i.last }

// Open reports whether the host should start pilots and ask now, and, if it only has to wait, until when.
// Without an offer that is [job.Never].
func (i *Interest) Open(now job.Time) (open bool, again job.Time) {
	switch {
	case i.offered == 0:
		return false, job.Never
	case now < i.until:
		return false, i.until
	}
	return true, now
}
