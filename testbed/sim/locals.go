package sim

import (
	"slices"

	"kith/internal/job"
)

// localStart is a start of a site's own job, by the site's clock. Until is when its time limit
// ends: others were planned by that, and may have started because of it, however soon it ended.
type localStart struct {
	at, until job.Time
	charge    int64
}

// startedLocal notes that a site has started a job of its own.
func (k *keeper) startedLocal(s *Site, r *job.Request) {
	if k.cfg != nil {
		now := s.now()
		k.locals[s.index] = append(k.locals[s.index], localStart{
			at: now, until: now.Add(r.Walltime), charge: int64(s.cfg.Scheduler.Charge(r)),
		})
	}
}

// localsWent reports whether local jobs that a site has started since an instant, and whose
// time limits have not ended, are in the way of a remote copy: they and it do not fit there
// together.
func (k *keeper) localsWent(s *Site, since job.Time, r *job.Request) bool {
	now, charge := s.now(), int64(s.cfg.Scheduler.Charge(r))
	for i := range k.locals[s.index] {
		if l := &k.locals[s.index][i]; l.at >= since && l.until > now {
			charge += l.charge
		}
	}
	return charge > int64(s.cfg.Scheduler.Processors)
}

// forgetLocals forgets the starts whose time limits have ended.
func (k *keeper) forgetLocals(s *Site) {
	now := s.now()
	k.locals[s.index] = slices.DeleteFunc(k.locals[s.index], func(l localStart) bool { return l.until <= now })
}
