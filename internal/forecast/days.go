package forecast

import (
	"math/rand/v2"
	"sort"
	"time"

	"kith/internal/job"
)

// Arrival is a job that came in at a site, or may come.
type Arrival struct {
	At job.Time
	// Procs and MemoryBytes are those of the request, Limit and Run on processors of the site.
	Procs       int32
	MemoryBytes int64
	Limit, Run  time.Duration
	// Remote says that another site placed it there.
	Remote bool
}

// Day is the period after which arrivals repeat themselves.
const Day = 24 * time.Hour

// MaxDays is how many days back a day to repeat may lie.
const MaxDays = 28

// MaxArrivals is how many arrivals are kept.
const MaxArrivals = 100_000

// Days are the arrivals of the last days, from which those to come are drawn: what came in on
// an earlier day, from the same time of day on. The zero value is empty.
type Days struct {
	list []Arrival // in order of At; the first skip are forgotten
	skip int
	gone int64 // arrivals before those in list
	// changes counts what has come or was noted since the latest copy was made, see Copy.
	changes int
	latest  *Days
}

// fewChanges is how much a copy of [Days.Copy] may lack, beside an eighth of all.
const fewChanges = 32

// Copy returns arrivals that do not change any more: those of now, or of a while ago as long
// as little has come since. So it costs about nothing for each arrival.
func (d *Days) Copy() *Days {
	if d.latest == nil || d.changes > fewChanges+d.Len()/8 {
		d.latest = &Days{list: append([]Arrival(nil), d.list[d.skip:]...)}
		d.changes = 0
	}
	return d.latest
}

// Add notes an arrival, which must not be earlier than the one before: one that is counts as
// if it were no earlier, as after a clock was set back. How long it runs is a guess at first:
// the number that is returned is for [Days.Ran].
func (d *Days) Add(a Arrival) (number int64) {
	if n := len(d.list); n > 0 {
		a.At = max(a.At, d.list[n-1].At)
	}
	d.list = append(d.list, a)
	d.changes++
	old := a.At.Add(-MaxDays * Day)
	for d.skip < len(d.list) && (d.list[d.skip].At <= old || len(d.list)-d.skip > MaxArrivals) {
		d.skip++
	}
	if d.skip > 1024 && d.skip > len(d.list)/2 {
		d.list = d.list[:copy(d.list, d.list[d.skip:])]
		d.gone += int64(d.skip)
		d.skip = 0
	}
	return d.gone + int64(len(d.list)) - 1
}

// Ran notes how long an arrival has run, if it is still known.
func (d *Days) Ran(number int64, run time.Duration) {
	if i := number - d.gone; i >= 0 && i < int64(len(d.list)) {
		d.list[i].Run = run
		d.changes++
	}
}

// Len returns how many arrivals are kept.
func (d *Days) Len() int { return len(d.list) - d.skip }

// Stream yields the arrivals that a scenario makes up. It may be used again.
type Stream struct {
	days  *Days
	now   job.Time
	whole int // days that are known
	rng   *rand.Rand
	// at is the place of the next arrival, until that of the end of its day; shift is
	// added to their instants.
	at, until int
	day       int
	shift     time.Duration
}

// Draw begins the arrivals after now: for each day to come one of the last [MaxDays] days
// that are known as a whole is drawn. Nothing comes if there is none.
func (d *Days) Draw(now job.Time, rng *rand.Rand, s *Stream) {
	*s = Stream{days: d, now: now, rng: rng}
	if d.Len() > 0 {
		s.whole = min(int(now.Sub(d.list[d.skip].At)/Day), MaxDays)
	}
}

// Next returns the next arrival; false if none will come. Arrivals are in order of time.
func (s *Stream) Next() (Arrival, bool) {
	for s.at == s.until {
		const most = 10 * 366 // days; no scenario is longer than a walltime
		if s.whole == 0 || s.day == most {
			return Arrival{}, false
		}
		back := 1 + s.rng.IntN(s.whole)
		from := s.now.Add(-time.Duration(back) * Day)
		s.at, s.until = s.days.after(from), s.days.after(from.Add(Day))
		s.shift = time.Duration(s.day+back) * Day
		s.day++
	}
	a := s.days.list[s.at]
	s.at++
	a.At = a.At.Add(s.shift)
	return a, true
}

// after returns the place of the first arrival after an instant.
func (d *Days) after(t job.Time) int {
	list := d.list[d.skip:]
	return d.skip + sort.Search(len(list), func(i int) bool { return list[i].At > t })
}
