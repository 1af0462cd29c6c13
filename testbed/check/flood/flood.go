// Package flood is a hostile site with real keys that sends another site much more of one
// thing than that takes: row 10 of the attacks in docs/security.md. Tests run it beside
// others in one process and look at memory; kith-lab bench flood runs it as a process of
// its own, see [Main], and measures what others notice.
package flood

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"kith/internal/job"
	"kith/meta/peer"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// Target is who is flooded, and by whom.
type Target struct {
	Site    job.SiteID
	Address string // host:port
	// As has the keys of a site that the target knows, and knows the target.
	As *trust.Endpoint
	// From is the address of this machine that connections come from; empty for any.
	From string
}

// Kind is a kind of flood.
type Kind struct {
	Name string
	// Cap is how many a second a site takes of one peer unless it is configured
	// otherwise; 0 where no rate is set for it alone.
	Cap   int
	begin func(*Flood)
}

// Flood is one under way.
type Flood struct {
	target      Target
	ctx         context.Context
	limit       *rate.Limiter // nil for none
	sent        atomic.Int64
	incarnation uint64
	wg          sync.WaitGroup
}

// Start begins a flood of so many a second, 0 for as fast as the target takes it. It ends
// with ctx; see [Flood.Wait].
func Start(ctx context.Context, t Target, k Kind, perSecond int) *Flood {
	f := &Flood{target: t, ctx: ctx, incarnation: uint64(time.Now().UnixNano())} //nolint:gosec // after 1970
	if perSecond > 0 {
		f.limit = rate.NewLimiter(rate.Limit(perSecond), max(inFrame, perSecond/10))
	}
	k.begin(f)
	return f
}

// Sent returns how many of its kind it has sent so far.
func (f *Flood) Sent() int64 { return f.sent.Load() }

// Wait waits until the flood has ended.
func (f *Flood) Wait() { f.wg.Wait() }

// passed waits until n more may be sent, and reports whether they may.
func (f *Flood) passed(n int) bool {
	return f.limit == nil || f.limit.WaitN(f.ctx, n) == nil
}

// goes runs a part of a flood until it ends.
func (f *Flood) goes(part func()) {
	f.wg.Go(func() {
		for f.ctx.Err() == nil {
			part()
		}
	})
}

// site is who floods.
func (f *Flood) site() job.SiteID { return f.target.As.Keys.Site() }

// dial opens a connection.
func (f *Flood) dial() (net.Conn, error) { return f.dialWithin(time.Minute) }

func (f *Flood) dialWithin(timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	if f.target.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(f.target.From)}
	}
	return d.DialContext(f.ctx, "tcp", f.target.Address)
}

// Dial returns a gRPC connection of a site to another one by the protocol of peers, that
// may send up to 64 MiB at a time. The caller closes it.
func Dial(t Target) (*grpc.ClientConn, error) {
	f := &Flood{target: t, ctx: context.Background()}
	return grpc.NewClient("passthrough:///"+t.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(t.As.ClientTLS(t.Site, trust.ALPNPeer))),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return f.dial() }),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20)))
}

// Stream is a stream of a site that says whatever its owner wants.
type Stream = grpc.BidiStreamingClient[kithv1.ConnectRequest, kithv1.ConnectResponse]

// Join opens a stream and says hello. It returns the hello of the other site.
func Join(ctx context.Context, conn *grpc.ClientConn, t Target, incarnation uint64) (Stream, *kithv1.Hello, error) {
	s, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{hello(t, incarnation)}}}); err != nil && !errors.Is(err, io.EOF) { // with EOF, receiving says why
		return nil, nil, err
	}
	for {
		r, err := s.Recv()
		if err != nil {
			return nil, nil, err
		}
		for _, m := range r.GetFrame().GetMessages() {
			if m.GetHello() != nil {
				return s, m.GetHello(), nil
			}
		}
	}
}

func hello(t Target, incarnation uint64) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{
		SiteId: string(t.As.Keys.Site()), Generation: 1, Incarnation: incarnation, Version: "flood",
		Protocol: peer.Protocol, PeerSiteId: string(t.Site),
	}}}
}
