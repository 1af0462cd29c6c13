package cluster

import "kith/internal/job"

// Lacks is what the version of a site did not know when it last connected, or what it does not do.
type Lacks struct {
	// NoCheckpoints says that it knows no checkpoints: a job that writes some is not placed there.
	NoCheckpoints bool
	// NoEstimators says that it knows no estimators: a job that brings one is not placed there.
	NoEstimators bool
	// NoSaves says that it does not copy what jobs have saved while they run: a job that asks for it
	// is not placed there.
	NoSaves bool
}

// Refuses returns what a job needs that is lacking, [job.NoReason] if nothing is.
func (l Lacks) Refuses(r *job.Request) job.Reason {
	switch {
	case r.Checkpoint && (l.NoCheckpoints || l.NoSaves && r.SaveSeconds > 0):
		return job.NoCheckpoints
	case r.Estimate && l.NoEstimators:
		return job.NoEstimators
	}
	return job.NoReason
}
