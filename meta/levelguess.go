package meta

import (
	"math"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/job"
)

// A job of a hierarchy without an estimator has a bound all the same where its origin forecasts: the
// 90 % quantile of the run times of its user's jobs. That is a guess. It is made once, at the submission,
// and kept with the job; by it the origin passes over levels that do less for one job, and that is all.
// No host is told, no attempt ends by it, and at the last level it does not count.

const (
	// guessQuantile is how many of the user's jobs the guess is to bound.
	guessQuantile = 0.9
	// leastForGuess is how many jobs of a user must have ended for one.
	leastForGuess = 10
)

// guess returns what a job of a hierarchy needs at most by the forecast, in processor-seconds of the
// reference; 0 if nothing is said: it brings an estimator, its length is known, or little is known of
// its user.
func (s *seer) guess(r *job.Request) float64 {
	if s == nil || !s.cfg.Forecasts.Bounds || r.Level == 0 || !r.Unknown || r.Estimate || s.history.JobsOf(r.User) < leastForGuess {
		return 0
	}
	var d forecast.Dist
	s.history.Runs(&forecast.Question{User: r.User, Script: r.Script, Procs: r.Processors, Limit: r.Walltime}, &d)
	return job.SaneBound(d.Quantile(guessQuantile).Seconds() * float64(r.Processors))
}

// passesOver has a pending job go past its level where each site in reach does less for one job than the
// guess says is left of it, and reports whether it did. A level below must be in reach.
func (or *origin) passesOver(now job.Time, o *openJob) bool {
	j := o.rec
	if j.Level == 0 || j.Guess <= 0 || j.Bound() > 0 {
		return false
	}
	left := float64(j.Guess) - j.Done() // never below what was used: then nothing is known
	r := j.Asked()
	reach, _ := or.ladder(now, o, &r, true)
	at, here := reach.At(r.Level, r.Processors)
	_, below := reach.Below(r.Level, r.Processors)
	if !here || at != r.Level || !below || or.mostDone(now, o, &r) >= left {
		return false
	}
	or.lower(now, o, r.Level+1, job.LevelMismatch, "")
	return true
}

// mostDone is the most that a site in reach does for one such job, of the level that it is at.
func (or *origin) mostDone(now job.Time, o *openJob, r *job.Request) (most float64) {
	if or.host.ownLevel() == r.Level && or.mayTakeHere(o, r) && !or.st.Site().Draining {
		most = or.host.levelDoes(r)
	}
	if or.policy.StaysHome {
		return most
	}
	for _, p := range or.peers.view.PeersAt(now) {
		if p.Known && p.Connected && !p.Digest.Draining && p.Digest.Level.Is(r.Level) && mayTake(o, r, p) {
			most = max(most, ofDigest(&p.Digest, r.Processors))
		}
	}
	return most
}

// levelDoes is without end where the level lets any job stay.
func (h *host) levelDoes(r *job.Request) float64 {
	l := &h.level.limits
	most, limited := l.MostLeft(h.levelTask(r, nil, 0).Bound, false)
	if !limited {
		return math.Inf(1)
	}
	return float64(most)
}

// ofDigest is what the level of another site does for one job of a width, by what it says of all its
// processors and a whole stay.
func ofDigest(d *cluster.Digest, width int32) float64 {
	l := d.Level
	if l.Queue <= 0 || d.Processors <= 0 {
		return 0
	}
	return l.Limit * (l.Run.Seconds() / l.Queue.Seconds()) * float64(min(width, d.Processors)) / float64(d.Processors)
}
