package runner

import (
	"fmt"
	"sync"
	"time"

	"kith/internal/scarce"
)

// scarcity is what the machine lately lacked for the files of jobs.
type scarcity struct {
	mu    sync.Mutex
	what  string
	last  time.Time
	times int // in a row, without scarcityOver between two
}

// scarcityOver is how long after the latest failure the trouble counts as over: longer
// than the longest pause between two tries.
const scarcityOver = 90 * time.Second

// note takes an error, and leaves those aside that are not about the machine.
func (s *scarcity) note(err error) {
	if !scarce.Passes(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last) > scarcityOver {
		s.times = 0
	}
	s.what, s.last = scarce.Errno(err), time.Now()
	s.times++
}

// Scarcity says in a sentence what this machine lately lacked for the files of jobs,
// empty if nothing. What failed for it is tried again.
func (s *Runner) Scarcity() string {
	n := &s.scarcity
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == 0 || time.Since(n.last) > scarcityOver {
		return ""
	}
	return fmt.Sprintf("files of jobs wait: %s (%d times, the latest %s ago); tried again until it passes",
		n.what, n.times, time.Since(n.last).Round(time.Second))
}
