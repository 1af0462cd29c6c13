package sitesched

import (
	"math"
	"math/bits"
	"time"

	"kith/internal/job"
)

// Load returns how loaded the site is (spec 001 section 2.3). Processors are
// counted as charges, see [Config.Charge]. Of running copies what is left of
// their estimates counts as work, of queued ones all of it; reserved copies
// are among the running. It costs the same however many copies there are, but
// for those past their estimate.
func (s *Scheduler) Load(now job.Time) job.Load {
	p := float64(s.cfg.Processors)
	work := s.sums.queuedWork
	work.add(s.sums.runEnds)
	work.addProduct(-s.sums.runCharge, int64(now))
	for _, set := range [...]*runSet{&s.run, &s.guests.run} {
		for _, it := range set.items() {
			if it.end >= now {
				break
			}
			work.addProduct(int64(it.charge), int64(now-it.end))
		}
	}
	return job.Load{
		Work:    work.float() / float64(time.Second) / p,
		Procs:   float64(s.sums.runCharge+s.sums.queuedCharge) / p,
		Free:    s.freeForGuests(),
		Queued:  int32(s.local.live + s.remote.live), // 2^31 copies need more memory than there is
		Running: int32(len(s.run.items()) + len(s.guests.run.items())),
		Blocked: s.guestsWait(),
	}
}

// guestsWait reports whether a remote copy that comes now waits for others, whatever is free. On a
// drained site it waits for the end of that, and what is before it is not looked at.
func (s *Scheduler) guestsWait() bool {
	if s.draining {
		return false
	}
	inOrder := s.cfg.Backfill == NoBackfill
	switch s.cfg.Queues {
	case Single:
		return inOrder && s.local.eligible()
	case DualStrict:
		return s.local.eligible() || inOrder && s.remote.eligible()
	}
	return false
}

// eligible reports whether a copy waits that is not postponed, but for those that are not in
// their places yet.
func (q *queue) eligible() bool {
	scanned := q.scanned
	found := q.next(0) >= 0
	q.scanned = scanned // predictions are bounded by what they scan themselves
	return found
}

// Overfull reports whether adopted copies take more than the site has, several of them or one.
func (s *Scheduler) Overfull(job.Time) bool { return s.room() < 0 || s.outgrown > 0 }

// HomeWaits returns how many copies wait that no other site placed here, postponed ones
// included.
func (s *Scheduler) HomeWaits(job.Time) int { return int(s.sums.queuedHome) }

// sums are the running totals behind Load: integers, so that adding and
// taking away for years leaves no drift.
type sums struct {
	queuedCharge int64
	queuedHome   int64 // copies of this site's own origin
	queuedWork   wide  // charge × walltime
	runCharge    int64
	guestCharge  int64 // that of copies of other sites
	runEnds      wide  // charge × estimated end
}

// queue counts r as queued (sign 1) or no longer (sign -1).
func (m *sums) queue(r *row, sign int64) {
	m.queuedCharge += sign * int64(r.charge)
	if !r.copy.remote {
		m.queuedHome += sign
	}
	m.queuedWork.addProduct(sign*int64(r.charge), int64(r.wall))
}

// run counts r as running (sign 1) or no longer (sign -1).
func (m *sums) run(r *row, sign int64) {
	m.runCharge += sign * int64(r.charge)
	if r.copy.remote {
		m.guestCharge += sign * int64(r.charge)
	}
	m.runEnds.addProduct(sign*int64(r.charge), int64(r.end))
}

// wide is a signed integer of 128 bits: processors times nanoseconds of a
// large site do not fit into 64.
type wide struct {
	hi int64
	lo uint64
}

func (w *wide) add(v wide) {
	lo, carry := bits.Add64(w.lo, v.lo, 0)
	w.lo = lo
	w.hi += v.hi + int64(carry) // 0 or 1
}

// addProduct adds a×b.
func (w *wide) addProduct(a, b int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b)) // two's complement, mended below
	w.add(wide{int64(hi) - (a>>63)&b - (b>>63)&a, lo})
}

func (w *wide) float() float64 {
	if w.hi < 0 {
		// The parts of a small negative number are large and would round it away.
		lo, borrow := bits.Sub64(0, w.lo, 0)
		hi, _ := bits.Sub64(0, uint64(w.hi), borrow) // two's complement
		return -(math.Ldexp(float64(hi), 64) + float64(lo))
	}
	return math.Ldexp(float64(w.hi), 64) + float64(w.lo)
}

// EarliestStart returns the metric start (spec 001 section 2.3): the earliest
// hole for c in the surface, once every queued copy that goes before it has
// been placed there in queue order. For a local job beside a remote queue
// those are the local ones, else all (spec 004 section 2.1). It is false if c
// can never run here.
//
// From a Pass until something else than an arrival happens, the surface of the
// local queue is kept, and what is planned behind the guarantee depth with it, so that
// many questions cost little.
func (s *Scheduler) EarliestStart(now job.Time, c job.Copy) (job.Time, bool) {
	e := entryOf(&c)
	at := s.earliestStart(now, &e)
	return at, at != job.Never
}

// earliestStart is EarliestStart, [job.Never] if e can never run here.
func (s *Scheduler) earliestStart(now job.Time, e *entry) job.Time {
	charge := s.chargeOf(e)
	if charge > s.cfg.Processors {
		return job.Never
	}
	s.gather(now)
	q := s.queueOf(e)
	return s.slotBehind(now, q, len(q.slot), charge, s.planned(e))
}

// slotBehind returns the earliest hole for a copy at place end of q, behind
// all that goes before it.
func (s *Scheduler) slotBehind(now job.Time, q *queue, end int, charge int32, wall time.Duration) job.Time {
	f, floor := &s.scratch, now
	if s.limitsGuests(q) {
		s.planRoom(now)
	}
	switch kept := s.keepsSurface(now); {
	case q == &s.local && kept && end == len(q.slot):
		s.planLocal(now)
		f, floor = s.planBehind(now)
	case q == &s.local:
		f.build(now, s.free, &s.run)
		floor = s.planQueue(f, now, floor, q, 0, end)
	case s.cfg.Queues == DualPreempt:
		f.build(now, s.free, &s.run)
		s.planQueue(f, now, floor, &s.local, 0, len(s.local.slot))
		s.addGuests(now, f)
		floor = s.planQueue(f, now, floor, q, 0, end)
	case kept:
		s.planLocal(now)
		var plan *profile
		plan, floor = s.planBehind(now)
		f.copyFrom(plan)
		floor = s.planQueue(f, now, floor, q, 0, end)
	default:
		f.build(now, s.free, &s.run)
		floor = s.planQueue(f, now, floor, &s.local, 0, len(s.local.slot))
		floor = s.planQueue(f, now, floor, q, 0, end)
	}
	return s.slotIn(f, now, floor, q, charge, wall)
}

// keepsSurface reports whether the surface can be asked at now: no planned slot
// has come yet, and none has become wrong.
func (s *Scheduler) keepsSurface(now job.Time) bool {
	if s.stale || s.draining || s.run.overdue(now) || now < s.passed || s.comesDue(now) || s.free < 0 {
		return false
	}
	if !s.cfg.Backfill.plans() {
		return true // what is missing will be planned
	}
	return s.surfaceValid && s.local.seen == len(s.local.slot)
}
