package harm

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// Job is a job of this site, wherever it ran.
type Job struct {
	// ID breaks ties between jobs that come at one instant.
	ID          job.AttemptID
	Processors  int32
	MemoryBytes int64
	// Limit is its time limit at this site.
	Limit time.Duration
	// Submitted is when it was submitted, Ready from when on it could have started, which is
	// later if it was held or waited for others; zero if it is the same.
	Submitted, Ready job.Time
	// Started is zero if it has not started.
	Started job.Time
	// Run is how long it ran on processors of this site, or has run if Open.
	Run time.Duration
	// Open says that it has not ended, so that Run is not all.
	Open bool
	// Left is when its user cancelled it, zero if nobody has.
	Left job.Time
	// Blocked is how long guests alone kept it waiting here, and Moved how many promises to
	// it they moved back.
	Blocked time.Duration
	Moved   uint32
}

// Guest is a job of another site that ran here.
type Guest struct {
	Processors    int32
	Came, Started job.Time
	Run           time.Duration
}

// LongUnknown is how long a job may hold the shadow up. One that has not ended for longer than
// that since it was ready counts as if it ran for its limit.
const LongUnknown = 7 * 24 * time.Hour

// Shifts are the delays that a [Figures] counts beyond.
var Shifts = [...]time.Duration{time.Minute, 10 * time.Minute, time.Hour}

// Figures are those of some jobs. Times are in seconds.
type Figures struct {
	// Jobs have started. Of these Compared started in the shadow, too, as far as it has got.
	Jobs, Compared int
	// Wait is the mean from when a job was ready to its start, Alone that in the shadow, both
	// of those compared.
	Wait, Alone float64
	// Mean and P95 are of the delays: real start less start in the shadow, either sign.
	Mean, P95 float64
	// Later counts those that started later than in the shadow by more than [Shifts].
	Later [len(Shifts)]int
	// Delays and Gains are the sums of what jobs lost and won.
	Delays, Gains float64
	// Blocked counts jobs that guests alone kept waiting at some time, and for longer than
	// 10 minutes and an hour; BlockedSeconds is the sum, Worst the longest.
	Blocked, Blocked10m, Blocked1h int
	BlockedSeconds, Worst          float64
	// Violations were blocked for longer than the bound; Moved are promises that were moved.
	Violations int
	Moved      uint64
}

// The classes of jobs, by run time here (15 minutes) and width (8 processors).
const (
	shortBelow  = 15 * time.Minute
	narrowBelow = 8
)

// ClassNames are the names of the classes, in order.
var ClassNames = [...]string{"short-narrow", "short-wide", "long-narrow", "long-wide"}

// Report is what came of it.
type Report struct {
	All     Figures
	Classes [len(ClassNames)]Figures
	// Reached is how far the shadow could follow. Assumed counts jobs whose run time is not
	// known for so long that their limits were taken instead, see [LongUnknown].
	Reached job.Time
	Assumed int
	// Guests had GuestWork processor-seconds, and waited for GuestWait seconds on average.
	Guests               int
	GuestWork, GuestWait float64
}

// Drain is a time in which the site started nothing.
type Drain struct {
	From job.Time
	// Until is zero if it has not ended.
	Until job.Time
}

// Question is what is asked.
type Question struct {
	// Site is how the site schedules. Its queues do not matter.
	Site sitesched.Config
	// Now is up to when jobs and guests are known.
	Now job.Time
	// Since bounds which jobs and guests count: those that started from then on. All of them
	// make the shadow.
	Since job.Time
	// Bound is for how long guests may block a job before it is a violation.
	Bound time.Duration
	// Drains are those of the site, in any order. They keep its jobs waiting without guests, too.
	Drains []Drain
}

func (j *Job) ready() job.Time { return max(j.Submitted, j.Ready) }

