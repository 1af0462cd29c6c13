package whatif

import (
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/replay"
)

// Answer is what came of a question. Times are in seconds, changes in percent: below zero is
// better. Only jobs that run in both replays are compared.
type Answer struct {
	Title string `json:"title"`
	Site  string `json:"site"`
	// First and Last are the earliest submission and the latest end of what was replayed, Days how
	// far back it was to reach.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Days  int       `json:"days"`
	Seed  uint64    `json:"seed"`
	// Changes says in words what is different.
	Changes string `json:"changes"`
	// Was is the site as it is, Then as it would be.
	Was  Machine `json:"was"`
	Then Machine `json:"then"`
	// Groups are the users by the site at which they submitted, the site's own first.
	Groups []Group `json:"groups"`
	All    Group   `json:"all"`
	// Added are the jobs that were made up for more load.
	Added *Added `json:"added,omitempty"`
	// WasHarm and ThenHarm are what guests cost the site's own users, wherever their jobs ran. Those
	// that ran at other sites have what was recorded, in both.
	WasHarm  join.Harm `json:"was_harm"`
	ThenHarm join.Harm `json:"then_harm"`
	// LeftOut counts what of the past was not replayed.
	LeftOut LeftOut `json:"left_out"`
	// Effect is what it does to the site's own users, or to all where there are none. They
	// lose if some of their jobs could not run at all.
	Effect join.Effect `json:"effect"`
	// Sentences say it in words.
	Sentences []string `json:"sentences"`
	// ElapsedSeconds is how long the replays took, if the caller says so.
	ElapsedSeconds float64 `json:"elapsed_seconds"`

	until     job.Time // the last submission
	was, then []metrics.Record
	common    [2][]metrics.Record // of the jobs that are compared
}

// Machine is a site and its load.
type Machine struct {
	Processors int32  `json:"processors"`
	Policy     string `json:"policy"`
	Jobs       int    `json:"jobs"`
	// OfferedLoad is the work that was submitted over what the processors could do until
	// the last submission, Utilisation the share of them that was busy until then.
	OfferedLoad float64 `json:"offered_load"`
	Utilisation float64 `json:"utilisation"`
}

// Group are the users of one site.
type Group struct {
	// Name is the site, "" for several sites with few jobs.
	Name string `json:"name"`
	// Recorded is what users really had, Was what the replay makes of it, Then what would be.
	Recorded join.Figures `json:"recorded"`
	Was      join.Figures `json:"was"`
	Then     join.Figures `json:"then"`
	// WasKinds and ThenKinds are those of each kind of job.
	WasKinds  [metrics.Classes]join.Figures `json:"was_kinds"`
	ThenKinds [metrics.Classes]join.Figures `json:"then_kinds"`
	// Users counts users by whether their jobs are done sooner.
	Users Users `json:"users"`
	// TooWide are jobs that could not run at all, Gone those that would not come, TooLong guests
	// with too long limits, Returned those that ran at a site that is gone and come here.
	TooWide  Few `json:"too_wide"`
	Gone     Few `json:"gone"`
	TooLong  Few `json:"too_long"`
	Returned Few `json:"returned"`
}

// Users counts users by the change of the mean turnaround of their jobs.
type Users struct {
	Win  int `json:"win"`
	Lose int `json:"lose"`
	Even int `json:"even"`
}

// Few are some jobs and their work.
type Few struct {
	Jobs           int     `json:"jobs"`
	ProcessorHours float64 `json:"processor_hours"`
}

func (f *Few) add(j *pastJob) {
	f.Jobs++
	f.ProcessorHours += float64(j.procs) * j.run.Hours()
}

// Added are jobs that were made up.
type Added struct {
	Jobs int `json:"jobs"`
	// Share is their work as a share of what came, which is near what was asked for.
	Share float64 `json:"share"`
	Wait  float64 `json:"mean_wait_seconds"`
}

// tally collects the records of a group.
type tally struct {
	recorded, was, then []metrics.Record
	users               map[int64]*[2]float64 // sums of turnarounds
}

