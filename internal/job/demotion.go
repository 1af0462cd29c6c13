package job

import "fmt"

// DemotionCause says why an attempt ended as [Demoted]. The numbers are stored and sent; they
// are frozen.
type DemotionCause uint8

// The causes.
const (
	// OwnAccord is that the job had saved what it had done and asked to be run again.
	OwnAccord DemotionCause = 0
	// Evicted is that its host needed the processors for a job of its own users.
	Evicted DemotionCause = 1
	// OutOfLevel is that it had outgrown the level of its host, and goes on at the next one.
	OutOfLevel DemotionCause = 2
	// Requested is that its user asked for it.
	Requested DemotionCause = 3
	// AtWalltime is that its time limit came near, and that it had asked to go on in another
	// attempt then.
	AtWalltime DemotionCause = 4
	// HostLost is that the host was lost, or lost it, and that what it had saved had come home while
	// it ran. No host says so of an attempt: its origin does.
	HostLost DemotionCause = 5

	demotionCauses = 6
)

// Known reports whether a number from outside is that of a cause.
func (c DemotionCause) Known() bool { return c < demotionCauses }

var demotionWords = [demotionCauses]string{"its own accord", "evicted", "out of its level", "its user asked", "its time limit", "its host was lost"}

// String returns the cause in words.
func (c DemotionCause) String() string {
	if !c.Known() {
		return fmt.Sprintf("cause(%d)", uint8(c))
	}
	return demotionWords[c]
}

// Movable reports whether an attempt may end for its job to go on in another one: because it
// writes checkpoints, or because its user allows that it begins again.
func (r *Request) Movable() bool { return r.Checkpoint || r.OnSiteLost != Wait }
