package forecast

import (
	"testing"
	"time"

	"kith/internal/job"
)

// What comes is what came, on whole days before and from the same time of day on, in order.
func TestDays(t *testing.T) {
	rng := newRand(8)
	var d Days
	var all []Arrival
	now := job.Time(0)
	for i := range 6000 {
		now = now.Add(time.Duration(rng.Int64N(int64(20 * time.Minute))))
		all = append(all, Arrival{At: now, Procs: int32(i)})
		d.Add(all[i])
	}
	if d.Len() >= len(all) || all[len(all)-d.Len()].At <= now.Add(-MaxDays*Day) || all[len(all)-d.Len()-1].At > now.Add(-MaxDays*Day) {
		t.Fatalf("%d of %d are kept", d.Len(), len(all))
	}
	seen := make(map[time.Duration]bool)
	for seed := range uint64(30) {
		var s Stream
		d.Draw(now, newRand(seed), &s)
		var got []Arrival
		last := now
		for a, ok := s.Next(); ok && a.At < now.Add(3*Day); a, ok = s.Next() {
			back := a.At.Sub(all[a.Procs].At)
			if a.At < last || a.At <= now || back%Day != 0 || back <= 0 || all[a.Procs].At > now {
				t.Fatalf("seed %d: %v after %v was at %v", seed, a, last, all[a.Procs].At)
			}
			seen[back-Day*(a.At.Sub(now)/Day)] = true
			got, last = append(got, a), a.At
		}
		// All that came on those days comes.
		for day := range 3 {
			from, n := now.Add(time.Duration(day)*Day), 0
			var shift time.Duration
			for _, a := range got {
				if a.At > from && a.At <= from.Add(Day) {
					n, shift = n+1, a.At.Sub(all[a.Procs].At)
				}
			}
			for _, a := range all {
				if at := a.At.Add(shift); at > from && at <= from.Add(Day) {
					n--
				}
			}
			if n != 0 && day < 2 {
				t.Errorf("seed %d, day %d: %d too many", seed, day, n)
			}
		}
	}
	if len(seen) < MaxDays/2 {
		t.Errorf("%d days are drawn from", len(seen))
	}
}

// How long an arrival ran is known later, for as long as it is kept.
func TestDaysRan(t *testing.T) {
	var d Days
	var numbers []int64
	for i := range 5000 {
		numbers = append(numbers, d.Add(Arrival{At: job.Time(i) * job.Time(30*time.Minute), Run: 1}))
	}
	for _, n := range numbers {
		d.Ran(n, time.Duration(n)+7)
	}
	d.Ran(-1, 1)
	d.Ran(1<<40, 1)
	var s Stream
	now := 5000 * job.Time(30*time.Minute)
	d.Draw(now, newRand(9), &s)
	for range 200 {
		a, ok := s.Next()
		if at := int64(a.At) / int64(30*time.Minute) % 48; !ok || (int64(a.Run)-7)%48 != at {
			t.Fatalf("%v ran for %v", a.At, a.Run)
		}
	}
}

// A clock that was set back, a site that knows nothing, one that knows an hour.
func TestOddDays(t *testing.T) {
	var d Days
	var s Stream
	d.Draw(0, newRand(1), &s)
	if _, ok := s.Next(); ok {
		t.Error("something comes from nothing")
	}
	d.Add(Arrival{At: 100})
	d.Add(Arrival{At: 50})
	d.Draw(job.Time(time.Hour), newRand(1), &s)
	if _, ok := s.Next(); ok || d.Len() != 2 || d.list[1].At != 100 {
		t.Errorf("%v", d.list)
	}
	d.Draw(0, newRand(1), &s) // the clock was set back: no day is known
	if _, ok := s.Next(); ok {
		t.Error("a day is drawn that has not been")
	}
	d.Draw(job.Time(400*Day), newRand(1), &s) // nothing for a year: the days that are known are empty
	if _, ok := s.Next(); ok {
		t.Error("something comes from empty days")
	}
	for i := range 3 * MaxArrivals {
		d.Add(Arrival{At: 200 + job.Time(i)})
	}
	if d.Len() != MaxArrivals || len(d.list) > 2*MaxArrivals+1024 {
		t.Errorf("%d arrivals are kept in %d", d.Len(), len(d.list))
	}
}
