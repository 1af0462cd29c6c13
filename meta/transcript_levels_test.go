package meta_test

import (
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// The words of transcripts about levels: a site that guesses, and what it remembers, are told with
// "site", the level that another site is with "load".
//
//	site ... guess past=N ran=D carried=D   N jobs of ada have ended: each ran D, and what it went on from took D
//	load SITE ... level=N runs=D [stay=D] [levelwork=N]   it is level N, and lets a job run for D and stay for twice that, or for stay
//	submit ... unknown [user=NAME] [estimate]   a job of unknown time
//	estimate ATTEMPT bound=N                its estimator has given a bound

// remember has the engine learn what the transcript says is past.
func (s *stage) remember() {
	err := s.engine.Recall(func(yield func(store.Past, error) bool) {
		for i := range s.past {
			p := s.each
			if p.Number = uint64(i + 1); !yield(p, nil) {
				return
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// guesses configures whether the site guesses, and by what.
func (s *stage) guesses(a arguments) {
	s.cfg.Forecasts = meta.Forecasts{}
	if a.has("guess") {
		s.cfg.Forecasts = meta.Forecasts{Enabled: true, Bounds: true}
	}
	s.past = int(s.number(a, "past", 0))
	s.each = store.Past{
		Origin: "alpha", Site: "beta", User: "ada", Processors: 1, Limit: job.MaxWalltime,
		Run: s.duration(a.named["ran"], 0), Before: s.duration(a.named["carried"], 0), Submitted: 1, Started: 2, Ended: 3, Kind: job.Success,
	}
}

// levelOf is the level that a site says it is; nil for none.
func (s *stage) levelOf(a arguments) *cluster.Level {
	rank, run := s.number(a, "level", 0), s.duration(a.named["runs"], time.Hour)
	if rank == 0 {
		return nil
	}
	return &cluster.Level{Rank: uint8(rank), Run: run, Queue: s.duration(a.named["stay"], 2*run), Work: s.number(a, "levelwork", 0), Limit: 2 * run.Seconds() * s.number(a, "processors", 4)}
}

// unknown makes a request one of unknown time.
func (s *stage) unknown(r *job.Request, a arguments) {
	if user, named := a.named["user"]; named {
		r.User = user
	}
	if a.has("unknown") {
		r.Unknown, r.Walltime, r.Level, r.Checkpoint, r.Estimate = true, job.MaxWalltime, 1, true, a.has("estimate")
	}
}

// showLevel tells where a job is in its hierarchy.
func (s *stage) showLevel(v *meta.JobView) {
	if r := &v.Record; r.Level > 0 {
		s.say("level %d guess=%v bound=%v told=%v", r.Level, r.Guess, r.Bound(), v.Bound)
	}
}
