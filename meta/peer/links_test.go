package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/wan"
)

// recorder is a handler that writes down what happens.
type recorder struct {
	mu       sync.Mutex
	up       map[job.SiteID]int // streams that are up
	ups      int
	messages []meta.Message
	disorder string
	block    chan struct{} // if set, messages wait for it
}

func (r *recorder) PeerUp(site job.SiteID, _ uint32, _ uint64, _ Knows) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up == nil {
		r.up = make(map[job.SiteID]int)
	}
	r.ups++
	if r.up[site]++; r.up[site] != 1 {
		r.disorder = fmt.Sprintf("%s up %d times", site, r.up[site])
	}
}

func (r *recorder) PeerDown(site job.SiteID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up[site]--; r.up[site] != 0 {
		r.disorder = fmt.Sprintf("%s down, streams %d", site, r.up[site])
	}
}

func (r *recorder) PeerMessages(site job.SiteID, ms []meta.Message) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up[site] != 1 {
		r.disorder = "message from a site that is not up"
	}
	r.messages = append(r.messages, ms...)
}

func (r *recorder) isUp(site job.SiteID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up[site] == 1
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages)
}

// end is one site: its links and its server.
type end struct {
	links   *Links
	address string
	recorder
}

// echo serves a file request with its own offset as text.
type echo struct{ wait chan struct{} }

func (e echo) ServeFile(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) *kithv1.FileReply {
	if e.wait != nil {
		select {
		case <-e.wait:
		case <-ctx.Done():
		}
	}
	return &kithv1.FileReply{Data: fmt.Appendf(nil, "%s %d", from, r.GetOffset()), End: true}
}

func newEnd(t *testing.T, site job.SiteID, incarnation uint64, files FileServer, tune func(*Config)) *end {
	t.Helper()
	e := &end{}
	cfg := Config{
		Site: site, Generation: 7, Incarnation: incarnation, Version: "test", Heartbeat: 100 * time.Millisecond, Redial: 100 * time.Millisecond,
		DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, Logger: slog.New(slog.DiscardHandler),
	}
	if tune != nil {
		tune(&cfg)
	}
	e.links = New(cfg, e, files)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.address = l.Addr().String()
	g := grpc.NewServer()
	kithv1.RegisterPeerServiceServer(g, e.links)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		e.links.Close()
		g.Stop()
		<-served //nolint:errcheck // it was stopped
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.disorder != "" {
			t.Errorf("%s: %s", site, e.disorder)
		}
		for s, n := range e.up {
			if n != 0 {
				t.Errorf("%s: %s still up after Close", site, s)
			}
		}
	})
	return e
}

// patient is for tests in which one stream must last, however busy the machine is.
func patient(c *Config) { c.Heartbeat = time.Minute }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); time.Now().Before(stop); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never: " + what)
}

func connected(a *end, aID job.SiteID, b *end, bID job.SiteID) func() bool {
	return func() bool { return a.isUp(bID) && b.isUp(aID) }
}

// A site is dialled at all its addresses in turn, first where it was found last, and other
// addresses do not end a stream that is up.
func TestAddressesAreDialledInTurn(t *testing.T) {
	dead := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // only the address is wanted
		return l.Addr().String()
	}
	one, two := dead(), dead()
	a, b := newEnd(t, "alpha", 1, echo{}, patient), newEnd(t, "beta", 1, echo{}, patient)
	a.links.Dial("beta", one, two)
	eventually(t, "it knows why at both", func() bool {
		why := a.links.Trouble()["beta"].Why
		return strings.Contains(why, one) && strings.Contains(why, two)
	})
	a.links.Dial("beta", one, two, b.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	if got := a.links.Addresses("beta"); !slices.Equal(got, []string{b.address, one, two}) {
		t.Errorf("the order to try is %v", got)
	}
	ups := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ups
	}
	a.links.Dial("beta", two, b.address)
	if got := a.links.Addresses("beta"); !slices.Equal(got, []string{b.address, two}) {
		t.Errorf("the order to try is %v", got)
	}
	a.links.Dial("beta") // it only dials out now
	a.links.Dial("beta", two)
	a.links.Send("beta", meta.DigestRequest{})
	eventually(t, "the stream carries messages", func() bool { return b.count() == 1 })
	if n := ups(); n != 1 {
		t.Errorf("%d streams came up, want the first one only", n)
	}
	if got := a.links.Addresses("gamma"); got != nil {
		t.Errorf("an unknown site is dialled at %v", got)
	}
}

