package sitesched

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
)

// profile is the surface of a site: the number of free processors as a step
// function of time, from the instant it was built and for all time after.
//
// Its breakpoints lie in chunks of up to 64. A span sums up one chunk: where
// it begins and the bounds of its free processors. A search leaps over chunks
// that fit or fail as a whole, and a change of a long stretch touches only the
// spans inside it. No two neighbouring breakpoints have the same value, so
// equal surfaces have equal breakpoints.
type profile struct {
	spans  []span
	chunks []chunk
	spare  []int32 // chunks not in use
	hints  hints
	// visited counts spans looked at, as a measure of work.
	visited int64
	// changes counts how often the free processors became others.
	changes int64
}

type span struct {
	from      job.Time
	low, high int32 // bounds of the free processors, shift included
	shift     int32 // to be added to every value in the chunk
	chunk     int32
}

const chunkSize = 64

type chunk struct {
	n    int
	at   [chunkSize]job.Time
	free [chunkSize]int32
}

// build makes the surface of what runs: free processors now, and more with
// every release. Counts below zero, from adopted copies that over-commit the
// site, are as good as none.
func (f *profile) build(now job.Time, free int64, run *runSet) {
	f.reset()
	f.visited += int64(len(run.items()) >> 3)
	f.append(now, free)
	for r := run.releases(now); ; {
		at, charge, ok := r.next()
		if !ok || at == job.Never {
			break
		}
		free += charge
		f.append(at, free)
	}
	for k := range f.spans {
		f.measure(k)
	}
}

// buildBoth is build for what runs in two sets, which costs less than to add one to the other.
func (f *profile) buildBoth(now job.Time, free int64, home, guests *runSet) {
	f.reset()
	f.visited += int64((len(home.items()) + len(guests.items())) >> 3)
	f.append(now, free)
	a, b := home.releases(now), guests.releases(now)
	at, charge, ok := a.next()
	at2, charge2, ok2 := b.next()
	for ok || ok2 {
		var until job.Time
		if until = at2; ok && (!ok2 || at <= at2) {
			until = at
		}
		if ok && at == until {
			free += charge
			at, charge, ok = a.next()
		}
		if ok2 && at2 == until {
			free += charge2
			at2, charge2, ok2 = b.next()
		}
		if until == job.Never {
			break
		}
		f.append(until, free)
	}
	for k := range f.spans {
		f.measure(k)
	}
}

func (f *profile) reset() {
	f.changes++
	f.spans = f.spans[:0]
	f.hints.list = f.hints.list[:0]
	f.spare = f.spare[:0]
	for i := range f.chunks {
		f.spare = append(f.spare, int32(i)) // chunks are few
	}
}

// append adds a breakpoint at the end. It leaves some room in each chunk.
func (f *profile) append(at job.Time, free int64) {
	v := int32(max(free, -1)) // at most P
	k := len(f.spans) - 1
	if k < 0 || f.chunks[f.spans[k].chunk].n >= chunkSize*3/4 {
		f.spans = append(f.spans, span{from: at, chunk: f.newChunk()})
		k++
	}
	c := &f.chunks[f.spans[k].chunk]
	if c.n > 0 && c.free[c.n-1] == v {
		return
	}
	c.at[c.n], c.free[c.n] = at, v
	c.n++
}

func (f *profile) newChunk() int32 {
	if n := len(f.spare); n > 0 {
		id := f.spare[n-1]
		f.spare = f.spare[:n-1]
		f.chunks[id].n = 0
		return id
	}
	f.chunks = append(f.chunks, chunk{})
	return int32(len(f.chunks) - 1) // chunks are few
}

// measure recomputes the bounds of span k.
func (f *profile) measure(k int) {
	s := &f.spans[k]
	c := &f.chunks[s.chunk]
	low, high := int32(math.MaxInt32), int32(math.MinInt32)
	for _, v := range c.free[:c.n] {
		low, high = min(low, v), max(high, v)
	}
	s.low, s.high = low+s.shift, high+s.shift
}

