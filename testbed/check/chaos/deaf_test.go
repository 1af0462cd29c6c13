package chaos

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// deaf connects to a site as one of its peers, says that it has room for
// everything, keeps the stream alive, and never reads from it. When the site
// ends the stream it comes again.
func deaf(ctx context.Context, name, address string) {
	for ctx.Err() == nil {
		deafOnce(ctx, name, address)
	}
}

func deafOnce(ctx context.Context, name, address string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		return
	}
	send := func(m ...*kithv1.PeerMessage) error {
		return g.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: m}})
	}
	err = send(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{
		SiteId: name, Generation: 1, Incarnation: uint64(time.Now().UnixNano()), Protocol: peer.Protocol,
	}}})
	for n := uint64(1); err == nil; n++ {
		err = send(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: wire.DigestMessage(&cluster.Digest{
			Site: job.SiteID(name), Incarnation: 1, Sequence: n, Processors: 1 << 16, Speed: 1, Policy: "deaf", Time: job.Instant(time.Now()),
		})}})
		if !pause.For(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// growth submits jobs that wait for a long time, of which a peer gets copies if
// there is one, and returns by how much the site's memory grew at most.
func growth(t *testing.T, withPeer bool) float64 {
	t.Helper()
	dir := t.TempDir()
	fed, err := local.Start(t.Context(), local.Config{Dir: dir, Sites: []local.Site{{Name: "alpha", Tune: func(c *config.Config) {
		c.Scheduler.Processors = 1
		c.Peers = append(c.Peers, config.Peer{Site: "beta"})
		c.Timing.Heartbeat, c.Timing.Resend = 300*time.Millisecond, 200*time.Millisecond
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	n := fed.Nodes()[0]
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
		peers.Go(func() { deaf(ctx, "beta", n.Address) })
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
		if err == nil && len(r.GetSites()) == 2 && r.GetSites()[1].GetProcessors() > 0 {
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
		t.Skip("it waits until requests were repeated often")
	}
	t.Parallel()
	alone, withPeer := growth(t, false), growth(t, true)
	t.Logf("grew by %.0f MiB alone, by %.0f MiB with the peer", alone, withPeer)
	if withPeer > alone+24 {
		t.Errorf("4000 jobs take %.0f MiB alone and %.0f MiB with a peer that never reads", alone, withPeer)
	}
}
