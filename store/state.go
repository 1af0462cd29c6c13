package store

import (
	"fmt"
	"slices"

	"kith/internal/hashed"
	"kith/internal/job"
)

// State is all facts of a site, in memory. It belongs to one goroutine.
type State struct {
	site     Site
	jobs     Index[job.ID, Job]
	order    []*Job // by id, ended and purged ones included until compacted
	purged   int    // entries of order that are purged
	open     []*Job // by id, ended ones included until compacted
	ended    int    // entries of open that have ended
	copies   Index[job.AttemptID, Copy]
	requests Index[hashed.Text, Job] // those that have a request id
	trust    trust
	bags     bags
	after    map[job.ID][]job.Dependency // of the jobs and bags that have any
	harm     map[job.ID]Harm             // what guests cost jobs, where that is something
	past     pastLog

	calibration []byte

	changes Changes
}

// Changes lists what was changed since the last [State.TakeChanges]. The
// records are live: read them before the next Apply.
type Changes struct {
	Site     bool
	Jobs     []*Job
	Copies   []*Copy
	Payloads []SideRecord
	Outputs  []SideRecord
	// AttemptFiles are what attempts left that were demoted.
	AttemptFiles []AttemptFiles
	Decision     []DecisionOf
	// Forgotten jobs and copies, each in the order it happened. What counts is
	// whether the record is in the state now: a copy may have been forgotten
	// and accepted again since.
	ForgottenJobs   []job.ID
	ForgottenCopies []job.AttemptID
	// Trusted, Invitations and Tokens name records of the trust table. What counts is
	// whether the record is in the state now.
	Trusted             []job.SiteID
	Invitations, Tokens []string
	// After names jobs and bags whose dependencies have changed. What counts is whether
	// they have some now.
	After []job.ID
	// Calibration says that how forecasts did was noted.
	Calibration bool
	BagChanges
	PastChanges
}

// SideRecord is what is written with a job and not kept in memory: what it
// runs, or the files it left.
type SideRecord struct {
	Job  job.ID
	Data []byte
}

// DecisionOf is the latest decision about a job, to be written.
type DecisionOf struct {
	Job      job.ID
	Decision *Decision
}

// Empty reports whether there is nothing to write.
func (c *Changes) Empty() bool {
	return !c.Site && len(c.Jobs) == 0 && len(c.Copies) == 0 && len(c.Payloads) == 0 && len(c.Outputs) == 0 && len(c.AttemptFiles) == 0 &&
		len(c.Decision) == 0 && len(c.ForgottenJobs) == 0 && len(c.ForgottenCopies) == 0 &&
		len(c.Trusted) == 0 && len(c.Invitations) == 0 && len(c.Tokens) == 0 && len(c.After) == 0 && len(c.Past) == 0 && !c.Calibration && c.noBags()
}

// NewState returns the state of a site that has seen nothing yet. The site
// record counts as changed, so that it is written with the first batch.
func NewState(site job.SiteID, generation uint32) *State {
	s := &State{
		site:     Site{ID: site, Generation: generation, NextSeq: 1},
		jobs:     NewIndex(func(j *Job) job.ID { return j.ID }),
		copies:   NewIndex(func(c *Copy) job.AttemptID { return c.ID }),
		requests: NewIndex(func(j *Job) hashed.Text { return hashed.Text(j.RequestID) }),
		bags:     newBags(),
		past:     pastLog{first: 1, next: 1, most: MaxPast},
	}
	s.changes.Site = true
	return s
}

// Apply checks c against the state and records it. On an error, which wraps
// one of the sentinels of this package, nothing has changed.
func (s *State) Apply(c Command) error { return c.apply(s) }

// Record is [State.Apply] for a command whose kind the caller knows: it need
// not be put into an interface first, which would cost an allocation.
func Record[C Command](s *State, c C) error { return c.apply(s) }

// Site returns what the site knows of itself.
func (s *State) Site() Site { return s.site }

// NextID returns the id that the next submitted job gets.
func (s *State) NextID() job.ID {
	return job.ID{Origin: s.site.ID, Generation: s.site.Generation, Seq: s.site.NextSeq}
}

// Job returns the record of a job submitted here, nil if there is none.
func (s *State) Job(id job.ID) *Job { return s.jobs.Get(id) }

// JobCount returns how many jobs are recorded, ended ones included.
func (s *State) JobCount() int { return s.jobs.Len() }

// Copy returns the record of a copy held here, nil if there is none.
func (s *State) Copy(id job.AttemptID) *Copy { return s.copies.Get(id) }

// CopyCount returns how many copies are recorded.
func (s *State) CopyCount() int { return s.copies.Len() }

// JobOfRequest returns the job that was submitted under a request id.
func (s *State) JobOfRequest(requestID string) *Job {
	if requestID == "" {
		return nil
	}
	return s.requests.Get(hashed.Text(requestID))
}

// Jobs yields the jobs after the given id (the zero id: all) in the order of
// ids. The state must not be changed meanwhile.
func (s *State) Jobs(after job.ID) func(yield func(*Job) bool) {
	return func(yield func(*Job) bool) {
		for _, j := range s.order[position(s.order, after):] {
			if s.jobs.Get(j.ID) == j && j.ID != after && !yield(j) {
				return
			}
		}
	}
}

// OpenJobs yields the jobs after the given id (the zero id: all) that have not
// ended, in the order of ids. It costs what they are, however many have ended. The
// state must not be changed meanwhile.
func (s *State) OpenJobs(after job.ID) func(yield func(*Job) bool) {
	return func(yield func(*Job) bool) {
		for _, j := range s.open[position(s.open, after):] {
			if !j.State.Terminal() && j.ID != after && !yield(j) {
				return
			}
		}
	}
}

