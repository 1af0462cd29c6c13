package whatif

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/internal/job"
	"kith/testbed/metrics"
	"kith/testbed/pool"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// Study is a question with its jobs, ready to be replayed.
type Study struct {
	q    Question
	past past
	// was is the site as it is, then as it would be.
	was, then side
	// wide and gone are places in the past: jobs that are too wide as it would be, and those
	// of sites that are gone; long are guests with too long limits.
	wide, gone, long []int32
	// added is the work of the jobs that were added, as a share of what came.
	added float64
}

// Open checks a question and chooses the jobs. The error wraps [ErrQuestion] or [ErrNoPast].
func Open(q Question, attempts []Attempt) (*Study, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if len(attempts) > MaxJobs {
		return nil, wrong("%d attempts are past; at most %d can be replayed", len(attempts), MaxJobs)
	}
	q.Changes.Lose = slices.Sorted(slices.Values(q.Changes.Lose))
	s := &Study{q: q, past: q.read(attempts)}
	for _, name := range q.Changes.Lose {
		if s.past.others[name] == 0 {
			return nil, wrong("lose %s: nothing that is past here came from there or ran there; %s", name, s.known())
		}
	}
	s.was, s.then = s.side(), s.side()
	for i := range s.past.jobs {
		j, place := &s.past.jobs[i], int32(i) //nolint:gosec // At most MaxJobs.
		if j.here {
			s.was.add(&q, j, j.submit, place)
		}
		switch {
		case j.here && slices.Contains(q.Changes.Lose, j.origin):
			s.gone = append(s.gone, place)
		case q.Changes.GuestWalltime > 0 && j.origin != q.Site && j.limit > q.Changes.GuestWalltime:
			s.long = append(s.long, place)
		case j.procs > q.changed().Processors:
			s.wide = append(s.wide, place)
		default:
			s.then.add(&q, j, j.submit, place)
		}
	}
	switch {
	case len(s.was.w.Jobs) == 0:
		return nil, s.nothingPast()
	case len(s.then.w.Jobs) == 0 && len(s.gone)+len(s.long) == len(s.was.w.Jobs):
		return nil, nothing("all %d jobs that ran at %s are of guests that would not come: nobody is left to compare", len(s.was.w.Jobs), q.Site)
	case len(s.then.w.Jobs) == 0:
		return nil, nothing("processors %d: no job that ran at %s is as narrow; the narrowest has %d", q.changed().Processors, q.Site, s.narrowest())
	}
	if err := s.addLoad(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Study) side() side {
	n := len(s.past.jobs)
	return side{
		w:     &workload.Workload{Name: string(s.q.Site), Jobs: make([]workload.Job, 0, n), Tick: 1, Start: s.past.first},
		guest: make([]bool, 0, n), from: make([]int32, 0, n),
	}
}

// known names the sites that could be lost.
func (s *Study) known() string {
	const most = 12
	names := slices.Sorted(maps.Keys(s.past.others))
	if len(names) == 0 {
		return "no other site is in it"
	}
	words := make([]string, 0, most+1)
	for _, n := range names[:min(len(names), most)] {
		words = append(words, string(n))
	}
	if len(names) > most {
		words = append(words, fmt.Sprintf("%d more", len(names)-most))
	}
	return "name one of " + strings.Join(words, ", ")
}

func (s *Study) nothingPast() error {
	l := &s.past.left
	switch {
	case l.TooWide > 0:
		return nothing("each of the %d jobs that ran at %s is wider than it is now (%d processors)", l.TooWide, s.q.Site, s.q.Config.Processors)
	case l.Earlier > 0:
		return nothing("no job that ran at %s has ended in the last %d days; %d attempts ended earlier: give more days", s.q.Site, s.q.Days, l.Earlier)
	case l.NeverRan+l.Elsewhere+l.Senseless > 0:
		return nothing("no job that can be replayed ran at %s in the last %d days: %d attempts never ran, %d ran elsewhere, %d have times that cannot be",
			s.q.Site, s.q.Days, l.NeverRan, l.Elsewhere, l.Senseless)
	}
	return nothing("%s remembers no attempt that has ended; ask again when jobs have run there", s.q.Site)
}

func (s *Study) narrowest() int32 {
	least := int32(math.MaxInt32)
	for i := range s.past.jobs {
		least = min(least, s.past.jobs[i].procs)
	}
	return least
}

// addLoad draws more jobs: each is a job of the past, submitted once more at the same time of
// day on another day, until there is as much more work as was asked for. What came stays as
// it was, so that it can be compared.
func (s *Study) addLoad() error {
	share := s.q.Changes.AddLoad
	if share == 0 {
		return nil
	}
	came := s.then.w.Jobs
	n := len(came)
	total := s.then.w.Work()
	span := came[n-1].Submit.Sub(came[0].Submit)
	days := int64((span + 24*time.Hour - 1) / (24 * time.Hour))
	rng := workload.NewRand(s.q.Seed, 0)
	const patience = 100 // draws that are too large for what is left
	for work, tries := 0.0, 0; work < share*total; {
		i := rng.IntN(n)
		more := came[i].Work()
		if left := share*total - work; more > left && tries < patience {
			tries++
			continue
		} else if more > left && work > 0 {
			break
		}
		if len(s.then.w.Jobs) >= MaxJobs {
			return wrong("add-load %s: these are more than %d jobs; give less, or fewer days", percentWords(share), MaxJobs)
		}
		at := came[i].Submit.Sub(came[0].Submit)
		if days > 1 {
			at = (at + time.Duration(1+rng.Int64N(days-1))*24*time.Hour) % (time.Duration(days) * 24 * time.Hour)
		} else if span > 0 {
			at = time.Duration(rng.Int64N(int64(span)))
		}
		s.then.add(&s.q, &s.past.jobs[s.then.from[i]], came[0].Submit.Add(min(at, span)), -1)
		work += more
		s.added = work / total
	}
	s.then.order()
	return nil
}

// Jobs is how many jobs are replayed, both times together.
func (s *Study) Jobs() int { return len(s.was.w.Jobs) + len(s.then.w.Jobs) }

// Run replays the jobs as the site is and as it would be, and compares. progress, if not nil,
// learns how many jobs have ended, by one goroutine at a time. The error is the cause of ctx,
// or says why there is no such schedule.
func (s *Study) Run(ctx context.Context, progress func(done int)) (*Answer, error) {
	var done [2]int
	var mu sync.Mutex
	schedules, err := pool.Map(ctx, runtime.GOMAXPROCS(0), 2, func(ctx context.Context, i int) (*replay.Schedule, error) {
		x, cfg := &s.was, s.q.Config
		if i == 1 {
			x, cfg = &s.then, s.q.changed()
		}
		return replay.RunShared(ctx, x.w, x.guest, cfg, func(n int) {
			if progress != nil {
				mu.Lock()
				defer mu.Unlock()
				done[i] = n
				progress(done[0] + done[1])
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return s.answer(schedules[0], schedules[1])
}

// records are all that a schedule has, and those of the past by its places, nil for what is
// not in it.
func (s *Study) records(x *side, sched *replay.Schedule) (byPlace []*metrics.Record, all []metrics.Record) {
	all, byPlace = make([]metrics.Record, len(x.from)), make([]*metrics.Record, len(s.past.jobs))
	for i, from := range x.from {
		r := &all[i]
		if from >= 0 {
			*r = s.past.jobs[from].record(s.q.Site, from)
			byPlace[from] = r
		} else {
			j := &x.w.Jobs[i]
			*r = metrics.Record{Job: -1, Site: s.q.Site, Submit: j.Submit, Run: j.Run, Reference: j.Run, Estimate: j.Estimate, Procs: j.Procs}
			if !x.guest[i] {
				r.Origin = s.q.Site
			}
		}
		r.Start, r.End = sched.Starts[i], sched.Ends[i]
		if sched.Blocked != nil {
			r.Blocked, r.Moved = sched.Blocked[i], sched.Moved[i]
		}
	}
	return byPlace, all
}

// origins are the groups of the answer: the site itself, then the others, by name, those with
// most jobs if there are many.
func (s *Study) origins() (names []job.SiteID, group map[job.SiteID]int) {
	jobs := make(map[job.SiteID]int)
	for i := range s.past.jobs {
		jobs[s.past.jobs[i].origin]++
	}
	delete(jobs, s.q.Site)
	others := slices.Sorted(maps.Keys(jobs))
	slices.SortStableFunc(others, func(a, b job.SiteID) int { return jobs[b] - jobs[a] })
	shown := others
	if len(others) > maxGuests {
		shown = others[:maxGuests-1]
	}
	names = append([]job.SiteID{s.q.Site}, slices.Sorted(slices.Values(shown))...)
	group = make(map[job.SiteID]int)
	for i, n := range names {
		group[n] = i
	}
	if len(shown) < len(others) {
		for _, n := range others[len(shown):] {
			group[n] = len(names)
		}
		names = append(names, "")
	}
	return names, group
}
