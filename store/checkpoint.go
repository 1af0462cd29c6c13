package store

import (
	"fmt"
	"math"
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
	// Cause says why it ended.
	Cause job.DemotionCause
	// Reason explains it, for people; it may be empty.
	Reason string
	// Level is the level of the hierarchy at which it ran, 0 for none. Speed is how fast the job
	// got on at Site, against the reference; 0 is not known, and counts as 1.
	Level uint8
	Speed float64
	// Bound is the least upper bound of all the work of the job that its estimator gave in it,
	// in processor-seconds of the reference; 0 if it gave none.
	Bound float64
}

// Saved is a checkpoint that came home from an attempt that ran.
type Saved struct {
	// Attempt is its number, Site where it ran.
	Attempt uint32
	Site    job.SiteID
	// Sequence is its number in DONE, Time when it was home, by the origin.
	Sequence uint64
	Time     job.Time
	// Ran is how long the attempt had run, Speed how fast the job got on, as in [Demotion].
	Ran   time.Duration
	Speed float64
	// From is the number of the checkpoint that the attempt started with, 0 for none.
	From uint64
}

// SavedFiles names the files of [Job.Saved] among those of attempts: no attempt has the number 0.
func SavedFiles(id job.ID) job.AttemptID { return job.AttemptID{Job: id} }

// AttemptFiles is what an attempt left that was demoted, or the latest checkpoint from one that ran
// ([SavedFiles]), to be written: encoded, as [job.Outcome.Files].
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
	// Early says that the attempt was running when its checkpoint came home: its files are
	// [SavedFiles].
	Early bool
}

// Files names the files of the checkpoint.
func (r Resume) Files(id job.ID) job.AttemptID {
	if r.Early {
		return SavedFiles(id)
	}
	return job.AttemptID{Job: id, Number: r.Attempt}
}

// Carried returns how long the attempts ran whose work the latest one went on with, on a processor of
// speed 1. What one did that left no later checkpoint than it had is done again, and does not count.
func (j *Job) Carried() time.Duration {
	var sum time.Duration
	from, last := j.StartedFrom(), uint64(0)
	for i := range j.Demotions {
		d := &j.Demotions[i]
		if d.Sequence <= last || d.Sequence > from {
			continue
		}
		last = d.Sequence
		ran := d.ran()
		if d.Speed > 0 {
			ran = job.Scaled(ran, 1/d.Speed)
		}
		if sum += ran; sum < 0 || sum > job.MaxWalltime {
			return job.MaxWalltime
		}
	}
	return sum
}

// Resume returns what the next attempt goes on from, or what the latest one went on from.
func (j *Job) Resume() Resume {
	r := Resume{Attempt: j.Checkpoint, Demotions: uint32(len(j.Demotions)), Used: j.Used(), Sequence: j.left()}
	if s := j.Saved; s != nil && s.Sequence > r.Sequence {
		r.Attempt, r.Sequence, r.Early = s.Attempt, s.Sequence, true
	}
	return r
}

// Saves says why a checkpoint of the latest attempt, which runs, is not the one that the job would go
// on from; nil if it is. It is later than any other that is home, so that none takes the place of a
// later one.
func (j *Job) Saves(sequence uint64) error {
	switch {
	case j.State != job.Running || j.CancelRequested:
		return fmt.Errorf("job %v is %v: %w", j.ID, j.State, ErrState)
	case sequence <= j.Resume().Sequence:
		return fmt.Errorf("job %v has checkpoint %d: %w", j.ID, j.Resume().Sequence, ErrStale)
	}
	return nil
}

func (c RecordSaved) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	if err := j.Saves(c.Sequence); err != nil {
		return err
	}
	from := j.StartedFrom()
	j.Saved = &Saved{From: from, Attempt: j.Attempt, Site: c.Site, Sequence: c.Sequence, Ran: min(max(0, c.Ran), j.heldFor(c.Time)), Speed: c.Speed, Time: c.Time}
	s.changes.AttemptFiles = append(s.changes.AttemptFiles, AttemptFiles{Attempt: SavedFiles(j.ID), Data: c.Files})
	s.touchJob(j)
	return nil
}

// StartedFrom is the number of the checkpoint that the latest attempt started with if it has, or that the
// next one starts with; 0 for none.
func (j *Job) StartedFrom() uint64 {
	if s := j.Saved; s != nil && s.Attempt == j.Attempt && j.Holder != "" {
		return s.From
	}
	return j.Resume().Sequence
}