func TestMessagesArriveInOrder(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, patient), newEnd(t, "beta", 1, echo{}, patient)
	b.links.Dial("alpha", a.address) // only one side dials: a site behind a firewall takes part
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	const n = 5000
	for i := range n {
		a.links.Send("beta", meta.Claim{Attempt: sampleAttempt, Stamp: uint64(i)})
		b.links.Send("alpha", meta.Claim{Attempt: sampleAttempt, Stamp: uint64(i)})
	}
	a.links.Send("nobody", meta.DigestRequest{}) // dropped
	eventually(t, "all arrived", func() bool { return a.count() == n && b.count() == n })
	for _, e := range []*end{a, b} {
		for i, m := range e.messages {
			if !reflect.DeepEqual(m, meta.Claim{Attempt: sampleAttempt, Stamp: uint64(i)}) {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
	}
}

func TestBothDialOneStream(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{}, nil)
	a.links.Dial("beta", b.address)
	b.links.Dial("alpha", a.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	time.Sleep(time.Second) // the other side's turn to dial comes and goes
	if !connected(a, "alpha", b, "beta")() || a.ups > 2 || b.ups > 2 {
		t.Errorf("after both dialled: alpha saw %d streams, beta %d", a.ups, b.ups)
	}
}

func TestRestartedPeerReplacesItsStream(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{}, nil)
	a.links.Dial("beta", b.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	// Another life of beta dials alpha while the old stream still seems alive.
	b2 := newEnd(t, "beta", 2, echo{}, nil)
	b2.links.Dial("alpha", a.address)
	eventually(t, "alpha talks to the new life", func() bool { return b2.isUp("alpha") && !b.isUp("alpha") })
}

func TestRefusedPeers(t *testing.T) {
	a := newEnd(t, "alpha", 1, echo{}, func(c *Config) { c.Admit = func(s job.SiteID) bool { return s == "beta" } })
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hello := func(h *kithv1.Hello) *kithv1.Frame {
		return &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: h}}}}
	}
	for name, c := range map[string]struct {
		first *kithv1.Frame
		want  codes.Code
	}{
		"unknown site":   {hello(&kithv1.Hello{SiteId: "eve", Protocol: Protocol}), codes.PermissionDenied},
		"no site":        {hello(&kithv1.Hello{SiteId: "Not A Site", Protocol: Protocol}), codes.InvalidArgument},
		"itself":         {hello(&kithv1.Hello{SiteId: "alpha", Protocol: Protocol}), codes.FailedPrecondition},
		"other protocol": {hello(&kithv1.Hello{SiteId: "beta", Protocol: Protocol + 1}), codes.FailedPrecondition},
		"wrong address":  {hello(&kithv1.Hello{SiteId: "beta", Protocol: Protocol, PeerSiteId: "gamma"}), codes.FailedPrecondition},
		"no hello":       {&kithv1.Frame{Messages: []*kithv1.PeerMessage{toProto(meta.DigestRequest{})}}, codes.InvalidArgument},
		"nothing":        {&kithv1.Frame{}, codes.InvalidArgument},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Send(&kithv1.ConnectRequest{Frame: c.first}); err != nil {
			t.Fatal(err)
		}
		_, err = g.Recv()
		if status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		cancel()
	}
	if a.ups != 0 {
		t.Errorf("%d streams came up", a.ups)
	}
}

