package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
)

func (c GrantBundle) apply(s *State) error {
	b, err := s.knownBag(c.Bundle.Job)
	if err != nil {
		return err
	}
	if t := b.Live[c.Bundle.Number]; t != nil && !t.Late && t.claim() == (claimKey{c.Site, c.Generation, c.Stamp}) && t.Node == c.Node {
		return nil // the same answer to a repeated claim
	}
	n := c.Tasks.Count()
	switch {
	case c.Bundle.Number != b.Number+1:
		return fmt.Errorf("bundle %v, the latest is %d: %w", c.Bundle, b.Number, ErrStale)
	case !b.State.Gives():
		return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
	case n == 0 || n > MaxBundleTasks || c.Site == "" || b.Number == math.MaxUint32:
		return fmt.Errorf("bundle %v of %d tasks for %q; it must have 1 to %d, a site and a number: %w", c.Bundle, n, c.Site, MaxBundleTasks, ErrBounds)
	case b.MaxRunning > 0 && b.Runs()+n > int(b.MaxRunning):
		return fmt.Errorf("bundle %v of %d tasks, %d of at most %d are with sites: %w", c.Bundle, n, b.Runs(), b.MaxRunning, ErrState)
	case n > b.Affords():
		return fmt.Errorf("bundle %v of %d tasks, the budget of %d processor-seconds allows %d more than the %d with sites: %w", c.Bundle, n, b.Budget, b.Affords(), b.Runs(), ErrState)
	}
	if err := b.checkLevel(&c); err != nil {
		return err
	}
	if c.Replica {
		err = b.takeReplicas(&c)
	} else {
		err = b.takeWaiting(&c)
	}
	if err != nil {
		return fmt.Errorf("bundle %v of %d tasks: %w", c.Bundle, n, err)
	}
	b.Number++
	t := &TaskBundle{
		Number: b.Number, Site: c.Site, Node: c.Node, Stamp: c.Stamp, Generation: c.Generation, Lease: c.Lease,
		Granted: c.Time, Deadline: c.Deadline, Tasks: c.Tasks.Clone(), Replica: c.Replica, Level: c.Level, Limit: c.Limit,
	}
	if b.Level > 0 && b.Begun == 0 {
		b.Begun, b.Limit = max(c.Time, 1), c.Limit
	}
	s.addBundle(b, t)
	s.touchBundle(b, t)
	s.touchBag(b)
	return nil
}

// takeReplicas checks that the tasks of a grant may be with its site beside others, and
// counts them.
func (b *Bag) takeReplicas(c *GrantBundle) error {
	if b.TailSince == 0 {
		return fmt.Errorf("of replicas before the tail: %w", ErrState)
	}
	here := b.TasksAt(c.Site)
	for task := range c.Tasks.All {
		switch {
		case !b.MayReplicate(task):
			return fmt.Errorf("replica of task %d, which is with %d sites of 1 to %d, is being stopped or should have ended: %w", task, b.RunsOf(task), b.MaxReplicas, ErrNotWaiting)
		case here.Has(task):
			return fmt.Errorf("replica of task %d at %q: %w", task, c.Site, ErrBeside)
		}
	}
	b.Sums.Replicas += uint64(c.Tasks.Count())
	return nil
}

// takeWaiting takes the tasks of a grant from those that wait.
func (b *Bag) takeWaiting(c *GrantBundle) error {
	tasks := &c.Tasks
	fresh := job.TaskSet{}
	if last, _ := tasks.Last(); last >= b.Next {
		if last >= b.Tasks() {
			return fmt.Errorf("task %d, the last one is %d: %w", last, b.Tasks()-1, ErrBounds)
		}
		fresh = job.TaskRange(b.Next, last+1)
	}
	again := tasks.Clone()
	again.RemoveAll(&fresh)
	if !tasks.Covers(&fresh) || !b.Again.Covers(&again) {
		return ErrNotWaiting
	}
	b.noteAll(&again)
	b.Again.RemoveAll(&again)
	b.Next += uint32(fresh.Count())
	return nil
}

