package sitesched

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
)

// queue holds waiting copies in the order (Arrival, ID). What a scan reads
// lies in parallel arrays; a removed copy leaves a gap, and gaps are closed
// once they are the majority. Each group of 64 places has a bound on its
// charges and walltimes, and so has each block of 64 groups, so that a scan can
// leap over them.
type queue struct {
	charge []int32         // unfit in gaps and for postponed copies
	wall   []time.Duration // the estimates
	slot   []int32         // rows of the table, gap where a copy was removed
	plan   []job.Time      // conservative slots, or places in a lineup; Never where there is none
	elder  []bool          // of copies whose origins can never run them
	bounds []bound         // one for each group
	blocks []bound         // one for each block of groups

	first int // all places before it are gaps
	live  int // copies, postponed ones and those in late included
	gaps  int // places that are gaps
	// flagged counts the copies whose origins can never run them.
	flagged int

	// seen counts the places that the last pass has examined. They need no
	// second look as long as only arrivals follow.
	seen int
	// planned counts the places whose copies are in the cached plan.
	planned int
	// depth is how many copies at the head are within the guarantee depth,
	// within counts the places up to the last of them, and inside those that are
	// no gaps. The window only moves on: a copy within stays within, even if one
	// that came out of order makes them more than depth.
	depth, within, inside int
	// late holds copies that arrived out of order and wait to be merged.
	late []int32
	// scanned counts groups visited, as a measure of work.
	scanned int64
	// changes counts what happened to the queue but for copies that came at its end.
	changes int64
}

const (
	gap       = -1
	unfit     = math.MaxInt32 // a charge that never fits
	groupBits = 6
	groupSize = 1 << groupBits
	blockBits = 2 * groupBits
	blockSize = 1 << blockBits
)

// add appends the copy at slot if it belongs at the end, else keeps it for [queue.settle].
func (q *queue) add(t *table, slot int32) {
	if n := len(q.slot); len(q.late) > 0 || n > 0 && t.before(slot, q.slot[n-1]) {
		q.addLate(t, slot)
		return
	}
	q.live++
	q.extend()
	q.put(t, len(q.slot)-1, slot)
	q.advance()
}

// addLate keeps the copy at slot for [queue.settle].
func (q *queue) addLate(t *table, slot int32) {
	q.live++
	t.rows[slot].position = -1
	q.late = append(q.late, slot)
}

// limited reports whether the guarantee depth bounds the window.
func (q *queue) limited() bool { return q.depth < math.MaxInt }

// advance moves the window on while it has room.
func (q *queue) advance() {
	for ; q.inside < q.depth && q.within < len(q.slot); q.within++ {
		if q.slot[q.within] != gap {
			q.inside++
		}
	}
}

// extend adds one place at the end, a gap for now.
func (q *queue) extend() {
	if len(q.slot)&(groupSize-1) == 0 {
		q.bounds = append(q.bounds, nothing)
	}
	if len(q.slot)&(blockSize-1) == 0 {
		q.blocks = append(q.blocks, nothing)
	}
	q.charge = append(q.charge, unfit)
	q.wall = append(q.wall, 0)
	q.slot = append(q.slot, gap)
	q.plan = append(q.plan, job.Never)
	q.elder = append(q.elder, false)
}

// put fills place i, whatever it held.
func (q *queue) put(t *table, i int, slot int32) {
	r := &t.rows[slot]
	r.position = int32(i) // places are far fewer than 2^31
	q.slot[i], q.wall[i], q.plan[i] = slot, r.wall, job.Never
	q.charge[i], q.elder[i] = unfit, r.copy.elder
	if r.hidden {
		return
	}
	q.charge[i] = r.charge
	for _, b := range []*bound{&q.bounds[i>>groupBits], &q.blocks[i>>blockBits]} {
		b.add(r.charge, q.wall[i])
		b.elder = b.elder || r.copy.elder
	}
}

// settle merges the late copies into their places. What has been seen or
// planned must be looked at anew.
func (q *queue) settle(t *table) {
	k := len(q.late)
	if k == 0 {
		return
	}
	q.changes++
	slices.SortFunc(q.late, func(a, b int32) int {
		if t.before(a, b) {
			return -1
		}
		return 1
	})
	from, last := len(q.slot)-1, q.within-1
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
		if q.move(t, from, to); from == last {
			q.within = to + 1
		}
		from--
	}
	q.late = q.late[:0]
	q.recount()
	q.tightenFrom(to + 1)
}

// recount counts what is within after copies came out of order.
func (q *queue) recount() {
	q.inside = 0
	for _, slot := range q.slot[:q.within] {
		if slot != gap {
			q.inside++
		}
	}
	q.advance()
}

// move carries the place from to the place to.
func (q *queue) move(t *table, from, to int) {
	q.charge[to], q.wall[to], q.slot[to], q.plan[to] = q.charge[from], q.wall[from], q.slot[from], q.plan[from]
	q.elder[to] = q.elder[from]
	if q.slot[to] != gap {
		t.rows[q.slot[to]].position = int32(to) // places are far fewer than 2^31
	}
}

// remove makes place i a gap. Before anything is added, tidy must follow.
func (q *queue) remove(i int) {
	q.changes++
	q.slot[i], q.charge[i], q.plan[i], q.elder[i] = gap, unfit, job.Never, false
	q.bounds[i>>groupBits].stale, q.blocks[i>>blockBits].stale = true, true
	q.live--
	q.gaps++
	if i < q.within {
		q.inside--
		q.advance()
		for q.limited() && q.within > 0 && q.slot[q.within-1] == gap {
			q.within--
		}
	}
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
		q.first, q.seen, q.planned, q.within, q.gaps = 0, 0, 0, 0, 0
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
	q.first, q.seen, q.planned, q.within, q.gaps = 0, seen, planned, q.inside, 0
	q.tightenFrom(0)
}

