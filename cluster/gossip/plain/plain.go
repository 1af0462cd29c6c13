// Package plain carries gossip lanes between sites that speak without TLS, as calls
// of GossipService on the port that both share with everything else.
//
// Nobody is authenticated: the name that the dialling site says is believed if it is one
// that is admitted, as on the streams of such sites (meta/peer). With TLS a lane is a
// connection of its own, and this package is not used.
package plain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cluster/gossip"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// maxData bounds the bytes of one message of a lane.
const maxData = 256 << 10

// firstWait is how soon the first message of a lane must come.
const firstWait = 10 * time.Second

// maxUnnamed bounds the lanes whose first message has not come.
const maxUnnamed = 64

// Config configures [Lanes].
type Config struct {
	Site job.SiteID
	// Address returns host:port of a site, empty for one that cannot be dialled.
	Address func(job.SiteID) string
	// Admit reports whether a site may open a lane.
	Admit func(job.SiteID) bool
	// Accept takes a lane that a site opened.
	Accept func(job.SiteID, gossip.Conn)
	// DialOptions are the credentials and the like of calls to other sites.
	DialOptions []grpc.DialOption
}

// Lanes dials and serves lanes. It is safe for use by several goroutines.
type Lanes struct {
	kithv1.UnimplementedGossipServiceServer
	cfg     Config
	unnamed chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
}

var _ gossip.Lanes = (*Lanes)(nil)

// New returns lanes that are closed with Close.
func New(cfg Config) *Lanes {
	ctx, cancel := context.WithCancel(context.Background())
	return &Lanes{cfg: cfg, unnamed: make(chan struct{}, maxUnnamed), ctx: ctx, cancel: cancel}
}

// Close ends all lanes.
func (l *Lanes) Close() { l.cancel() }

var errNoAddress = errors.New("no address of the site is known; it has to dial this one")

// Dial implements gossip.Lanes.
func (l *Lanes) Dial(ctx context.Context, site job.SiteID) (gossip.Conn, error) {
	address := l.cfg.Address(site)
	if address == "" {
		return nil, fmt.Errorf("%s: %w", site, errNoAddress)
	}
	client, err := grpc.NewClient("passthrough:///"+address, l.cfg.DialOptions...)
	if err != nil {
		return nil, fmt.Errorf("dial %s at %s: %w", site, address, err)
	}
	laneCtx, cancel := context.WithCancel(l.ctx)
	c := &conn{closed: make(chan struct{}), end: func() {
		cancel()
		client.Close()
	}}
	stop := context.AfterFunc(ctx, cancel)
	g, err := kithv1.NewGossipServiceClient(client).Lane(laneCtx)
	if err == nil {
		err = g.Send(&kithv1.LaneRequest{SiteId: string(l.cfg.Site), PeerSiteId: string(site)})
	}
	if g != nil { // what Send says is less than what comes
		if _, err2 := g.Recv(); err2 != nil {
			err = err2
		}
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Close() //nolint:errcheck // it cannot fail
		return nil, fmt.Errorf("open a lane to %s at %s: %w", site, address, err)
	}
	c.send = func(b []byte) error { return g.Send(&kithv1.LaneRequest{Data: b}) }
	c.recv = func() ([]byte, error) { r, err := g.Recv(); return r.GetData(), err }
	return c, nil
}

// Lane serves a lane that another site dialled.
func (l *Lanes) Lane(g grpc.BidiStreamingServer[kithv1.LaneRequest, kithv1.LaneResponse]) error {
	site, err := l.named(g)
	if err != nil {
		return err
	}
	if err := g.Send(&kithv1.LaneResponse{}); err != nil {
		return err
	}
	c := &conn{closed: make(chan struct{}), end: func() {}}
	c.send = func(b []byte) error { return g.Send(&kithv1.LaneResponse{Data: b}) }
	c.recv = func() ([]byte, error) { r, err := g.Recv(); return r.GetData(), err }
	l.cfg.Accept(site, c)
	select {
	case <-c.closed:
	case <-g.Context().Done():
	case <-l.ctx.Done():
	}
	c.Close() //nolint:errcheck // it cannot fail
	return status.Error(codes.Unavailable, "lane ended")
}

// named waits for the first message and returns who opens the lane.
func (l *Lanes) named(g grpc.BidiStreamingServer[kithv1.LaneRequest, kithv1.LaneResponse]) (job.SiteID, error) {
	select {
	case l.unnamed <- struct{}{}:
		defer func() { <-l.unnamed }()
	default:
		return "", status.Errorf(codes.ResourceExhausted, "%d lanes wait for their first message; try later", maxUnnamed)
	}
	type came struct {
		m   *kithv1.LaneRequest
		err error
	}
	first := make(chan came, 1)
	go func() {
		m, err := g.Recv() // ends with the call
		first <- came{m, err}
	}()
	var c came
	select {
	case c = <-first:
	case <-time.After(firstWait):
		return "", status.Errorf(codes.DeadlineExceeded, "no first message within %v", firstWait)
	case <-l.ctx.Done():
		return "", status.Error(codes.Unavailable, "site is shutting down")
	}
	if c.err != nil {
		return "", c.err
	}
	site, err := job.ParseSiteID(c.m.GetSiteId())
	switch {
	case err != nil:
		return "", status.Error(codes.InvalidArgument, err.Error())
	case c.m.GetPeerSiteId() != string(l.cfg.Site):
		return "", status.Errorf(codes.FailedPrecondition, "site %s looks for %.32q, this is %s: correct the address", site, c.m.GetPeerSiteId(), l.cfg.Site)
	case site == l.cfg.Site || !l.cfg.Admit(site):
		return "", status.Errorf(codes.PermissionDenied, "site %s is not a configured peer: name it in [[peers]]", site)
	}
	return site, nil
}

// conn is a lane's end of a call.
type conn struct {
	send   func([]byte) error
	recv   func() ([]byte, error)
	end    func()
	once   sync.Once
	closed chan struct{}
	rest   []byte
}

// Read implements gossip.Conn. On the side that was dialled it may wait until the call
// has ended after Close.
func (c *conn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		var err error
		if c.rest, err = c.recv(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements gossip.Conn.
func (c *conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		piece := b[n:min(len(b), n+maxData)]
		if err := c.send(piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// Close implements gossip.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.end()
	})
	return nil
}