func TestGarbageDoesNotEndTheStream(t *testing.T) {
	a := newEnd(t, "alpha", 1, echo{}, nil)
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bad := toProto(meta.Claim{Attempt: sampleAttempt})
	bad.GetClaim().GetAttempt().GetJob().Origin = "!"
	for _, ms := range [][]*kithv1.PeerMessage{
		{{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{SiteId: "beta", Protocol: Protocol}}}},
		{bad, {}, toProto(meta.DigestRequest{})},
	} {
		if err := g.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: ms}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the good message arrives", func() bool { return a.count() == 1 })
}

// A network that swallows everything is noticed by its silence, on both sides,
// and the sites find each other again when it heals.
func TestSilenceIsNoticed(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{}, nil)
	proxy, err := wan.Start(wan.Config{Links: []wan.LinkConfig{{From: "alpha", To: "beta", Listen: "127.0.0.1:0", Target: b.address}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	a.links.Dial("beta", proxyAddress(t, proxy))
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	if err := proxy.Cut(wan.Between("alpha", "beta"), wan.Blackhole); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both notice", func() bool { return !a.isUp("beta") && !b.isUp("alpha") })
	if err := proxy.Heal(wan.Everything()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "connected again", connected(a, "alpha", b, "beta"))
}

// A peer that does not read cannot make this site's memory grow.
func TestSlowPeerIsDropped(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{}, func(c *Config) { c.Heartbeat = time.Hour })
	b.block = make(chan struct{})
	a.links.Dial("beta", b.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	first := a.links.session("beta")
	payload := make([]byte, 1<<20)
	for range 2 * maxQueuedBytes / len(payload) {
		a.links.Send("beta", meta.Verdict{Attempt: sampleAttempt, Granted: true, Payload: payload})
	}
	eventually(t, "the stream is given up", func() bool { return first.ctx.Err() != nil })
	if cause := context.Cause(first.ctx); !errors.Is(cause, ErrSlow) {
		t.Errorf("the stream ended because of %v, want ErrSlow", cause)
	}
	close(b.block)
}

func TestFileRequests(t *testing.T) {
	wait := make(chan struct{})
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{wait: wait}, nil)
	a.links.Dial("beta", b.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := a.links.ReadFile(ctx, "gamma", &kithv1.FileRequest{}); !errors.Is(err, ErrNoStream) {
		t.Errorf("without a stream: %v, want ErrNoStream", err)
	}
	const n = servedAtOnce + 10
	var busy, served int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			reply, err := a.links.ReadFile(ctx, "beta", &kithv1.FileRequest{Offset: int64(i)})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case reply.GetError() == kithv1.FileReply_ERROR_BUSY:
				busy++
			case string(reply.GetData()) == fmt.Sprintf("alpha %d", i):
				served++
			default:
				t.Errorf("request %d got %q, %v", i, reply.GetData(), reply.GetError())
			}
		})
	}
	eventually(t, "those beyond the bound are told so", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return busy == n-servedAtOnce
	})
	close(wait)
	wg.Wait()
	if served != servedAtOnce {
		t.Errorf("%d served, want %d", served, servedAtOnce)
	}
}

func TestFileRequestEndsWithItsStream(t *testing.T) {
	a, b := newEnd(t, "alpha", 1, echo{}, nil), newEnd(t, "beta", 1, echo{wait: make(chan struct{})}, nil)
	a.links.Dial("beta", b.address)
	eventually(t, "connected", connected(a, "alpha", b, "beta"))
	answered := make(chan error, 1)
	go func() {
		_, err := a.links.ReadFile(context.Background(), "beta", &kithv1.FileRequest{})
		answered <- err
	}()
	time.Sleep(50 * time.Millisecond)
	a.links.session("beta").cancel(errors.New("test"))
	select {
	case err := <-answered:
		if !errors.Is(err, ErrNoStream) {
			t.Errorf("%v, want ErrNoStream", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a request outlived its stream")
	}
}

func proxyAddress(t *testing.T, p *wan.Proxy) string {
	t.Helper()
	address, err := p.Addr("alpha", "beta")
	if err != nil {
		t.Fatal(err)
	}
	return address.String()
}
