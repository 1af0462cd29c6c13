package federation_test

import (
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/sim"
	"kith/testbed/workload"
)

// With latency, loss, doubled and overtaking messages every job still runs once.
func TestBadNetworkLosesNoJob(t *testing.T) {
	ws := loads(t, 6, 3, 60, 64, 0.8)
	cfg := federation.Config{
		Seed: 6, Sites: sites(3, 64, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.KDual, Copies: 3},
		LoadMessages: true, LoadPeriod: 5 * time.Minute, AntiEntropy: 10 * time.Minute, Invariants: true, Hash: true,
		Network: sim.NetworkConfig{LinkConfig: sim.LinkConfig{
			Latency: 30 * time.Millisecond, Jitter: 50 * time.Millisecond, Shape: sim.Exponential,
			Loss: 0.05, Duplication: 0.05, Reorder: 0.1,
		}},
	}
	a, b := run(t, cfg, ws), run(t, cfg, ws)
	if len(a.Records) != 180 {
		t.Errorf("%d records, want 180", len(a.Records))
	}
	if a.Hash != b.Hash {
		t.Error("two runs of one seed differ")
	}
	for i := range a.Records {
		if r := &a.Records[i]; r.Start < r.Submit || r.End <= r.Start {
			t.Errorf("job %d of %s: submitted %v, started %v, ended %v", r.Job, r.Origin, r.Submit, r.Start, r.End)
		}
	}
}

// A transfer holds the host's processors before the job runs, only away from
// its origin, and counts as no run time (spec 001 section 2.6).
func TestTransfersHoldProcessors(t *testing.T) {
	ws := loads(t, 7, 3, 200, 64, 0.9)
	cfg := federation.Config{
		Seed: 7, Sites: sites(3, 64, sitesched.DualBackfill), Placement: meta.Placement{Scheme: meta.KDual, Copies: 3},
		Transfer: federation.PaperTransfer(), Invariants: true,
	}
	remote, sum := 0, time.Duration(0)
	for _, r := range run(t, cfg, ws).Records {
		took := r.End.Sub(r.Start) - r.Run
		if r.Site == r.Origin {
			if took != 0 {
				t.Fatalf("job %d stayed at %s and took %v beyond its run", r.Job, r.Origin, took)
			}
			continue
		}
		if took < 80*time.Second || took > 800*time.Second {
			t.Errorf("job %d of %s was moved in %v, want 80 s to 800 s", r.Job, r.Origin, took)
		}
		remote++
		sum += took
	}
	if remote < 50 {
		t.Fatalf("%d remote jobs: nothing was tested", remote)
	}
	// Three standard deviations of the mean of that many.
	if mean := (sum / time.Duration(remote)).Seconds(); mean < 440-3*208/7 || mean > 440+3*208/7 {
		t.Errorf("the mean transfer of %d jobs is %.0f s, want 440", remote, mean)
	}
}

// Every site is shown at each multiple of the period.
func TestSamples(t *testing.T) {
	ws := loads(t, 8, 2, 50, 64, 0.7)
	n, last, busy := 0, -time.Second, 0
	cfg := federation.Config{
		Sites: sites(2, 64, sitesched.Single), Placement: meta.Placement{Scheme: meta.Independent}, SampleEvery: time.Hour,
		Sample: func(s federation.Sample) {
			if at := time.Duration(s.At); n%2 == 0 && at != last+time.Hour && n > 0 {
				t.Errorf("a sample at %v after one at %v", at, last)
			}
			if s.Load.Running > 0 {
				busy++
			}
			n, last = n+1, time.Duration(s.At)
		},
	}
	run(t, cfg, ws)
	if n < 48 || busy == 0 {
		t.Errorf("%d samples, %d of a busy site", n, busy)
	}
}

// Samples do not keep a run alive in which a job is stuck: here it would end
// after the end of time.
func TestSamplesOfAStuckRun(t *testing.T) {
	late := job.Never - 2*sim.Start
	w := &workload.Workload{Jobs: []workload.Job{
		{ID: 1, Run: time.Minute, Estimate: time.Minute, Procs: 1}, {ID: 2, Submit: late, Run: 1000 * time.Hour, Estimate: 1000 * time.Hour, Procs: 1},
	}}
	samples := 0
	_, err := federation.Run(t.Context(), federation.Config{
		Sites: sites(1, 64, sitesched.Single), Placement: meta.Placement{Scheme: meta.Independent}, SampleEvery: 300_000 * time.Hour,
		Sample: func(federation.Sample) {
			if samples++; samples > 100 {
				t.Fatal("samples are taken for ever")
			}
		},
	}, []*workload.Workload{w})
	if err == nil || !strings.Contains(err.Error(), "1 of 2 jobs have ended and nothing more can happen") {
		t.Errorf("error %v after %d samples, want one about a job that never ends", err, samples)
	}
	// Within the times that are left, it is samples alone that would go on.
	w = &workload.Workload{Jobs: []workload.Job{{ID: 1, Submit: job.Never, Run: time.Minute, Estimate: time.Minute, Procs: 1}}}
	samples = 0
	_, err = federation.Run(t.Context(), federation.Config{
		Sites: sites(1, 64, sitesched.Single), Placement: meta.Placement{Scheme: meta.Independent}, SampleEvery: time.Second,
		Sample: func(federation.Sample) {
			if samples++; samples > 100 {
				t.Fatal("samples are taken for ever")
			}
		},
	}, []*workload.Workload{w})
	if err == nil || !strings.Contains(err.Error(), "nothing more can happen") {
		t.Errorf("error %v after %d samples, want one about a job that never comes", err, samples)
	}
}
