package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// unbounded are rates for tests of other bounds.
var unbounded = Rates{Queries: {1e9, 1e9}, Dealings: {1e9, 1e9}, Loads: {1e9, 1e9}, Files: {1e9, 1e9}, Comparisons: {1e9, 1e9}, Streams: {1e9, 1e9}}

// A peer that sends ten times what is taken of the protocol waits, and nothing of it is
// lost; the stream stays up meanwhile. A new stream does not fill its bucket.
func TestProtocolIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r, _ := bare(t)
		refused := 0
		l.cfg.Refused = func(r Refusal) {
			if r.What == WhatRate && r.Rule == "protocol" && r.Site == "beta" {
				refused++
			}
		}
		rate := DefaultRates()[Dealings]
		if 5*rate.AtOnce > rate.PerSecond {
			t.Errorf("%d may come together, which others wait for", rate.AtOnce)
		}
		began := time.Now()
		frame := &kithv1.Frame{Messages: slices.Repeat([]*kithv1.PeerMessage{toProto(meta.Withdraw{Attempt: sampleAttempt})}, 500)}
		s := talking(t, l)
		send := func(n int) {
			for range n / 500 {
				l.received(s, frame)
				select {
				case <-s.heard:
				default:
				}
			}
		}
		send(rate.AtOnce)
		if took := time.Since(began); took != 0 || refused != 0 {
			t.Errorf("what may come at once took %v", took)
		}
		s.cancel(nil)
		s = talking(t, l)
		send(10 * rate.PerSecond)
		if took := time.Since(began).Round(time.Millisecond); took != 10*time.Second || refused == 0 {
			t.Errorf("ten seconds' worth of messages took %v, %d refusals told", took, refused)
		}
		if got := r.count(); got != rate.AtOnce+10*rate.PerSecond {
			t.Errorf("%d of %d messages reached the site", got, rate.AtOnce+10*rate.PerSecond)
		}
		// The other classes have buckets of their own.
		before := r.count()
		l.received(s, &kithv1.Frame{Messages: []*kithv1.PeerMessage{toProto(meta.StartQuery{Query: 1, Request: sampleRequest})}})
		if r.count() != before+1 {
			t.Error("a query waits for the protocol")
		}
	})
}

// Beyond the rate a few messages are taken at a time, so that others are served in between.
func TestProtocolBeyondTheRateComesApart(t *testing.T) {
	rate := DefaultRates()[Dealings]
	l, now := newLimits(DefaultRates()), time.Now()
	rest := slices.Repeat([]*kithv1.PeerMessage{toProto(meta.Withdraw{Attempt: sampleAttempt})}, rate.AtOnce+1000)
	n, wait, _ := l.pace(rest[:rate.AtOnce], now)
	if n != rate.AtOnce || wait != 0 {
		t.Fatalf("of what may come at once %d are taken, after %v", n, wait)
	}
	most := 1 + int(dealingsApart*time.Duration(rate.PerSecond)/time.Second)
	for rest = rest[rate.AtOnce:]; len(rest) > 0; rest = rest[n:] {
		if n, wait, _ = l.pace(rest, now); n < 1 || n > most || wait > 2*dealingsApart {
			t.Fatalf("%d are taken together after %v, want at most %d", n, wait, most)
		}
		now = now.Add(wait)
	}
}

