package meta

import (
	"kith/internal/job"
	"kith/store"
)

// Preview is what would become of a job if it were submitted now.
type Preview struct {
	// Decision is what placement would decide by what is known now. No site is
	// asked about the start, also where the policy asks.
	Decision store.Decision
	// Start is when the job would start at this site; 0 if it would not queue here
	// or the site cannot say.
	Start job.Time
}

// Preview returns what would become of a job with that request, or the error with
// which it would be refused. Nothing is recorded and no message is sent.
func (v Views) Preview(now job.Time, r *job.Request) (Preview, error) {
	or := v.origin
	if err := or.admit(r); err != nil {
		return Preview{}, err
	}
	o := &openJob{rec: &store.Job{Request: *r}}
	or.beginRound(now, o, nil)
	or.round.View.Answers = nil
	p := Preview{Decision: *or.round.Decide()}
	for i := range p.Decision.Sites {
		if s := &p.Decision.Sites[i]; s.Chosen && s.Site == or.self {
			copied := job.Copy{ID: job.AttemptID{Job: job.ID{Origin: or.self}}, Arrival: now, Request: *r}
			if at, ok := v.host.site.EarliestStart(now, copied); ok {
				p.Start = at
			}
		}
	}
	return p, nil
}
