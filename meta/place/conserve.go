package place

import "kith/internal/job"

// The stages of [Options.Conserve].

// notFull refuses sites that have lately said that they take no more copies.
func notFull(r *Round) {
	for i := range r.Sites {
		if c := &r.Sites[i]; c.Eligible && c.Sent != nil && c.Sent.Full(r.Now) {
			c.Refuse(job.Full)
		}
	}
}

// counting adds to loads what the origin has sent since they were told. Answers
// are fresh: nothing is added to them.
func counting(e Estimate) Estimate {
	score := e.Score
	e.Score = func(r *Round) bool {
		if !score(r) {
			return false
		}
		for i := range r.Sites {
			c := &r.Sites[i]
			if !c.Eligible || c.Blind || c.Sent == nil || c.Digest.Processors <= 0 {
				continue
			}
			switch e.Rank {
			case RankWork:
				c.Score = max(0, c.Score+c.Sent.Work/float64(c.Digest.Processors))
			case RankProcs:
				c.Score = max(0, c.Score+c.Sent.Procs/float64(c.Digest.Processors))
			}
		}
		return true
	}
	return e
}

// draw returns the lot of a site for the job: the same whenever it is drawn, and
// another one for every job.
func (r *Round) draw(site job.SiteID) uint64 {
	const prime = 1099511628211
	h := r.Job.Seed
	for i := range len(site) {
		h = (h ^ uint64(site[i])) * prime
	}
	// The last letters of two names must change the high bits, too.
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
