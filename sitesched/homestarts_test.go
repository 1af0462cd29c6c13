package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A home copy behind the head would start if guests were gone and it fits before the head's
// reservation; what is asked changes nothing.
func TestHomeStarts(t *testing.T) {
	for name, c := range map[string]struct {
		width int32
		wall  time.Duration
		want  bool
	}{
		"fits":                 {3, time.Hour, true},
		"is too wide":          {5, time.Hour, false},
		"would delay the head": {3, 9 * time.Hour, false},
	} {
		s, err := New(Config{Processors: 8, Backfill: EASY, Queues: DualBackfill})
		if err != nil {
			t.Fatal(err)
		}
		copyOf := func(n uint64, width int32, wall time.Duration, remote bool) job.Copy {
			return job.Copy{ID: job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: n}, Number: 1}, Request: job.Request{Processors: width, Walltime: wall}, Remote: remote}
		}
		begin := func(x job.Copy) {
			s.Enqueue(0, x)
			for _, id := range s.Pass(0) {
				s.Confirm(0, id, 0)
			}
		}
		begin(copyOf(1, 4, 4*time.Hour, false))
		begin(copyOf(2, 8, 4*time.Hour, false)) // the head
		var guests []job.AttemptID
		for n := range uint64(6) { // four run, two wait
			g := copyOf(10+n, 1, time.Hour, true)
			guests = append(guests, g.ID)
			begin(g)
		}
		begin(copyOf(20, c.width, c.wall, false))
		load := s.Load(0)
		if load.Free != 0 || load.Running != 5 {
			t.Fatalf("%s: %+v", name, load)
		}
		if got := s.HomeStarts(0, guests); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if s.HomeStarts(0, nil) || s.HomeStarts(0, guests[4:]) {
			t.Errorf("%s: it starts beside all guests that run", name)
		}
		if err := s.Check(); err != nil || s.Load(0) != load {
			t.Errorf("%s: %v, %+v", name, err, s.Load(0))
		}
	}
}