// keepSaved notes, of an attempt that is lost, what it had done for the checkpoint that came home
// while it ran: the job goes on from there, and that time is used.
func (j *Job) keepSaved() {
	s := j.Saved
	if s == nil || s.Attempt != j.Attempt || len(j.Demotions) >= job.MaxAttempts {
		return
	}
	start := max(j.Started, 1)
	j.Demotions = append(slices.Clone(j.Demotions), Demotion{
		Attempt: j.Attempt, Site: s.Site, Start: start, End: start.Add(s.Ran), Sequence: s.Sequence, Cause: job.HostLost, Level: j.Level, Speed: s.Speed,
	})
}

// left is the number of the latest checkpoint that an attempt left when it was demoted.
func (j *Job) left() (sequence uint64) {
	if i := slices.IndexFunc(j.Demotions, func(d Demotion) bool { return d.Attempt == j.Checkpoint }); i >= 0 {
		sequence = j.Demotions[i].Sequence
	}
	return sequence
}

// ran is how long the attempt ran, by its host: never negative, at most [job.MaxWalltime].
func (d *Demotion) ran() time.Duration {
	if d.Start == 0 {
		return 0
	}
	return min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)
}

// Used returns how long the attempts that were demoted ran together. It is never negative, and
// stays at the longest time that there is.
func (j *Job) Used() time.Duration {
	var used time.Duration
	for i := range j.Demotions {
		if used += j.Demotions[i].ran(); used < 0 {
			return math.MaxInt64
		}
	}
	return used
}

// DemotedFor returns how many attempts ended for a cause with the job to go on.
func (j *Job) DemotedFor(cause job.DemotionCause) int {
	n := 0
	for _, d := range j.Demotions {
		if d.Cause == cause {
			n++
		}
	}
	return n
}

// Begun returns how many attempts of the job count against [job.MaxAttempts].
func (j *Job) Begun() int {
	return int(j.Revoked) + len(j.Demotions) - j.DemotedFor(job.HostLost) // those are among the first
}

// LastAttempt reports whether no attempt may follow the latest one, or the next one of a pending job.
func (j *Job) LastAttempt() bool { return j.Begun()+1 >= job.MaxAttempts }

// boundRun has an attempt have run for no longer than the claim was held, by the clock of the origin:
// what it ran counts against the job, and its host's clock may have been set, or lie.
func (j *Job) boundRun(o *job.Outcome, now job.Time) {
	if held := j.heldFor(now); o.Start != 0 && o.End.Sub(o.Start) > held {
		o.End = o.Start.Add(held)
	}
}

// heldFor is how long the claim of the latest attempt has been held, by the clock of the origin, as far
// as it is known; else more than any attempt.
func (j *Job) heldFor(now job.Time) time.Duration {
	granted := slices.IndexFunc(j.Events, func(e ClaimEvent) bool { return e.Kind == ClaimGranted && e.Attempt == j.Attempt })
	if granted < 0 {
		return math.MaxInt64
	}
	return max(0, now.Sub(j.Events[granted].Time))
}

func (c AskJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	switch {
	case j.State != job.Running || j.CancelRequested:
		return fmt.Errorf("job %v is %v: %w", j.ID, j.State, ErrState)
	case j.SaveAsked:
		return nil
	}
	j.SaveAsked = true
	j.Acts = withAct(j.Acts, Act{Time: c.Time, Kind: ActCheckpoint, Actor: c.Actor})
	s.touchJob(j)
	return nil
}

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
		o.Kind, o.Cause = job.Cancel, job.OwnAccord
		return j.end(s, c.FilesError, c.Speed, c.Time)
	}
	if err := s.move(j, job.Requeue); err != nil {
		return err
	}
	d := Demotion{Attempt: j.Attempt, Site: j.Holder, Start: o.Start, End: o.End, Sequence: o.Checkpoint, Cause: o.Cause, Reason: o.Reason, Level: j.Level, Speed: c.Speed, Bound: job.SaneBound(o.Bound)}
	if len(o.Files) == 0 {
		d.Sequence = 0
	}
	if c.FilesError != "" {
		d.Sequence, d.Reason = 0, joinReason(d.Reason, c.FilesError)
	} else if len(o.Files) > 0 {
		s.changes.AttemptFiles = append(s.changes.AttemptFiles, AttemptFiles{Attempt: c.Attempt, Data: o.Files})
	}
	later := d.Sequence > j.left()
	j.Demotions = append(slices.Clone(j.Demotions), d)
	if later {
		j.Checkpoint = d.Attempt
	}
	if o.Cause == job.OutOfLevel && j.Level > 0 {
		j.Level = min(j.Level+1, job.MaxLevel)
	}
	why := job.NoReason
	if o.ByEstimate() {
		why = job.LevelMismatch
	}
	j.release()
	j.Outcome = nil
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimDemoted, Site: c.Site, Reason: why})
	return nil
}
