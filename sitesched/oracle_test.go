package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// TestOracleSchedules demands that every job of four public workloads starts
// in the very second in which independent simulators start it.
func TestOracleSchedules(t *testing.T) {
	logs := []struct {
		name       string
		processors int32
		policies   []string
	}{
		{"ctc-5k-p430", 430, []string{"easy", "fcfs", "cons-compress"}},
		{"ctc-5k-p430-x17", 430, []string{"easy", "fcfs", "cons-compress", "cons-replan"}},
		{"kth-5k", 100, []string{"easy", "fcfs", "cons-compress", "cons-replan"}},
		{"ctc", 338, []string{"easy", "fcfs", "cons-compress"}},
	}
	for _, log := range logs {
		for _, policy := range log.policies {
			t.Run(log.name+"/"+policy, func(t *testing.T) {
				if testing.Short() && log.name == "ctc" {
					t.Skip("left out with -short: the whole log takes seconds")
				}
				w := readLoad(t, log.name, log.processors)
				want := readStarts(t, log.name+"."+policy)
				s := mustNew(t, Config{Processors: log.processors, Backfill: disciplines[policy]})
				r := &replay{s: s, w: w, starts: make([]job.Time, len(w.copies))}
				began := time.Now()
				if err := r.all(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d jobs, %d passes, %.0f jobs/s", len(want), r.passes, float64(len(want))/time.Since(began).Seconds())
				wrong := 0
				for i := range want {
					if got := int64(r.starts[i] / second); got != want[i] {
						if wrong++; wrong <= 5 {
							t.Errorf("job %d starts at %d, want %d", i, got, want[i])
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%d of %d starts are wrong", wrong, len(want))
				}
			})
		}
	}
}