func (s *Study) answer(was, then *replay.Schedule) (*Answer, error) {
	q := &s.q
	a := &Answer{
		Site: string(q.Site), First: s.past.first, Last: s.past.last, Days: q.Days, Seed: q.Seed, Changes: q.Words(),
		LeftOut: s.past.left,
	}
	a.Title = "What if " + a.Site + " had been " + a.Changes + "?"
	var wasAt, thenAt []*metrics.Record
	wasAt, a.was = s.records(&s.was, was)
	thenAt, a.then = s.records(&s.then, then)
	for _, side := range []*side{&s.was, &s.then} {
		a.until = max(a.until, side.w.Jobs[len(side.w.Jobs)-1].Submit)
	}
	a.Was, a.Then = machine(q.Config, a.was, a.until), machine(q.changed(), a.then, a.until)

	names, group := s.origins()
	a.Groups = make([]Group, len(names))
	tallies := make([]tally, len(names)+1)
	all := &tallies[len(names)]
	for i := range s.past.jobs {
		j := &s.past.jobs[i]
		then, was := thenAt[i], wasAt[i]
		if then == nil {
			continue
		}
		recorded := q.recorded(j, int32(i)) //nolint:gosec // At most MaxJobs.
		if was == nil {                     // it ran at a site that is gone
			was = &recorded
			a.Groups[group[j.origin]].Returned.add(j)
			a.All.Returned.add(j)
		}
		for _, t := range []*tally{&tallies[group[j.origin]], all} {
			t.recorded, t.was, t.then = append(t.recorded, recorded), append(t.was, *was), append(t.then, *then)
		}
		tallies[group[j.origin]].user(j, was, then)
	}
	for i, n := range names {
		a.Groups[i].Name = string(n)
		tallies[i].fill(&a.Groups[i])
		u := &a.Groups[i].Users
		a.All.Users.Win, a.All.Users.Lose, a.All.Users.Even = a.All.Users.Win+u.Win, a.All.Users.Lose+u.Lose, a.All.Users.Even+u.Even
	}
	a.All.Name = "all"
	all.fill(&a.All)
	a.common = [2][]metrics.Record{all.was, all.then}
	for _, p := range s.wide {
		j := &s.past.jobs[p]
		a.Groups[group[j.origin]].TooWide.add(j)
		a.All.TooWide.add(j)
	}
	for _, p := range s.gone {
		j := &s.past.jobs[p]
		a.Groups[group[j.origin]].Gone.add(j)
		a.All.Gone.add(j)
	}
	for _, p := range s.long {
		j := &s.past.jobs[p]
		a.Groups[group[j.origin]].TooLong.add(j)
		a.All.TooLong.add(j)
	}
	a.added(s)
	if err := a.harm(s); err != nil {
		return nil, err
	}
	a.say()
	return a, nil
}

// added sums up what was made up.
func (a *Answer) added(s *Study) {
	if s.q.Changes.AddLoad == 0 {
		return
	}
	x := &Added{Share: s.added}
	for i, from := range s.then.from {
		if from < 0 {
			x.Jobs++
			x.Wait += a.then[i].Wait().Seconds()
		}
	}
	x.Wait /= float64(max(x.Jobs, 1))
	a.Added = x
}

// user adds a job to what its user has.
func (t *tally) user(j *pastJob, was, then *metrics.Record) {
	if t.users == nil {
		t.users = make(map[int64]*[2]float64)
	}
	sums := t.users[j.user]
	if sums == nil {
		sums = &[2]float64{}
		t.users[j.user] = sums
	}
	sums[0] += was.Turnaround().Seconds()
	sums[1] += then.Turnaround().Seconds()
}

// fill compares.
func (t *tally) fill(g *Group) {
	g.Recorded, _ = join.FiguresOf(t.recorded)
	g.Was, g.WasKinds = join.FiguresOf(t.was)
	g.Then, g.ThenKinds = join.FiguresOf(t.then)
	g.Was.Against(&g.Recorded)
	g.Then.Against(&g.Was)
	for c := range g.ThenKinds {
		g.ThenKinds[c].Against(&g.WasKinds[c])
	}
	for _, sums := range t.users {
		f := join.Figures{Turnaround: sums[1]}
		f.Against(&join.Figures{Turnaround: sums[0]})
		switch f.Effect {
		case join.Wins:
			g.Users.Win++
		case join.Loses:
			g.Users.Lose++
		case join.Even:
			g.Users.Even++
		}
	}
}

// machine sums up a replay until an instant: what comes later is the site running dry.
func machine(cfg sitesched.Config, ran []metrics.Record, until job.Time) Machine {
	m := Machine{Processors: cfg.Processors, Policy: cfg.Policy(), Jobs: len(ran)}
	capacity := until.Sub(0).Seconds() * float64(cfg.Processors)
	if capacity <= 0 {
		return m
	}
	for i := range ran {
		r := &ran[i]
		m.OfferedLoad += r.Work() / capacity
		if r.Start < until {
			m.Utilisation += float64(r.Procs) * min(r.End, until).Sub(r.Start).Seconds() / capacity
		}
	}
	return m
}
