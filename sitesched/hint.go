package sitesched

import (
	"time"

	"kith/internal/job"
)

// hints remember where searches in a profile found nothing. What is too wide
// and long to start anywhere in a stretch stays so for all that is wider and
// longer, until processors are given back there. In a long queue nearly every
// copy has such a forerunner, and its own search begins where that one ended.
type hints struct {
	list []hint
}

// hint says that procs processors for length could not start in [base, bound).
// Since then processors were given back at freed at the earliest.
type hint struct {
	base, bound, freed job.Time
	length             time.Duration
	procs              int32
}

// maxHints bounds the list; a look-up reads all of it.
const maxHints = 48

// skip returns an instant, from or later, before which a search for procs
// processors for length from from on finds nothing. The caller's own
// processors, free to it from reach on, lie in the profile.
func (h *hints) skip(from job.Time, procs int32, length time.Duration, reach job.Time) job.Time {
	best := from
	for i := range h.list {
		e := &h.list[i]
		if e.procs <= procs && e.length <= length && e.bound > best && e.base <= from {
			// Each start there was refused because of some instant within
			// e.length of it. That no longer counts if the instant may lie in what
			// has been freed, or in the caller's own slot.
			best = max(best, min(e.bound, min(e.freed, reach)-job.Time(e.length)))
		}
	}
	return best
}

// note records that there was no start in [base, bound).
func (h *hints) note(base, bound job.Time, procs int32, length time.Duration) {
	keep := h.list[:0]
	least := 0
	for _, e := range h.list {
		if e.procs >= procs && e.length >= length && e.bound <= bound && e.base >= base {
			continue // says less than the new one
		}
		keep = append(keep, e)
		if e.bound < keep[least].bound {
			least = len(keep) - 1
		}
	}
	h.list = keep
	e := hint{base: base, bound: bound, freed: job.Never, length: length, procs: procs}
	if len(keep) < maxHints {
		h.list = append(keep, e)
	} else {
		h.list[least] = e
	}
}

// giveBack notes that processors become free from at on.
func (h *hints) giveBack(at job.Time) {
	keep := h.list[:0]
	for _, e := range h.list {
		e.freed = min(e.freed, at)
		if e.freed-job.Time(e.length) > e.base {
			keep = append(keep, e)
		}
	}
	h.list = keep
}
