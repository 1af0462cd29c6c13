package place

import (
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
)

// byLoad scores sites by how loaded they said they are, if that is not older
// than maxAge.
func byLoad(rank Rank, maxAge time.Duration) Estimate {
	return Estimate{Rank: rank, Score: func(r *Round) bool {
		for i := range r.Sites {
			c := &r.Sites[i]
			switch {
			case !c.Eligible:
			case c.Age > maxAge:
				c.Blind, c.Reason = true, job.StaleLoad
			case rank == RankProcs:
				c.Score = c.Digest.Load.Procs
			default:
				c.Score = c.Digest.Load.Work
			}
		}
		return true
	}}
}

// byAnswer scores sites by their own word on when the job would start there,
// or with [RankCompletion] when it would end. With loads, equal starts are told
// apart by load "work" (spec 001 section 2.4).
func byAnswer(rank Rank, loads bool) Estimate {
	return Estimate{Rank: rank, Score: func(r *Round) bool {
		if r.View.Answers == nil {
			return false
		}
		for c, a := range r.answered {
			c.Promised = a.Wait + job.Scaled(r.Job.Request.Walltime, c.Rate(r.Job.Request.Processors))
			c.Score = a.Wait.Seconds()
			if rank == RankCompletion {
				c.Score = c.Promised.Seconds()
			} else if loads {
				c.Tie = c.Digest.Load.Work
			}
		}
		return true
	}}
}

// byForecast scores sites by when the job would end there: the median, and risk standard
// deviations. Of a site without a forecast its own word on the start is taken. It cannot score
// where no site has said anything: loads rank better than names.
func byForecast(risk float64) Estimate {
	return Estimate{Rank: RankForecast, Score: func(r *Round) bool {
		if !slices.ContainsFunc(r.View.Answers, func(a Answer) bool { return a.Known }) {
			return false
		}
		q := r.Job.Request
		runs := forecast.Runs(q.Runs)
		for c, a := range r.answered {
			waits := a.Waits
			if waits == nil {
				waits = &forecast.Waits{}
				for i := range waits {
					waits[i] = a.Wait
				}
			}
			limit := job.Scaled(q.Walltime, c.Rate(q.Processors))
			// That a slow site would stop the job at its limit makes it no better.
			ends := forecast.EndsOf(waits, &runs, limit, limit)
			c.Promised = ends.Median()
			c.Score = ends.Median().Seconds() + risk*ends.SD().Seconds()
		}
		return true
	}}
}

// answered yields the eligible sites that said when the job would start, with what they said.
// The others are blind, and have the reason.
func (r *Round) answered(yield func(*Candidate, *Answer) bool) {
	next := 0
	for i := range r.Sites {
		c := &r.Sites[i]
		if !c.Eligible {
			continue
		}
		a := r.answerOf(c.Site, &next)
		if a == nil || !a.Known {
			c.Blind, c.Reason = true, job.NoAnswer
			if a != nil && a.Reason != job.NoReason {
				c.Reason = a.Reason
			}
			continue
		}
		c.Age = 0
		if !yield(c, a) {
			return
		}
	}
}

// answerOf returns what a site answered, nil if it did not. Answers mostly come
// in the order of the sites: next is where to look first.
func (r *Round) answerOf(site job.SiteID, next *int) *Answer {
	for range r.View.Answers {
		if *next >= len(r.View.Answers) {
			*next = 0
		}
		a := &r.View.Answers[*next]
		*next++
		if a.Site == site {
			return a
		}
	}
	return nil
}
