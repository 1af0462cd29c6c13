package sitesched

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
)

// queue holds waiting copies in the order (Arrival, ID). What a scan reads
// lies in parallel arrays; a removed copy leaves a gap, and gaps are closed
// once they are the majority. Each group of 64 places has a lower bound on its
// charges and walltimes, so that a scan can leap over it.
type queue struct {
	charge []int32         // unfit in gaps and for postponed copies
	wall   []time.Duration // the estimates
	slot   []int32         // rows of the table, gap where a copy was removed
	plan   []job.Time      // conservative slots, Never where there is none
	bounds []bound         // one for each group

	first int // all places before it are gaps
	live  int // copies, postponed ones and those in late included
	gaps  int // places that are gaps

	// seen counts the places that the last pass has examined. They need no
	// second look as long as only arrivals follow.
	seen int
	// planned counts the places whose copies are in the cached plan.
	planned int
	// late holds copies that arrived out of order and wait to be merged.
	late []int32
	// scanned counts groups visited, as a measure of work.
	scanned int64
}

type bound struct {
	charge int32
	stale  bool // something was removed: the bound may be lower than need be
	wall   time.Duration
}

const (
	gap       = -1
	unfit     = math.MaxInt32 // a charge that never fits
	groupBits = 6
	groupSize = 1 << groupBits
)

// add appends the copy at slot if it belongs at the end, else keeps it for [queue.settle].
func (q *queue) add(t *table, slot int32) {
	q.live++
	if n := len(q.slot); len(q.late) > 0 || n > 0 && t.before(slot, q.slot[n-1]) {
		t.rows[slot].position = -1
		q.late = append(q.late, slot)
		return
	}
	q.extend()
	q.put(t, len(q.slot)-1, slot)
}

// extend adds one place at the end, a gap for now.
func (q *queue) extend() {
	if len(q.slot)&(groupSize-1) == 0 {
		q.bounds = append(q.bounds, bound{charge: unfit, wall: math.MaxInt64})
	}
	q.charge = append(q.charge, unfit)
	q.wall = append(q.wall, 0)
	q.slot = append(q.slot, gap)
	q.plan = append(q.plan, job.Never)
}

// put fills place i, whatever it held.
func (q *queue) put(t *table, i int, slot int32) {
	r := &t.rows[slot]
	r.position = int32(i) // places are far fewer than 2^31
	q.slot[i], q.wall[i], q.plan[i] = slot, walltime(&r.copy), job.Never
	q.charge[i] = unfit
	if !r.hidden {
		q.charge[i] = r.charge
		b := &q.bounds[i>>groupBits]
		b.charge, b.wall = min(b.charge, r.charge), min(b.wall, q.wall[i])
	}
}

// settle merges the late copies into their places. What has been seen or
// planned must be looked at anew.
func (q *queue) settle(t *table) {
	k := len(q.late)
	if k == 0 {
		return
	}
	slices.SortFunc(q.late, func(a, b int32) int {
		if t.before(a, b) {
			return -1
		}
		return 1
	})
	from := len(q.slot) - 1
	for range k {
		q.extend()
	}
	to := len(q.slot) - 1
	for k--; k >= 0; to-- {
		if from < q.first || q.slot[from] != gap && t.before(q.slot[from], q.late[k]) {
			q.put(t, to, q.late[k])
			k--
			continue
		}
		q.move(t, from, to)
		from--
	}
	q.late = q.late[:0]
	for b := (to + 1) >> groupBits; b < len(q.bounds); b++ {
		q.tighten(b)
	}
}

// move carries the place from to the place to.
func (q *queue) move(t *table, from, to int) {
	q.charge[to], q.wall[to], q.slot[to], q.plan[to] = q.charge[from], q.wall[from], q.slot[from], q.plan[from]
	if q.slot[to] != gap {
		t.rows[q.slot[to]].position = int32(to) // places are far fewer than 2^31
	}
}

// remove makes place i a gap. Before anything is added, tidy must follow.
func (q *queue) remove(i int) {
	q.slot[i], q.charge[i], q.plan[i] = gap, unfit, job.Never
	q.bounds[i>>groupBits].stale = true
	q.live--
	q.gaps++
	for q.first < len(q.slot) && q.slot[q.first] == gap {
		q.first++
	}
}

