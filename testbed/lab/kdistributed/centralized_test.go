package kdistributed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/workload"
)

// plan reads jobs as "submit procs run estimate [transfer]" in seconds, from
// the first site, and returns "site@start" of each.
func plan(t *testing.T, processors []int32, lines ...string) string {
	t.Helper()
	var jobs []centralJob
	for _, line := range lines {
		var submit, run, estimate, transfer int64
		j := centralJob{}
		if n, _ := fmt.Sscan(line, &submit, &j.procs, &run, &estimate, &transfer); n < 4 {
			t.Fatalf("job %q", line)
		}
		j.submit, j.run, j.estimate = job.Time(submit)*job.Time(time.Second), time.Duration(run)*time.Second, time.Duration(estimate)*time.Second
		j.transfer = time.Duration(transfer) * time.Second
		jobs = append(jobs, j)
	}
	if err := centralized(t.Context(), jobs, processors); err != nil {
		t.Fatal(err)
	}
	var words []string
	for i := range jobs {
		words = append(words, fmt.Sprintf("%d@%d", jobs[i].site, jobs[i].start/job.Time(time.Second)))
	}
	return strings.Join(words, " ")
}

// The cycle of spec 001 section 2.4, by hand.
func TestCentralizedByHand(t *testing.T) {
	for _, c := range []struct {
		name, want string
		processors []int32
		jobs       []string
	}{
		{"the tightest site that fits, ties to the first", "0@0 0@0 1@0", []int32{10, 10}, []string{"0 4 10 10", "0 6 10 10", "0 5 10 10"}},
		{"the head waits where it can start earliest", "0@0 1@0 1@20", []int32{10, 10}, []string{"0 8 50 50", "0 8 20 20", "0 5 5 5"}},
		// The head has its place at site 1 from 20 on. There only what ends by then
		// may pass it, or what fits beside it; at site 0 anything may.
		{"ends by the shadow", "0@0 1@0 1@20 1@0", []int32{10, 10}, []string{"0 9 50 50", "0 8 20 20", "0 10 5 5", "0 2 20 20"}},
		{"outlives the shadow", "0@0 1@0 1@20 1@25", []int32{10, 10}, []string{"0 9 50 50", "0 8 20 20", "0 10 5 5", "0 2 21 21"}},
		{"beside the head", "0@0 1@0 1@20 1@0 1@23", []int32{10, 10}, []string{"0 9 50 50", "0 8 20 20", "0 8 3 3", "0 2 90 90", "0 2 90 90"}},
		{"at the site that is not reserved", "0@0 1@0 1@20 0@0", []int32{10, 10}, []string{"0 8 50 50", "0 7 20 20", "0 9 5 5", "0 2 90 90"}},
		{"tightest is reserved and refuses, another takes it", "0@0 1@0 1@20 0@0", []int32{10, 10}, []string{"0 7 50 50", "0 8 20 20", "0 9 5 5", "0 2 90 90"}},
		{"an early end pulls the head forward", "0@0 0@7", []int32{10}, []string{"0 8 7 100", "0 8 5 5"}},
		{"a transfer holds the processors", "0@0 1@0 1@105", []int32{2, 2}, []string{"0 2 999 999", "0 2 5 5 100", "0 2 5 5"}},
	} {
		if got := plan(t, c.processors, c.jobs...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// With one site the scheme is EASY backfilling: start for start that of the
// engines of kithd.
func TestCentralizedOfOneSiteIsEASY(t *testing.T) {
	for seed := range uint64(20) {
		rng := workload.NewRand(seed, 0)
		p := 1 + rng.Int32N(60)
		w, err := workload.CTCLike{Jobs: 400, Processors: p, Load: 0.5 + rng.Float64()}.Generate(rng)
		if err != nil {
			t.Fatal(err)
		}
		sites := []federation.Site{{ID: "one", Processors: p, Backfill: sitesched.EASY}}
		engine, err := runUnified(t.Context(), federation.Config{Sites: sites}, []*workload.Workload{w})
		if err != nil {
			t.Fatal(err)
		}
		own, err := runCentralized(t.Context(), federation.Config{Sites: sites}, []*workload.Workload{w})
		if err != nil {
			t.Fatal(err)
		}
		for i := range own.Records {
			if a, b := own.Records[i].Start, engine.Records[i].Start; a != b {
				t.Fatalf("seed %d, job %d starts at %v, with the engine at %v", seed, i, a, b)
			}
		}
	}
}

// No site ever runs more than it has, and nothing starts before it is submitted.
func TestCentralizedNeverOverAllocates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // A test.
	for range 200 {
		sizes := []int32{1 + rng.Int32N(20), 1 + rng.Int32N(20), 1 + rng.Int32N(20)}
		widest := slices.Max(sizes)
		jobs := make([]centralJob, 100)
		at := job.Time(0)
		for i := range jobs {
			at += job.Time(rng.IntN(20)) * job.Time(time.Second)
			e := time.Duration(1+rng.IntN(200)) * time.Second
			jobs[i] = centralJob{
				origin: rng.IntN(3), submit: at, procs: 1 + rng.Int32N(widest), estimate: e, run: 1 + time.Duration(rng.Int64N(int64(e))),
				transfer: time.Duration(rng.IntN(50)) * time.Second,
			}
		}
		if err := centralized(t.Context(), jobs, sizes); err != nil {
			t.Fatal(err)
		}
		for i := range jobs {
			j := &jobs[i]
			if j.start < j.submit || j.end.Sub(j.start) != j.run+j.away(j.site) {
				t.Fatalf("job %d of %v to %v was submitted at %v and runs %v", i, j.start, j.end, j.submit, j.run)
			}
			used := int32(0) // at the instant of this start
			for k := range jobs {
				if o := &jobs[k]; o.site == j.site && o.start <= j.start && j.start < o.end {
					used += o.procs
				}
			}
			if used > sizes[j.site] {
				t.Fatalf("site %d has %d processors and runs %d", j.site, sizes[j.site], used)
			}
		}
	}
}

func TestCentralizedRefusesWhatNeverFits(t *testing.T) {
	if err := centralized(t.Context(), []centralJob{{procs: 5, run: 1, estimate: 1}}, []int32{4, 4}); err == nil {
		t.Error("a job wider than any site was accepted")
	}
	if err := centralized(t.Context(), nil, []int32{0}); err == nil {
		t.Error("a site without processors was accepted")
	}
}