// Nothing that a peer sends is free: what is refused for its rate, was not asked for or
// means nothing is waited for like the protocol, and so are bytes. Pieces of files that this site
// has asked for cost one a frame.
func TestNothingOfAPeerIsFree(t *testing.T) {
	junk := &kithv1.Frame{}
	junk.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 100, protowire.BytesType), make([]byte, 100*bytesPerDealing)))
	piece := func(n uint64) *kithv1.PeerMessage {
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileReply{FileReply: &kithv1.FileReply{Request: n, Data: make([]byte, 64*bytesPerDealing)}}}
	}
	frameOf := func(n int, m *kithv1.PeerMessage) *kithv1.Frame {
		return &kithv1.Frame{Messages: slices.Repeat([]*kithv1.PeerMessage{m}, n)}
	}
	for name, c := range map[string]struct {
		frame *kithv1.Frame
		least int // what it costs, in dealings
		most  int
		asks  bool
	}{
		"an empty frame":             {frame: &kithv1.Frame{}, least: 1, most: 1},
		"loads":                      {frame: frameOf(1000, toProto(meta.LoadDigest{Digest: cluster.Digest{Site: "beta", Incarnation: 1, Sequence: 2, Processors: 3, Speed: 1}})), least: 900 * refusedCost, most: 1100 * refusedCost},
		"bytes that mean nothing":    {frame: junk, least: 100, most: 101},
		"a piece not asked for":      {frame: frameOf(1, piece(99)), least: 64 + refusedCost, most: 65 + refusedCost},
		"a piece that was asked for": {frame: frameOf(1, piece(1)), least: 1, most: 1, asks: true},
		"too many messages":          {frame: frameOf(mostInFrame+1, toProto(meta.Withdraw{Attempt: sampleAttempt})), least: 1, most: 100},
		"a large message":            {frame: frameOf(1, toProto(meta.Verdict{Attempt: sampleAttempt, Granted: true, Payload: make([]byte, 64*bytesPerDealing)})), least: 64, most: 65},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := bare(t)
				s := talking(t, l)
				rate := DefaultRates()[Dealings]
				const times = 1000
				began := time.Now()
				for range times {
					if c.asks {
						s.pending[1] = make(chan *kithv1.FileReply, 1)
					}
					l.received(s, c.frame)
					select {
					case <-s.heard:
					default:
					}
				}
				took := float64(time.Since(began)) / float64(time.Second)
				atLeast, atMost := float64(times*c.least-rate.AtOnce)/float64(rate.PerSecond), float64(times*c.most)/float64(rate.PerSecond)
				if took < 0.99*atLeast || took > atMost {
					t.Errorf("%d took %.2f s, want %.2f to %.2f", times, took, atLeast, atMost)
				}
			})
		})
	}
}

// A message that the engine refuses costs as much as one that is refused here.
func TestMessagesThatTheEngineRefusesCostMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := bare(t)
		s := talking(t, l)
		rate := DefaultRates()[Dealings]
		const times = 10_000
		began := time.Now()
		for range times {
			l.received(s, &kithv1.Frame{Messages: []*kithv1.PeerMessage{toProto(meta.Withdraw{Attempt: sampleAttempt})}})
			l.Refused("beta")
			select {
			case <-s.heard:
			default:
			}
		}
		took := float64(time.Since(began)) / float64(time.Second)
		if want := float64(times*refusedCost-rate.AtOnce) / float64(rate.PerSecond); took < 0.99*want || took > 1.01*want {
			t.Errorf("it took %.2f s, want %.2f", took, want)
		}
	})
}

// A stream that is paced for longer than it may be silent is not silent.
func TestPacedStreamIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r, _ := bare(t)
		l.cfg.Rates = Rates{Queries: {1, 1}, Dealings: {1, 1}, Loads: {1, 1}, Files: {1, 1}, Comparisons: {1, 1}, Streams: {1, 1}}
		s := talking(t, l)
		go s.listen(time.Second)
		l.received(s, &kithv1.Frame{Messages: slices.Repeat([]*kithv1.PeerMessage{toProto(meta.DigestRequest{})}, 60)})
		if s.ctx.Err() != nil || r.count() != 60 {
			t.Errorf("%d messages, %v", r.count(), s.ctx.Err())
		}
	})
}

// Comparisons, of which each makes a site look at all that it has, are waited for at a
// rate of their own, and none is lost.
func TestComparisonsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r, _ := bare(t)
		rule := ""
		l.cfg.Refused = func(r Refusal) { rule = r.Rule }
		rate := DefaultRates()[Comparisons]
		s := talking(t, l)
		began := time.Now()
		for _, m := range []meta.Message{meta.CopySummary{}, meta.DigestRequest{}, meta.CopyDigest{}} {
			for range rate.AtOnce + rate.PerSecond {
				l.received(s, &kithv1.Frame{Messages: []*kithv1.PeerMessage{toProto(m)}})
				select {
				case <-s.heard:
				default:
				}
			}
		}
		most := 3*(rate.AtOnce+rate.PerSecond) - rate.AtOnce
		want := time.Duration(most/rate.PerSecond) * time.Second
		if took := time.Since(began).Round(time.Millisecond); took != want || rule != "comparisons" {
			t.Errorf("they took %v, want %v; refused by %q", took, want, rule)
		}
		if got := r.count(); got != most+rate.AtOnce {
			t.Errorf("%d of %d messages reached the site", got, most+rate.AtOnce)
		}
	})
}

