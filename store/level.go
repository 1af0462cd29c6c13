package store

import (
	"fmt"
	"math"
	"time"

	"kith/internal/job"
)

// LowerJob records that a pending job of a hierarchy goes to a lower level although no attempt of
// it was demoted: its level took no copy of it, or there is none. From is the level that it is
// at, To a lower one, which has a larger number; Reason says why. The same again fails with
// [ErrStale], so that a job goes down once for each reason. It fails with [ErrState] if the job
// is not pending, and with [ErrBounds] for levels that there are not.
type LowerJob struct {
	Job      job.ID
	From, To uint8
	Reason   job.Reason
	// Site is one that did not take it, empty if it went past levels without a site.
	Site job.SiteID
	Time job.Time
}

// RejectJob records that a pending job of a hierarchy ends as no level takes it: it is cancelled
// by a rule, and keeps what it has saved. Level is the one that it is at. Why is for people. It
// fails with [ErrStale] if the job is at another level, and with [ErrState] if it is not pending.
type RejectJob struct {
	Job   job.ID
	Level uint8
	Why   string
	Time  job.Time
}

// atLevel returns a job of a hierarchy that is at a level and pending.
func (s *State) atLevel(id job.ID, level uint8) (*Job, error) {
	j, err := s.known(id)
	switch {
	case err != nil:
		return nil, err
	case j.Level != level || level == 0:
		return nil, fmt.Errorf("job %v is at level %d, not %d: %w", id, j.Level, level, ErrStale)
	case j.State != job.Pending:
		return nil, fmt.Errorf("job %v is %v: %w", id, j.State, ErrState)
	}
	return j, nil
}

func (c LowerJob) apply(s *State) error {
	j, err := s.atLevel(c.Job, c.From)
	if err != nil {
		return err
	}
	if c.To <= c.From || c.To > job.MaxLevel {
		return fmt.Errorf("job %v from level %d to %d: %w", c.Job, c.From, c.To, ErrBounds)
	}
	j.Level = c.To
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimLowered, Site: c.Site, Reason: c.Reason})
	s.touchJob(j)
	return nil
}

func (c RejectJob) apply(s *State) error {
	j, err := s.atLevel(c.Job, c.Level)
	if err != nil {
		return err
	}
	return s.cancel(j, Act{Time: c.Time, Kind: ActCancel, Reason: job.ClipReason(c.Why)})
}

// Done returns what the attempts that were demoted did together, in processor-seconds of the
// reference: a sum over them, so that none counts twice.
func (j *Job) Done() float64 {
	var done float64
	for i := range j.Demotions {
		d := &j.Demotions[i]
		speed := d.Speed
		if !(speed > 0) {
			speed = 1
		}
		done += d.ran().Seconds() * float64(j.Request.Processors) * speed
	}
	return min(done, job.MostWork)
}

// Bound returns the least upper bound of all the work of the job that its estimator has given,
// in any of its attempts, 0 if it has given none.
func (j *Job) Bound() float64 {
	least := 0.0
	for i := range j.Demotions { // an earlier version recorded whatever came
		if b := job.SaneBound(j.Demotions[i].Bound); b > 0 && (least == 0 || b < least) {
			least = b
		}
	}
	return least
}

// Asked returns what the latest attempt asks of a site, or the next one: for a job of a
// hierarchy its request at the level that it is at. What is left of a known walltime is at least
// a second. An attempt is not asked to save before its time limit if all that is left is no more than
// the time that this takes: it is the last one, and the limit ends it.
func (j *Job) Asked() job.Request {
	r := j.Request
	if j.Level > 0 {
		r.Level = j.Level
		if !r.Unknown {
			r.Walltime = max(r.Walltime-j.Used(), min(r.Walltime, time.Second))
			if r.AskBefore() >= r.Walltime {
				r.AskSeconds = 0
			}
		}
	}
	return r
}

// Before returns what the next attempt is told of the earlier ones.
func (j *Job) Before() job.Progress {
	p := job.Progress{Last: j.LastAttempt()}
	if j.Level > 0 {
		p.Used, p.Done, p.Bound = j.usedAt(j.Level), j.Done(), j.Bound()
	}
	return p
}

// usedAt returns how long the attempts that were demoted ran together at one level.
func (j *Job) usedAt(level uint8) time.Duration {
	var used time.Duration
	for i := range j.Demotions {
		if d := &j.Demotions[i]; d.Level == level {
			if used += d.ran(); used < 0 {
				return math.MaxInt64
			}
		}
	}
	return used
}

// Pushes counts how often the job was moved inside a level while it waited, as far as its events tell.
func (j *Job) Pushes() (n int) {
	for i := range j.Events {
		if e := &j.Events[i]; e.Kind == CopyReplaced && e.Reason == job.Pushed {
			n++
		}
	}
	return n
}
