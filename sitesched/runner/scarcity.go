package runner

import (
	"fmt"
	"sync"
	"time"

	"kith/internal/job"
	"kith/internal/scarce"
)

// scarcity is what the machine lacks for files of jobs that wait.
type scarcity struct {
	mu      sync.Mutex
	waiting map[job.AttemptID]struct{} // whose files do
	what    string                     // was lacking last
	last    time.Time
	times   int // since nothing waited
}

// note takes what went wrong with the files of an attempt, which wait if it is about the
// machine. They do until [scarcity.over].
func (s *scarcity) note(a job.AttemptID, err error) {
	if !scarce.Passes(err) {
		s.over(a)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(map[job.AttemptID]struct{})
	}
	s.waiting[a] = struct{}{}
	s.what, s.last = scarce.Errno(err), time.Now()
	s.times++
}

// over says that the files of an attempt wait no more.
func (s *scarcity) over(a job.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, a)
	if len(s.waiting) == 0 {
		s.times = 0
	}
}

// Scarcity says in a sentence what this machine lacks for files of jobs that wait, empty if
// none do.
func (s *Runner) Scarcity() string {
	n := &s.scarcity
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		return ""
	}
	return fmt.Sprintf("files of jobs wait: %s (%d times, the latest %s ago); tried again until it passes",
		n.what, n.times, time.Since(n.last).Round(time.Second))
}
