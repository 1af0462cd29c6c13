package store

import (
	"fmt"
	"math"
	"slices"

	"kith/internal/hashed"
	"kith/internal/job"
)

// insert indexes a new job record.
func (s *State) insert(j *Job) {
	s.jobs.Put(j)
	s.order = append(s.order, j)
	if !j.State.Terminal() {
		s.open = append(s.open, j)
	}
	if j.RequestID != "" {
		s.requests.Put(j)
	}
}

func (s *State) touchJob(j *Job) {
	j.Version++
	if !j.dirty {
		j.dirty = true
		s.changes.Jobs = append(s.changes.Jobs, j)
	}
}

func (s *State) touchCopy(c *Copy) {
	if !c.dirty {
		c.dirty = true
		s.changes.Copies = append(s.changes.Copies, c)
	}
}

// move takes the job along ev. The caller has checked everything else, so
// that a command that fails changes nothing.
func (s *State) move(j *Job, ev job.Event) error {
	to, ok := j.State.Next(ev)
	if !ok {
		return fmt.Errorf("job %v is %v, cannot %v: %w", j.ID, j.State, ev, ErrState)
	}
	j.State = to
	if to.Terminal() {
		s.close()
	}
	s.touchJob(j)
	return nil
}

// close counts an ended job. When the list of open ones is half ended ones they leave
// it, so that closing a job costs next to nothing and looking through the list what is
// open.
func (s *State) close() {
	s.ended++
	if s.ended > 256 && s.ended > len(s.open)/2 {
		s.open = slices.DeleteFunc(s.open, func(j *Job) bool { return j.State.Terminal() })
		s.ended = 0
	}
}

// usualEvents is how many events the claim of a job has when all goes well:
// opened, granted, closed.
const usualEvents = 3

// newJob returns an empty record with room for the first event. A job may wait
// for long with no more than that.
func newJob() *Job {
	b := new(struct {
		Job
		events [1]ClaimEvent
	})
	b.Events = b.events[:0]
	return &b.Job
}

func (j *Job) note(e ClaimEvent) {
	if len(j.Events) >= MaxClaimEvents {
		// The beginning, the grant and the latest events tell most; the middle goes.
		i := 1
		if g := &j.Events[i]; g.Kind == ClaimGranted && g.Attempt == j.Attempt {
			i++
		}
		j.Events = slices.Delete(j.Events, i, i+1)
	}
	if len(j.Events) == 1 && cap(j.Events) == 1 {
		j.Events = append(make([]ClaimEvent, 0, usualEvents), j.Events...)
	}
	j.Events = append(j.Events, e)
}

// latest returns the job of an attempt if that is its latest.
func (s *State) latest(a job.AttemptID) (*Job, error) {
	j := s.jobs.Get(a.Job)
	if j == nil {
		return nil, fmt.Errorf("job %v: %w", a.Job, ErrUnknown)
	}
	if j.Attempt != a.Number {
		return nil, fmt.Errorf("attempt %v, the latest is %d: %w", a, j.Attempt, ErrStale)
	}
	return j, nil
}

// held returns the job of an attempt whose claim site has.
func (s *State) held(a job.AttemptID, site job.SiteID) (*Job, error) {
	j, err := s.latest(a)
	if err != nil {
		return nil, err
	}
	if j.Holder != site {
		return nil, fmt.Errorf("attempt %v, holder %q, not %q: %w", a, j.Holder, site, ErrStale)
	}
	return j, nil
}

func (s *State) known(id job.ID) (*Job, error) {
	j := s.jobs.Get(id)
	if j == nil {
		return nil, fmt.Errorf("job %v: %w", id, ErrUnknown)
	}
	return j, nil
}

// shareWords spares the memory of words that the job before has, too: thousands
// may come from one user, and each call brings words of its own.
func (j *Job) shareWords(before *Job) {
	if j.Submitter == before.Submitter {
		j.Submitter = before.Submitter
	}
	if j.Request.User == before.Request.User {
		j.Request.User = before.Request.User
	}
	if j.Request.Directory == before.Request.Directory {
		j.Request.Directory = before.Request.Directory
	}
}

func (c SubmitJob) apply(s *State) error {
	if c.ID != s.NextID() {
		return fmt.Errorf("job %v, the next is %v: %w", c.ID, s.NextID(), ErrStale)
	}
	if c.RequestID != "" {
		if s.requests.Get(hashed.Text(c.RequestID)) != nil || s.BagOfRequest(c.RequestID) != nil {
			return fmt.Errorf("request %q: %w", c.RequestID, ErrExists)
		}
	}
	after, err := s.checkAfter(c.After)
	if err != nil {
		return fmt.Errorf("job %v: %w", c.ID, err)
	}
	j := newJob()
	j.ID, j.Request, j.RequestID, j.BodyHash = c.ID, c.Request, c.RequestID, c.BodyHash
	j.State, j.Submitted, j.Submitter = job.Pending, c.Time, c.Actor
	j.Level, j.Guess = c.Request.Level, float32(job.SaneBound(c.Guess))
	if n := len(s.order); n > 0 {
		j.shareWords(s.order[n-1])
	}
	s.insert(j)
	s.site.NextSeq++
	s.changes.Site = true
	s.changes.Payloads = append(s.changes.Payloads, SideRecord{Job: c.ID, Data: c.Payload})
	s.touchJob(j)
	s.begin(j, after, c.Time)
	return nil
}