// bundleAt returns a live bundle that was given to site, and its bag.
func (s *State) bundleAt(id job.AttemptID, site job.SiteID) (*Bag, *TaskBundle, error) {
	b, err := s.knownBag(id.Job)
	if err != nil {
		return nil, nil, err
	}
	t := b.Live[id.Number]
	if t == nil || t.Site != site {
		return nil, nil, fmt.Errorf("bundle %v at %q: %w", id, site, ErrStale)
	}
	return b, t, nil
}

// leave takes a task from a bundle that has it, and reports whether it is with no site any
// more that had it. A bundle that is late did not count as one.
func (s *State) leave(b *Bag, t *TaskBundle, task uint32) (last bool) {
	t.Tasks.Remove(task)
	s.touchBundle(b, t)
	return !t.Late && b.part(t.Number, task)
}

// lose counts that a run of the task was lost.
func (t *Tries) lose() { t.Losses = min(t.Losses, math.MaxUint8-1) + 1 }

// comeBack has a task that no site has any more wait again, or ends it if its user wants
// that.
func (s *State) comeBack(b *Bag, task uint32) {
	b.note(task)
	if b.Stopping.Remove(task) {
		s.end(b, task, &b.Cancelled)
		return
	}
	b.Again.Add(task)
}

// end puts a task, which is in no other set, into one of those that have ended.
func (s *State) end(b *Bag, task uint32, set *job.TaskSet) {
	b.note(task)
	set.Add(task)
	b.Stopping.Remove(task)
	b.setTries(task, Tries{})
	if len(b.late) > 0 {
		one := job.TaskRange(task, task+1)
		s.dropFromLate(b, &one)
	}
}

// dropFromLate takes tasks that have ended from the bundles that were taken back.
func (s *State) dropFromLate(b *Bag, tasks *job.TaskSet) {
	for i := 0; i < len(b.late); {
		t := b.late[i]
		if t.Tasks.Intersects(tasks) {
			t.Tasks.RemoveAll(tasks)
			s.touchBundle(b, t)
			if t.Tasks.Empty() {
				s.dropBundle(b, t) // and so it is not the i-th any more
				continue
			}
		}
		i++
	}
}

// settleBundle forgets a bundle that has no tasks left, and moves a bag that has none.
func (s *State) settleBundle(b *Bag, t *TaskBundle) {
	if b.Live[t.Number] == t && t.Tasks.Empty() {
		s.dropBundle(b, t)
	}
	s.touchBag(b)
	s.resolve(b)
}

func (s *State) returnTasks(b *Bag, t *TaskBundle, tasks *job.TaskSet) {
	back := t.Tasks.Clone()
	back.RetainAll(tasks)
	for task := range back.All {
		if s.leave(b, t, task) {
			s.comeBack(b, task)
		}
	}
}

func (c ReturnTasks) apply(s *State) error {
	b, t, err := s.bundleAt(c.Bundle, c.Site)
	if err != nil {
		return err
	}
	s.returnTasks(b, t, &c.Tasks)
	s.settleBundle(b, t)
	return nil
}

func (c RecordResults) apply(s *State) error {
	b, t, err := s.bundleAt(c.Bundle, c.Site)
	if err != nil {
		return err
	}
	if c.Batch <= t.Batch {
		return nil // recorded before
	}
	err = checkResults(c.Results, b.Tasks())
	if err == nil {
		err = checkFiles(c.Files, c.Results)
	}
	if err != nil {
		return fmt.Errorf("batch %d of bundle %v: %w", c.Batch, c.Bundle, err)
	}
	t.Batch = c.Batch
	s.touchBundle(b, t)
	files := make(map[uint32][]byte, len(c.Files))
	for i := range c.Files {
		files[c.Files[i].Ordinal] = c.Files[i].Set
	}
	others := b.Holding(t, c.Results)
	for i := range c.Results {
		s.takeResult(b, t, others, c.Results[i], files[c.Results[i].Ordinal], c.Time)
	}
	s.returnTasks(b, t, &c.Returned)
	s.settleBundle(b, t)
	return nil
}

