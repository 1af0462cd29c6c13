package sitesched

import "kith/internal/job"

// SetAside takes all copies of an origin that wait out of their queues: until
// BringBack they are not looked at, count in no load or estimate and cost a pass
// nothing. One that is added meanwhile is set aside too, and so is one whose
// claim is postponed. What is reserved or runs stays as it is. A second call sets
// the copy aside again that was put back by Probe. It looks through all copies once.
func (s *Scheduler) SetAside(now job.Time, origin job.SiteID) {
	s.clock = now
	if s.aside == nil {
		s.aside = make(map[job.SiteID]bool)
	}
	s.aside[origin] = true
	s.settle() // to take one out of those yet to be merged is a search
	for slot := range s.table.rows {
		r := &s.table.rows[slot]
		if r.state == queued && r.copy.id.Job.Origin == origin {
			s.dequeue(int32(slot)) // 2^31 copies need more memory than there is
			s.putAside(r)
		}
	}
}

// BringBack puts the copies of an origin that were set aside back into their
// places. One that is postponed stays so. It looks through all copies once.
func (s *Scheduler) BringBack(now job.Time, origin job.SiteID) {
	s.clock = now
	if !s.aside[origin] {
		return
	}
	delete(s.aside, origin)
	for slot := range s.table.rows {
		r := &s.table.rows[slot]
		r.probe = r.probe && r.copy.id.Job.Origin != origin
		if r.state == aside && r.copy.id.Job.Origin == origin {
			s.takeBack(now, int32(slot))
		}
	}
	s.settle() // once for all
}

// Probe puts one copy that was set aside back into its place, while the others
// of its origin stay away: to see whether a claim is answered. It is set aside
// again if that is postponed. No-op for any other copy.
func (s *Scheduler) Probe(now job.Time, id job.AttemptID) {
	s.clock = now
	slot, ok := s.find(&id)
	if !ok || s.table.rows[slot].state != aside {
		return
	}
	s.table.rows[slot].probe = true
	s.takeBack(now, slot)
	s.settle()
}

// isAside reports whether a copy that comes into its queue is set aside.
func (s *Scheduler) isAside(r *row) bool {
	return len(s.aside) > 0 && !r.probe && s.aside[r.copy.id.Job.Origin]
}

// putAside notes that a copy that is in no queue is set aside.
func (s *Scheduler) putAside(r *row) {
	r.state, r.probe = aside, false
	s.away++
}

// takeBack queues the copy at slot, which was set aside. The caller merges all
// that come back at once, so that who is within the guarantee depth does not hang
// on their order.
func (s *Scheduler) takeBack(now job.Time, slot int32) {
	r := &s.table.rows[slot]
	s.away--
	if r.notBefore > now {
		s.hide(r)
	}
	s.enter(slot).addLate(&s.table, slot)
}

// hide makes a copy that is about to be queued wait for the end of its
// postponement.
func (s *Scheduler) hide(r *row) {
	r.hidden = true
	s.hidden++
	s.eligible = min(s.eligible, r.notBefore)
}
