package local_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// secured starts sites with keys in a folder.
func secured(ctx context.Context, t *testing.T, dir string, sites int) *local.Federation {
	t.Helper()
	cfg := local.Config{Dir: dir}
	for i := range sites {
		cfg.Sites = append(cfg.Sites, local.Site{Name: fmt.Sprintf("s%02d", i), Tune: func(c *config.Config) {
			c.Scheduler.Processors = int32(i + 1)
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

// Sites with keys join by invitations, run each other's jobs, serve nobody in plaintext,
// and know each other in a folder that is used again.
func TestSitesWithKeys(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for run := range 2 {
		began := time.Now()
		fed := secured(ctx, t, dir, 3)
		t.Logf("3 sites are connected after %v", time.Since(began))
		interrupted, interrupt := context.WithCancel(ctx)
		interrupt()
		if err := fed.Connected(interrupted); !errors.Is(err, context.Canceled) {
			t.Errorf("run %d: who waits for streams and is interrupted hears %v", run, err)
		}
		first := fed.Nodes()[0]
		if n := len(trusted(ctx, t, first)); n != 2 {
			t.Errorf("run %d: %s knows %d sites, want 2", run, first.Name, n)
		}
		// It has one processor.
		r, err := first.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
			Command: []string{"/bin/true"}, Processors: 3, Walltime: durationpb.New(time.Minute),
		}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			s, err := first.Jobs.GetJob(ctx, &kithv1.GetJobRequest{JobId: r.GetJobId()})
			if err != nil {
				t.Fatal(err)
			}
			if at := s.GetJob().GetStatus(); at.GetState() >= kithv1.JobStatus_STATE_COMPLETED {
				if at.GetState() != kithv1.JobStatus_STATE_COMPLETED || at.GetHostSiteId() != "s02" {
					t.Errorf("run %d: %v at %s, want it completed at s02", run, at.GetState(), at.GetHostSiteId())
				}
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		plaintextIsRefused(ctx, t, first.Address)
		if err := fed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func trusted(ctx context.Context, t *testing.T, n *local.Node) []*kithv1.TrustedSite {
	t.Helper()
	r, err := n.Trust.ListTrustedSites(ctx, &kithv1.ListTrustedSitesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetSites()
}

func plaintextIsRefused(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	if _, _, err := net.SplitHostPort(address); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("plaintext at %s: %v, want it to be unavailable", address, err)
	}
}

// Twenty sites are 190 pairs. How long it takes is logged; no test decides by it.
func TestManySitesWithKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it starts 20 processes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	fed := secured(ctx, t, t.TempDir(), 20)
	t.Logf("20 sites are connected after %v", time.Since(began))
	for _, n := range fed.Nodes() {
		if known := len(trusted(ctx, t, n)); known != 19 {
			t.Errorf("%s knows %d sites, want 19", n.Name, known)
		}
	}
}
