package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
	"kith/testbed/local/inprocess"
)

func TestMain(m *testing.M) {
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	scratch.InMemory()
	os.Exit(m.Run())
}

// siege is a federation under load whose daemons are killed all the time.
type siege struct {
	t      *testing.T
	fed    *local.Federation
	ledger string

	mu   sync.Mutex
	jobs map[string]*local.Node // acknowledged, with their origin
}

func (s *siege) job(text string) *kithv1.Job {
	return &kithv1.Job{
		Command:    []string{"/bin/sh", "-c", "echo $KITH_ATTEMPT >> " + s.ledger + "; " + text},
		Processors: 1, Walltime: durationpb.New(time.Minute), Copies: 2,
	}
}

// submit submits a job until it is acknowledged, every time with the same
// request id.
func (s *siege) submit(ctx context.Context, origin *local.Node, requestID string, j *kithv1.Job) string {
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		r, err := origin.Jobs.SubmitJob(one, &kithv1.SubmitJobRequest{RequestId: requestID, Job: j}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			s.mu.Lock()
			s.jobs[r.GetJobId()] = origin
			s.mu.Unlock()
			return r.GetJobId()
		}
		if ctx.Err() != nil || status.Code(err) == codes.InvalidArgument {
			s.t.Errorf("%s was never acknowledged: %v", requestID, err)
			return ""
		}
	}
}

// state asks a job's origin until it answers.
func (s *siege) state(ctx context.Context, id string) *kithv1.JobStatus {
	s.mu.Lock()
	origin := s.jobs[id]
	s.mu.Unlock()
	if origin == nil {
		s.t.Fatalf("no job %q was acknowledged", id)
	}
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		r, err := origin.Jobs.GetJob(one, &kithv1.GetJobRequest{JobId: id}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			return r.GetJob().GetStatus()
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%s: %v", id, err)
		}
	}
}

func (s *siege) wait(ctx context.Context, id string, want kithv1.JobStatus_State) {
	s.t.Helper()
	for {
		got := s.state(ctx, id)
		if got.GetState() == want {
			return
		}
		if got.GetState() >= kithv1.JobStatus_STATE_COMPLETED || ctx.Err() != nil {
			s.t.Fatalf("%s is %v, want %v", id, got, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Daemons are killed in a loop while jobs are submitted, claimed, started and
// ended. Every job that was acknowledged ends well after exactly one start;
// what runs goes on running.
func TestKilledUnderLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const submitters = 3
	kills, each := 10, 40
	if os.Getenv("KITH_THOROUGH") == "1" {
		kills, each = 30, 120
	}
	dir := t.TempDir()
	tune := func(c *config.Config) {
		c.Scheduler.Processors = 4
		c.Timing.Heartbeat = 200 * time.Millisecond
		c.Timing.Claim = 500 * time.Millisecond
		c.Timing.Backoff = 200 * time.Millisecond
		c.Timing.AntiEntropy = time.Second
	}
	fed, err := local.Start(ctx, local.Config{Dir: dir, Sites: []local.Site{{Name: "alpha", Tune: tune}, {Name: "beta", Tune: tune}}})
	if err != nil {
		t.Fatal(err)
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
	s := &siege{t: t, fed: fed, ledger: filepath.Join(dir, "ledger"), jobs: map[string]*local.Node{}}

	// These run through all of it.
	gate := filepath.Join(dir, "gate")
	var long []string
	for i, n := range fed.Nodes() {
		long = append(long, s.submit(ctx, n, fmt.Sprint("long-", i), s.job("while [ ! -e "+gate+" ]; do sleep 0.05; done; echo through")))
	}
	for _, id := range long {
		s.wait(ctx, id, kithv1.JobStatus_STATE_RUNNING)
	}

	var load sync.WaitGroup
	for k := range submitters {
		load.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 1))
			for i := range each {
				j := s.job(fmt.Sprintf("sleep 0.%02d", rng.IntN(20)))
				s.submit(ctx, fed.Nodes()[i%2], fmt.Sprintf("load-%d-%d", k, i), j)
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			}
		})
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range kills {
		n := fed.Nodes()[rng.IntN(2)]
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		n.Kill()
		if err := n.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	load.Wait()
	for _, id := range long {
		if got := s.state(ctx, id); got.GetState() != kithv1.JobStatus_STATE_RUNNING {
			t.Errorf("%s ran when the first daemon was killed; now it is %v", id, got)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id := range s.jobs {
		s.wait(ctx, id, kithv1.JobStatus_STATE_COMPLETED)
	}
	if want := submitters*each + len(long); len(s.jobs) != want {
		t.Errorf("%d jobs were acknowledged under %d request ids", len(s.jobs), want)
	}
	s.checkLedger()
}

// checkLedger demands one signature of each job, and no other.
func (s *siege) checkLedger() {
	text, err := os.ReadFile(s.ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	signed := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		attempt := strings.TrimSpace(line)
		id, _, _ := strings.Cut(attempt, "#")
		signed[id] = append(signed[id], attempt)
	}
	for id := range s.jobs {
		if len(signed[id]) != 1 {
			s.t.Errorf("%s was started %d times: %v", id, len(signed[id]), signed[id])
		}
		delete(signed, id)
	}
	for id := range signed {
		s.t.Errorf("%s ran, but nobody was told that it exists", id)
	}
	s.t.Logf("%d jobs, each started once", len(s.jobs))
}
