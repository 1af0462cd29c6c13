package sitesched

import (
	"errors"

	"kith/internal/job"
)

// Site is a [Scheduler] in the words of package job, as a meta-scheduler
// drives its local site. It belongs to one goroutine, like the scheduler.
type Site struct {
	s      *Scheduler
	starts []job.AttemptID
}

// NewSite returns an empty site.
func NewSite(cfg Config) (*Site, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Site{s: s}, nil
}

// Scheduler returns the scheduler inside, for showing and for checks.
func (s *Site) Scheduler() *Scheduler { return s.s }

func copyOf(c job.Copy) Copy {
	return Copy{
		ID: c.ID, Processors: c.Request.Processors, MemoryBytes: c.Request.MemoryBytes, Walltime: c.Request.Walltime,
		Arrival: c.Arrival, Remote: c.Remote,
	}
}

// Refuse says why a request could never start here; NoReason if it could.
func (s *Site) Refuse(r *job.Request) job.Reason {
	err := s.s.Fits(Copy{Processors: r.Processors, MemoryBytes: r.MemoryBytes, Walltime: r.Walltime})
	switch {
	case err == nil:
		return job.NoReason
	case r.Processors > s.s.cfg.Processors:
		return job.TooNarrow
	case errors.Is(err, ErrTooWide):
		return job.TooSmall
	}
	return job.BadRequest
}

// Enqueue queues a copy.
func (s *Site) Enqueue(now job.Time, c job.Copy) {
	s.s.Step(now, Event{Kind: Enqueue, Copy: copyOf(c)})
}

// Withdraw forgets a queued or reserved copy.
func (s *Site) Withdraw(now job.Time, id job.AttemptID) {
	s.s.Step(now, Event{Kind: Withdraw, ID: id})
}

// Pass makes one scheduling pass and returns the copies that should start now.
// The slice is valid until the next call.
func (s *Site) Pass(now job.Time) []job.AttemptID {
	s.starts = s.starts[:0]
	for _, f := range s.s.Step(now, Event{Kind: Pass}) {
		s.starts = append(s.starts, f.Start.ID)
	}
	return s.starts
}

// Confirm says that a reserved or adopted copy runs since a time.
func (s *Site) Confirm(now job.Time, id job.AttemptID, since job.Time) {
	s.s.Step(now, Event{Kind: Confirm, ID: id, At: since})
}

// Postpone puts a copy back into its place, not to be started before until.
func (s *Site) Postpone(now job.Time, id job.AttemptID, until job.Time) {
	s.s.Step(now, Event{Kind: Postpone, ID: id, At: until})
}

// Finish frees the processors of a copy that ended.
func (s *Site) Finish(now job.Time, id job.AttemptID) {
	s.s.Step(now, Event{Kind: Finish, ID: id})
}

// Adopt takes up a copy that was begun before a restart.
func (s *Site) Adopt(now job.Time, c job.Copy, since job.Time) {
	s.s.Step(now, Event{Kind: Adopt, Copy: copyOf(c), At: since})
}

// Drain stops or resumes starting.
func (s *Site) Drain(now job.Time, on bool) {
	kind := Resume
	if on {
		kind = Drain
	}
	s.s.Step(now, Event{Kind: kind})
}

// Predict says when c would start here if nothing else arrived, see
// [Scheduler.WhatIf]; false if it would not.
func (s *Site) Predict(now job.Time, c job.Copy) (job.Time, bool) {
	p, err := s.s.WhatIf(now, copyOf(c))
	return p.Start, err == nil && p.Start != job.Never
}

// EarliestStart is metric "start", see [Scheduler.EarliestStart].
func (s *Site) EarliestStart(now job.Time, c job.Copy) (job.Time, bool) {
	at := s.s.EarliestStart(now, copyOf(c))
	return at, at != job.Never
}

// Load is how loaded the site is.
func (s *Site) Load(now job.Time) job.Load {
	l := s.s.Load(now)
	return job.Load{Work: l.WorkSeconds, Procs: l.Procs, Free: l.Free, Queued: int32(l.Queued), Running: int32(l.Running)}
}

// NextWake is when a Pass could start something without a further event.
func (s *Site) NextWake(now job.Time) job.Time { return s.s.NextWake(now) }
