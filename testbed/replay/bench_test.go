package replay

import (
	"context"
	"fmt"
	"testing"

	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// BenchmarkLog replays the whole CTC log, 77,205 jobs on 338 processors. The
// time is that of the schedule alone, without reading and figures.
func BenchmarkLog(b *testing.B) {
	w, err := openTrace(b, "CTC-SP2-1996-3.1-cln.swf.gz").Fit(338, workload.Kill)
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range Policies() {
		b.Run(policy, func(b *testing.B) {
			backfill, err := ParsePolicy(policy)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(context.Background(), w, sitesched.Config{Processors: 338, Backfill: backfill}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(w.Jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkQueueGrowth replays jobs that are all submitted at the start, so
// that the queue is as long as the workload: the time for one job shows how
// the scheduler grows with it.
func BenchmarkQueueGrowth(b *testing.B) {
	for _, policy := range []string{"fcfs", "easy"} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", policy, n), func(b *testing.B) {
				w := crowd(b, n)
				backfill, err := ParsePolicy(policy)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Run(context.Background(), w, sitesched.Config{Processors: w.Processors, Backfill: backfill}, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/job")
			})
		}
	}
}

// crowd is a workload whose jobs all come at the start.
func crowd(t testing.TB, n int) *workload.Workload {
	t.Helper()
	w, err := workload.CTCLike{Jobs: n}.Generate(workload.NewRand(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	c := *w
	c.Jobs = make([]workload.Job, n)
	for i, j := range w.Jobs {
		j.Submit = 0
		c.Jobs[i] = j
	}
	return &c
}

// BenchmarkSummary turns the whole log into figures.
func BenchmarkSummary(b *testing.B) {
	w, err := workload.CTCLike{Jobs: 77_000}.Generate(workload.NewRand(1, 0))
	if err != nil {
		b.Fatal(err)
	}
	s, err := Run(context.Background(), w, sitesched.Config{Processors: w.Processors, Backfill: sitesched.EASY}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		metrics.Summarise(s.Records("a"), metrics.Options{Processors: 430})
	}
}
