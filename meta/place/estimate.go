package place

import (
	"time"

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