// takeResult records how a run of a task ended and, if that ends the task, what it left.
// Others are the bundles that are not late and had some of the tasks that t tells of.
func (s *State) takeResult(b *Bag, t *TaskBundle, others []*TaskBundle, r job.TaskResult, files []byte, now job.Time) {
	task := r.Ordinal
	if b.byLevel(t, &r) { // as what its host stops for reasons of its own
		r.Kind = job.Cancel
	}
	byItself := r.Kind == job.Failure || r.Kind == job.Timeout
	if !t.Tasks.Has(task) || t.Late && r.Kind != job.Success && !byItself {
		b.Sums.Wasted++
		return
	}
	last := s.leave(b, t, task)
	b.Sums.add(t.Site, &r)
	stopping := b.Stopping.Has(task)
	tries := b.Tries[task]
	var set *job.TaskSet
	switch {
	case r.Kind == job.Success:
		set = &b.Done
	case stopping: // however it ended, nobody wants more of it
		set = &b.Cancelled
	case r.Kind == job.Cancel: // the host stopped it for reasons of its own
	case r.Kind == job.Loss:
		if tries.lose(); b.lostForGood(tries) {
			set = &b.Failed
		}
	default:
		if tries.Failures = min(tries.Failures, math.MaxUint8-1) + 1; tries.Failures > b.Retries {
			set = &b.Failed
		}
	}
	if set != &b.Done && slices.ContainsFunc(others, func(o *TaskBundle) bool { return o.Tasks.Has(task) }) {
		set = nil // they go on with it
	}
	if set == nil {
		if tries != (Tries{}) {
			b.setTries(task, tries)
			b.note(task)
		}
		if last {
			s.comeBack(b, task)
		}
		return
	}
	if t.Late { // where the task has been since
		b.Again.Remove(task)
	}
	if !last {
		s.takeFrom(others, b, task, now)
	}
	s.keepResult(b, t, r, files)
	s.end(b, task, set)
}

// takeFrom takes a task that ends from the bundles that have it of some which are not late.
func (s *State) takeFrom(others []*TaskBundle, b *Bag, task uint32, now job.Time) {
	for _, o := range others {
		if !o.Tasks.Has(task) {
			continue
		}
		b.Sums.WastedTime += min(max(0, now.Sub(o.Granted)), b.Request.Walltime).Seconds()
		s.leave(b, o, task)
		if o.Tasks.Empty() {
			s.dropBundle(b, o)
		}
	}
}

// keepResult has the result of a task written, and what it left.
func (s *State) keepResult(b *Bag, t *TaskBundle, r job.TaskResult, files []byte) {
	if len(files) > 0 || b.Retried { // else there are none of an earlier result
		s.changes.TaskFiles = append(s.changes.TaskFiles, FilesOf{b.ID, TaskFiles{r.Ordinal, files}})
	}
	tries := b.Tries[r.Ordinal]
	r.Start -= r.Start % job.Time(time.Microsecond)
	r.Run, r.CPUTime = r.Run.Truncate(time.Microsecond), r.CPUTime.Truncate(time.Microsecond)
	r.MaxRSSBytes -= r.MaxRSSBytes % 1024
	r.ErrorLine = "" // it is in the sums
	s.changes.Results = append(s.changes.Results, ResultOf{b.ID, TaskRecord{Result: r, Bundle: t.Number, Site: t.Site, Tries: tries.Failures + tries.Losses}})
}

