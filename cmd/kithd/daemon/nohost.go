package daemon

import (
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched/batch"
	"kith/sitesched/work"
)

// noHost is how a site of several members runs work: it has no processors of its own, and its
// jobs run at other sites.
func noHost() Host {
	return Host{
		Site:   func() (meta.Site, error) { return batch.New(0), nil },
		System: func(func(work.Event)) (work.System, error) { return nothing{}, nil },
	}
}

// nothing is a batch system that has no processors: nothing is ever queued there.
type nothing struct{}

var _ work.Batch = nothing{}

func (nothing) BootID() string                      { return "none" }
func (nothing) Capabilities() []work.Capability     { return nil }
func (nothing) Files(job.AttemptID) work.Files      { return work.Files{} }
func (nothing) Prepare(job.AttemptID) error         { return nil }
func (nothing) Folders() ([]job.AttemptID, error)   { return nil, nil }
func (nothing) Start(work.Spec)                     {}
func (nothing) Adopt(work.Spec, string)             {}
func (nothing) Extend(job.AttemptID, work.Lease)    {}
func (nothing) Stop(job.AttemptID, work.StopReason) {}
func (nothing) Forget(job.AttemptID)                {}
func (nothing) Close()                              {}
func (nothing) Queue(job.Copy, job.Time)            {}
func (nothing) Dequeue(job.AttemptID)               {}
func (nothing) Restored()                           {}
