package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// Where copies start in order only, and one waits that does not fit, what comes now does not start
// on what is free. One that is postponed keeps nobody from it, nor does any where others overtake.
func TestLoadBlocked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg       Config
		postponed bool
		want      bool
	}{
		"in order":            {Config{Processors: 4}, false, true},
		"in order, postponed": {Config{Processors: 4}, true, false},
		"easy":                {Config{Processors: 4, Backfill: EASY}, false, false},
		"two queues":          {Config{Processors: 4, Queues: DualBackfill}, false, false},
	} {
		s, err := New(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		enqueue := func(n uint64, processors int32) job.AttemptID {
			id := job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: n}, Number: 1}
			s.Enqueue(0, job.Copy{ID: id, Request: job.Request{Processors: processors, Walltime: time.Minute}})
			return id
		}
		enqueue(1, 3)
		s.Pass(0)
		if s.Load(0).Blocked {
			t.Errorf("%s: blocked, and nothing waits", name)
		}
		if id := enqueue(2, 2); c.postponed {
			s.Postpone(0, id, job.Time(time.Hour))
		}
		s.Pass(0)
		if l := s.Load(0); l.Blocked != c.want || l.Free != 1 || l.Queued != 1 {
			t.Errorf("%s: %+v, expected blocked: %v", name, l, c.want)
		}
	}
}
