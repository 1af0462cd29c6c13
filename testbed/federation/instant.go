package federation

import (
	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/sim"
)

// Instant is a federation after all that happens at one instant. It is only to be looked at,
// and only while it is shown.
type Instant struct {
	// Now is the instant as schedulers know it; less [Zero] it is that of workloads and records.
	Now job.Time
	r   *run
}

// Zero is when the first submission of a workload is possible.
const Zero = sim.Start

// Scheduler returns the scheduler of a site, by its place.
func (x *Instant) Scheduler(site int) *sitesched.Scheduler {
	return x.r.w.Site(x.r.cfg.Sites[site].ID).Scheduler()
}

// Job returns where a job comes from: a site and the place in its workload.
func (x *Instant) Job(id job.ID) (site, index int) { return x.r.place(x.r.w.Tag(id), id.Origin) }

// Attempt returns the name of the first attempt of a job, if every job ahead of it in its
// workload was accepted.
func (x *Instant) Attempt(site, index int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: x.r.cfg.Sites[site].ID, Generation: 1, Seq: uint64(index) + 1}, Number: 1} //nolint:gosec // A place.
}
