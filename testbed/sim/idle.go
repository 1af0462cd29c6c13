package sim

import "time"

// idleness is what a site had free, see [Conserve].
type idleness struct {
	// spent is processor time, in nanoseconds, until the last tally; free is how many
	// processors have been free since then.
	spent int64
	free  int32
	last  time.Duration
	// left counts processors that came free.
	left int64
}

// tally notes what a site has free, as that changes or is looked at.
func (k *keeper) tally(s *Site) {
	if k.cfg == nil {
		return
	}
	t, now := &k.idle[s.index], k.w.now.Sub(Start)
	t.spent += int64(t.free) * int64(now-t.last)
	t.last, t.free = now, k.free(s)
	k.least[s.index] = min(k.least[s.index], t.free)
}

// left notes that processors of a site come free.
func (k *keeper) left(p *process) {
	if k.cfg != nil {
		k.tally(p.s)
		k.idle[p.s.index].left += int64(p.processors)
	}
}

// spent returns the processor time for which a site was idle, in nanoseconds, less that
// for which its processors stood between two jobs at most.
func (k *keeper) spent(s *Site) int64 {
	t := &k.idle[s.index]
	return t.spent - t.left*int64(k.cfg.Handover)
}

// handsOver reports whether a site asks an origin for the next copy only when one has
// ended: its limits let it have no more than it has processors.
func (k *keeper) handsOver(s, o *Site) bool {
	l := &s.cfg.Meta.Limits
	return s != o && min(l.CopiesPerOrigin, l.Copies) <= int(s.cfg.Scheduler.Processors)
}
