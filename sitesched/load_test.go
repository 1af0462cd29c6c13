package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// Where what comes from another site waits for others, whatever is free, the load says so: where
// copies start in order only, or local ones first. A copy that is postponed keeps nobody waiting.
func TestLoadBlocked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg       Config
		remote    bool
		postponed bool
		want      bool
	}{
		"in order":                    {cfg: Config{}, want: true},
		"in order, postponed":         {cfg: Config{}, postponed: true},
		"easy":                        {cfg: Config{Backfill: EASY}},
		"beside local":                {cfg: Config{Queues: DualBackfill}},
		"behind local":                {cfg: Config{Queues: DualStrict, Backfill: EASY}, want: true},
		"behind local, postponed":     {cfg: Config{Queues: DualStrict, Backfill: EASY}, postponed: true},
		"behind remote, in order":     {cfg: Config{Queues: DualStrict}, remote: true, want: true},
		"behind remote, not in order": {cfg: Config{Queues: DualStrict, Backfill: EASY}, remote: true},
	} {
		c.cfg.Processors = 4
		s, err := New(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		enqueue := func(n uint64, processors int32) job.AttemptID {
			id := job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: n}, Number: 1}
			s.Enqueue(0, job.Copy{ID: id, Request: job.Request{Processors: processors, Walltime: time.Minute}, Remote: c.remote})
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
