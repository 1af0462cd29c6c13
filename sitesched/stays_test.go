package sitesched

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// tenants are guests that run since the beginning, each on so many processors; those of a negative
// number stay.
func tenants(s *Scheduler, procs ...int32) {
	for n, p := range procs {
		c := guest(n, max(p, -p), 0)
		c.Stays = p < 0
		s.Adopt(0, c, 0)
		s.Confirm(0, c.ID, 0)
	}
}

func mine(n int, procs int32, at job.Time) job.Copy {
	return job.Copy{ID: attempt("a", n), Arrival: at, Request: job.Request{Processors: procs, Walltime: time.Minute}}
}

func seqs(ids []job.AttemptID) (list []int) {
	for _, id := range ids {
		list = append(list, int(id.Job.Seq)) //nolint:gosec // A handful.
	}
	slices.Sort(list)
	return list
}

// Guests that cannot leave are not told to: those that can leave do in their place, and nobody for a
// job that would wait all the same.
func TestWhoStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tenants []int32
		at      job.Time
		widths  []int32
		want    []int
	}{
		"another one leaves":                     {[]int32{-5, 5}, 100 * second, []int32{3}, []int{1}},
		"who stays would lose less":              {[]int32{-2, 6, 2}, 100 * second, []int32{2}, []int{2}},
		"nobody in vain":                         {[]int32{-5, 5}, 100 * second, []int32{6}, nil},
		"those before it start":                  {[]int32{-5, 3, 2}, 100 * second, []int32{2, 8}, []int{2}},
		"nobody for those behind it":             {[]int32{-5, 3, 2}, 100 * second, []int32{8, 2}, nil},
		"one that ends within the grace is told": {[]int32{-5, 5}, 3595 * second, []int32{10}, []int{0, 1}},
		"one that ends later is not":             {[]int32{-5, 5}, 3585 * second, []int32{10}, nil},
	} {
		s := mustNew(t, Config{Processors: 10, Backfill: NoBackfill, Queues: DualPreempt})
		s.SetGrace(10 * time.Second)
		tenants(s, c.tenants...)
		for n, w := range c.widths {
			s.Enqueue(c.at, mine(n, w, c.at))
		}
		s.Pass(c.at)
		if got := seqs(s.Evicted()); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d leave, want %d", name, got, c.want)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A local job that has waited for a guest that cannot leave starts once that has ended and the others
// have left.
func TestWaitsForWhoStays(t *testing.T) {
	t.Parallel()
	s := mustNew(t, Config{Processors: 10, Queues: DualPreempt})
	tenants(s, -5, 5)
	s.Enqueue(second, mine(1, 10, second))
	s.Pass(second)
	if got := s.Evicted(); len(got) > 0 {
		t.Errorf("%v leave in vain", got)
	}
	s.Finish(2*second, attempt("b", 0))
	s.Pass(2 * second)
	if got := seqs(s.Evicted()); !slices.Equal(got, []int{1}) {
		t.Errorf("%v leave, want 1", got)
	}
	s.Finish(3*second, attempt("b", 1))
	if got := s.Pass(3 * second); len(got) != 1 {
		t.Errorf("%v starts", got)
	}
}

// A guest that was told to leave and does not, as is found out then, has others chosen in its place:
// also one that was told before it ran.
func TestTurnsOutToStay(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]func(s *Scheduler, id job.AttemptID){
		"it is said":           func(s *Scheduler, id job.AttemptID) { s.Stays(2*second, id) },
		"it was told too soon": func(s *Scheduler, id job.AttemptID) { s.Confirm(2*second, id, 0) },
	} {
		s := mustNew(t, Config{Processors: 10, Queues: DualPreempt})
		if name == "it is said" { // whatever is thought of its end
			s.SetGrace(24 * time.Hour)
		}
		tenants(s, 5)
		c := guest(7, 5, 0)
		c.Arrival, c.Stays = second, name == "it was told too soon"
		s.Enqueue(second, c)
		if got := s.Pass(second); len(got) != 1 {
			t.Fatalf("%v starts", got)
		}
		if !c.Stays {
			s.Confirm(second, c.ID, 0)
		}
		s.Enqueue(2*second, mine(1, 3, 2*second))
		s.Pass(2 * second)
		if got := seqs(s.Evicted()); !slices.Equal(got, []int{7}) {
			t.Fatalf("%s: %d leave first", name, got)
		}
		stays(s, c.ID)
		s.Pass(2 * second)
		if got := seqs(s.Evicted()); !slices.Equal(got, []int{0}) {
			t.Errorf("%s: then %d leave", name, got)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The same where guests make way for one job, and their planned ends were to come sooner.
func TestMakeWayOfThoseThatCan(t *testing.T) {
	t.Parallel()
	full := func(procs ...int32) *Scheduler {
		s := mustNew(t, Config{Processors: 10, Backfill: Conservative, Queues: DualBackfill})
		s.SetGrace(10 * time.Second)
		tenants(s, procs...)
		s.Enqueue(second, mine(1, 3, second))
		s.Pass(second)
		return s
	}
	id := attempt("a", 1)
	s := full(-5, 5)
	if got := seqs(s.MakeWay(100*second, id, 110*second)); !slices.Equal(got, []int{1}) {
		t.Errorf("%d make way, want the one that can", got)
	}
	s = full(-5, 5)
	s.MakeWay(100*second, id, 110*second)
	s.Stays(101*second, attempt("b", 1))
	if got := s.MakeWay(101*second, id, 111*second); len(got) > 0 {
		t.Errorf("%v makes way, which cannot", got)
	}
	if s.wanted != 0 {
		t.Error("others do not start for the sake of a job that waits for one that stays")
	}
	s = full(5, 5)
	told := slices.Clone(s.MakeWay(100*second, id, 110*second))
	if len(told) != 1 {
		t.Fatalf("%v make way", told)
	}
	s.Stays(101*second, told[0])
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	again := s.MakeWay(101*second, id, 111*second)
	if len(again) != 1 || again[0] == told[0] {
		t.Errorf("%v stays, and %v makes way in its place", told, again)
	}
	s.Pass(101 * second)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// Asking again about a job for which guests make way costs one pass, and asking first few.
func TestMakeWayIsCheap(t *testing.T) {
	t.Parallel()
	s := mustNew(t, Config{Processors: 1000, Queues: DualBackfill})
	for n := range 1000 {
		s.Adopt(0, guest(n, 1, 0), 0)
	}
	s.Enqueue(second, mine(1, 1, second))
	s.Pass(second)
	id := attempt("a", 1)
	if got := s.MakeWay(100*second, id, 110*second); len(got) != 1 || s.trials > 4 {
		t.Errorf("%v make way after %d passes", got, s.trials)
	}
	before := s.trials
	if got := s.MakeWay(101*second, id, 111*second); len(got) != 0 || s.trials-before != 1 {
		t.Errorf("again: %v make way after %d passes", got, s.trials-before)
	}
}
