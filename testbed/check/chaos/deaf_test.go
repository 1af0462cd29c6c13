package chaos

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
	"kith/testbed/local/standin"
)

// deaf connects to a site in place of one of its peers, says that it has room for
// everything, keeps the stream alive, and never reads from it. When the site
// ends the stream it comes again.
func deaf(ctx context.Context, from, to *local.Node) error {
	for ctx.Err() == nil {
		if err := deafOnce(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

func deafOnce(ctx context.Context, from, to *local.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := standin.Dial(from, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		return nil
	}
	send := func(m ...*kithv1.PeerMessage) error {
		return g.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: m}})
	}
	start := uint64(time.Now().UnixNano())
	err = send(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{
		SiteId: from.Name, Generation: 1, Incarnation: start, Protocol: peer.Protocol,
	}}})
	for n := uint64(1); err == nil; n++ {
		err = send(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: wire.DigestMessage(&cluster.Digest{
			Site: job.SiteID(from.Name), Incarnation: start, Sequence: n, Processors: 1 << 16, Speed: 1, Policy: "deaf", Time: job.Instant(time.Now()),
		})}})
		if !pause.For(ctx, 100*time.Millisecond) {
			break
		}
	}
	return nil
}

// growth submits jobs that wait for a long time, of which a peer gets copies if
// there is one, and returns by how much the site's memory grew at most.
func growth(t *testing.T, withPeer bool) float64 {
	t.Helper()
	dir := t.TempDir()
	fed, err := local.Start(t.Context(), local.Config{Dir: dir, Sites: []local.Site{{Name: "alpha", Tune: func(c *config.Config) {
		c.Scheduler.Processors = 1
		c.Timing.Heartbeat, c.Timing.Resend = 300*time.Millisecond, 200*time.Millisecond
	}}, {Name: "beta"}}})
	if err != nil {
		t.Fatal(err)
	}
	n, beta := fed.Nodes()[0], fed.Nodes()[1]
	beta.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	var peers sync.WaitGroup
	defer func() {
		cancel()
		peers.Wait()
		n.Kill()
		for _, r := range runningAt(n.Config.Data) {
			r.shim.signal(sigkill)
		}
		if err := fed.Close(); err != nil {
			t.Error(err)
		}
	}()
	before := resident(n.PID())
	if withPeer {
		peers.Go(func() {
			if err := deaf(ctx, beta, n); err != nil {
				t.Error(err)
			}
		})
		awaitPeer(t, n)
	}
	const jobs, users = 4000, 32
	var submitting sync.WaitGroup
	errs := make([]error, users)
	for u := range users {
		submitting.Go(func() {
			for range jobs / users {
				if _, errs[u] = n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
					Command: []string{"/bin/sleep", "1000"}, Processors: 1, Walltime: durationpb.New(time.Hour), Copies: 2,
				}}); errs[u] != nil {
					return
				}
			}
		})
	}
	submitting.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	most := 0.0
	for range 50 { // 25 times as long as it takes until a request is repeated
		pause.For(ctx, 100*time.Millisecond)
		most = max(most, resident(n.PID()))
	}
	return most - before
}

// awaitPeer waits until the site counts on its peer.
func awaitPeer(t *testing.T, n *local.Node) {
	t.Helper()
	for range 1000 {
		r, err := n.Sites.ListSites(t.Context(), &kithv1.ListSitesRequest{})
		if err == nil && len(r.GetSites()) == 2 && r.GetSites()[1].GetProcessors() == 1<<16 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the peer is not known")
}

// A peer that connects, stays connected and never reads cannot make the memory
// of a site grow by more than some MiB, though everything it was told is repeated.
func TestPeerThatNeverReads(t *testing.T) {
	thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it waits until requests were repeated often")
	}
	t.Parallel()
	alone, withPeer := growth(t, false), growth(t, true)
	t.Logf("grew by %.0f MiB alone, by %.0f MiB with the peer", alone, withPeer)
	if withPeer > alone+24 {
		t.Errorf("4000 jobs take %.0f MiB alone and %.0f MiB with a peer that never reads", alone, withPeer)
	}
}
