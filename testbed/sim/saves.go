package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// savedWork is how long jobs have run for what is in their checkpoints, on processors of speed 1. It
// is kept only where [Config.Saves] says that the next attempt has to do only the rest.
type savedWork map[savedKey]time.Duration

type savedKey struct {
	job      job.ID
	sequence uint64
}

// rest returns how long an attempt of a job that runs for a time goes on from a checkpoint.
func (w *World) rest(id job.ID, from uint64, run time.Duration) time.Duration {
	if from == 0 || w.cfg.Saves == nil {
		return run
	}
	return max(0, run-w.savedWork[savedKey{id, from}])
}

// savesWork has a process that was asked to save and end answer after the time that saving takes,
// if that is less than its grace.
func (p *process) savesWork(f meta.AskCheckpoint) (after time.Duration, saves uint64, reason string) {
	w := p.s.w
	if after = *w.cfg.Saves; after > f.Grace {
		return f.Grace, 0, "it had not saved anything in time"
	}
	p.keepsWork(p.next())
	return after, p.next(), ""
}

// keepsWork notes how much work is in what a process saves now under a number.
func (p *process) keepsWork(sequence uint64) {
	w := p.s.w
	if w.cfg.Saves == nil {
		return
	}
	id := p.attempt.Job
	ran := w.now.Sub(p.began)
	if speed := p.s.cfg.Meta.Self.Speed; speed > 0 {
		ran = job.Scaled(ran, 1/speed)
	}
	done := w.savedWork[savedKey{id, p.from}] + ran
	if w.savedWork == nil {
		w.savedWork = make(savedWork)
	}
	w.savedWork[savedKey{id, sequence}] = done
}

// refuses reports whether a site can never run a job, also because it would be a guest that might have to
// leave and could not.
func (s *Site) refuses(j *store.Job) bool {
	if s.scheduler.Refuse(&j.Request) != job.NoReason {
		return true
	}
	if most := s.cfg.Meta.NoHarm.GuestWalltime; most > 0 && j.ID.Origin != s.cfg.ID && j.Request.Walltime > most {
		return true
	}
	return j.ID.Origin != s.cfg.ID && s.engine != nil &&
		s.engine.Views().Unevictable(&j.Request, j.DemotedFor(job.Evicted) >= job.MaxEvictions) != job.NoReason
}
