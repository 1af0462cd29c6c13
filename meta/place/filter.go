package place

import (
	"slices"

	"kith/internal/job"
)

// Fits says whether a request fits a site that is empty: NoReason if it does.
// No memory means no limit.
func Fits(r *job.Request, processors int32, memoryBytes int64) job.Reason {
	switch {
	case r.Processors > processors:
		return job.TooNarrow
	case memoryBytes > 0 && r.MemoryBytes > memoryBytes:
		return job.TooSmall
	}
	return job.NoReason
}

// localOnly refuses all sites but the origin.
func localOnly(r *Round) {
	for i := range r.Sites {
		if c := &r.Sites[i]; c.Eligible && !c.Own {
			c.Refuse(job.LocalOnly)
		}
	}
}

// fitting refuses other sites that the job does not fit, those that take no such guests, those whose owners leave it
// no time, and those whose version does not know what it needs. The origin has its own word on that, [View.Refusal].
func fitting(r *Round) {
	for i := range r.Sites {
		c := &r.Sites[i]
		if !c.Eligible || c.Own || c.Digest == nil {
			continue
		}
		if why := Fits(r.Job.Request, c.Digest.Processors, c.Digest.MemoryBytes); why != job.NoReason {
			c.Refuse(why)
		} else if why := c.Digest.Bars(r.Job.Request); why != job.NoReason {
			c.Refuse(why)
		} else if c.Digest.Owner.TooBusy(r.Job.Request.Processors, c.Digest.Processors) {
			c.Refuse(job.BusyOwner)
		} else if why := c.Refuses(r.Job.Request); why != job.NoReason {
			c.Refuse(why)
		}
	}
}

// levels refuses sites that are not of the level of the hierarchy that the job is at. A job of
// none sees no levels. The origin has its own word on that, [View.Refusal].
func levels(r *Round) {
	rank := r.Job.Request.Level
	if rank == 0 {
		return
	}
	for i := range r.Sites {
		if c := &r.Sites[i]; c.Eligible && !c.Own && c.Digest != nil && !c.Digest.Level.Is(rank) {
			c.Refuse(job.Level)
		}
	}
}

// ready refuses sites that are out of reach, never told their load, drain, or cannot
// start anything for now. The origin queues at home even so: the job waits there.
func ready(r *Round) {
	for i := range r.Sites {
		c := &r.Sites[i]
		switch {
		case !c.Eligible:
		case !c.Connected:
			c.Refuse(job.Unreachable)
		case c.Digest == nil:
			c.Refuse(job.UnknownLoad)
		case c.Digest.Draining:
			c.Refuse(job.Draining)
		case c.Digest.NotStarting && !c.Own:
			c.Refuse(job.CannotStart)
		}
	}
}

// untried refuses sites that hold a copy of the attempt, or refused one.
func untried(r *Round) {
	if len(r.Job.Tried) == 0 {
		return
	}
	for i := range r.Sites {
		if c := &r.Sites[i]; c.Eligible && slices.Contains(r.Job.Tried, c.Site) {
			c.Refuse(job.HasCopy)
		}
	}
}
