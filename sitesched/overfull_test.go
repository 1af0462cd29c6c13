package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A site that came back smaller is overfull as long as what it adopted takes more than it has.
func TestOverfull(t *testing.T) {
	s, err := New(Config{Processors: 2})
	if err != nil {
		t.Fatal(err)
	}
	var ids []job.AttemptID
	for n := range 3 {
		id := job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: uint64(n + 1)}, Number: 1}
		ids = append(ids, id)
		s.Adopt(0, job.Copy{ID: id, Request: job.Request{Processors: 1, Walltime: time.Minute}}, 0)
		if got, want := s.Overfull(0), n >= 2; got != want {
			t.Errorf("with %d of 2 processors taken: %v", n+1, got)
		}
	}
	if s.Finish(0, ids[0]); s.Overfull(0) {
		t.Error("overfull with as many processors taken as there are")
	}
}

// One that alone takes more than there is makes the site overfull until it ends, whether it has
// too many processors or too much memory.
func TestOverfullByOne(t *testing.T) {
	for name, r := range map[string]job.Request{
		"processors": {Processors: 3, Walltime: time.Minute},
		"memory":     {Processors: 1, MemoryBytes: 3 << 30, Walltime: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Processors: 2, MemoryBytes: 2 << 30})
			if err != nil {
				t.Fatal(err)
			}
			id := job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: 1}, Number: 1}
			s.Adopt(0, job.Copy{ID: id, Request: r}, 0)
			s.Confirm(0, id, 0)
			if !s.Overfull(0) {
				t.Error("one takes more than there is, and the site is not overfull")
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if s.Finish(0, id); s.Overfull(0) {
				t.Error("overfull with nothing taken")
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
