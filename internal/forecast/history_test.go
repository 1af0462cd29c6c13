package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

// slowRuns is what [History.Runs] says by the words of issue and design: from a list of all
// that has ended.
func slowRuns(all []Past, q *Question) (list []point, basis Basis) {
	basis = LimitOnly
	add := func(at time.Duration, w float64) { list = append(list, point{min(at, q.Limit), w}) }
	age := 0
	for _, p := range slices.Backward(all) {
		if p.User != q.User {
			continue
		}
		if age == 60 {
			break
		}
		w := math.Pow(2, -float64(age)/10)
		age++
		if p.Limit == q.Limit {
			w *= 4
		}
		if p.Procs == q.Procs {
			w *= 2
		}
		if p.Script == q.Script && p.Script != 0 {
			w *= 4
		}
		if p.Stopped {
			add(q.Limit, w)
		} else {
			add(p.Run, w)
		}
		basis = SimilarJobs
	}
	var similar []float64
	for _, p := range slices.Backward(all) {
		if len(similar) < 60 && limitClass(p.Limit) == limitClass(q.Limit) {
			similar = append(similar, float64(float32(float64(p.Run)/float64(p.Limit))))
			if p.Stopped {
				similar[len(similar)-1] = 1
			}
		}
	}
	for _, r := range similar {
		add(time.Duration(r*float64(q.Limit)), 3/float64(len(similar)))
		basis = min(basis, JobsOfAnybody)
	}
	if basis == LimitOnly {
		for i := range 20 {
			add(time.Duration((float64(i)+.5)/20*float64(q.Limit)), 1)
		}
	}
	slices.SortFunc(list, func(a, b point) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.upto, b.upto)) })
	return list, basis
}

func TestHistoryAgainstDefinition(t *testing.T) {
	for seed := range uint64(30) {
		rng := newRand(seed)
		h, all := NewHistory(), []Past(nil)
		var d Dist
		limits := []time.Duration{time.Minute, time.Hour, 65 * time.Minute, 18 * time.Hour}
		for range 400 {
			q := Question{User: strconv.Itoa(rng.IntN(4)), Procs: 1 << rng.IntN(3), Limit: limits[rng.IntN(4)], Script: uint64(rng.IntN(3))}
			basis := h.Runs(&q, &d)
			want, wantBasis := slowRuns(all, &q)
			if basis != wantBasis || d.Len() != len(want) {
				t.Fatalf("seed %d: basis %d of %d samples, want %d of %d", seed, basis, d.Len(), wantBasis, len(want))
			}
			sum := 0.0
			for i := range want {
				sum += want[i].upto
				last := i == len(want)-1 || want[i+1].at != want[i].at
				if d.points[i].at != want[i].at || last && math.Abs(d.points[i].upto-sum) > 1e-9 {
					t.Fatalf("seed %d: sample %d is %v, want %v, %v", seed, i, d.points[i], want[i], sum)
				}
			}
			p := Past{User: q.User, Script: q.Script, Procs: q.Procs, Limit: q.Limit, Run: time.Duration(rng.Int64N(int64(q.Limit)))}
			if p.Stopped = rng.IntN(5) == 0; p.Stopped {
				p.Run = p.Limit
			}
			h.Ended(&p)
			all = append(all, p)
		}
	}
}

// One that was stopped is known to be longer: for a longer limit it counts as that.
func TestStoppedJobsWouldHaveRunLonger(t *testing.T) {
	h := NewHistory()
	h.Ended(&Past{User: "ada", Procs: 1, Limit: time.Hour, Run: time.Hour, Stopped: true})
	var d Dist
	h.Runs(&Question{User: "ada", Procs: 1, Limit: 10 * time.Hour}, &d)
	if got := d.Quantile(.5); got != 10*time.Hour {
		t.Errorf("median %v", got)
	}
	h.Runs(&Question{User: "ada", Procs: 1, Limit: time.Minute}, &d)
	if got := d.Quantile(1); got != time.Minute {
		t.Errorf("more than the limit: %v", got)
	}
}

// What comes from outside cannot break it: no limit, no time, more than the limit.
func TestOddPast(t *testing.T) {
	h := NewHistory()
	h.Ended(&Past{User: "a", Limit: 0, Run: time.Hour})
	h.Ended(&Past{User: "a", Limit: time.Hour, Run: 0})
	h.Ended(&Past{User: "a", Limit: time.Hour, Run: -time.Hour})
	h.Ended(&Past{User: "a", Limit: time.Hour, Run: 9 * time.Hour})
	h.Ended(&Past{User: "a", Limit: math.MaxInt64, Run: math.MaxInt64})
	h.Ended(&Past{User: "a", Limit: 1, Run: 1})
	if got := h.JobsOf("a"); got != 5 {
		t.Errorf("%d jobs", got)
	}
	var d Dist
	for _, limit := range []time.Duration{0, 1, time.Hour, math.MaxInt64} {
		h.Runs(&Question{User: "a", Limit: limit}, &d)
		if least, most := d.Quantile(0), d.Quantile(1); least < 0 || most > limit {
			t.Errorf("limit %v: %v to %v", limit, least, most)
		}
	}
}

// All that is kept has a bound: with a user of 100,000 jobs, 100,000 users of one, a million jobs.
func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory()
	for i := range 100_000 {
		h.Ended(&Past{User: "one", Limit: time.Hour, Run: time.Duration(i)})
	}
	for i := range 100_000 {
		h.Ended(&Past{User: fmt.Sprint(i), Limit: time.Hour, Run: time.Minute})
	}
	if h.JobsOf("one") != 0 || h.JobsOf("99999") != 1 || h.JobsOf(fmt.Sprint(100_000-MaxUsers)) != 1 || h.JobsOf(fmt.Sprint(100_000-MaxUsers-1)) != 0 {
		t.Error("those whose jobs ended longest ago are not the ones that are forgotten")
	}
	for i := range 1_000_000 {
		h.Ended(&Past{User: strconv.Itoa(i % 5000), Limit: time.Duration(i), Run: time.Duration(i / 2)})
	}
	if len(h.users) > MaxUsers || len(h.index) > MaxUsers {
		t.Errorf("%d users", len(h.users))
	}
	for i := range h.users {
		if len(h.users[i].past) > PastPerUser {
			t.Errorf("%d jobs of a user", len(h.users[i].past))
		}
	}
	for i := range h.limits {
		if len(h.limits[i].of) > PastPerLimit {
			t.Errorf("%d jobs of a limit", len(h.limits[i].of))
		}
	}
}

// A user whose jobs go on ending is not forgotten.
func TestUsersInUseStay(t *testing.T) {
	h := NewHistory()
	for i := range 3 * MaxUsers {
		h.Ended(&Past{User: "busy", Limit: time.Hour, Run: time.Minute})
		h.Ended(&Past{User: strconv.Itoa(i), Limit: time.Hour, Run: time.Minute})
	}
	if got := h.JobsOf("busy"); got != 3*MaxUsers {
		t.Errorf("%d jobs", got)
	}
}