// Compare makes the report. It sorts jobs. The error wraps [sitesched.ErrConfig].
func Compare(q Question, jobs []Job, guests []Guest) (Report, error) {
	var r Report
	w, err := sitesched.NewShadow(q.Site)
	if err != nil {
		return r, err
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.ready(), b.ready()), a.ID.Compare(b.ID))
	})
	for _, d := range q.Drains {
		w.Drain(true, d.From)
		if d.Until != 0 {
			w.Drain(false, d.Until)
		}
	}
	shade := make(map[job.AttemptID]job.Time, len(jobs))
	started := func(id job.AttemptID, at job.Time) { shade[id] = at }
	for i := range jobs {
		j := &jobs[i]
		ready := j.ready()
		w.Arrive(job.Copy{ID: j.ID, Arrival: ready, Request: job.Request{Processors: j.Processors, MemoryBytes: j.MemoryBytes, Walltime: j.Limit}}, ready)
		switch {
		case j.Left != 0:
			w.Leave(j.ID, j.Left)
		case !j.Open:
			w.Ran(j.ID, j.Run)
		case q.Now.Sub(ready) > LongUnknown:
			r.Assumed++
			w.Ran(j.ID, j.Limit)
		case j.Started != 0:
			w.Runs(j.ID, j.Run)
		}
		if i%1024 == 0 {
			w.Advance(min(ready-1, q.Now), started) // what is to come need not be in memory all at once
		}
	}
	r.Reached = w.Advance(q.Now, started)
	var all tally
	var classes [len(ClassNames)]tally
	for i := range jobs {
		j := &jobs[i]
		if j.Started == 0 || j.Started < q.Since {
			continue
		}
		alone, compared := shade[j.ID]
		class := &classes[classOf(j)]
		for _, t := range [...]*tally{&all, class} {
			t.add(j, alone, compared, q.Bound)
		}
	}
	r.All = all.figures()
	for i := range classes {
		r.Classes[i] = classes[i].figures()
	}
	for i := range guests {
		if g := &guests[i]; g.Started >= q.Since && g.Started != 0 {
			r.Guests++
			r.GuestWork += float64(g.Processors) * g.Run.Seconds()
			r.GuestWait += max(g.Started.Sub(g.Came), 0).Seconds()
		}
	}
	r.GuestWait /= math.Max(float64(r.Guests), 1)
	return r, nil
}

func classOf(j *Job) int {
	class := 0
	if j.Run >= shortBelow {
		class = 2
	}
	if j.Processors >= narrowBelow {
		class++
	}
	return class
}

// tally gathers figures.
type tally struct {
	f      Figures
	delays []float64
}

func (t *tally) add(j *Job, alone job.Time, compared bool, bound time.Duration) {
	f := &t.f
	f.Jobs++
	f.Moved += uint64(j.Moved)
	if j.Blocked > 0 {
		f.Blocked++
		f.BlockedSeconds += j.Blocked.Seconds()
		f.Worst = max(f.Worst, j.Blocked.Seconds())
	}
	count(&f.Blocked10m, j.Blocked > 10*time.Minute)
	count(&f.Blocked1h, j.Blocked > time.Hour)
	count(&f.Violations, j.Blocked > bound)
	if !compared {
		return
	}
	f.Compared++
	delay := j.Started.Sub(alone)
	for i, shift := range Shifts {
		count(&f.Later[i], delay > shift)
	}
	seconds := delay.Seconds()
	t.delays = append(t.delays, seconds)
	f.Mean += seconds
	f.Delays += max(seconds, 0)
	f.Gains += max(-seconds, 0)
	f.Wait += j.Started.Sub(j.ready()).Seconds()
	f.Alone += alone.Sub(j.ready()).Seconds()
}

func count(n *int, is bool) {
	if is {
		*n++
	}
}

func (t *tally) figures() Figures {
	f := t.f
	if f.Compared == 0 {
		return f
	}
	n := float64(f.Compared)
	f.Mean, f.Wait, f.Alone = f.Mean/n, f.Wait/n, f.Alone/n
	slices.Sort(t.delays)
	f.P95 = t.delays[min(int(math.Ceil(0.95*n))-1, f.Compared-1)]
	return f
}
