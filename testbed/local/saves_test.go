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
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// counting is a job that counts to 400, some numbers in a second, writes each down where all attempts see it,
// and saves it. It asks nobody to run it again.
const counting = `cd "$KITH_CHECKPOINT_DIR" || exit 1
echo "attempt ${KITH_ATTEMPT##*#} restart=$KITH_RESTART sequence=$KITH_CHECKPOINT_SEQUENCE used=$((KITH_USED_SECONDS > 0))" >>%[1]s
i=0
[ -n "$KITH_CHECKPOINT_SEQUENCE" ] && read -r i <state
[ -e state-more ] || head -c 3000000 /dev/urandom >state-more
while [ "$i" -lt 400 ]; do
    i=$((i + 1))
    echo "$i" >>%[1]s
    echo "$i" >state.new && mv state.new state
    echo "$i" >DONE.new && mv DONE.new DONE
    sleep 0.05
done
echo "counted to $i"`

// TestGoesOnAfterItsHostIsLost kills the daemon of the site where a job runs, which saves while it runs. Its shim
// ends it with its lease, and it goes on elsewhere from a number that had come home: every number is
// written down, some twice, and none by two attempts in turn. Once the daemon of its origin is killed, too.
func TestGoesOnAfterItsHostIsLost(t *testing.T) {
	for _, also := range []string{"nothing", "origin"} {
		t.Run("also "+also, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			tune := func(processors int32) func(*config.Config) {
				return func(c *config.Config) {
					c.Scheduler.Processors = processors
					c.Executor.Grace, c.Timing.Heartbeat, c.Timing.AntiEntropy = time.Second, 200*time.Millisecond, time.Second
					c.Timing.Lease, c.Timing.LeaseMargin = 4*time.Second, time.Second
				}
			}
			s := sieged(ctx, t, []local.Site{{Name: "uni-a", Tune: tune(1)}, {Name: "one", Tune: tune(2)}, {Name: "other", Tune: tune(2)}})
			origin := s.fed.Nodes()[0]
			id := s.submit(ctx, origin, "counts", &kithv1.Job{
				Script: "#!/bin/sh\n" + fmt.Sprintf(counting, s.ledger), Processors: 2, Tasks: 1, Walltime: durationpb.New(5 * time.Minute),
				OnSiteLost: kithv1.Job_ON_SITE_LOST_RERUN, Checkpoint: &kithv1.Checkpoint{Paths: []string{"state*"}, Every: durationpb.New(time.Second)},
			})
			first := s.waitRuns(ctx, id, 0)
			var home uint64
			for home == 0 {
				if home = s.state(ctx, id).GetSavedSequence(); ctx.Err() != nil {
					t.Fatal("nothing has come home")
				}
				time.Sleep(20 * time.Millisecond)
			}
			for _, n := range s.fed.Nodes() {
				if n.Name == first {
					n.Kill()
				}
			}
			if also == "origin" {
				origin.Kill()
				if err := origin.Start(ctx); err != nil {
					t.Fatal(err)
				}
			}
			s.wait(ctx, id, kithv1.JobStatus_STATE_COMPLETED)
			end := s.state(ctx, id)
			d := end.GetDemotions()
			if len(d) != 1 || d[0].GetCause() != kithv1.Demotion_CAUSE_HOST_LOST || d[0].GetSiteId() != first || d[0].GetCheckpointSequence() < home || end.GetHostSiteId() == first {
				t.Fatalf("it ended at %s after %v", end.GetHostSiteId(), d)
			}
			ledger, err := os.ReadFile(s.ledger)
			if err != nil {
				t.Fatal(err)
			}
			from := d[0].GetCheckpointSequence()
			before, after, two := strings.Cut(string(ledger), fmt.Sprintf("attempt 2 restart=1 sequence=%d used=1\n", from))
			if !two {
				t.Fatalf("attempt 2 did not go on from %d:\n%s", from, ledger)
			}
			var want strings.Builder
			goesOn := from + 1
			if strings.HasPrefix(after, fmt.Sprintln(from+2)) { // the state was copied between the two renames: it is one ahead of its DONE
				goesOn++
			}
			for i := goesOn; i <= 400; i++ {
				fmt.Fprintln(&want, i)
			}
			if after != want.String() {
				t.Errorf("attempt 2 counted %q", after)
			}
			want.Reset()
			want.WriteString("attempt 1 restart= sequence= used=0\n")
			for i := 1; i < strings.Count(before, "\n"); i++ {
				fmt.Fprintln(&want, i)
			}
			if before != want.String() || uint64(strings.Count(before, "\n")) < goesOn { // with its first line
				t.Errorf("attempt 1 counted %q, and %d was home", before, goesOn-1)
			}
			if out := readOutput(ctx, t, origin, id); !strings.HasSuffix(out, "counted to 400\n") {
				t.Errorf("it wrote %q", out)
			}
		})
	}
}
