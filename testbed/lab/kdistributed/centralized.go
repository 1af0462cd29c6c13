package kdistributed

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/testbed/metrics"
)

// The Centralized scheme (spec 001 section 2.4): one FCFS queue for all sites,
// which only start what they are told to. No deployment of Kith works like
// this, so that it lives here and not with the engines.

// centralJob is a job of the scheme, with all that the queue is allowed to
// know, and its run time.
type centralJob struct {
	origin           int // index of the site
	submit           job.Time
	run, estimate    time.Duration
	procs            int32
	transfer         time.Duration // what its data cost away from the origin
	start, end       job.Time      // filled in
	site             int           // filled in
	number           int64         // of the log
	user, groupNamed string
}

// centralRun is a running job: when it ends by its estimate, and its width.
type centralRun struct {
	endEstimate job.Time
	procs       int32
	job         int
}

// centralSite is a site as the queue sees it.
type centralSite struct {
	free    int32
	running []centralRun // by (endEstimate, job)
}

// shadow returns when p processors will be free by the estimates, and how many
// will then be left (spec 001 section 2.1 step 3). The site is as large as p.
func (s *centralSite) shadow(now job.Time, p int32) (at job.Time, extra int32) {
	free, at := s.free, now
	for i := 0; i < len(s.running) && free < p; {
		// All that end at an instant count together. A job past its estimate
		// counts as ending a second from now.
		at = max(s.running[i].endEstimate, now)
		if s.running[i].endEstimate <= now {
			at = now.Add(time.Second)
		}
		for ; i < len(s.running) && s.running[i].endEstimate <= at; i++ {
			free += s.running[i].procs
		}
	}
	return at, free - p
}

// central is the scheme under way.
type central struct {
	jobs  []centralJob
	sites []centralSite
	queue []int // indexes of waiting jobs, FCFS
	ends  centralEnds
}

// centralized runs jobs, which are in the order of their submissions, on sites
// of the given sizes, and fills in where and when each starts and ends.
func centralized(ctx context.Context, jobs []centralJob, processors []int32) error {
	c := &central{jobs: jobs}
	for i, p := range processors {
		if p < 1 {
			return fmt.Errorf("centralized: site %d has %d processors: choose at least 1", i, p)
		}
		c.sites = append(c.sites, centralSite{free: p})
	}
	widest := slices.Max(processors)
	for next, instants := 0, 0; next < len(jobs) || len(c.ends) > 0; instants++ {
		if instants%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := job.Never
		if next < len(jobs) {
			now = jobs[next].submit
		}
		if len(c.ends) > 0 {
			now = min(now, c.ends[0].at)
		}
		for len(c.ends) > 0 && c.ends[0].at == now {
			e := heap.Pop(&c.ends).(centralEnd) // the heap holds nothing else
			c.finish(e.job)
		}
		for ; next < len(jobs) && jobs[next].submit == now; next++ {
			if jobs[next].procs > widest {
				return fmt.Errorf("centralized: job %d needs %d processors, the largest site has %d", next, jobs[next].procs, widest)
			}
			c.queue = append(c.queue, next)
		}
		c.cycle(now)
	}
	if len(c.queue) > 0 {
		return errors.New("centralized: jobs wait and nothing runs")
	}
	return nil
}

// cycle starts what may start now.
func (c *central) cycle(now job.Time) {
	n := 0
	for ; n < len(c.queue); n++ {
		s := c.tightest(c.jobs[c.queue[n]].procs, -1)
		if s < 0 {
			break
		}
		c.start(now, c.queue[n], s)
	}
	c.queue = c.queue[:copy(c.queue, c.queue[n:])]
	if len(c.queue) == 0 {
		return
	}
	head := &c.jobs[c.queue[0]]
	reserved, shadow, extra := -1, job.Never, int32(0)
	for s := range c.sites {
		if at, x := c.sites[s].shadow(now, head.procs); x >= 0 && at < shadow {
			reserved, shadow, extra = s, at, x
		}
	}
	kept := c.queue[:1]
	for _, i := range c.queue[1:] {
		j := &c.jobs[i]
		s := c.tightest(j.procs, -1)
		if s == reserved && s >= 0 {
			switch length := j.estimate + j.away(s); {
			case now.Add(length) <= shadow:
			case j.procs <= extra:
				extra -= j.procs
			default: // it would be in the head's way there: the next site
				s = c.tightest(j.procs, reserved)
			}
		}
		if s < 0 {
			kept = append(kept, i)
			continue
		}
		c.start(now, i, s)
	}
	c.queue = kept
}

// tightest returns the site with the fewest free processors that fit p, except
// one; -1 if there is none. Ties go to the first.
func (c *central) tightest(p int32, except int) int {
	best := -1
	for s := range c.sites {
		if free := c.sites[s].free; s != except && free >= p && (best < 0 || free < c.sites[best].free) {
			best = s
		}
	}
	return best
}

// away returns what the job's data cost at a site.
func (j *centralJob) away(site int) time.Duration {
	if site == j.origin {
		return 0
	}
	return j.transfer
}

func (c *central) start(now job.Time, i, site int) {
	j, s := &c.jobs[i], &c.sites[site]
	j.site, j.start = site, now
	j.end = now.Add(j.away(site) + j.run)
	s.free -= j.procs
	r := centralRun{endEstimate: now.Add(j.away(site) + j.estimate), procs: j.procs, job: i}
	at, _ := slices.BinarySearchFunc(s.running, r, compareRuns)
	s.running = slices.Insert(s.running, at, r)
	heap.Push(&c.ends, centralEnd{j.end, i})
}

func (c *central) finish(i int) {
	j := &c.jobs[i]
	s := &c.sites[j.site]
	r := centralRun{endEstimate: j.start.Add(j.away(j.site) + j.estimate), job: i}
	at, _ := slices.BinarySearchFunc(s.running, r, compareRuns) // it is there
	s.running = slices.Delete(s.running, at, at+1)
	s.free += j.procs
}

func compareRuns(a, b centralRun) int {
	return cmp.Or(cmp.Compare(a.endEstimate, b.endEstimate), cmp.Compare(a.job, b.job))
}

// centralEnd is the end of a running job.
type centralEnd struct {
	at  job.Time
	job int
}

// centralEnds is a heap of ends by (at, job).
type centralEnds []centralEnd

// Len implements heap.Interface.
func (h centralEnds) Len() int { return len(h) }

// Less implements heap.Interface.
func (h centralEnds) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].job, h[j].job)) < 0
}

// Swap implements heap.Interface.
func (h centralEnds) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *centralEnds) Push(x any) { *h = append(*h, x.(centralEnd)) }

// Pop implements heap.Interface.
func (h *centralEnds) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// record returns the job's record.
func (j *centralJob) record(sites []job.SiteID) metrics.Record {
	return metrics.Record{
		Job: j.number, Origin: sites[j.origin], Site: sites[j.site], User: j.user, Group: j.groupNamed,
		Submit: j.submit, Start: j.start, End: j.end, Run: j.run, Estimate: j.estimate, Procs: j.procs,
	}
}
