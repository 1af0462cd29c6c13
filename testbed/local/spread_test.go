package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// oneEach starts sites of so many processors each.
func oneEach(ctx context.Context, t testing.TB, processors int32, names ...string) *local.Federation {
	t.Helper()
	cfg := local.Config{Dir: t.TempDir()}
	for _, name := range names {
		cfg.Sites = append(cfg.Sites, local.Site{Name: name, Tune: func(c *config.Config) {
			c.Scheduler.Processors, c.Executor.Pin = processors, false
		}})
	}
	fed, err := local.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fed.Close(); err != nil {
			t.Error(err)
		}
	})
	return fed
}

// Sixty jobs that come to one of six idle sites of real processes in a moment
// run at all six (placement.conserve). How long it takes is logged; no test
// decides by it.
func TestBurstRunsAtAllSites(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes half a minute")
	}
	const jobs, run = 60, 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	names := []string{"a", "b", "c", "d", "e", "f"}
	fed := oneEach(ctx, t, 1, names...)
	time.Sleep(6 * time.Second) // loads are told
	ledger := filepath.Join(t.TempDir(), "ledger")
	began := time.Now()
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			_, err := fed.Nodes()[0].Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: fmt.Sprint("burst-", i), Job: &kithv1.Job{
				Command:    []string{"/bin/sh", "-c", fmt.Sprintf("sleep %v; echo $KITH_SITE >> %s", run.Seconds(), ledger)},
				Processors: 1, Walltime: durationpb.New(time.Minute),
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	lines := func() []string {
		text, _ := os.ReadFile(ledger)
		return strings.Fields(string(text))
	}
	for len(lines()) < jobs {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d jobs have run", len(lines()), jobs)
		}
		time.Sleep(100 * time.Millisecond)
	}
	ran := make(map[string]int)
	for _, site := range lines() {
		ran[site]++
	}
	t.Logf("%v, jobs by site %v", time.Since(began).Round(100*time.Millisecond), ran)
	if len(ran) != len(names) {
		t.Errorf("jobs ran at %v, want at all of %v", ran, names)
	}
}

// Two of three sites drain for a second while jobs wait at all three. Jobs run at
// all three again afterwards.
func TestDrainedSitesWorkAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	fed := oneEach(ctx, t, 1, "a", "b", "c")
	gate := filepath.Join(t.TempDir(), "gate")
	for i := range 30 {
		_, err := fed.Nodes()[0].Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: fmt.Sprint("drain-", i), Job: &kithv1.Job{
			Command:    []string{"/bin/sh", "-c", "while [ ! -e " + gate + " ]; do sleep 0.1; done"},
			Processors: 1, Walltime: durationpb.New(time.Hour), Copies: 3,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	holds := func(n *local.Node) (running, queued int64) {
		r, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSite().GetRunningAttempts(), r.GetSite().GetQueuedCopies()
	}
	others := fed.Nodes()[1:]
	for _, n := range others {
		if _, err := n.Sites.DrainSite(ctx, &kithv1.DrainSiteRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range others {
		for {
			if _, queued := holds(n); queued == 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	began := time.Now()
	for _, n := range others {
		if _, err := n.Sites.ResumeSite(ctx, &kithv1.ResumeSiteRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range others {
		for {
			running, queued := holds(n)
			if running == 1 && queued > 0 {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s runs %d and has %d queued", n.Name, running, queued)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Logf("%v after the resume", time.Since(began).Round(100*time.Millisecond))
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fed.Cancel(ctx)
}
