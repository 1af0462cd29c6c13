package forecast

import (
	"math"
	"time"

	"kith/internal/job"
)

// Bounds of a [History].
const (
	// MaxUsers is how many users are known; the one whose jobs ended longest ago is
	// forgotten first.
	MaxUsers = 4096
	// PastPerUser and PastPerLimit are how many ended jobs of a user, and with about the
	// same limit, are known.
	PastPerUser, PastPerLimit = 60, 60
)

// How similar jobs are weighed. The numbers were found on two public logs.
const (
	halfLife   = 10  // jobs of the user after which one counts half
	sameLimit  = 4.0 // how much more one with the same limit counts
	sameWidth  = 2.0
	sameScript = 4.0
	// anybody is what all jobs of anybody together are worth, in newest jobs of the user.
	anybody = 3.0
	// evenly is how many samples stand for a run time of which nothing is known.
	evenly = 20
)

// Past is a job that has ended, as far as run times are learnt from it. Those that were
// cancelled or lost say nothing and are not to be told.
type Past struct {
	User string
	// Script is a hash of what was run, zero if that is not known.
	Script uint64
	Procs  int32
	// Limit and Run are on a processor of speed 1.
	Limit, Run time.Duration
	// Stopped says that the limit ended it: it would have run longer.
	Stopped bool
}

// Question is what a run time is asked for.
type Question struct {
	User   string
	Script uint64
	Procs  int32
	// Limit is that on a processor of speed 1; no run time is longer. More than
	// [job.MaxWalltime] counts as that.
	Limit time.Duration
}

// Basis says what a forecast rests on.
type Basis uint8

// String returns the words of the basis.
func (b Basis) String() string {
	words := [...]string{"unknown", "similar jobs", "jobs of anybody", "limit only"}
	return words[min(int(b), len(words)-1)]
}

// The bases of run times, the best first. The numbers are stored and sent; they are frozen.
const (
	NoBasis Basis = iota
	// SimilarJobs are the user's own jobs, and some of anybody.
	SimilarJobs
	// JobsOfAnybody are those with about the same limit: the user is new.
	JobsOfAnybody
	// LimitOnly says that any time up to the limit is as likely.
	LimitOnly
)

// History is what is known of ended jobs. The zero value is not usable, see [NewHistory].
// It keeps at most [MaxUsers] users and [PastPerUser] and [PastPerLimit] jobs.
type History struct {
	index map[string]int32
	users []user
	// newest and oldest are the ends of the list of users by their last job, -1 for none.
	newest, oldest int32
	limits         [limitClasses]ratios
}

// user is a user with the latest jobs, in a ring.
type user struct {
	name         string
	past         []ended
	next         int // where in past the next one goes once it is full
	jobs         int
	newer, older int32
}

// ended is what is kept of a job.
type ended struct {
	limit, run time.Duration
	script     uint64
	procs      int32
	stopped    bool
}

// ratios are run ÷ limit of the latest jobs with about the same limit.
type ratios struct {
	of   []float32
	next int
}

// NewHistory returns one that knows nothing.
func NewHistory() *History {
	return &History{index: make(map[string]int32), newest: -1, oldest: -1}
}

// limitClasses is the number of half octaves from a second to beyond ten years.
const limitClasses = 60

// limitClass returns the half octave in which a limit lies.
func limitClass(limit time.Duration) int {
	s := limit.Seconds()
	if s < 1 {
		return 0
	}
	return min(int(2*math.Log2(s)), limitClasses-1)
}

// Ended notes a job that has ended. One without a limit is left out.
func (h *History) Ended(p *Past) {
	if p.Limit <= 0 {
		return
	}
	limit := min(p.Limit, job.MaxWalltime)
	run := min(max(p.Run, 0), limit)
	u := h.touch(p.User)
	e := ended{limit: limit, run: run, script: p.Script, procs: p.Procs, stopped: p.Stopped}
	if len(u.past) < PastPerUser {
		u.past = append(u.past, e)
	} else {
		u.past[u.next] = e
		u.next = (u.next + 1) % PastPerUser
	}
	u.jobs++
	r, ratio := &h.limits[limitClass(limit)], float32(1)
	if !p.Stopped {
		ratio = float32(float64(run) / float64(limit))
	}
	if len(r.of) < PastPerLimit {
		r.of = append(r.of, ratio)
	} else {
		r.of[r.next] = ratio
		r.next = (r.next + 1) % PastPerLimit
	}
}

// JobsOf returns how many jobs of a user have ended since the user is known.
func (h *History) JobsOf(name string) int {
	if i, ok := h.index[name]; ok {
		return h.users[i].jobs
	}
	return 0
}

// Runs makes d the distribution of a run time and says what it rests on: the user's latest
// jobs, the more similar and the newer the more, and the latest of anybody with about the same
// limit. None is longer than the limit.
func (h *History) Runs(q *Question, d *Dist) Basis {
	d.Reset()
	basis, limit := LimitOnly, min(max(q.Limit, 0), job.MaxWalltime)
	if r := &h.limits[limitClass(limit)]; len(r.of) > 0 {
		basis = JobsOfAnybody
		each := anybody / float64(len(r.of))
		for _, ratio := range r.of {
			d.Add(time.Duration(float64(ratio)*float64(limit)), each)
		}
	}
	if i, ok := h.index[q.User]; ok {
		basis = SimilarJobs
		h.users[i].similar(q, limit, d)
	}
	if basis == LimitOnly {
		for i := range evenly {
			d.Add(time.Duration((float64(i)+0.5)/evenly*float64(limit)), 1)
		}
	}
	d.Settle()
	return basis
}

// ages are the weights of jobs by how many of the user came after them.
var ages = func() (w [PastPerUser]float64) {
	for i := range w {
		w[i] = math.Exp2(-float64(i) / halfLife)
	}
	return w
}()

// similar adds the jobs of a user to d.
func (u *user) similar(q *Question, limit time.Duration, d *Dist) {
	n := len(u.past)
	for age := range n {
		i := u.next - 1 - age
		if i < 0 {
			i += n
		}
		e, w := &u.past[i], ages[age]
		if e.limit == limit {
			w *= sameLimit
		}
		if e.procs == q.Procs {
			w *= sameWidth
		}
		if e.script == q.Script && q.Script != 0 {
			w *= sameScript
		}
		run := e.run
		if e.stopped {
			run = limit // it would have run longer, who knows how long
		}
		d.Add(min(run, limit), w)
	}
}

// touch returns the user with a name as the one whose job ended last.
func (h *History) touch(name string) *user {
	i, known := h.index[name]
	switch {
	case known && i == h.newest:
		return &h.users[i]
	case known:
		h.unlink(i)
	case len(h.users) < MaxUsers:
		i = int32(len(h.users)) //nolint:gosec // At most MaxUsers.
		h.users = append(h.users, user{name: name})
		h.index[name] = i
	default:
		i = h.oldest
		h.unlink(i)
		u := &h.users[i]
		delete(h.index, u.name)
		*u = user{name: name, past: u.past[:0]}
		h.index[name] = i
	}
	u := &h.users[i]
	u.newer, u.older = -1, h.newest
	if h.newest >= 0 {
		h.users[h.newest].newer = i
	} else {
		h.oldest = i
	}
	h.newest = i
	return u
}

// unlink takes a user out of the list.
func (h *History) unlink(i int32) {
	u := &h.users[i]
	if u.newer >= 0 {
		h.users[u.newer].older = u.older
	} else {
		h.newest = u.older
	}
	if u.older >= 0 {
		h.users[u.older].newer = u.newer
	} else {
		h.oldest = u.newer
	}
}
