package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// site is a connection to a kithd.
type site struct {
	jobs  kithv1.JobServiceClient
	bags  kithv1.BagServiceClient
	sites kithv1.SiteServiceClient
	files kithv1.FileServiceClient
	trust kithv1.TrustServiceClient
}

// ask carries out one request that the site answers within --timeout.
func (c *client) ask(ctx context.Context, request func(context.Context, *site) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.dial(ctx, request)
}

// attend carries out something that takes as long as it takes, unless the
// user gave a --timeout.
func (c *client) attend(ctx context.Context, request func(context.Context, *site) error) error {
	if c.limited {
		return c.ask(ctx, request)
	}
	return c.dial(ctx, request)
}

// dial connects to the site for as long as request runs. The connection comes
// about with the first call.
func (c *client) dial(ctx context.Context, request func(context.Context, *site) error) error {
	network, address, secure, err := c.reach()
	if err != nil {
		return err
	}
	const largestAnswer = 16 << 20
	conn, err := grpc.NewClient("passthrough:///"+address, append(secure,
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.dialled.dial(ctx, network, address)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestAnswer)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}))...)
	if err != nil {
		return cli.Usagef("--site %s: %v", c.address, err)
	}
	if !c.exits {
		defer conn.Close() // Nothing is left to be sent.
	}
	return request(ctx, &site{
		jobs: kithv1.NewJobServiceClient(conn), bags: kithv1.NewBagServiceClient(conn), sites: kithv1.NewSiteServiceClient(conn), files: kithv1.NewFileServiceClient(conn),
		trust: kithv1.NewTrustServiceClient(conn),
	})
}

// dialLog connects and remembers why it did not work: gRPC tells only in its
// own words.
type dialLog struct {
	mu    sync.Mutex
	tried bool
	err   error
}

func (d *dialLog) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried, d.err = true, err
	return conn, err
}

// connected reports whether the latest try worked, so that the site may have
// received something.
func (d *dialLog) connected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tried && d.err == nil
}

// cause returns why the latest try did not work, in a few words; "" if it did.
func (d *dialLog) cause() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		return ""
	}
	if name, ok := errors.AsType[*net.DNSError](d.err); ok {
		return name.Err + " (" + name.Name + ")"
	}
	if call, ok := errors.AsType[*os.SyscallError](d.err); ok {
		return call.Err.Error()
	}
	if op, ok := errors.AsType[*net.OpError](d.err); ok {
		return op.Err.Error()
	}
	return d.err.Error()
}

// tooMany is the reason of a site that has too much to do for a moment.
const tooMany = "TOO_MANY_REQUESTS"

// persist repeats a request that is safe to repeat while the site cannot be
// reached or has too much to do, for at most --timeout after the first failure. It reports whether
// the site may have carried out a try that failed.
func (c *client) persist(ctx context.Context, try func(context.Context) error) (unsure bool, err error) {
	patience := ctx
	p := pause{}
	for {
		err := try(ctx)
		switch status.Code(err) {
		case codes.Unavailable:
			// A kithd that gives a reason did not do it.
			unsure = unsure || reason(err) == "" && c.dialled.connected()
		case codes.ResourceExhausted:
			if reason(err) != tooMany {
				return unsure, err
			}
		case codes.DeadlineExceeded, codes.Canceled:
			return unsure || c.dialled.connected(), err
		default:
			return unsure && err != nil, err
		}
		if p.tries == 0 {
			var cancel context.CancelFunc
			patience, cancel = context.WithTimeout(ctx, c.timeout)
			defer cancel() // once, at the first failure
			c.Note("%v; trying again for up to %v", c.explain(err), c.timeout)
		}
		if !p.wait(patience, retryAfter(err)) {
			return unsure, err
		}
	}
}

// pause is the growing time between two tries.
type pause struct{ tries int }

// wait waits for the next try, at least for atLeast. It returns false when ctx
// ends, also if that is certain to happen first.
func (p *pause) wait(ctx context.Context, atLeast time.Duration) bool {
	const first, most = 100 * time.Millisecond, 3 * time.Second
	d := min(most, first<<min(p.tries, 10))
	d = max(atLeast, d/2+rand.N(d))
	p.tries++
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
