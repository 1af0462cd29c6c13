package bench

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
	"kith/testbed/local/standin"
)

// speaker is a host that speaks the protocol of peers with one origin, and has nothing
// behind it.
type speaker struct {
	site, origin job.SiteID
	address      string // of the origin
	incarnation  uint64
	links        *peer.Links
	hear         func(m meta.Message)
}

// speakerProcessors is how many a speaker says that it has.
const speakerProcessors = 1024

// newSpeaker takes the place of a host whose kithd does not run. From [speaker.dial] on hear
// is called for each message of the origin, one after another.
func newSpeaker(host, origin *local.Node, hear func(m meta.Message)) (*speaker, error) {
	creds, err := standin.Credentials(host, origin)
	if err != nil {
		return nil, err
	}
	s := &speaker{site: job.SiteID(host.Name), origin: job.SiteID(origin.Name), address: origin.Address, incarnation: uint64(time.Now().UnixNano()), hear: hear}
	s.links = peer.New(peer.Config{
		Site: s.site, Generation: 1, Incarnation: s.incarnation, Version: "bench",
		DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(creds)},
		Logger:      slog.New(slog.DiscardHandler),
	}, s, s)
	return s, nil
}

func (s *speaker) dial() { s.links.Dial(s.origin, s.address) }

var (
	_ peer.Handler    = (*speaker)(nil)
	_ peer.FileServer = (*speaker)(nil)
)

func (s *speaker) send(m meta.Message) { s.links.Send(s.origin, m) }

// PeerUp implements peer.Handler: the origin must know that there is room.
func (s *speaker) PeerUp(site job.SiteID, _ uint32, _ uint64, _ peer.Knows) {
	s.links.Send(site, meta.LoadDigest{Digest: cluster.Digest{
		Site: s.site, Incarnation: s.incarnation, Sequence: 1, Processors: speakerProcessors, Speed: 1, Policy: "none", Time: job.Instant(time.Now()), Version: "bench",
	}})
}

// PeerDown implements peer.Handler.
func (s *speaker) PeerDown(job.SiteID) {}

// PeerMessages implements peer.Handler.
func (s *speaker) PeerMessages(_ job.SiteID, messages []meta.Message) {
	for _, m := range messages {
		s.hear(m)
	}
}

// ServeFile implements peer.FileServer: there are no files.
func (s *speaker) ServeFile(context.Context, job.SiteID, *kithv1.FileRequest) *kithv1.FileReply {
	return &kithv1.FileReply{}
}

// known waits until a site has heard of so many speakers.
func known(ctx context.Context, n *local.Node, hosts int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		r, err := n.Sites.ListSites(ctx, &kithv1.ListSitesRequest{})
		if err != nil {
			return err
		}
		heard := 0
		for _, s := range r.GetSites() {
			if s.GetProcessors() == speakerProcessors {
				heard++
			}
		}
		if heard == hosts {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("site %s has heard of %d of %d hosts: %w", n.Name, heard, hosts, ctx.Err())
		}
	}
}
