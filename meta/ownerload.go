package meta

import (
	"math"
	"time"

	"kith/cluster"
	"kith/internal/harvest"
	"kith/internal/job"
)

// A site may run jobs on machines whose owners come first (spec 003): a job goes on there only
// while its owner leaves it the processors. What the owner is expected to take is measured by the
// driver. It makes two differences: other sites expect jobs to take longer here, and a time limit
// is longer here by what the owner takes, so that his work does not end the job.

// OwnerSeen says what the owner of this site's machine is expected to do from now on; nil that
// he has no part in it. What it points to is not changed any more.
type OwnerSeen struct{ Owner *cluster.Owner }

func (OwnerSeen) event() {}

// ownerSeen takes up what the owner is expected to do. Copies that are here keep their limits:
// they are planned with them.
func (h *host) ownerSeen(ev OwnerSeen) { h.owner = ev.Owner }

// leavesNothing says that the owner leaves a request so little time that it is not taken.
func (h *host) leavesNothing(r *job.Request) bool {
	return h.owner.TooBusy(r.Processors, h.cfg.Self.Processors)
}

// speed is how fast a request gets on here.
func (h *host) speed(r *job.Request) float64 {
	return h.cfg.Self.Speed * h.owner.Left(r.Processors, h.cfg.Self.Processors)
}

// safeShare is how sure a limit is to be enough for what the job would have done within its
// own, had there been no owner.
const safeShare = 0.95

// draws are how many sums of busy periods a limit rests on where the gamma distribution is not
// good enough.
const draws = 400

// ownerLimit is the time limit of a request here, in whole seconds, where it is longer than its
// own because of the owner, else 0. It is longer by half of Timing.Overdue at the most: its
// origin, which knows the request's own, gives a job up that much later.
func (h *host) ownerLimit(r *job.Request) uint32 {
	l := h.owner.Of(r.Processors, h.cfg.Self.Processors)
	if l.Rho == 0 {
		return 0
	}
	here := h.here(r).Walltime
	end := math.Inf(1)
	machine := harvest.Machine{Lambda: l.Lambda, Rho: l.Rho, Sigma: l.Sigma, Speed: 1}
	if finish, err := harvest.NewFinish(machine, here.Seconds(), harvest.Method{Draws: draws}); err == nil && l.Rho < 1 {
		end = finish.Quantile(safeShare)
	}
	// What is no number is more than the most, too.
	if most := (here + h.cfg.Timing.Overdue/2).Seconds(); !(end < most) {
		end = most
	}
	return uint32(min(math.MaxUint32, math.Ceil(end)))
}

// limited is a request as it counts here with the limit that its copy has.
func (h *host) limited(r *job.Request, seconds uint32) job.Request {
	local := h.here(r)
	if seconds > 0 {
		local.Walltime = time.Duration(seconds) * time.Second
	}
	return local
}

// asked is a request as it would count here if its copy came now.
func (h *host) asked(r *job.Request, before *job.Progress) job.Request {
	return h.limited(r, h.limitSeconds(r, before))
}
