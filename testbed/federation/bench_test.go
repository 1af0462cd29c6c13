package federation_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/workload"
)

var large = flag.Bool("large", false, "run the benchmark of 200 sites at its full size: minutes")

// traces is where public logs lie, if they are at hand.
const traces = "../../../shared/traces/"

// ctc returns the whole CTC log, or as many generated jobs.
func ctc(b *testing.B) *workload.Workload {
	b.Helper()
	const processors = 338
	w, err := workload.Open(traces + "oracle/ctc.swf.gz")
	if os.IsNotExist(err) {
		b.Log("no log at hand: generated jobs instead")
		w, err = workload.CTCLike{Jobs: 77_205, Processors: processors, Load: 0.66}.Generate(workload.NewRand(0, 0))
	}
	if err != nil {
		b.Fatal(err)
	}
	if w, err = w.Fit(processors, workload.Kill); err != nil {
		b.Fatal(err)
	}
	return w
}

func bench(b *testing.B, cfg federation.Config, ws []*workload.Workload) {
	b.ReportAllocs()
	jobs := 0
	for b.Loop() {
		jobs += len(run(b, cfg, ws).Records)
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWholeLog takes the CTC log through the full engines of one site:
// submit, place, claim, start, finish. The garbage collector is set as the
// command line sets it for replays.
func BenchmarkWholeLog(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	s := sites(1, 338, sitesched.DualBackfill)
	bench(b, federation.Config{Sites: s, Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}}, []*workload.Workload{ctc(b)})
}

// BenchmarkFourSites is 4 sites with 5,000 jobs each and K=4.
func BenchmarkFourSites(b *testing.B) {
	for _, s := range []meta.Scheme{meta.KDual, meta.KDistributed} {
		b.Run(string(s), func(b *testing.B) {
			queues := sitesched.DualBackfill
			if s == meta.KDistributed {
				queues = sitesched.Single
			}
			bench(b, federation.Config{Sites: sites(4, 430, queues), Placement: meta.Placement{Scheme: s, Copies: 4}}, loads(b, 0, 4, 5000, 430, 0.7))
		})
	}
}

// BenchmarkManySites is 200 sites with 10,000 jobs each, K=3, and loads that
// travel every 30 s; without -large a hundredth of the jobs.
func BenchmarkManySites(b *testing.B) {
	jobs := 100
	if *large {
		jobs = 10_000
	}
	bench(b, federation.Config{
		Sites: sites(200, 430, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.KDual, Copies: 3},
		LoadPeriod: 30 * time.Second, LoadDelay: time.Second, Staggered: true,
	}, loads(b, 0, 200, jobs, 430, 0.7))
}

// BenchmarkQueueLength submits all jobs at once to one site: each runs for a
// minute on all processors, so that the queue is as long as it can be.
func BenchmarkQueueLength(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := &workload.Workload{Jobs: make([]workload.Job, n)}
			for i := range w.Jobs {
				w.Jobs[i] = workload.Job{ID: int64(i + 1), Run: time.Minute, Estimate: 2 * time.Minute, Procs: 4}
			}
			bench(b, federation.Config{Sites: sites(1, 4, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.Independent}}, []*workload.Workload{w})
		})
	}
}
