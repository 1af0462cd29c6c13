package store

import (
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
)

// A Demotion is an attempt that ended with its job to go on.
type Demotion struct {
	// Attempt is its number, Site where it ran.
	Attempt uint32
	Site    job.SiteID
	// Start and End are by the host's clock.
	Start, End job.Time
	// Sequence is the number of its checkpoint, 0 if it left none that came home.
	Sequence uint64
	// Reason explains it, for people; it may be empty.
	Reason string
}

// AttemptFiles is what an attempt left that was demoted, to be written: encoded, as
// [job.Outcome.Files].
type AttemptFiles struct {
	Attempt job.AttemptID
	Data    []byte
}

// Resume is what an attempt goes on from.
type Resume struct {
	// Attempt is the number of the attempt that left the checkpoint, 0 if there is none.
	Attempt uint32
	// Demotions counts the attempts that were demoted before.
	Demotions uint32
	// Sequence is the number of the checkpoint.
	Sequence uint64
	// Used is how long those attempts ran together.
	Used time.Duration
}

// Resume returns what the next attempt goes on from, or what the latest one went on from.
func (j *Job) Resume() Resume {
	r := Resume{Attempt: j.Checkpoint, Demotions: uint32(len(j.Demotions)), Used: j.Used()}
	if i := slices.IndexFunc(j.Demotions, func(d Demotion) bool { return d.Attempt == j.Checkpoint }); i >= 0 {
		r.Sequence = j.Demotions[i].Sequence
	}
	return r
}

// Used returns how long the attempts that were demoted ran together. It is never negative,
// and at most 64 times [job.MaxWalltime].
func (j *Job) Used() time.Duration {
	var used time.Duration
	for _, d := range j.Demotions {
		if d.Start != 0 {
			used += min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)
		}
	}
	return used
}

// Begun returns how many attempts of the job count against [job.MaxAttempts].
func (j *Job) Begun() int { return int(j.Revoked) + len(j.Demotions) }

func (c RequeueJob) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	o := j.Outcome
	switch {
	case o == nil || o.Kind != job.Demoted:
		return fmt.Errorf("attempt %v was not demoted: %w", c.Attempt, ErrState)
	case len(j.Demotions) >= job.MaxAttempts:
		return fmt.Errorf("job %v was demoted %d times: %w", j.ID, len(j.Demotions), ErrState)
	}
	if j.CancelRequested {
		o.Kind = job.Cancel
		return j.end(s, c.FilesError, c.Speed, c.Time)
	}
	if err := s.move(j, job.Requeue); err != nil {
		return err
	}
	d := Demotion{Attempt: j.Attempt, Site: j.Holder, Start: o.Start, End: o.End, Sequence: o.Checkpoint, Reason: o.Reason}
	if len(o.Files) == 0 {
		d.Sequence = 0
	}
	if c.FilesError != "" {
		d.Sequence, d.Reason = 0, joinReason(d.Reason, c.FilesError)
	} else if len(o.Files) > 0 {
		s.changes.AttemptFiles = append(s.changes.AttemptFiles, AttemptFiles{Attempt: c.Attempt, Data: o.Files})
	}
	later := d.Sequence > j.Resume().Sequence
	j.Demotions = append(slices.Clone(j.Demotions), d)
	if later {
		j.Checkpoint = d.Attempt
	}
	j.release()
	j.Outcome = nil
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimDemoted, Site: c.Site})
	return nil
}
