package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/apart"
	"kith/sitesched/executor"
	"kith/sitesched/runner"
	"kith/sitesched/work"
)

// AttemptsFolder is the folder in the data folder that holds those of attempts.
const AttemptsFolder = "attempts"

// Host is how a site schedules and runs work. For a batch system that Kith does not
// own the scheduler is a [meta.Batch] (sitesched/batch serves any) and the system a
// [work.Batch]; one without the other is refused.
type Host struct {
	// Site makes the scheduler.
	Site func() (meta.Site, error)
	// System makes what runs attempts; it tells report what becomes of them.
	System func(report func(work.Event)) (work.System, error)
}

// attempts is what carries out the effects of attempts at this site: its runner, or what drives one at
// another machine of the site.
type attempts interface {
	Launch(f meta.Launch)
	Adopt(f meta.Adopt)
	Kill(f meta.Kill)
	Ask(f meta.AskCheckpoint)
	CopySaved(a job.AttemptID)
	Unstage(a job.AttemptID)
	Extend(f meta.Extend)
	Clear(a job.AttemptID)
	Launched(a job.AttemptID) bool
	RemoveStrays(known func(job.AttemptID) bool)
	AdoptedShims() []int
	BootID() string
	Capabilities() []work.Capability
}

var _, _ attempts = (*runner.Runner)(nil), (*apart.Driver)(nil)

// checkHost refuses a plan without the queue that it is a plan of, and the reverse.
func checkHost(site meta.Site, runs *runner.Runner) error {
	switch _, plans := site.(meta.Batch); {
	case plans && !runs.Queues():
		return errors.New("host: its scheduler (meta.Batch) plans what a batch system queues, and its system has no queue; give it a system that is a work.Batch")
	case !plans && runs.Queues():
		return errors.New("host: its system (work.Batch) has a queue, of which its scheduler would hear nothing; give it a scheduler that is a meta.Batch")
	}
	return nil
}

// ownHost is a site of Kith's own: its scheduler, and processes of this machine.
func ownHost(cfg config.Config, log *slog.Logger) Host {
	return Host{
		Site: func() (meta.Site, error) {
			return sitesched.New(cfg.SchedulerConfig())
		},
		System: func(report func(work.Event)) (work.System, error) {
			x, err := executor.Open(executor.Config{
				Dir: filepath.Join(cfg.Data, AttemptsFolder), Processors: int(cfg.Processors()), Grace: cfg.Executor.Grace,
				MaxOutputBytes: cfg.Executor.MaxOutputBytes, NoAffinity: !cfg.Executor.Pin, Background: cfg.Owner.Sharing, Logger: log.With("site_id", cfg.Site),
			}, report)
			if err != nil {
				return nil, fmt.Errorf("executor: %w", err)
			}
			return x, nil
		},
	}
}
