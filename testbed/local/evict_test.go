package local_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/testbed/local"
)

// evictionGrace is what guests have to leave.
const evictionGrace = 3 * time.Second

// TestEviction has a home job come to a site whose processors a guest has. The guest leaves within
// the grace, whether it answers or not, and goes on at another site from what it has saved.
func TestEviction(t *testing.T) {
	silent := "trap '' USR1\n" + strings.Replace(adding, "trap '", ": '", 1)
	for name, c := range map[string]struct {
		script string
		job    *kithv1.Job
		saved  bool
	}{
		"answers": {
			script: "head -c 2000000 /dev/urandom >\"$KITH_CHECKPOINT_DIR/state-more\"\n" + adding, saved: true,
			job: &kithv1.Job{Checkpoint: &kithv1.Checkpoint{Paths: []string{"state*"}}},
		},
		"does not answer": {
			script: silent,
			job:    &kithv1.Job{Checkpoint: &kithv1.Checkpoint{Paths: []string{"state*"}, Grace: durationpb.New(time.Hour)}},
		},
		"begins again": {
			script: "KITH_CHECKPOINT_DIR=.\n" + adding,
			job:    &kithv1.Job{OnSiteLost: kithv1.Job_ON_SITE_LOST_RERUN},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			tune := func(processors int32, queues sitesched.Queues) func(*config.Config) {
				return func(c *config.Config) {
					c.Scheduler.Processors, c.Scheduler.Queues = processors, queues
					c.Executor.Grace, c.Timing.Heartbeat, c.Timing.AntiEntropy = time.Second, 200*time.Millisecond, time.Second
					if c.Checkpoint.MaxGrace = evictionGrace; queues == sitesched.DualPreempt {
						c.NoHarm.Mode = meta.HarmInvisible
					}
					if processors > 1 {
						c.Placement.Scheme = meta.Independent // its own jobs stay there
					}
				}
			}
			s := sieged(ctx, t, []local.Site{
				{Name: "uni-a", Tune: tune(1, sitesched.DualBackfill)},
				{Name: "host", Tune: tune(2, sitesched.DualPreempt)},
				{Name: "other", Tune: tune(2, sitesched.DualBackfill)},
			})
			origin, host, other := s.fed.Nodes()[0], s.fed.Nodes()[1], s.fed.Nodes()[2]
			sleep := &kithv1.Job{Command: []string{"/bin/sleep", "100"}, Processors: 2, Tasks: 1, Walltime: durationpb.New(5 * time.Minute)}
			before := s.submit(ctx, other, "before", sleep)
			s.wait(ctx, before, kithv1.JobStatus_STATE_RUNNING)
			job := c.job
			job.Script = "#!/bin/sh\n" + fmt.Sprintf(c.script, s.ledger)
			job.Processors, job.Tasks, job.Walltime = 2, 1, durationpb.New(5*time.Minute)
			id := s.submit(ctx, origin, "guest", job)
			if at := s.waitRuns(ctx, id, 0); at != "host" {
				t.Fatalf("the guest runs at %s", at)
			}
			time.Sleep(2 * time.Second) // so that it has something to save
			home := s.submit(ctx, host, "home", sleep)
			s.wait(ctx, home, kithv1.JobStatus_STATE_RUNNING)
			began := s.state(ctx, home)
			waited := began.GetStartTime().AsTime().Sub(began.GetSubmitTime().AsTime())
			if most := evictionGrace + 10*time.Second; waited > most { // and a machine with other work
				t.Errorf("the home job waited %v, and should at most %v", waited, most)
			}
			if _, err := other.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: before}); err != nil {
				t.Fatal(err)
			}
			s.wait(ctx, id, kithv1.JobStatus_STATE_COMPLETED)
			guest := s.state(ctx, id)
			d := guest.GetDemotions()
			if len(d) != 1 || d[0].GetCause() != kithv1.Demotion_CAUSE_EVICTED || d[0].GetSiteId() != "host" || d[0].GetCheckpointSequence() > 0 != c.saved || guest.GetHostSiteId() != "other" {
				t.Errorf("the guest ended at %s after %v", guest.GetHostSiteId(), d)
			}
			ledger, err := os.ReadFile(s.ledger)
			if want := fmt.Sprintf("%[1]s#1 at host\n%[1]s#2 at other\n", id); err != nil || string(ledger) != want {
				t.Errorf("the guest wrote down %q, %v", ledger, err)
			}
			if out := readOutput(ctx, t, origin, id); !strings.HasSuffix(out, "sum 7260\n") {
				t.Errorf("it wrote %q", out)
			}
		})
	}
}
