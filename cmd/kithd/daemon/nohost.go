package daemon

import (
	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/batch"
	"kith/sitesched/work"
)

// noHost is how a site of several members runs work that names no machine with processors: its jobs run at
// other sites. A member that only reads has none, either.
func noHost() Host {
	return Host{
		Site:   func() (meta.Site, error) { return batch.New(0), nil },
		System: func(func(work.Event)) (work.System, error) { return noQueue{}, nil },
	}
}

// apartHost is how a site of several members runs work whose processors are at one machine: that is
// driven, and here is only the plan.
func apartHost(cfg config.Config) Host {
	return Host{
		Site:   func() (meta.Site, error) { return sitesched.New(cfg.SchedulerConfig()) },
		System: func(func(work.Event)) (work.System, error) { return nothing{}, nil },
	}
}

// nothing is a system that runs nothing.
type nothing struct{}

// noQueue is a batch system that has no processors: nothing is ever queued there.
type noQueue struct{ nothing }

var _ work.Batch = noQueue{}

func (nothing) BootID() string                      { return "none" }
func (nothing) Capabilities() []work.Capability     { return nil }
func (nothing) Files(job.AttemptID) work.Files      { return work.Files{} }
func (nothing) Prepare(job.AttemptID) error         { return nil }
func (nothing) Folders() ([]job.AttemptID, error)   { return nil, nil }
func (nothing) Start(work.Spec)                     {}
func (nothing) Adopt(work.Spec, string)             {}
func (nothing) Extend(job.AttemptID, work.Lease)    {}
func (nothing) Stop(job.AttemptID, work.StopReason) {}
func (nothing) Ask(job.AttemptID, work.Ask)         {}
func (nothing) Forget(job.AttemptID)                {}
func (nothing) Close()                              {}

func (noQueue) Queue(job.Copy, job.Time) {}
func (noQueue) Dequeue(job.AttemptID)    {}
func (noQueue) Restored()                {}