// find returns the span in force at t, the first one for all earlier instants.
func (f *profile) find(t job.Time) int {
	lo, hi := 1, len(f.spans)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); f.spans[mid].from <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// index returns the breakpoint in force at t, the first one for all earlier instants.
func (c *chunk) index(t job.Time) int {
	lo, hi := 1, c.n
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); c.at[mid] <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// until returns where span k ends.
func (f *profile) until(k int) job.Time {
	if k+1 < len(f.spans) {
		return f.spans[k+1].from
	}
	return job.Never
}

// earliest returns the earliest start at or after from of procs processors for
// length, or reach if there is none before it. From reach on, the processors
// are taken to be free: that is where the caller's own slot begins. Never
// stands for no such slot.
func (f *profile) earliest(from job.Time, procs int32, length time.Duration, reach job.Time) job.Time {
	if len(f.spans) < hintSpans {
		return f.search(from, procs, length, reach)
	}
	begin := f.hints.skip(from, procs, length, reach)
	at := f.search(begin, procs, length, reach)
	if at > begin {
		f.hints.note(from, at, procs, length)
	}
	return at
}

// hintSpans is the size of a profile from which on hints save more than they cost.
const hintSpans = 8

// search is earliest without hints.
func (f *profile) search(from job.Time, procs int32, length time.Duration, reach job.Time) job.Time {
	var (
		start = job.Never // begin of the fitting stretch at hand
		need  = job.Never // how far it has to go
	)
	for k := f.find(from); k < len(f.spans); k++ {
		f.visited++
		s := &f.spans[k]
		switch {
		case s.from >= reach && start == job.Never:
			return reach
		case s.high < procs:
			start = job.Never
		case s.low >= procs:
			if start == job.Never {
				start = max(s.from, from)
				need = min(start.Add(length), reach)
			}
		default:
			var found bool
			if start, need, found = f.earliestIn(k, from, start, need, procs, length, reach); found {
				return start
			}
		}
		if start != job.Never && f.until(k) >= need {
			return min(start, reach)
		}
	}
	return min(start, reach)
}

// earliestIn goes on with the search inside span k.
func (f *profile) earliestIn(
	k int, from, start, need job.Time, procs int32, length time.Duration, reach job.Time,
) (job.Time, job.Time, bool) {
	s := &f.spans[k]
	c := &f.chunks[s.chunk]
	base := procs - s.shift
	j := 0
	if s.from < from {
		j = c.index(from)
	}
	at, free := c.at[:c.n], c.free[:c.n]
	for ; j < len(free); j++ {
		switch fits := free[j] >= base; {
		case !fits && start != job.Never:
			if at[j] >= need {
				return start, need, true
			}
			start = job.Never
		case fits && start == job.Never:
			start = max(at[j], from)
			if start >= reach {
				return reach, need, true
			}
			need = min(start.Add(length), reach)
		}
	}
	return start, need, false
}

// fits reports whether procs processors are free from start for length.
func (f *profile) fits(start job.Time, procs int32, length time.Duration) bool {
	end := start.Add(length)
	for k := f.find(start); k < len(f.spans) && f.spans[k].from < end; k++ {
		f.visited++
		s := &f.spans[k]
		if s.low >= procs {
			continue
		}
		c := &f.chunks[s.chunk]
		for j := c.index(start); j < c.n && c.at[j] < end; j++ {
			if c.free[j]+s.shift < procs {
				return false
			}
		}
	}
	return true
}

// change adds delta to the free processors on [from, to).
func (f *profile) change(from, to job.Time, delta int32) {
	from = max(from, f.spans[0].from)
	if from >= to {
		return
	}
	f.changes++
	if delta > 0 {
		f.hints.giveBack(from)
	}
	f.visited += changeSteps
	f.cut(to)
	f.cut(from)
	for k := f.find(from); k < len(f.spans) && f.spans[k].from < to; k++ {
		s := &f.spans[k]
		if s.from >= from && f.until(k) <= to {
			s.low, s.high, s.shift = s.low+delta, s.high+delta, s.shift+delta
			continue
		}
		c := &f.chunks[s.chunk]
		for j := c.index(from); j < c.n && c.at[j] < to; j++ {
			c.free[j] += delta
		}
		f.measure(k)
	}
	f.join(to)
	f.join(from)
}

