package sim

import (
	"bytes"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// BagSubmission is a bag to come.
type BagSubmission struct {
	Request job.Request // of one task
	Indices job.Indices
	// MaxRunning, Budget, Retries, MaxReplicas, TailAt, Priority and Hold are as in [meta.SubmitBag].
	MaxRunning  uint32
	Budget      uint64
	Retries     uint8
	MaxReplicas uint8
	TailAt      uint32
	Priority    int32
	Hold        bool
	// After is what must have ended first, of the same origin.
	After []job.Dependency
	// Policies are what it states; the sites' configurations must know how to ask them.
	Policies store.BagPolicies
	// RunTime says how long a task runs on processors of speed 1 if it is not stopped, Fails
	// whether it fails then; nil for none.
	RunTime func(task uint32) time.Duration
	Fails   func(task uint32) bool
	// At says how a task runs at a site where that is otherwise, as RunTime and Fails; nil for
	// nowhere.
	At func(site job.SiteID, task uint32) (run time.Duration, fails, otherwise bool)
	// RequestID, Tag and Done are as in [Submission].
	RequestID string
	Tag       int
	Done      func(id job.ID, err error)
}

// ofTask returns how long a task runs at a site, and how it ends then.
func (b *BagSubmission) ofTask(at job.SiteID, task uint32) (run time.Duration, kind job.OutcomeKind, reason string) {
	if b.At != nil {
		if run, fails, otherwise := b.At(at, task); otherwise {
			if fails {
				return run, job.Failure, "it fails here"
			}
			return run, job.Success, ""
		}
	}
	if b.Fails != nil && b.Fails(task) {
		return b.RunTime(task), job.Failure, "it fails"
	}
	return b.RunTime(task), job.Success, ""
}

// SubmitBag submits a bag at a site at a time to come.
func (w *World) SubmitBag(at job.Time, origin job.SiteID, sub BagSubmission) {
	s := w.byID[origin]
	w.agenda.add(max(at, w.now), arrival, jobOrder(s.index, 0), call(func() { s.submitBag(&sub) }))
}

func (s *Site) submitBag(sub *BagSubmission) {
	if s.misled(func() { s.submitBag(sub) }) {
		return
	}
	switch {
	case s.engine == nil:
		if sub.Done != nil {
			sub.Done(job.ID{}, errDown)
		}
		return
	case s.frozen: // which id it may get is not known yet
		s.hold(func() { s.submitBag(sub) })
		return
	}
	p := submitted{bag: sub, expected: s.state.NextID(), done: sub.Done}
	if s.deposed { // another one has that id, and this one is not to be
		return
	}
	s.bags[p.expected] = sub // its tasks may start in this very step
	s.tokens++
	p.token = s.tokens
	p.as = s.w.watch.depends.submitted(s, p.expected, &sub.Request, sub.After)
	s.submissions.Push(p)
	s.feed(meta.SubmitBag{
		Token: p.token, Request: sub.Request, Indices: sub.Indices, RequestID: sub.RequestID, Payload: []byte("a bag"),
		MaxRunning: sub.MaxRunning, Budget: sub.Budget, Retries: sub.Retries, MaxReplicas: sub.MaxReplicas, TailAt: sub.TailAt, Priority: sub.Priority, Hold: sub.Hold, After: sub.After, Policies: sub.Policies,
	})
	if s.state != nil && s.state.Bag(p.expected) == nil {
		delete(s.bags, p.expected) // refused, or known under another id
	}
}

// bagOf returns the submission that became a bag, nil if id is no bag's.
func (w *World) bagOf(id job.ID) *BagSubmission {
	if s := w.byID[id.Origin]; s != nil {
		return s.bags[id]
	}
	return nil
}

// grantTasks sends what a claim for tasks got; simulated tasks run nothing.
func (s *Site) grantTasks(f meta.GrantTasks) {
	s.w.watch.tasks.leaves(s, &f)
	s.w.net.send(s, meta.Send{To: f.To, Message: f.Verdict})
}

// runsTasksOf reports whether an attempt is a bundle of which a task runs here: so it is on
// the disk.
func (s *Site) runsTasksOf(bundle job.AttemptID) bool {
	if bundle.Job.Generation == 0 {
		return false
	}
	for _, p := range s.procs {
		if p.task != nil && p.task.Bundle == bundle && p.outcome == nil {
			return true
		}
	}
	return false
}

// leaves is the output of a task's run: no other run's is the same.
func (p *process) leaves() []byte {
	return fmt.Appendf(nil, "output of %v at %s, %v", p.attempt, p.s.cfg.ID, p.task)
}

// fetchTasks brings home what tasks of a batch left, as [Site.fetch] does for a job.
func (s *Site) fetchTasks(f meta.FetchTasks) {
	key := taskBatch{f.Bundle, f.Batch}
	if s.bringTasks[key] {
		return
	}
	s.bringTasks[key] = true
	s.bringTask(f, key)
}

// taskBatch names a batch of results.
type taskBatch struct {
	bundle job.AttemptID
	batch  uint32
}

func (s *Site) bringTask(f meta.FetchTasks, key taskBatch) {
	life, took := s.life, time.Duration(1)
	if f.From != s.cfg.ID {
		took += s.w.output(f.Bundle.Job)
	}
	s.w.agenda.add(s.w.now.Add(took), message, 0, call(func() {
		if s.life != life || !s.bringTasks[key] {
			return
		}
		host := s.w.byID[f.From]
		if host != s {
			if p, _ := s.w.net.pair(s, host); !p.up || host.frozen {
				s.bringTask(f, key)
				return
			}
		}
		delete(s.bringTasks, key)
		home := meta.TasksHome{Bundle: f.Bundle, Batch: f.Batch}
		if !host.hasLeft(&f) {
			for i := range f.Files {
				home.Lost = append(home.Lost, f.Files[i].Ordinal)
			}
			s.w.watch.tasks.filesLost(&f)
		}
		s.feed(home)
	}))
}

// hasLeft reports whether all that a batch of tasks left is at its host.
func (s *Site) hasLeft(f *meta.FetchTasks) bool {
	for i := range f.Files {
		run := job.AttemptID{Job: job.ID{Origin: f.Bundle.Job.Origin, Seq: f.Run}, Number: f.Files[i].Ordinal + 1}
		if p := s.procs[run]; p == nil || p.outcome == nil || !bytes.Equal(p.outcome.Files, f.Files[i].Set) {
			return false
		}
	}
	return true
}
