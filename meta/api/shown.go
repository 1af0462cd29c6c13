package api

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what is kept for lists: at most twice mostShown jobs, each of at most shownBytes.
const (
	mostShown  = 4096
	shownBytes = 1 << 10
)

// shown keeps what lists show of the payloads of open jobs. A payload does not change, and
// those who ask for the queue ask for it again. The zero value keeps nothing yet. It is safe
// for use by several goroutines.
type shown struct {
	mu sync.Mutex
	// newer takes in; what was not asked for since it was full the last time goes with older.
	newer, older map[job.ID]*kithv1.Payload
}

// get returns what is kept of a job, nil if nothing is. It must not be changed.
func (s *shown) get(id job.ID) *kithv1.Payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.newer[id]; p != nil {
		return p
	}
	p := s.older[id]
	if p != nil {
		s.keep(id, p)
	}
	return p
}

// put keeps what lists show of a payload, if that is not much.
func (s *shown) put(id job.ID, p *kithv1.Payload) {
	j := new(kithv1.Job)
	fillFromPayload(j, p)
	leaveOut(j)
	if proto.Size(j) > shownBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(id, &kithv1.Payload{Job: j})
}

// keep keeps it. The mutex is held.
func (s *shown) keep(id job.ID, p *kithv1.Payload) {
	if s.newer == nil || len(s.newer) >= mostShown {
		s.newer, s.older = make(map[job.ID]*kithv1.Payload), s.newer
	}
	s.newer[id] = p
}

// shownPayload returns what lists show of the payload of a job; it may have more. It must
// not be changed.
func (s *Server) shownPayload(id job.ID, open bool) (*kithv1.Payload, error) {
	if p := s.shown.get(id); p != nil {
		return p, nil
	}
	p, err := s.readPayload(id)
	if err == nil && open {
		s.shown.put(id, p)
	}
	return p, err
}
