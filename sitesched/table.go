package sitesched

import (
	"time"

	"kith/internal/job"
)

// state is where a known copy is.
type state uint8

const (
	vacant   state = iota // the table row is not in use
	queued                // waits in its queue
	reserved              // a Pass started it, the claim is under way
	running               // confirmed or adopted
	aside                 // set aside with its origin: in no queue
)

// holds reports whether a copy has processors.
func (s state) holds() bool { return s == reserved || s == running }

// row is all the scheduler knows of one copy. Queues and the running set
// refer to it by its number, its slot, and keep beside it only what their
// inner loops read.
type row struct {
	copy   entry
	charge int32
	state  state
	// adopted is set while the copy runs without a start by this scheduler.
	adopted bool
	// outgrown is set of an adopted copy that alone takes more than there is.
	outgrown bool
	// unconfirmed is set while an adopted copy may have begun and not started.
	unconfirmed bool
	// hidden is set while the copy is postponed.
	hidden bool
	// probe is set while the copy is tried although its origin is set aside.
	probe bool
	// waits is set of a local copy that has started in the schedule and has no room yet: it
	// waits for guests to leave.
	waits bool
	// leaving is set of a guest that was told to leave.
	leaving bool
	// stays is set of a guest that turned out not to leave: it is not told again.
	stays bool
	// wanted is set of a local copy in the queue that guests make way for.
	wanted bool
	// position is the index in the queue's arrays, -1 while the copy has yet
	// to be merged into them.
	position int32
	// wall is how long it is planned for: its walltime, and for a remote copy
	// that is not confirmed the margin.
	wall time.Duration
	// notBefore is the end of a postponement.
	notBefore job.Time
	// since is when the copy was reserved, confirmed or adopted.
	since job.Time
	// end is the estimated end of a reserved or running copy.
	end job.Time
}

// table holds the rows of all copies; vacated rows are used again.
type table struct {
	rows   []row
	vacant []int32
}

// add stores a copy and returns its slot.
func (t *table) add(c *entry, charge int32) int32 {
	var slot int32
	if n := len(t.vacant); n > 0 {
		slot = t.vacant[n-1]
		t.vacant = t.vacant[:n-1]
	} else {
		t.rows = append(t.rows, row{})
		slot = int32(len(t.rows) - 1) // 2^31 copies need more memory than there is
	}
	r := &t.rows[slot]
	r.copy, r.charge, r.wall = *c, charge, walltime(c)
	return slot
}

// name returns what the copy at slot is called.
func (t *table) name(slot int32) job.AttemptID { return t.rows[slot].copy.id }

func (t *table) release(slot int32) {
	t.rows[slot] = row{}
	t.vacant = append(t.vacant, slot)
}

// before is the queue order of two rows.
func (t *table) before(a, b int32) bool { return t.rows[a].copy.before(&t.rows[b].copy) }

func (t *table) copyFrom(o *table) {
	t.rows = append(t.rows[:0], o.rows...)
	t.vacant = append(t.vacant[:0], o.vacant...)
}

// walltime returns c's walltime as the rules read it.
func walltime(c *entry) time.Duration {
	if c.walltime <= 0 {
		return overdueGrace
	}
	return min(c.walltime, job.MaxWalltime)
}
