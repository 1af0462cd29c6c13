package sitesched

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
)

// No pass of any discipline moves what it has told the head, whatever happens: not even where
// estimates are broken, as those move guarantees between passes.
func TestNoPromiseIsMoved(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		started := 0
		stories(t, 1000, c, everything, func(g *stage) func(int, []job.AttemptID) error {
			return func(now int, ids []job.AttemptID) error {
				for _, id := range ids {
					started += btoi(g.s.known(id).remote)
				}
				if id, broken := g.s.Moved(); broken {
					return fmt.Errorf("at %d guests moved the guarantee of %v", now, id)
				}
				return nil
			}
		})
		if started == 0 {
			t.Error("no guest ever starts")
		}
	})
}

// A scheduler that lets a guest start which the head cannot afford is found out.
func TestMovedPromiseIsSeen(t *testing.T) {
	for _, backfill := range []Backfill{NoBackfill, EASY, Conservative, ConservativeReplan} {
		s := mustNew(t, Config{Processors: 8, Backfill: backfill, Queues: DualBackfill})
		for n, x := range []struct {
			width  int32
			wall   time.Duration
			remote bool
		}{{4, time.Hour, false}, {8, time.Hour, false}, {4, 2 * time.Hour, true}} {
			e := entry{id: attempt("a", n), processors: x.width, walltime: x.wall, remote: x.remote, arrival: job.Time(n)}
			s.Enqueue(1, e.copy())
			s.Pass(1)
		}
		if id, broken := s.Moved(); broken {
			t.Errorf("%v: %v has lost its guarantee and has not", backfill, id)
		}
		s.Enqueue(1, job.Copy{ID: attempt("b", 9), Arrival: 9, Remote: true, Request: job.Request{Processors: 1, Walltime: 2 * time.Hour}})
		s.extra = 1 // a fault
		if backfill.plans() {
			s.surface.change(1, job.Time(9*time.Hour), 4)
		}
		if started := s.Pass(1); len(started) == 0 {
			t.Fatalf("%v: the guest does not start: this test sees nothing", backfill)
		}
		if id, broken := s.Moved(); !broken || id != attempt("a", 1) {
			t.Errorf("%v: %v, %v", backfill, id, broken)
		}
	}
}
