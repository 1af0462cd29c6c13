package ghs

import (
	"math"

	"kith/internal/harvest"
)

// sensor measures an owner hour by hour for a [harvest.Usage], and remembers his last jobs.
type sensor struct {
	usage    harvest.Usage
	known    harvest.Hour // the latest hour that was recorded, −1 for none
	arrivals map[harvest.Hour]*tally
	busy     map[harvest.Hour]float64
	recent   []visit // when the owner was there, a visit for each job, in order
}

// tally counts jobs of an hour and their service.
type tally struct{ n, sum, squares float64 }

// visit is when a process runs.
type visit struct{ at, end float64 }

// watch makes a sensor of the owner.
func watch(o *owner) *sensor {
	s := &sensor{known: -1, arrivals: make(map[harvest.Hour]*tally), busy: make(map[harvest.Hour]float64)}
	o.tell = s.see
	return s
}

func (s *sensor) see(at, served, end float64) {
	h := harvest.Hour(at / hour)
	t := s.arrivals[h]
	if t == nil {
		t = &tally{}
		s.arrivals[h] = t
	}
	t.n++
	t.sum += served
	t.squares += served * served
	// He is there without a break from end−served on.
	for from := end - served; from < end; {
		k := math.Floor(from / hour)
		to := min(end, (k+1)*hour)
		s.busy[harvest.Hour(k)] += to - from
		from = to
	}
	s.recent = append(s.recent, visit{end - served, end})
	if len(s.recent) > 1<<14 {
		s.recent = append(s.recent[:0], s.recent[1<<13:]...)
	}
}

// record puts all whole hours before t into the usage, and returns the last of them.
func (s *sensor) record(t float64) (harvest.Hour, error) {
	last := harvest.Hour(t/hour) - 1
	for ; s.known < last; s.known++ {
		h := s.known + 1
		l := harvest.Load{Rho: min(1, s.busy[h]/hour)}
		if a := s.arrivals[h]; a != nil {
			l.Lambda = a.n / hour
			if a.n > 1 {
				l.Sigma = math.Sqrt(max(0, (a.squares-a.sum*a.sum/a.n)/(a.n-1)))
			}
		}
		if err := s.usage.Add(h, l); err != nil {
			return last, err
		}
		delete(s.arrivals, h)
		delete(s.busy, h)
	}
	return last, nil
}

// available is what a sensor of the Network Weather Service says: the share of the processor that
// one more process would get beside those that are there, in the mean over a window before t,
// looked at each second. The owner has one process at a time, which is kind to the sensor: were
// all that wait counted, one long job would make it see hundreds. guests are when processes of
// guests were there.
func (s *sensor) available(t, window float64, guests []visit) float64 {
	sum, n := 0.0, 0.0
	for at := t - window; at < t; at++ {
		there := 0.0
		for _, list := range [][]visit{s.recent, guests} {
			for i := len(list) - 1; i >= 0 && list[i].end > at; i-- {
				if list[i].at <= at {
					there++
				}
			}
		}
		sum += 1 / (1 + there)
		n++
	}
	return sum / n
}