func (c OpenAttempt) apply(s *State) error {
	j, err := s.known(c.Attempt.Job)
	if err != nil {
		return err
	}
	if c.Attempt.Number != j.NextAttempt() {
		return fmt.Errorf("attempt %v, the next is %d: %w", c.Attempt, j.NextAttempt(), ErrStale)
	}
	if len(c.Sites) == 0 {
		return fmt.Errorf("attempt %v: %w", c.Attempt, ErrNoCopy)
	}
	if err := s.move(j, job.Place); err != nil {
		return err
	}
	j.Attempt = c.Attempt.Number
	j.SaveAsked = false
	j.Sites = c.Sites
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimOpened})
	if c.Decision != nil {
		s.changes.Decision = append(s.changes.Decision, DecisionOf{Job: j.ID, Decision: c.Decision})
	}
	return nil
}

func (c GrantClaim) apply(s *State) error {
	j, err := s.latest(c.Attempt)
	if err != nil {
		return err
	}
	switch {
	case j.State.Claim() == job.ClaimTaken && j.Holder == c.Site && j.HolderGeneration == c.Generation:
		return nil // the same answer to a repeated claim
	case j.State.Claim() == job.ClaimTaken:
		return fmt.Errorf("attempt %v is with %s: %w", c.Attempt, j.Holder, ErrTaken)
	case j.State == job.Queued && !slices.Contains(j.Sites, c.Site):
		return fmt.Errorf("site %s, attempt %v: %w", c.Site, c.Attempt, ErrNoCopy)
	}
	if err := s.move(j, job.Grant); err != nil {
		return err
	}
	j.Holder, j.HolderStamp, j.HolderGeneration, j.Lease = c.Site, c.Stamp, c.Generation, c.Lease
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimGranted, Site: c.Site})
	return nil
}

func (c NoteClaim) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	j.note(c.Event)
	s.touchJob(j)
	return nil
}

func (c RecordStart) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	if j.Started != 0 {
		return nil
	}
	if err := s.move(j, job.Begin); err != nil {
		return err
	}
	j.Started = c.Started
	return nil
}

func (c ReturnClaim) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	if err := s.move(j, job.GiveBack); err != nil {
		return err
	}
	j.release()
	if j.State.Terminal() {
		j.Closed = c.Time
	}
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: CopyReturned, Site: c.Site, Reason: c.Reason})
	return nil
}

func (c RevokeClaim) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	if err := s.move(j, job.Revoke); err != nil {
		return err
	}
	if c.MayRun && !j.State.Terminal() {
		if len(j.Earlier) >= MaxEarlier {
			j.Earlier = slices.Delete(j.Earlier, 0, 1)
		}
		j.Earlier = append(j.Earlier, Holding{Attempt: j.Attempt, Site: j.Holder})
	}
	if j.Revoked < math.MaxUint8 {
		j.Revoked++
	}
	j.keepSaved()
	j.release()
	j.Outcome = nil // if there is one, its output cannot be had
	if j.State.Terminal() {
		j.Closed = c.Time
	}
	j.note(ClaimEvent{Time: c.Time, Attempt: j.Attempt, Kind: ClaimRevoked, Site: c.Site, Reason: c.Reason})
	return nil
}

// release takes the claim from the holder.
func (j *Job) release() {
	j.Holder, j.HolderStamp, j.HolderGeneration, j.Lease, j.Started, j.Sites = "", 0, 0, 0, 0, nil
}

func (c RecordOutcome) apply(s *State) error {
	j, err := s.held(c.Attempt, c.Site)
	if err != nil {
		return err
	}
	if j.Outcome != nil {
		return nil
	}
	if err := s.move(j, job.Finish); err != nil {
		return err
	}
	outcome := c.Outcome
	if outcome.Kind == job.Demoted {
		j.boundRun(&outcome, c.Time)
	}
	j.Outcome = &outcome
	if j.Started == 0 {
		j.Started = outcome.Start
	}
	return nil
}

func (c CloseJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	if j.Outcome == nil {
		return fmt.Errorf("job %v has no outcome: %w", j.ID, ErrState)
	}
	if j.Outcome.Kind == job.Demoted {
		return fmt.Errorf("job %v goes on, its attempt was demoted: %w", j.ID, ErrState)
	}
	return j.end(s, c.FilesError, c.Speed, c.Time)
}

