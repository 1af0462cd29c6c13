package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// TestCheckpointsAtAMachineApart has scripts with inputs and large checkpoints run at the machine with the
// processors of a site of three, be asked to save, and go on there: a job of the site itself, and one of
// another site.
func TestCheckpointsAtAMachineApart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tune := func(c *config.Config) {
		c.Executor.Grace, c.Timing.Heartbeat, c.Timing.AntiEntropy = time.Second, 200*time.Millisecond, time.Second
	}
	s := sieged(ctx, t, []local.Site{{Name: "beta", Tune: func(c *config.Config) {
		tune(c)
		c.Scheduler.Processors = 1
	}}})
	three, err := s.fed.StartMembers(ctx, "alpha", func(c *config.Config) {
		tune(c)
		c.Scheduler.Processors = 2
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := three.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, origin := range []*local.Node{s.fed.Nodes()[0], three.Front()} {
		ledger := filepath.Join(t.TempDir(), "ledger")
		id := s.submit(ctx, origin, "one", &kithv1.Job{
			Script:     "#!/bin/sh\n[ \"$(cat \"$HOME/input\" | wc -c)\" = 1000000 ] || exit 3\nhead -c 3000000 /dev/urandom >\"$KITH_CHECKPOINT_DIR/state-more\"\n" + fmt.Sprintf(adding, ledger),
			Inputs:     []*kithv1.InputFile{{Path: "input", Content: &kithv1.InputFile_Data{Data: []byte(strings.Repeat("x", 1_000_000))}}},
			Checkpoint: &kithv1.Checkpoint{Paths: []string{"state*"}}, Processors: 2, Tasks: 1, Walltime: durationpb.New(5 * time.Minute),
		})
		for demotions := range 2 {
			if at := s.waitRuns(ctx, id, demotions); at != "alpha" {
				t.Fatalf("it runs at %s", at)
			}
			time.Sleep(time.Second) // so that it has something to save
			if _, err := origin.Jobs.CheckpointJob(ctx, &kithv1.CheckpointJobRequest{JobId: id}, grpc.WaitForReady(true)); err != nil {
				t.Fatal(err)
			}
		}
		s.wait(ctx, id, kithv1.JobStatus_STATE_COMPLETED)
		for _, d := range s.state(ctx, id).GetDemotions() {
			if d.GetCheckpointSequence() == 0 {
				t.Errorf("demotion %v", d)
			}
		}
		text, err := os.ReadFile(ledger)
		if want := fmt.Sprintf("%[1]s#1 at alpha\n%[1]s#2 at alpha\n%[1]s#3 at alpha\n", id); err != nil || string(text) != want {
			t.Errorf("the job wrote down %q, %v", text, err)
		}
		if out := readOutput(ctx, t, origin, id); !strings.HasSuffix(out, "sum 7260\n") {
			t.Errorf("it wrote %q", out)
		}
	}
}