// position returns the index in a list of the first job not before id, 0 for the zero id.
func position(list []*Job, id job.ID) int {
	if id.IsZero() {
		return 0
	}
	at, _ := slices.BinarySearchFunc(list, id, func(j *Job, id job.ID) int { return j.ID.Compare(id) })
	return at
}

// Copies yields the copies held here, in no order: callers that decide by
// order must sort.
func (s *State) Copies() func(yield func(*Copy) bool) {
	return func(yield func(*Copy) bool) {
		for c := range s.copies.All {
			if !yield(c) {
				return
			}
		}
	}
}

// TakeChanges hands over what has changed since the last call. The caller
// must be done with it before the next Apply.
func (s *State) TakeChanges() Changes {
	c := s.changes
	for _, j := range c.Jobs {
		j.dirty = false
	}
	for _, cp := range c.Copies {
		cp.dirty = false
	}
	c.settle(s)
	s.changes = Changes{}
	return c
}

// DropChanges forgets what has changed, for drivers that keep no disk. It
// reuses the memory of the lists.
func (s *State) DropChanges() {
	c := &s.changes
	for i, j := range c.Jobs {
		j.dirty = false
		c.Jobs[i] = nil
	}
	for i, cp := range c.Copies {
		cp.dirty = false
		c.Copies[i] = nil
	}
	c.settle(s)
	clear(c.Payloads)
	clear(c.Outputs)
	clear(c.AttemptFiles)
	clear(c.Decision)
	clear(c.Past)
	*c = Changes{
		Jobs: c.Jobs[:0], Copies: c.Copies[:0], Payloads: c.Payloads[:0], Outputs: c.Outputs[:0], AttemptFiles: c.AttemptFiles[:0], Decision: c.Decision[:0],
		ForgottenJobs: c.ForgottenJobs[:0], ForgottenCopies: c.ForgottenCopies[:0],
		PastChanges: PastChanges{c.Past[:0], c.ForgottenPast[:0]},
	}
}

// Dirty reports whether anything waits to be written.
func (s *State) Dirty() bool { return !s.changes.Empty() }

// ---- restoring, for back ends ----

// RestoreSite, RestoreJob and RestoreCopy put what a back end has read into a
// new state. They check only what indexes need; [State.Check] does the rest.

// RestoreSite sets the site record.
func (s *State) RestoreSite(site Site) {
	s.site = site
	s.changes.Site = false
}

// RestoreJob adds a job. Jobs must come in the order of their ids.
func (s *State) RestoreJob(j Job) error {
	if s.jobs.Get(j.ID) != nil || (len(s.order) > 0 && s.order[len(s.order)-1].ID.Compare(j.ID) >= 0) {
		return fmt.Errorf("job %v out of order: %w", j.ID, ErrCorrupt)
	}
	s.insert(&j)
	return nil
}

// RestoreCopy adds a copy. Copies come after the jobs.
func (s *State) RestoreCopy(c Copy) error {
	if s.copies.Get(c.ID) != nil {
		return fmt.Errorf("copy %v twice: %w", c.ID, ErrCorrupt)
	}
	s.insertCopy(c, c.Request)
	return nil
}

// Check returns an error wrapping [ErrCorrupt] that names the first record
// that cannot have come from Apply, or nil.
func (s *State) Check() error {
	for _, j := range s.order {
		if s.jobs.Get(j.ID) != j {
			continue
		}
		if err := s.checkJob(j); err != nil {
			return fmt.Errorf("job %v: %w: %w", j.ID, err, ErrCorrupt)
		}
	}
	for c := range s.copies.All {
		if c.Phase < CopyQueued || c.Phase > CopyEnded || c.ID.Number == 0 || (c.Phase == CopyEnded) != (c.Outcome != nil) {
			return fmt.Errorf("copy %v in phase %d: %w", c.ID, c.Phase, ErrCorrupt)
		}
	}
	if err := s.checkBags(); err != nil {
		return err
	}
	if err := s.checkDependencies(); err != nil {
		return err
	}
	return s.checkTrust()
}

func (s *State) checkJob(j *Job) error {
	held := j.State.Claim() == job.ClaimTaken
	switch {
	case j.ID.Origin != s.site.ID:
		return fmt.Errorf("its origin is not %s", s.site.ID)
	case j.ID.Generation == s.site.Generation && j.ID.Seq >= s.site.NextSeq:
		return fmt.Errorf("its number is not below the next, %d", s.site.NextSeq)
	case j.State < job.Pending || j.State > job.Blocked:
		return fmt.Errorf("its state is %d", uint8(j.State))
	case held != (j.Holder != "") && !j.State.Terminal():
		return fmt.Errorf("it is %v and its holder is %q", j.State, j.Holder)
	case j.State == job.Queued && len(j.Sites) == 0:
		return fmt.Errorf("it is %v at no site", j.State)
	case j.Outcome != nil && j.Outcome.Kind == job.Demoted && j.State != job.Returning:
		return fmt.Errorf("it is %v, and its attempt was demoted", j.State)
	case j.State == job.Returning && j.Outcome == nil:
		return fmt.Errorf("it is %v without an outcome", j.State)
	case j.State == job.Blocked && job.Waiting(s.after[j.ID]) == 0:
		return fmt.Errorf("it is %v and waits for nothing", j.State)
	}
	return nil
}
