package runner

import (
	"strings"

	"kith/internal/job"
)

// emptier is a system that can make room before an attempt is forgotten.
type emptier interface {
	Empty(id job.AttemptID, keep []string) error
}

// MakeRoom removes what attempts that have ended left in their folders, although
// their ends are not with their origins yet: on a full disk those ends could not be
// written down otherwise. What is declared as an output and not collected yet stays.
func (s *Runner) MakeRoom() {
	e, ok := s.system.(emptier)
	if !ok {
		return
	}
	type due struct {
		attempt job.AttemptID
		keep    []string
	}
	var all []due
	s.mu.Lock()
	for a, r := range s.byID {
		switch {
		case r.emptied || !r.finished:
		case r.over:
			r.emptied = true
			all = append(all, due{a, nil})
		default:
			all = append(all, due{a, r.uncollected})
		}
	}
	s.mu.Unlock()
	for _, d := range all {
		if err := e.Empty(d.attempt, d.keep); err != nil {
			s.log.Warn("folder of an ended attempt not emptied", "attempt_id", d.attempt.String(), "error", err.Error())
		}
	}
}

// ends notes that the system is done with an attempt. On a full disk its folder is
// emptied at once, so that its end finds room.
func (s *Runner) ends(r *run) {
	var keep []string
	if r.payload == nil {
		keep = []string{"*"} // what it declares is not known
	} else {
		keep = topNames(r.payload.outputs())
	}
	s.mu.Lock()
	r.finished, r.uncollected = true, keep
	if r.stopSaving != nil {
		r.stopSaving()
	}
	s.mu.Unlock()
	if e, ok := s.system.(emptier); ok && s.room() != nil {
		if err := e.Empty(r.attempt, keep); err != nil {
			s.log.Warn("folder of an ended attempt not emptied", "attempt_id", r.attempt.String(), "error", err.Error())
		}
	}
}

// topNames returns the first part of each path or pattern.
func topNames(outputs []string) []string {
	var names []string
	for _, o := range outputs {
		first, _, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(o, "./"), "/"), "/")
		names = append(names, first)
	}
	return names
}