// resize cuts the arrays to n places.
func (q *queue) resize(n int) {
	q.charge, q.wall, q.slot, q.plan, q.elder = q.charge[:n], q.wall[:n], q.slot[:n], q.plan[:n], q.elder[:n]
	q.bounds = q.bounds[:(n+groupSize-1)>>groupBits]
	q.blocks = q.blocks[:(n+blockSize-1)>>blockBits]
	q.seen, q.planned, q.within = min(q.seen, n), min(q.planned, n), min(q.within, n)
}

// tightenFrom recomputes the bounds of all groups and blocks from place i on.
func (q *queue) tightenFrom(i int) {
	for g := i >> groupBits; g < len(q.bounds); g++ {
		q.tighten(g)
	}
	for k := i >> blockBits; k < len(q.blocks); k++ {
		q.tightenBlock(k)
	}
}

// retighten is tighten where it may pay: a lone group is scanned as fast.
func (q *queue) retighten(g int) {
	if q.bounds[g].stale && len(q.bounds) > 1 {
		q.tighten(g)
	}
}

// tighten recomputes the bound of group g.
func (q *queue) tighten(g int) {
	end := min((g+1)<<groupBits, len(q.charge))
	b := &q.bounds[g]
	b.cover(q.charge[g<<groupBits:end], q.wall[g<<groupBits:end])
	for i := g << groupBits; i < end && q.flagged > 0 && !b.elder; i++ {
		b.elder = q.elder[i] && q.charge[i] != unfit
	}
}

// tightenBlock recomputes the bound of block k, and of its groups as far as
// they need it.
func (q *queue) tightenBlock(k int) {
	b := &q.blocks[k]
	*b = nothing
	for g := k << groupBits; g < min((k+1)<<groupBits, len(q.bounds)); g++ {
		if q.bounds[g].stale {
			q.tighten(g)
		}
		b.include(&q.bounds[g])
	}
}

// skip returns the first place at or after from that lies in a block with the
// quality, which may only err to the safe side. Within a block it returns from.
func (q *queue) skip(from int, may func(*bound) bool) int {
	for from&(blockSize-1) == 0 && len(q.blocks) > 1 && from < len(q.charge) {
		b := &q.blocks[from>>blockBits]
		q.scanned++
		if may(b) {
			if !b.stale {
				break
			}
			if q.tightenBlock(from >> blockBits); may(b) {
				break
			}
		}
		from += blockSize
	}
	return from
}

// next returns the first place at or after from with an eligible copy, or -1.
func (q *queue) next(from int) int {
	q.scanned++
	for from = max(from, q.first); from < len(q.charge); from++ {
		if q.charge[from] != unfit {
			return from
		}
		if from&(groupSize-1) == 0 {
			q.scanned++
			if q.retighten(from >> groupBits); q.bounds[from>>groupBits].charge == unfit {
				from += groupSize - 1
			}
		}
	}
	return -1
}

// nextFit returns the first place at or after from whose copy needs at most
// free processors and besides either at most extra processors or at most
// window time, or -1.
func (q *queue) nextFit(from int, free, extra int32, window time.Duration) int {
	w := newDemand(free, extra, window)
	for from = max(from, q.first); from < len(q.charge); {
		if from&(blockSize-1) == 0 {
			if from = q.skip(from, w.at); from >= len(q.charge) {
				return -1
			}
		}
		g := from >> groupBits
		end := min((g+1)<<groupBits, len(q.charge))
		q.scanned++
		if w.at(&q.bounds[g]) {
			charges, walls := q.charge[from:end], q.wall[from:end]
			for i, c := range charges {
				if c <= free && (c <= extra || walls[i] <= window) {
					return from + i
				}
			}
			q.retighten(g)
		}
		from = end
	}
	return -1
}

// nextWithin is nextFit for the limits of a whole window, and for at most that many processors.
func (q *queue) nextWithin(from int, now job.Time, w *window, most int32) int {
	free := min(w.free(), most)
	may := func(b *bound) bool { return b.admitted(now, w) }
	for from = max(from, q.first); from < len(q.charge); {
		if from&(blockSize-1) == 0 {
			if from = q.skip(from, may); from >= len(q.charge) {
				return -1
			}
		}
		g := from >> groupBits
		end := min((g+1)<<groupBits, len(q.charge))
		q.scanned++
		if q.bounds[g].admitted(now, w) {
			for i := from; i < end; i++ {
				if q.charge[i] <= free && w.admits(q.charge[i], now.Add(q.wall[i])) {
					return i
				}
			}
			q.retighten(g)
		}
		from = end
	}
	return -1
}

// nextElder returns the first place at or after from with an eligible copy whose
// origin can never run it, or -1.
func (q *queue) nextElder(from int) int {
	if q.flagged == 0 {
		return -1
	}
	may := func(b *bound) bool { return b.elder }
	for from = max(from, q.first); from < len(q.charge); {
		if from&(blockSize-1) == 0 {
			if from = q.skip(from, may); from >= len(q.charge) {
				return -1
			}
		}
		g := from >> groupBits
		end := min((g+1)<<groupBits, len(q.charge))
		q.scanned++
		if q.bounds[g].elder {
			for i := from; i < end; i++ {
				if q.elder[i] && q.charge[i] != unfit {
					return i
				}
			}
			q.retighten(g)
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
	q.elder = append(p.elder[:0], o.elder...)
	q.bounds = append(p.bounds[:0], o.bounds...)
	q.blocks = append(p.blocks[:0], o.blocks...)
	q.late = append(p.late[:0], o.late...)
}
