package federation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// openLog returns a log of the oracle for a number of processors, its jobs submitted until an instant.
func openLog(t *testing.T, name string, processors int32, until job.Time) *workload.Workload {
	t.Helper()
	w, err := workload.Open(traces + "oracle/" + name + ".swf.gz")
	if err == nil {
		w, err = w.Fit(processors, workload.Kill)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for n < len(w.Jobs) && w.Jobs[n].Submit < until {
		n++
	}
	w.Jobs = w.Jobs[:n]
	return w
}

// Home jobs that do not see their guests start, start for start, as independent simulators say of
// a site that has none, through submission, claim, checkpoint and the next attempt; guests are the jobs of
// another log. Guests save in no time and none may stay to its end, so that home jobs wait for nothing.
func TestInvisibleGuestsLeaveThePublishedSchedules(t *testing.T) {
	for _, pair := range []struct {
		home, guests string
		processors   int32
		policies     []string
	}{
		{"kth-5k", "ctc-5k-p430", 100, []string{"easy", "fcfs", "cons-compress", "cons-replan"}},
		{"ctc-5k-p430", "kth-5k", 430, []string{"easy"}},
	} {
		for _, policy := range pair.policies {
			t.Run(pair.home+"/"+policy, func(t *testing.T) {
				t.Parallel()
				want := readStarts(t, pair.home+"."+policy)
				home := openLog(t, pair.home, pair.processors, job.Never)
				guests := openLog(t, pair.guests, pair.processors, home.Jobs[len(home.Jobs)-1].Submit)
				backfill, err := replay.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended, wrong, evicted, ran, most := 0, 0, 0, 0, 0
				cfg := federation.Config{
					Placement: meta.Placement{Scheme: meta.KDual, Copies: 2}, CopiesOf: func(site, _ int) int32 { return int32(site) + 1 }, //nolint:gosec // 0 or 1
					Checkpoints: true, Grace: 1, Guard: true,
					Sites: []federation.Site{
						{ID: "home", Processors: pair.processors, Backfill: backfill, Queues: sitesched.DualPreempt, Scope: sitesched.ScopeAll},
						{ID: "partner", Processors: 1, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
					},
					Ended: func(site, i int, x *metrics.Record) {
						if site == 1 {
							ran++
							evicted += x.Evicted
							most = max(most, x.Evicted)
							return
						}
						if x.Start != job.Time(want[i])*job.Time(time.Second) || x.Evicted > 0 {
							wrong++
						}
						if ended++; ended == len(want) {
							stop() // guests that nobody takes any more have no end
						}
					},
				}
				if _, err = federation.Run(ctx, cfg, []*workload.Workload{home, guests}); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if ended != len(want) || wrong > 0 {
					t.Errorf("%d of %d home jobs have ended, %d started at another time than without guests", ended, len(want), wrong)
				}
				if evicted < 100 || most > job.MaxEvictions {
					t.Errorf("%d guests of %d have ended, %d evictions, at most %d of one", ran, len(guests.Jobs), evicted, most)
				}
				t.Logf("%d guests of %d ended; %d evictions, at most %d of one", ran, len(guests.Jobs), evicted, most)
			})
		}
	}
}
