package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// idleness is what a site had free, see [Conserve].
type idleness struct {
	// spent is processor time, in nanoseconds, until the last tally; free is how many
	// processors have been free since then.
	spent int64
	free  int32
	last  time.Duration
	// left counts processors that came free; vain is processor time for which they were kept for
	// claims that came too late, in nanoseconds.
	left, vain int64
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

// claimOf is a claim of a site.
type claimOf struct {
	at      int
	attempt job.AttemptID
}

// claimSent is what it keeps free for a claim, and since when.
type claimSent struct {
	at         job.Time
	processors int32
}

// claims notes that a site asks for an attempt.
func (k *keeper) claims(s *Site, a job.AttemptID) {
	if c := s.state.Copy(a); k.cfg != nil && c != nil {
		k.claimsInVain(s, a)
		if k.claimed == nil {
			k.claimed = make(map[claimOf]claimSent)
		}
		k.claimed[claimOf{s.index, a}] = claimSent{k.w.now, c.Request.Processors} // repeated, it counts from then: its origin may be away
	}
}

// answers notes that a claim of a site has its answer. If it came in vain, as the job had started
// elsewhere, the processors were not idle meanwhile: what they were kept for was being run.
func (k *keeper) answers(s *Site, m meta.Message) {
	c, vain := claimOf{at: s.index}, true
	switch m := m.(type) {
	case meta.Verdict:
		c.attempt, vain = m.Attempt, !m.Granted && m.Reason == job.HeldByOther
	case meta.Withdraw:
		c.attempt = m.Attempt
	default:
		return
	}
	sent, ok := k.claimed[c]
	delete(k.claimed, c)
	if ok && vain {
		k.idle[s.index].vain += int64(sent.processors) * int64(k.w.now-sent.at)
	}
}

// excused reports whether a site that had processors for a job since it had been idle like that was not idle for
// as much as it seems: each start begins with a message to an origin, or its claims came too late.
func (k *keeper) excused(s, o *Site, since *idleness, r *job.Request) bool {
	t, hands := &k.idle[s.index], k.handsOver(s, o)
	idle := t.spent - since.spent - (t.vain - since.vain)
	if hands {
		idle -= (t.left - since.left) * int64(k.cfg.Handover)
	}
	return (hands || t.vain > since.vain) && idle < int64(s.cfg.Scheduler.Charge(r))*int64(k.cfg.Bound)
}

// handsOver reports whether a site asks an origin for the next copy only when one has
// ended: its limits let it have no more than it has processors.
func (k *keeper) handsOver(s, o *Site) bool {
	l := &s.cfg.Meta.Limits
	return s != o && min(l.CopiesPerOrigin, l.Copies) <= int(s.cfg.Scheduler.Processors)
}
