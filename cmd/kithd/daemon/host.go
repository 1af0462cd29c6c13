package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"kith/cmd/kithd/config"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/executor"
	"kith/sitesched/work"
)

// AttemptsFolder is the folder in the data folder that holds those of attempts.
const AttemptsFolder = "attempts"

// Host is how a site schedules and runs work.
type Host struct {
	// Site makes the scheduler.
	Site func() (meta.Site, error)
	// System makes what runs attempts; it tells report what becomes of them.
	System func(report func(work.Event)) (work.System, error)
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
				MaxOutputBytes: cfg.Executor.MaxOutputBytes, NoAffinity: !cfg.Executor.Pin, Logger: log.With("site_id", cfg.Site),
			}, report)
			if err != nil {
				return nil, fmt.Errorf("executor: %w", err)
			}
			return x, nil
		},
	}
}
