package sitesched

import (
	"errors"
	"math/rand/v2"
	"testing"

	"kith/internal/job"
)

// A copy that is queued and asks for something else is as if it had been withdrawn and came
// now, under every discipline; the site stays as it is.
func TestScenarioOfACopyThatAsksForSomethingElse(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		var p, q Player
		n, played := scaled(cases/28), 0
		for seed := range n {
			s, at := frozen(t, seed, c)
			if s.draining {
				continue
			}
			now := job.Time(at) * second
			before := sight(s, now)
			rng := rand.New(rand.NewPCG(seed, 22))
			for x := range s.Clone().Queued {
				other := x.Copy
				other.Request.Processors = 1 + rng.Int32N(s.cfg.Processors)
				other.Request.Walltime = secs(1 + rng.IntN(9))
				other.Arrival = now
				err := s.Prepare(now, &other, 0, &p)
				gone := s.Clone()
				gone.Withdraw(now, other.ID)
				if other.Request == x.Copy.Request { // it keeps its place
					gone = s.Clone()
				}
				err2 := gone.Prepare(now, &other, 0, &q)
				if errors.Is(err, ErrNoStart) || errors.Is(err2, ErrNoStart) {
					continue
				}
				if err != nil || err2 != nil {
					t.Fatalf("seed %d: %v, %v", seed, err, err2)
				}
				for again := range 2 {
					start, ok := p.Play(limits{})
					want, ok2 := q.Play(limits{})
					if played++; !ok || !ok2 || start != want {
						t.Fatalf("seed %d at %d, play %d: %v starts at %d (%v), want %d (%v)", seed, at, again, other.ID, start, ok, want, ok2)
					}
				}
			}
			if got := sight(s, now); got != before {
				t.Fatalf("seed %d: it changed the site from\n%s\nto\n%s", seed, before, got)
			}
		}
		if played < int(n)/2 {
			t.Errorf("only %d scenarios", played)
		}
	})
}

// What asks for more than the site has is refused, whether it is queued or not.
func TestCopyThatAsksForTooMuch(t *testing.T) {
	s := mustNew(t, Config{Processors: 4, Backfill: EASY})
	enqueueAll(s, 0, waiting(1, 4, 10, false), waiting(2, 4, 10, false))
	s.Pass(0)
	var p Player
	wide := job.Copy{ID: attempt("a", 2), Request: job.Request{Processors: 5, Walltime: secs(1)}}
	if err := s.Prepare(0, &wide, 0, &p); !errors.Is(err, ErrTooWide) {
		t.Errorf("%v", err)
	}
}