// changeSteps is what a change costs, in spans looked at.
const changeSteps = 5

// place takes procs processors from start for length.
func (f *profile) place(start job.Time, procs int32, length time.Duration) {
	f.change(start, start.Add(length), -procs)
}

// cut makes t a breakpoint. Never needs none.
func (f *profile) cut(t job.Time) {
	if t == job.Never {
		return
	}
	k := f.find(t)
	c := &f.chunks[f.spans[k].chunk]
	j := c.index(t)
	if c.at[j] == t {
		return
	}
	if c.n == chunkSize {
		f.halve(k)
		f.cut(t)
		return
	}
	copy(c.at[j+2:], c.at[j+1:c.n])
	copy(c.free[j+2:], c.free[j+1:c.n])
	c.at[j+1], c.free[j+1] = t, c.free[j]
	c.n++
}

// halve divides the chunk of span k between two spans.
func (f *profile) halve(k int) {
	id := f.newChunk() // may move all chunks
	c, d := &f.chunks[f.spans[k].chunk], &f.chunks[id]
	const half = chunkSize / 2
	copy(d.at[:], c.at[half:])
	copy(d.free[:], c.free[half:])
	c.n, d.n = half, chunkSize-half
	f.spans = slices.Insert(f.spans, k+1, span{from: d.at[0], shift: f.spans[k].shift, chunk: id})
	f.measure(k)
	f.measure(k + 1)
}

// join removes the breakpoint at t if nothing changes there.
func (f *profile) join(t job.Time) {
	k := f.find(t)
	s := &f.spans[k]
	c := &f.chunks[s.chunk]
	j := c.index(t)
	if c.at[j] != t || k == 0 && j == 0 {
		return
	}
	if j > 0 {
		if c.free[j] == c.free[j-1] {
			f.erase(k, j)
		}
		return
	}
	before := &f.spans[k-1]
	b := &f.chunks[before.chunk]
	if b.free[b.n-1]+before.shift == c.free[0]+s.shift {
		f.erase(k, 0)
	}
}

// erase removes breakpoint j of span k, whose value lives on elsewhere: the
// bounds stay right, unless it was the first of its chunk.
func (f *profile) erase(k, j int) {
	s := &f.spans[k]
	c := &f.chunks[s.chunk]
	copy(c.at[j:], c.at[j+1:c.n])
	copy(c.free[j:], c.free[j+1:c.n])
	c.n--
	switch {
	case c.n == 0:
		f.spare = append(f.spare, s.chunk)
		f.spans = slices.Delete(f.spans, k, k+1)
	case j == 0:
		s.from = c.at[0]
		f.measure(k)
	}
}

// trim forgets what lies wholly before now.
func (f *profile) trim(now job.Time) {
	n := 0
	for n+1 < len(f.spans) && f.spans[n+1].from <= now {
		f.spare = append(f.spare, f.spans[n].chunk)
		n++
	}
	if n > 0 {
		f.spans = slices.Delete(f.spans, 0, n)
	}
}

// window writes into w what may start at now.
func (f *profile) window(now job.Time, w *window) {
	w.steps = w.steps[:0]
	left := int32(math.MaxInt32)
	for k := f.find(now); k < len(f.spans); k++ {
		f.visited++
		s := &f.spans[k]
		if s.low >= left {
			continue
		}
		c := &f.chunks[s.chunk]
		for j := c.index(now); j < c.n; j++ {
			v := c.free[j] + s.shift
			if v >= left {
				continue
			}
			if left != math.MaxInt32 {
				w.steps = append(w.steps, step{c.at[j], left})
			}
			if left = v; v <= 0 {
				return
			}
		}
	}
	w.steps = append(w.steps, step{job.Never, left})
}

func (f *profile) copyFrom(o *profile) {
	f.changes++
	f.spans = append(f.spans[:0], o.spans...)
	f.chunks = append(f.chunks[:0], o.chunks...)
	f.spare = append(f.spare[:0], o.spare...)
	f.hints.list = append(f.hints.list[:0], o.hints.list...)
}
