package metrics

import (
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/harm"
)

// HarmBound is for how long guests may block a job of a site that is not told otherwise
// before it counts as a violation.
const HarmBound = 10 * time.Minute

// HarmQuestion is a site that ran its own jobs and those of others.
type HarmQuestion struct {
	// Site is its name, by which records are those of its users or of its guests.
	Site job.SiteID
	// Config is how it schedules. Its queues do not matter.
	Config sitesched.Config
	// Speed is that of its processors, by which estimates are divided; zero means 1.
	Speed float64
}

// Compare says what guests cost the users of the site, and what these guests got. records are
// of all sites, each job once, those of one origin in the order in which they were submitted.
// The error wraps [sitesched.ErrConfig].
func (q *HarmQuestion) Compare(records []Record) (harm.Report, error) {
	// A job that started at 0 would not have started: all is later.
	begin := job.Time(time.Second)
	for i := range records {
		begin = max(begin, job.Time(time.Second)-records[i].Submit)
	}
	var jobs []harm.Job
	var guests []harm.Guest
	for i := range records {
		r := &records[i]
		switch {
		case r.Origin == q.Site:
			home := r.Run // on processors of this site
			if r.Reference > 0 {
				home = r.Reference
			}
			jobs = append(jobs, harm.Job{
				ID: job.AttemptID{Job: job.ID{Origin: r.Origin, Generation: 1, Seq: uint64(i) + 1}, Number: 1}, Processors: r.Procs,
				Limit: job.Scaled(r.Estimate, q.Speed), Submitted: r.Submit + begin, Started: r.Start + begin, Run: home, Blocked: r.Blocked, Moved: r.Moved,
			})
		case r.Site == q.Site:
			guests = append(guests, harm.Guest{Processors: r.Procs, Came: r.Submit + begin, Started: r.Start + begin, Run: r.Run})
		}
	}
	// All run times are known, so that the schedule without guests goes on to its own end, which
	// may be long after the last of these jobs has ended.
	return harm.Compare(harm.Question{Site: q.Config, Now: job.Never - 1, Bound: HarmBound}, jobs, guests)
}
