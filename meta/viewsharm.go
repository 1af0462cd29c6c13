package meta

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// HomeJob is a job of this site that has not ended, as those see it who reckon what guests
// cost. Jobs that are held or wait for others are none.
type HomeJob struct {
	ID job.ID
	// Request has the limit that the job has here.
	Request          job.Request
	Submitted, Ready job.Time
	// Started is zero if it waits, by the clock of its host; Run is how long it has run by
	// then, on a processor of speed 1, and Over says that this is all.
	Started job.Time
	Run     time.Duration
	Over    bool
	Harm    store.Harm
}

// HomeJobs returns the jobs of this site that wait or run, and the number that the next one to
// end will have among what is past: those with lower numbers are not among them.
func (v Views) HomeJobs(now job.Time) (jobs []HomeJob, next uint64) {
	st := v.origin.st
	for j := range st.OpenJobs(job.ID{}) {
		if j.State == job.OnHold || j.State == job.Blocked {
			continue
		}
		h := HomeJob{
			ID: j.ID, Request: v.origin.here(&j.Request), Submitted: j.Submitted, Ready: st.Ready(j), Started: j.Started, Harm: v.Harm(now, j.ID),
		}
		if h.Started != 0 {
			h.Run = now.Sub(h.Started)
		}
		if j.Outcome != nil { // its output is on its way
			h.Run, h.Over = j.Outcome.End.Sub(j.Outcome.Start), true
		}
		h.Run = max(h.Run, 0) // by two clocks
		if speed := v.origin.speedOf(j.Holder, &j.Request); speed > 0 {
			h.Run = job.Scaled(h.Run, 1/speed)
		}
		jobs = append(jobs, h)
	}
	_, next = st.PastNumbers()
	return jobs, next
}

// NoHarm returns what the site does for the sake of its own jobs, and its speed.
func (v Views) NoHarm() (n NoHarm, speed float64) { return v.host.cfg.NoHarm, v.host.cfg.Self.Speed }

// DrainsSince returns since when the site drains, as far as it is not among what is past; 0 if it
// does not drain.
func (v Views) DrainsSince() job.Time {
	if site := v.origin.st.Site(); site.Draining {
		return site.DrainChanged
	}
	return 0
}