// end ends a job with its outcome.
func (j *Job) end(s *State, filesError string, speed float64, now job.Time) error {
	if err := s.move(j, j.Outcome.Kind.Event()); err != nil {
		return err
	}
	j.Closed = now
	j.Outcome.FilesRemain = filesError != ""
	if filesError != "" {
		j.Outcome.FilesLost = true
		j.Outcome.Reason = joinReason(j.Outcome.Reason, filesError)
	}
	if len(j.Outcome.Files) > 0 {
		s.changes.Outputs = append(s.changes.Outputs, SideRecord{Job: j.ID, Data: j.Outcome.Files})
		j.Outcome.Files = nil
	}
	j.note(ClaimEvent{Time: now, Attempt: j.Attempt, Kind: ClaimClosed, Site: j.Holder})
	s.rememberHome(j, j.Outcome, speed)
	return nil
}

// joinReason adds a second sentence to a reason, within its bound.
func joinReason(a, b string) string {
	if a != "" {
		b = a + "; " + b
	}
	return job.ClipReason(b)
}

func (c CancelJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	return s.cancel(j, Act{Time: c.Time, Kind: ActCancel, Actor: c.Actor, Reason: c.Reason})
}

// cancel ends a job because of an act, or has it end if it may run.
func (s *State) cancel(j *Job, act Act) error {
	if err := s.move(j, job.RequestCancel); err != nil {
		return err
	}
	if !j.CancelRequested {
		j.Acts = withAct(j.Acts, act)
	}
	j.CancelRequested = true
	if j.State.Terminal() {
		j.Closed = act.Time
		j.Sites = nil
		s.dropAfter(j.ID)
		if j.Attempt > 0 { // it has been in queues, though nowhere did it run
			s.rememberHome(j, &job.Outcome{Kind: job.Cancel, End: act.Time}, 1)
		}
	}
	return nil
}

func (c HoldJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	if err := s.move(j, job.Hold); err != nil {
		return err
	}
	j.Acts = withAct(j.Acts, Act{Time: c.Time, Kind: ActHold, Actor: c.Actor})
	j.Sites = nil
	return nil
}

func (c ReleaseJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	if err := s.move(j, job.Release); err != nil {
		return err
	}
	j.Acts = withAct(j.Acts, Act{Time: c.Time, Kind: ActRelease, Actor: c.Actor})
	if job.Waiting(s.after[j.ID]) > 0 {
		return j.block(s)
	}
	return nil
}

func (c NoteForgotten) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	j.Acts = withAct(j.Acts, Act{Time: c.Time, Kind: ActForget, Actor: c.Actor, Site: c.Site})
	s.touchJob(j)
	return nil
}

func (c PurgeJob) apply(s *State) error {
	j, err := s.known(c.Job)
	if err != nil {
		return err
	}
	if !j.State.Terminal() {
		return fmt.Errorf("job %v is %v: %w", j.ID, j.State, ErrState)
	}
	s.jobs.Delete(j.ID)
	s.forgetAfter(j.ID)
	delete(s.harm, j.ID)
	if j.RequestID != "" {
		s.requests.Delete(hashed.Text(j.RequestID))
	}
	s.changes.ForgottenJobs = append(s.changes.ForgottenJobs, j.ID)
	s.purged++
	if s.purged > 1024 && s.purged > len(s.order)/2 {
		s.order = slices.DeleteFunc(s.order, func(j *Job) bool { return s.jobs.Get(j.ID) != j })
		s.purged = 0
	}
	return nil
}

func (c NoteTime) apply(s *State) error {
	if c.Time > s.site.Latest {
		s.site.Latest = c.Time
		s.changes.Site = true
	}
	return nil
}

func (c BeginLife) apply(s *State) error {
	var said uint64 // by the clock, before lives were counted
	if s.site.Latest > 0 {
		said = uint64(s.site.Latest.Add(Late))
	}
	if s.site.Incarnation == 0 {
		s.site.Incarnation, s.site.Steps = max(c.First, said), said
	}
	if s.site.Folder == (Folder{}) {
		s.site.Folder = c.Folder
	}
	s.site.Incarnation++
	s.site.Steps += LifeSteps
	s.changes.Site = true
	return nil
}

func (MoreSteps) apply(s *State) error {
	s.site.Steps += LifeSteps
	s.changes.Site = true
	return nil
}

func (c SetDrain) apply(s *State) error {
	if s.site.Draining == c.Draining && (c.Reason == "" || s.site.DrainReason == c.Reason) {
		return nil // also without a reason: the first one stays
	}
	if s.site.Draining {
		s.rememberDrain(s.site.DrainChanged, c.Time)
	}
	s.site.Draining, s.site.DrainReason, s.site.DrainActor, s.site.DrainChanged = c.Draining, c.Reason, c.Actor, c.Time
	s.changes.Site = true
	return nil
}
