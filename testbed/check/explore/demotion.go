package explore

import (
	"encoding/binary"
	"fmt"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// demotion is an attempt that ended for its job to go on, and the number of what it saved.
type demotion struct {
	attempt job.AttemptID
	saved   uint64
}

// demote ends a process that has saved what it has done.
func (n *node) demote(a job.AttemptID, p *process) {
	p.outcome = &job.Outcome{
		Kind: job.Demoted, Start: n.now, End: n.now, Checkpoint: p.from + 1, Cause: p.cause,
		Files: []byte("checkpoint"), FilesRemain: a.Job.Origin != siteID(n.index),
	}
	n.out.demoted = append(n.out.demoted, demotion{a, p.from + 1})
}

// resumePayload is what a grant has: the number of the checkpoint that the attempt goes on from.
func resumePayload(r store.Resume) []byte {
	if r.Sequence == 0 {
		return nil
	}
	return binary.AppendUvarint(nil, r.Sequence)
}

// resumedFrom is the number of the checkpoint that a launch goes on from.
func resumedFrom(f meta.Launch) uint64 {
	if f.Payload == nil {
		return f.Resume.Sequence
	}
	from, _ := binary.Uvarint(f.Payload)
	return from
}

// asked lists the processes that are to save and end, in order.
func (n *node) asked() []job.AttemptID {
	var list []job.AttemptID
	for _, a := range n.running() {
		if n.procs[a].asked {
			list = append(list, a)
		}
	}
	return list
}

// goesOn notes an attempt that ended for its job to go on, and holds what it saved against what is
// known.
func (s *state) goesOn(d demotion) string {
	k, known := s.find(d.attempt)
	if !known || !s.seen[k].started {
		return fmt.Sprintf("S2: attempt %v ended to go on and was never started", d.attempt)
	}
	s.seen[k].demoted = true
	return ""
}

// savedOf counts the attempts of a job that have ended for it to go on: each saves one number more.
func (s *state) savedOf(id job.ID) (n uint64) {
	for i := range s.seen {
		if s.seen[i].demoted && s.seen[i].attempt.Job == id {
			n++
		}
	}
	return n
}
