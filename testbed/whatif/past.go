package whatif

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// past is what of the attempts can be replayed.
type past struct {
	jobs []pastJob
	// elsewhere are jobs of the site that ran at others and do not come back. They are not
	// replayed; what guests cost the site's users is reckoned with them.
	elsewhere []pastJob
	left      LeftOut
	// first and last are the earliest submission and the latest end.
	first, last time.Time
	// others are the sites that the past knows, and how many attempts it has of each.
	others map[job.SiteID]int
}

// pastJob is an attempt on the clock of the replay, which begins with the first submission.
type pastJob struct {
	submit     job.Time
	run, limit time.Duration // on a processor of the site
	procs      int32
	origin     job.SiteID
	user       int64
	// waited and ran are what was recorded. Of a job that ran here ran is run.
	waited, ran time.Duration
	// here says that it ran at the site, else at one that is gone.
	here bool
}

// LeftOut counts attempts that are not replayed, and why.
type LeftOut struct {
	// Earlier ended before the time that is looked at.
	Earlier int `json:"earlier"`
	// NeverRan were cancelled or lost before they began, or ended in the instant they began.
	NeverRan int `json:"never_ran"`
	// Elsewhere were submitted at the site and ran at others.
	Elsewhere int `json:"elsewhere"`
	// Senseless have times or sizes that cannot be.
	Senseless int `json:"senseless"`
	// TooWide are wider than the site is now, which was larger then.
	TooWide int `json:"too_wide"`
}

// longestQueued is how long before the time that is looked at a job may have been submitted.
const longestQueued = 366 * 24 * time.Hour

// read takes what of the attempts can be replayed, in order of submission.
func (q *Question) read(attempts []Attempt) past {
	p := past{others: make(map[job.SiteID]int)}
	since := q.Now.Add(-time.Duration(q.Days) * 24 * time.Hour)
	kept := make([]*Attempt, 0, len(attempts))
	var away []*Attempt
	for i := range attempts {
		a := &attempts[i]
		for _, s := range [2]job.SiteID{a.Origin, a.Host} {
			if s != q.Site && s != "" {
				p.others[s]++
			}
		}
		here := a.Host == q.Site
		lost := a.Origin == q.Site && slices.Contains(q.Changes.Lose, a.Host)
		switch {
		case !a.End.After(since):
			p.left.Earlier++
		case a.Host == "":
			p.left.NeverRan++
		case !here && !lost:
			p.left.Elsewhere++
			if !a.Start.IsZero() && a.Run > 0 && a.Origin == q.Site && !q.senseless(a, since) {
				away = append(away, a)
			}
		case a.Start.IsZero() || a.Run <= 0:
			p.left.NeverRan++
		case q.senseless(a, since):
			p.left.Senseless++
		case here && a.Processors > q.Config.Processors:
			p.left.TooWide++
		default:
			kept = append(kept, a)
		}
	}
	for _, list := range [][]*Attempt{kept, away} {
		slices.SortStableFunc(list, func(a, b *Attempt) int { return a.Submit.Compare(b.Submit) })
	}
	for _, a := range kept {
		if p.first.IsZero() {
			p.first = a.Submit
		}
		if a.End.After(p.last) {
			p.last = a.End
		}
		p.jobs = append(p.jobs, q.job(a, p.first))
	}
	for _, a := range away {
		p.elsewhere = append(p.elsewhere, q.job(a, p.first))
	}
	return p
}

// senseless says that an attempt has times or sizes that cannot be.
func (q *Question) senseless(a *Attempt, since time.Time) bool {
	return a.Processors < 1 || a.Processors > job.MaxProcessors || a.Run > job.MaxWalltime || a.Limit > job.MaxWalltime ||
		a.Submit.Before(since.Add(-longestQueued)) || a.End.After(q.Now.Add(longestQueued)) || a.Submit.After(a.End.Add(24*time.Hour))
}

// job puts an attempt on the clock of the replay.
func (q *Question) job(a *Attempt, first time.Time) pastJob {
	j := pastJob{
		submit: job.Time(a.Submit.Sub(first)), run: max(job.Scaled(a.Run, q.speed()), 1), limit: max(job.Scaled(a.Limit, q.speed()), 0),
		procs: a.Processors, origin: a.Origin, user: a.User, here: a.Host == q.Site, waited: max(a.Start.Sub(a.Submit), 0),
	}
	if j.limit == 0 {
		j.limit = j.run
	}
	j.run = min(j.run, j.limit) // a site stops what runs longer
	j.ran = j.run
	if !j.here {
		j.ran = max(a.End.Sub(a.Start), 1)
	}
	return j
}

// recorded is what became of job i.
func (q *Question) recorded(j *pastJob, i int32) metrics.Record {
	r := j.record(q.Site, i)
	r.Start = j.submit.Add(j.waited)
	r.End, r.Run = r.Start.Add(j.ran), j.ran
	return r
}

// record lacks start and end.
func (j *pastJob) record(site job.SiteID, i int32) metrics.Record {
	return metrics.Record{
		Job: int64(i) + 1, Origin: j.origin, Site: site, Submit: j.submit, Run: j.run, Reference: j.run, Estimate: j.limit, Procs: j.procs,
	}
}

// side is a replay: the jobs, whose they are, and where in the past they are from.
type side struct {
	w     *workload.Workload
	guest []bool
	// from is the place of a job in the past, or -1 for one that was added.
	from []int32
}

// add puts in a job.
func (s *side) add(q *Question, j *pastJob, submit job.Time, from int32) {
	s.w.Jobs = append(s.w.Jobs, workload.Job{ID: int64(len(s.w.Jobs)) + 1, Submit: submit, Run: j.run, Estimate: j.limit, Procs: j.procs})
	s.guest = append(s.guest, j.origin != q.Site)
	s.from = append(s.from, from)
}

// order sorts by submission, and by the order in which jobs were put in.
func (s *side) order() {
	places := make([]int32, len(s.w.Jobs))
	for i := range places {
		places[i] = int32(i) //nolint:gosec // At most MaxJobs.
	}
	slices.SortStableFunc(places, func(a, b int32) int { return cmp.Compare(s.w.Jobs[a].Submit, s.w.Jobs[b].Submit) })
	jobs, guest, from := make([]workload.Job, len(places)), make([]bool, len(places)), make([]int32, len(places))
	for i, p := range places {
		jobs[i], guest[i], from[i] = s.w.Jobs[p], s.guest[p], s.from[p]
		jobs[i].ID = int64(i) + 1
	}
	s.w.Jobs, s.guest, s.from = jobs, guest, from
}
