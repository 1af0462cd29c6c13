package harm_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/sitesched/harm"
)

const second = job.Time(time.Second)

func named(n int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "a", Generation: 1, Seq: uint64(n)}, Number: 1}
}

// Three jobs of a site of one processor, of which a guest delays the second by ten minutes, so
// that the third is late by as much; what was held counts from its release.
func TestCompare(t *testing.T) {
	minute := 60 * second
	at := func(n int, submitted, ready, started job.Time, run time.Duration) harm.Job {
		return harm.Job{ID: named(n), Processors: 1, Limit: time.Hour, Submitted: submitted, Ready: ready, Started: started, Run: run}
	}
	jobs := []harm.Job{
		at(3, 2*minute, 5*minute, 50*minute, 20*time.Minute),
		at(1, 0, 0, 0, 0), // starts at 0, see below
		at(2, minute, 0, 30*minute, 20*time.Minute),
		at(4, 3*minute, 0, 0, 0), // cancelled while it waits
	}
	jobs[1].Started, jobs[1].Run, jobs[1].Submitted = 1, 20*time.Minute, 1
	jobs[2].Blocked, jobs[2].Moved = 11*time.Minute, 1
	jobs[3].Left = 4 * minute
	guests := []harm.Guest{{Processors: 1, Came: 5 * minute, Started: 20 * minute, Run: 10 * time.Minute}, {Processors: 9, Run: time.Hour}}
	q := harm.Question{Site: sitesched.Config{Processors: 1, Queues: sitesched.DualBackfill}, Now: 90 * minute, Bound: 10 * time.Minute}
	r, err := harm.Compare(q, jobs, guests)
	if err != nil {
		t.Fatal(err)
	}
	f := r.All
	if f.Jobs != 3 || f.Compared != 3 || f.Later != [3]int{2, 0, 0} || f.Violations != 1 || f.Moved != 1 || f.Blocked != 1 || f.Worst != 660 || f.Gains != 0 {
		t.Errorf("%+v", f)
	}
	if f.Delays < 1199 || f.Delays > 1201 || f.P95 < 599 || f.P95 > 601 || f.Wait-f.Alone < 399 || f.Wait-f.Alone > 401 {
		t.Errorf("delays %v, p95 %v, waits %v and alone %v", f.Delays, f.P95, f.Wait, f.Alone)
	}
	if r.Classes[2] != f || r.Classes[0].Jobs != 0 {
		t.Errorf("classes %+v", r.Classes)
	}
	if r.Guests != 1 || r.GuestWork != 600 || r.GuestWait != 900 || r.Reached != q.Now || r.Assumed != 0 {
		t.Errorf("%+v", r)
	}
	q.Since = 40 * minute
	if r, err = harm.Compare(q, jobs, guests); err != nil || r.All.Jobs != 1 || r.Guests != 0 {
		t.Errorf("since minute 40: %+v, %v", r, err)
	}
	if _, err = harm.Compare(harm.Question{}, jobs, nil); !errors.Is(err, sitesched.ErrConfig) {
		t.Errorf("a site without processors: %v", err)
	}
}

// The shadow stops where a job waits of which nobody knows how long it will run, and goes on by
// its limit when that has lasted for a week.
func TestCompareLags(t *testing.T) {
	jobs := []harm.Job{
		{ID: named(1), Processors: 1, Limit: time.Hour, Submitted: 10 * second, Open: true},
		{ID: named(2), Processors: 1, Limit: time.Hour, Submitted: 20 * second, Started: 30 * second, Run: time.Minute},
	}
	q := harm.Question{Site: sitesched.Config{Processors: 1}, Now: 1000 * second}
	r, err := harm.Compare(q, jobs, nil)
	if err != nil || r.Reached != 10*second || r.All.Jobs != 1 || r.All.Compared != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	jobs[0].Started, jobs[0].Run = 500*second, 500*time.Second
	if r, err = harm.Compare(q, jobs, nil); err != nil || r.Reached != 510*second {
		t.Errorf("%+v, %v", r, err)
	}
	q.Now = q.Now.Add(8 * 24 * time.Hour)
	if r, err = harm.Compare(q, jobs, nil); err != nil || r.Reached != q.Now || r.Assumed != 1 || r.All.Compared != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A job that waits for the end of a drain is no later than without guests: there the site drains,
// too. One whose drain goes on does not start.
func TestCompareDrains(t *testing.T) {
	minute := 60 * second
	jobs := []harm.Job{
		{ID: named(1), Processors: 1, Limit: time.Hour, Submitted: 10 * minute, Started: 30 * minute, Run: 5 * time.Minute},
		{ID: named(2), Processors: 1, Limit: time.Hour, Submitted: 40 * minute, Started: 40 * minute, Run: 5 * time.Minute},
		{ID: named(3), Processors: 1, Limit: time.Hour, Submitted: 60 * minute, Started: 61 * minute, Run: 5 * time.Minute}, // elsewhere
	}
	q := harm.Question{Site: sitesched.Config{Processors: 1}, Now: 90 * minute, Drains: []harm.Drain{{From: 50 * minute}, {From: 5 * minute, Until: 20 * minute}, {From: 20 * minute, Until: 30 * minute}}}
	r, err := harm.Compare(q, jobs, nil)
	if err != nil || r.All.Jobs != 3 || r.All.Compared != 2 || r.All.Delays != 0 || r.All.Gains != 0 || r.Reached != q.Now {
		t.Errorf("%+v, %v", r, err)
	}
}

// BenchmarkCompare is a report about as much as a site remembers.
func BenchmarkCompare(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var jobs []harm.Job
	now := second
	for n := range 100_000 {
		now += job.Time(rng.Int64N(int64(60 * second)))
		run := time.Duration(rng.ExpFloat64() * float64(time.Hour))
		jobs = append(jobs, harm.Job{ID: named(n), Processors: 1 + rng.Int32N(16), Limit: 2*run + time.Minute, Submitted: now, Started: now.Add(time.Minute), Run: run})
	}
	q := harm.Question{Site: sitesched.Config{Processors: 1024, Backfill: sitesched.EASY}, Now: now}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := harm.Compare(q, jobs, nil); err != nil {
			b.Fatal(err)
		}
	}
}
