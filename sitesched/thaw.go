package sitesched

import (
	"kith/internal/hashed"
	"kith/internal/job"
)

// Thawed makes the index anew after the scheduler was read from an image (package
// internal/frozen): where it has what lies is the secret of one process.
func (s *Scheduler) Thawed() {
	s.index = hashed.New[job.AttemptID, int32]()
	for slot := range s.table.rows {
		if s.table.rows[slot].state != vacant {
			s.index.Put(int32(slot), s.table.name)
		}
	}
	s.recent = 0
}
