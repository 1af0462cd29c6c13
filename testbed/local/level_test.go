package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// adding is a job that adds up the numbers to 120, some in a second. It saves what it has done
// when it is asked to, and ends. Nobody knows how long it takes.
const adding = `cd "$KITH_CHECKPOINT_DIR" || exit 1
echo "$KITH_ATTEMPT at $KITH_SITE" >> %s
i=0 sum=0
[ -n "$KITH_CHECKPOINT_SEQUENCE" ] && read -r i sum <state
trap 'echo "$i $sum" >state.new && mv state.new state; echo "$((i + 1))" >DONE.new && mv DONE.new DONE; exit 85' USR1
while [ "$i" -lt 120 ]; do
    i=$((i + 1)) sum=$((sum + i))
    sleep 0.1
done
echo "sum $sum"`

// levels is a federation with three levels: uni-a, where jobs are submitted, is none of them.
// A daemon that was killed is to be back before it has to ask for a checkpoint, at three quarters
// of what its level lets a job run: on a machine at a load of 30 that took more than two seconds.
func levels(ctx context.Context, t *testing.T) *siege {
	t.Helper()
	tune := func(rank int, run time.Duration) func(*config.Config) {
		return func(c *config.Config) {
			c.Scheduler.Processors = 2
			c.Executor.Grace, c.Timing.Heartbeat, c.Timing.AntiEntropy = time.Second, 200*time.Millisecond, time.Second
			if c.Level.Rank = rank; rank > 0 {
				c.Level.Run, c.Level.Queue = run, 10*run
			}
		}
	}
	return sieged(ctx, t, []local.Site{
		{Name: "uni-a", Tune: tune(0, 0)},
		{Name: "small", Tune: tune(1, 6*time.Second)},
		{Name: "middle", Tune: tune(2, 10*time.Second)},
		{Name: "large", Tune: tune(3, 10*time.Minute)},
	})
}

// sieged starts sites, and ends them with the test. Their jobs are submitted at the first one.
func sieged(ctx context.Context, t *testing.T, sites []local.Site) *siege {
	t.Helper()
	dir := t.TempDir()
	fed, err := local.Start(ctx, local.Config{Dir: dir, Sites: sites})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, sites[0].Name+".log"))
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		fed.Cancel(stop)
		if err := fed.Close(); err != nil {
			t.Error(err)
		}
		for _, n := range fed.Nodes() {
			if text, err := os.ReadFile(n.LogPath()); t.Failed() && err == nil {
				t.Logf("---- log of %s\n%s", n.Name, text)
			}
		}
	})
	return &siege{t: t, fed: fed, ledger: filepath.Join(t.TempDir(), "ledger"), jobs: make(map[string]*local.Node)}
}

// TestLevels has a job of unknown length begin at the smallest level, be demoted twice and end at
// the third with the right sum; also if the daemons of its host and of its origin are killed in
// between.
func TestLevels(t *testing.T) {
	for _, kill := range []string{"", "host", "origin", "both"} {
		t.Run("kill "+kill, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			s := levels(ctx, t)
			origin := s.fed.Nodes()[0]
			id := s.submit(ctx, origin, "one", &kithv1.Job{
				Command: []string{"/bin/sh", "-c", fmt.Sprintf(strings.Replace(adding, "120", "240", 1), s.ledger)}, Processors: 1, WalltimeUnknown: true,
				Checkpoint: &kithv1.Checkpoint{Paths: []string{"state*"}},
			})
			for demotions := range 2 {
				host := s.waitRuns(ctx, id, demotions)
				if kill == "host" || kill == "both" {
					s.restart(ctx, host)
				}
				if kill == "origin" || kill == "both" {
					s.restart(ctx, "uni-a")
				}
			}
			s.wait(ctx, id, kithv1.JobStatus_STATE_COMPLETED)
			got := s.state(ctx, id)
			var at []string
			for _, d := range got.GetDemotions() {
				at = append(at, d.GetSiteId())
				if d.GetCause() != kithv1.Demotion_CAUSE_OUT_OF_LEVEL || d.GetCheckpointSequence() == 0 {
					t.Errorf("demotion %v", d)
				}
			}
			at = append(at, got.GetHostSiteId())
			if want := "small middle large"; strings.Join(at, " ") != want || got.GetLevel() != 3 {
				t.Errorf("it ran at %v and is at level %d, want %s", at, got.GetLevel(), want)
			}
			ledger, err := os.ReadFile(s.ledger)
			want := strings.NewReplacer("ID", id).Replace("ID#1 at small\nID#2 at middle\nID#3 at large\n")
			if err != nil || string(ledger) != want {
				t.Errorf("the job wrote down %q, %v", ledger, err)
			}
			out := readOutput(ctx, t, origin, id)
			if !strings.HasSuffix(out, "sum 28920\n") {
				t.Errorf("it wrote %q", out)
			}
			if used := got.GetUsed().AsDuration(); used < 8*time.Second || used > 20*time.Second {
				t.Errorf("used %v before", used)
			}
		})
	}
}

// waitRuns waits for a job to run after so many demotions, and returns where.
func (s *siege) waitRuns(ctx context.Context, id string, demotions int) string {
	s.t.Helper()
	for {
		got := s.state(ctx, id)
		if got.GetState() == kithv1.JobStatus_STATE_RUNNING && len(got.GetDemotions()) == demotions {
			return got.GetHostSiteId()
		}
		if got.GetState() >= kithv1.JobStatus_STATE_COMPLETED || ctx.Err() != nil {
			s.t.Fatalf("%s is %v, and should run after %d demotions", id, got, demotions)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// restart kills the daemon of a site and starts it again.
func (s *siege) restart(ctx context.Context, site string) {
	s.t.Helper()
	for _, n := range s.fed.Nodes() {
		if n.Name == site {
			n.Kill()
			if err := n.Start(ctx); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func readOutput(ctx context.Context, t *testing.T, n *local.Node, id string) string {
	t.Helper()
	stream, err := n.Jobs.GetJobOutput(ctx, &kithv1.GetJobOutputRequest{JobId: id, Path: "stdout"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for {
		r, err := stream.Recv()
		if err != nil {
			return out.String()
		}
		out.Write(r.GetData())
	}
}
