package frames

import (
	"context"
	"net"
	"sync"
	"testing"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// metered is a listener whose connections are paid for by a bucket that holds enough.
type metered struct {
	net.Listener
	bucket *rate.Limiter
}

const enough = 1 << 30

func (m metered) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Pace(c, Bounds{Bucket: m.bucket}), nil
}

// A call of gRPC's own client costs few tokens, so that what is read of an address in a second
// is far beyond what an honest one calls. What it sends much of costs one for each 16 KiB.
func TestHonestCallsCostLittle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := metered{l, rate.NewLimiter(1e-9, enough)}
	g := grpc.NewServer()
	healthv1.RegisterHealthServer(g, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- g.Serve(m) }()
	defer func() {
		g.Stop()
		<-served //nolint:errcheck // it was stopped
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthv1.NewHealthClient(conn)
	call := func(name string) {
		client.Check(context.Background(), &healthv1.HealthCheckRequest{Service: name}) //nolint:errcheck // a name that is unknown is answered, too
	}
	for name, c := range map[string]struct {
		callers, calls, bytes int
		most                  float64 // tokens a call
	}{
		"one after another":    {1, 2000, 0, 6},
		"64 beside each other": {64, 100, 0, 6},
		"with 1 MiB":           {1, 20, 1 << 20, 6 + 2*64},
	} {
		text := string(make([]byte, c.bytes))
		call("")
		before := m.bucket.Tokens()
		var wg sync.WaitGroup
		for range c.callers {
			wg.Go(func() {
				for range c.calls {
					call(text)
				}
			})
		}
		wg.Wait()
		each := (before - m.bucket.Tokens()) / float64(c.callers*c.calls)
		t.Logf("%s: %.2f tokens a call", name, each)
		if each > c.most+0.05 || each < 2 { // a few frames are of the connection, not of a call
			t.Errorf("%s: a call costs %.2f tokens, at most %.0f", name, each, c.most)
		}
	}
}