func (c RevokeBundle) apply(s *State) error {
	b, t, err := s.bundleAt(c.Bundle, c.Site)
	if err != nil {
		return err
	}
	if t.Late {
		if c.MayRun {
			return nil
		}
		t.Tasks.Clear()
		s.settleBundle(b, t)
		return nil
	}
	tasks := t.Tasks.Clone()
	mayRun := c.MayRun && b.Request.OnSiteLost != job.Wait
	s.forgetClaim(b, t)
	b.setLate(t)
	if !mayRun {
		t.Tasks.Clear()
	}
	s.touchBundle(b, t)
	for task := range tasks.All {
		b.note(task)
		tries := b.Tries[task]
		tries.lose()
		b.Sums.site(t.Site, func(sum *SiteSums) { sum.Lost++ })
		if !b.part(t.Number, task) { // others go on with it
			b.setTries(task, tries)
			continue
		}
		if !b.Stopping.Has(task) && b.lostForGood(tries) && (!c.Requeue || tries.Losses >= MaxTaskLosses) {
			lost := job.TaskResult{Ordinal: task, Kind: job.Loss}
			b.Sums.fail(&lost) // no run: nothing was reported
			s.keepResult(b, t, lost, nil)
			s.end(b, task, &b.Failed)
			continue
		}
		b.setTries(task, tries)
		s.comeBack(b, task)
	}
	s.boundLate(b)
	s.settleBundle(b, t)
	return nil
}

// boundLate forgets the oldest of too many bundles that were taken back.
func (s *State) boundLate(b *Bag) {
	for len(b.late) > MaxLateBundles {
		s.dropBundle(b, b.late[0])
	}
}

// setLate marks a bundle as taken back.
func (b *Bag) setLate(t *TaskBundle) {
	t.Late = true
	at, _ := slices.BinarySearchFunc(b.late, t.Number, func(o *TaskBundle, number uint32) int { return cmp.Compare(o.Number, number) })
	b.late = slices.Insert(b.late, at, t)
}

// add counts a result that was taken.
func (m *BagSums) add(site job.SiteID, r *job.TaskResult) {
	m.Runs++
	run := r.Run.Seconds()
	m.RunTime += run
	m.Squares += run * run
	m.CPUTime += r.CPUTime.Seconds()
	m.site(site, func(sum *SiteSums) {
		sum.RunTime += run
		switch r.Kind {
		case job.Success:
			sum.Done++
		case job.Loss:
			sum.Lost++
		case job.Failure, job.Timeout:
			sum.Failed++
		}
	})
	if r.Kind == job.Failure || r.Kind == job.Timeout || r.Kind == job.Loss {
		m.fail(r)
	}
}

// site changes the sums of a site, if there is room for it.
func (m *BagSums) site(site job.SiteID, change func(*SiteSums)) {
	at, found := slices.BinarySearchFunc(m.Sites, site, func(s SiteSums, site job.SiteID) int { return strings.Compare(string(s.Site), string(site)) })
	if !found {
		if len(m.Sites) == MaxSiteSums {
			return
		}
		m.Sites = slices.Insert(m.Sites, at, SiteSums{Site: site})
	}
	change(&m.Sites[at])
}

// fail counts a failed run among those of its kind.
func (m *BagSums) fail(r *job.TaskResult) {
	line := r.ErrorLine
	at, lines := m.failure(r, line)
	if at < 0 && line != "" && lines >= MaxFailureLines {
		line = ""
		at, _ = m.failure(r, line)
	}
	if at < 0 && len(m.Failures) < MaxFailureKinds {
		at = len(m.Failures)
		m.Failures = append(m.Failures, FailureKind{Kind: r.Kind, ExitCode: r.ExitCode, Signal: r.Signal, ErrorLine: line})
	}
	if at < 0 {
		at = MaxFailureKinds - 1
	}
	f := &m.Failures[at]
	f.Count++
	if len(f.Tasks) < MaxFailureTasks && !slices.Contains(f.Tasks, r.Ordinal) {
		f.Tasks = append(f.Tasks, r.Ordinal)
	}
}

// failure returns the place of the failures that ended like a result and with a line of
// errors, -1 if there are none, and how many lines those have that ended like it.
func (m *BagSums) failure(r *job.TaskResult, line string) (at, lines int) {
	at = -1
	for i := range m.Failures {
		f := &m.Failures[i]
		if f.Kind != r.Kind || f.Signal != r.Signal || f.Signal == 0 && f.ExitCode != r.ExitCode {
			continue
		}
		if f.ErrorLine == line {
			at = i
		}
		if f.ErrorLine != "" {
			lines++
		}
	}
	return at, lines
}