// Few bundles are read, as each costs signatures, and a new stream does not fill their
// bucket.
func TestBundlesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := bare(t)
		read, refused := 0, 0
		l.cfg.ReadBundle = func(job.SiteID, *kithv1.SiteBundle) (meta.SiteBundle, error) {
			read++
			return meta.SiteBundle{}, nil
		}
		l.cfg.Refused = func(r Refusal) {
			if r.What == WhatRate && r.Rule == "bundles" {
				refused++
			}
		}
		bundles := slices.Repeat([]*kithv1.PeerMessage{siteBundle(&kithv1.SiteBundle{})}, 10)
		for range 3 {
			s := talking(t, l)
			l.received(s, &kithv1.Frame{Messages: bundles})
			s.cancel(nil)
		}
		if most := DefaultRates()[Bundles].AtOnce; read != most || refused != 30-most {
			t.Errorf("%d of 30 bundles were read, %d refused; at once are %d", read, refused, most)
		}
	})
}

// A site that opens one stream after another is heard of eight times, and then once a second;
// streams that would wait for longer than their patience are refused. Another site does not
// notice.
func TestStreamsThatComeAndGo(t *testing.T) {
	var mu sync.Mutex
	told := 0
	a := newEnd(t, "alpha", 1, echo{}, func(c *Config) {
		c.Refused = func(r Refusal) {
			mu.Lock()
			defer mu.Unlock()
			if r.What == WhatRate && r.Rule == "streams" && r.Site == "beta" {
				told++
			}
		}
	})
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	come := func(site string, incarnation uint64) error {
		g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
		if err != nil {
			return err
		}
		hello := &kithv1.Hello{SiteId: site, Protocol: Protocol, Incarnation: incarnation}
		if err := g.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: hello}}}}}); err != nil {
			return err
		}
		if _, err := g.Recv(); err != nil {
			return err
		}
		return g.CloseSend()
	}
	var busy atomic.Int64
	var wg sync.WaitGroup
	for one := range 8 {
		wg.Go(func() {
			for n := uint64(1); ctx.Err() == nil; n++ {
				if err := come("beta", uint64(one)<<32+n); status.Code(err) == codes.ResourceExhausted { //nolint:gosec // few
					busy.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	if err := come("gamma", 1); err != nil {
		t.Errorf("another site: %v", err)
	}
	wg.Wait()
	a.mu.Lock()
	ups := a.ups
	a.mu.Unlock()
	if most := 1 + StreamsAtOnce + 1 + int(time.Since(began).Seconds()); ups > most || ups < 1+StreamsAtOnce {
		t.Errorf("%d streams came up in %v, at most %d", ups, time.Since(began), most)
	}
	mu.Lock()
	defer mu.Unlock()
	if busy.Load() == 0 || told == 0 {
		t.Errorf("%d were told to come later, %d times it was said", busy.Load(), told)
	}
}

// One that is too soon waits for its turn, for up to five seconds.
func TestStreamWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := bare(t)
		for n := range StreamsAtOnce + 7 {
			// They come all at the same time; a second each is what they wait.
			want := max(0, time.Duration(n+1-StreamsAtOnce)*time.Second)
			go func() {
				began := time.Now()
				err := l.paceStream(t.Context(), "beta")
				if took := time.Since(began); want <= streamPatience && (err != nil || took != want) || want > streamPatience && (!errors.Is(err, ErrRate) || took != 0) {
					t.Errorf("number %d waited %v, want %v: %v", n+1, took, want, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
	})
}

// Every class has a name and a rate; what this site asked for is in none.
func TestClasses(t *testing.T) {
	for c, r := range DefaultRates() {
		if Class(c).String() == "" || r.PerSecond <= 0 || r.AtOnce < r.PerSecond/DealingsTogether { //nolint:gosec // few
			t.Errorf("class %d: %+v", c, r)
		}
	}
	if _, counted := ClassOf(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileReply{}}); counted {
		t.Error("pieces of files that were asked for count")
	}
	for _, m := range []meta.Message{meta.Claim{}, meta.Result{}, meta.Stop{}, meta.TaskResults{}, meta.TaskVerdict{}} {
		if c, _ := ClassOf(toProto(m)); c != Dealings {
			t.Errorf("%T may be dropped", m)
		}
	}
	for _, m := range []meta.Message{meta.CopySummary{}, meta.DigestRequest{}, meta.CopyDigest{}, taskSamples()[1]} {
		if c, _ := ClassOf(toProto(m)); c != Comparisons {
			t.Errorf("%T has not the rate of comparisons", m)
		}
	}
}