// removeLate takes back a copy that has not been merged yet.
func (q *queue) removeLate(slot int32) {
	i := slices.Index(q.late, slot)
	q.late = slices.Delete(q.late, i, i+1)
	q.live--
}

// tidy drops trailing gaps and closes all gaps once they are the majority.
// It must not be called in the midst of a scan.
func (q *queue) tidy(t *table) {
	if q.gaps == 0 {
		return
	}
	n := len(q.slot)
	if q.first == n {
		q.resize(0)
		q.first, q.seen, q.planned, q.gaps = 0, 0, 0, 0
		return
	}
	for q.slot[n-1] == gap {
		n--
		q.gaps--
	}
	q.resize(n)
	if q.gaps > groupSize && q.gaps > n/2 {
		q.compact(t)
	}
}

// compact closes all gaps.
func (q *queue) compact(t *table) {
	seen, planned, to := 0, 0, 0
	for from := range q.slot {
		if q.slot[from] == gap {
			continue
		}
		if from < q.seen {
			seen++
		}
		if from < q.planned {
			planned++
		}
		q.move(t, from, to)
		to++
	}
	q.resize(to)
	q.first, q.seen, q.planned, q.gaps = 0, seen, planned, 0
	for b := range q.bounds {
		q.tighten(b)
	}
}

// resize cuts the arrays to n places.
func (q *queue) resize(n int) {
	q.charge, q.wall, q.slot, q.plan = q.charge[:n], q.wall[:n], q.slot[:n], q.plan[:n]
	q.bounds = q.bounds[:(n+groupSize-1)>>groupBits]
	q.seen, q.planned = min(q.seen, n), min(q.planned, n)
}

// retighten is tighten where it may pay: a lone group is scanned as fast.
func (q *queue) retighten(b int) {
	if q.bounds[b].stale && len(q.bounds) > 1 {
		q.tighten(b)
	}
}

// tighten recomputes the bound of group b.
func (q *queue) tighten(b int) {
	low := bound{charge: unfit, wall: math.MaxInt64}
	for i := b << groupBits; i < min((b+1)<<groupBits, len(q.charge)); i++ {
		if q.charge[i] != unfit {
			low.charge, low.wall = min(low.charge, q.charge[i]), min(low.wall, q.wall[i])
		}
	}
	q.bounds[b] = low
}

// next returns the first place at or after from with an eligible copy, or -1.
func (q *queue) next(from int) int { return q.nextFit(from, unfit-1, unfit-1, 0) }

// nextFit returns the first place at or after from whose copy needs at most
// free processors and besides either at most extra processors or at most
// window time, or -1.
func (q *queue) nextFit(from int, free, extra int32, window time.Duration) int {
	for from = max(from, q.first); from < len(q.charge); {
		b := from >> groupBits
		end := min((b+1)<<groupBits, len(q.charge))
		q.scanned++
		if low := &q.bounds[b]; low.charge <= free && (low.charge <= extra || low.wall <= window) {
			charges, walls := q.charge[from:end], q.wall[from:end]
			for i, c := range charges {
				if c <= free && (c <= extra || walls[i] <= window) {
					return from + i
				}
			}
			q.retighten(b)
		}
		from = end
	}
	return -1
}

// nextWithin is nextFit for the limits of a whole window.
func (q *queue) nextWithin(from int, now job.Time, w *window) int {
	free := w.free()
	for from = max(from, q.first); from < len(q.charge); {
		b := from >> groupBits
		end := min((b+1)<<groupBits, len(q.charge))
		q.scanned++
		if low := &q.bounds[b]; low.charge <= free && w.admits(low.charge, now.Add(low.wall)) {
			for i := from; i < end; i++ {
				if q.charge[i] <= free && w.admits(q.charge[i], now.Add(q.wall[i])) {
					return i
				}
			}
			q.retighten(b)
		}
		from = end
	}
	return -1
}

func (q *queue) copyFrom(o *queue) {
	p := *q
	*q = *o
	q.charge = append(p.charge[:0], o.charge...)
	q.wall = append(p.wall[:0], o.wall...)
	q.slot = append(p.slot[:0], o.slot...)
	q.plan = append(p.plan[:0], o.plan...)
	q.bounds = append(p.bounds[:0], o.bounds...)
	q.late = append(p.late[:0], o.late...)
}
