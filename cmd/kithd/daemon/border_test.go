package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/internal/places"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// smallBorder is a border that is soon full, and what it logs.
func smallBorder() (*border, *bytes.Buffer) {
	var log bytes.Buffer
	return newBorder(borderBounds{
		connections: 8, connectionsOne: 4, calls: 100, callsOne: 50, slow: 6, slowOne: 3, soon: time.Second, whole: 10 * time.Second,
	}, slog.New(slog.NewTextHandler(&log, nil))), &log
}

func from(ctx context.Context, host string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}})
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	host string
}

func (c addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.host), Port: 1} }
func (c addressed) Close() error         { return nil }

// handed is a listener that hands connections out.
type handed chan net.Conn

func (h handed) Accept() (net.Conn, error) {
	if c, ok := <-h; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (handed) Close() error   { return nil }
func (handed) Addr() net.Addr { return &net.TCPAddr{} }

// Connections have places: one address gets some of them, all together no more than
// there are, and a closed one gives its place back once. Meeting a bound is one line a
// minute.
func TestConnectionsHavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := smallBorder()
		h := make(handed, 100)
		l := b.listener(h)
		offer := func(hosts ...string) (in []net.Conn) {
			for _, host := range hosts {
				h <- addressed{host: host}
			}
			for range hosts {
				done := make(chan net.Conn, 1)
				go func() {
					if c, err := l.Accept(); err == nil {
						done <- c
					}
				}()
				synctest.Wait()
				select {
				case c := <-done:
					in = append(in, c)
				default:
				}
			}
			return in
		}
		first := offer(slices.Repeat([]string{"10.0.0.1"}, 20)...)
		if len(first) != 4 {
			t.Fatalf("%d connections of one address are in, want 4", len(first))
		}
		if lines := strings.Count(log.String(), "bound met"); lines != 1 || !strings.Contains(log.String(), "10.0.0.1") {
			t.Errorf("%d lines: %s", lines, log)
		}
		close(h)
		synctest.Wait()
		for range 2 {
			first[0].Close() //nolint:errcheck // a connection of this test
		}
		enters := func(host string) bool { return b.enter(&b.connections, "connections", host) == places.None }
		if !enters("10.0.0.1") || enters("10.0.0.1") {
			t.Error("a closed connection gives back one place, once")
		}
		for n := range 20 {
			if ok := enters("10.0.1." + string(rune('a'+n))); ok != (n < 4) {
				t.Errorf("connection %d from other addresses: %v", n, ok)
			}
		}
	})
}

// Requests that do not come whole hold few places: beyond them the address that has
// most of them gives up its oldest, others do not, and none stays for ever. One that
// has come whole is left alone.
func TestUnfinishedRequestsHoldFewPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := smallBorder()
		call := func(host string) (context.Context, context.CancelFunc) {
			stream, end := context.WithCancel(from(t.Context(), host))
			ctx, err := b.tap(stream, nil)
			if err != nil {
				t.Fatal(err)
			}
			return ctx, end
		}
		count := func(calls []context.Context) (n int) {
			for _, c := range calls {
				if c.Err() == nil {
					n++
				}
			}
			return n
		}
		finished, endFinished := call("10.0.0.1")
		whole(finished)
		honest, endHonest := call("10.0.0.9")
		var stalled []context.Context
		for range 40 {
			c, end := call("10.0.0.1")
			defer end()
			stalled = append(stalled, c)
		}
		if count(stalled) != 40 {
			t.Error("a burst is no reason")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := count(stalled); n != 3 || honest.Err() != nil || finished.Err() != nil {
			t.Errorf("%d of 40 stalled requests stay, want 3; the honest one: %v, the whole one: %v", n, honest.Err(), finished.Err())
		}
		for _, host := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
			for range 3 {
				c, end := call(host)
				defer end()
				stalled = append(stalled, c)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := count(stalled); n != 5 || honest.Err() != nil {
			t.Errorf("%d stalled requests of four addresses stay, want 5; the honest one: %v", n, honest.Err())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := count(stalled); n != 0 || finished.Err() != nil {
			t.Errorf("%d stay for ever", n)
		}
		endHonest()
		endFinished()
		synctest.Wait()
		if b.calls.Taken() != 0 || len(b.slow) != 0 {
			t.Errorf("places that are still taken: %d, %d", b.calls.Taken(), len(b.slow))
		}
		for n := range 60 {
			ctx, end := context.WithCancel(from(t.Context(), "10.0.0.1"))
			defer end()
			_, err := b.tap(ctx, nil)
			if refused := status.Code(err) == codes.ResourceExhausted; refused != (n >= 50) {
				t.Fatalf("call %d of one address: %v", n, err)
			}
		}
	})
}

// A peer that sends as fast as it can leaves the queue of the loop to others.
func TestOnePeerDoesNotFillTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(0, nil, slog.New(slog.DiscardHandler))
		h := handler{inbox: in, streams: newStreams(), turns: new(turns)}
		var senders sync.WaitGroup
		flood := func(site job.SiteID) {
			senders.Go(func() { h.PeerMessages(site, slices.Repeat([]meta.Message{meta.DigestRequest{}}, 10_000)) })
		}
		flood("beta")
		synctest.Wait()
		if n := in.lanes.waiting(); n != mostOfPeer {
			t.Errorf("%d messages of one peer wait for the loop, at most %d", n, mostOfPeer)
		}
		flood("gamma")
		synctest.Wait()
		taken := map[job.SiteID]int{}
		for range 4 * mostOfPeer {
			i, ok := in.lanes.take()
			if !ok {
				in.lanes.end()
				continue
			}
			<-i.turn
			taken[i.event.(meta.Receive).From]++
			synctest.Wait()
		}
		if taken["gamma"] < mostOfPeer || taken["beta"] < mostOfPeer {
			t.Errorf("taken: %v", taken)
		}
		close(in.closing)
		senders.Wait()
	})
}

// A real site refuses a list of headers of 100 KiB and ends a submission whose last
// bytes never come.
func TestSiteBoundsWhatStrangersSend(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	s := startSite(t, c)
	s.d.border.mu.Lock()
	s.d.border.bounds.soon, s.d.border.bounds.whole = 10*time.Millisecond, 200*time.Millisecond
	s.d.border.mu.Unlock()
	big := metadata.AppendToOutgoingContext(s.ctx(), "x-big", strings.Repeat("x", 100<<10))
	if _, err := s.sites.GetSite(big, &kithv1.GetSiteRequest{}); err == nil {
		t.Error("headers of 100 KiB are taken")
	}
	if _, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil {
		t.Errorf("a call behind it: %v", err)
	}
	conn, err := net.Dial("tcp", s.d.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a connection of this test
	// A request by hand: the preface, no settings, headers, and 1,000 bytes of 1 MiB.
	const headers, data, settings, endHeaders = 1, 0, 4, 4
	var block []byte
	for _, text := range []string{
		":method", "POST", ":scheme", "http", ":path", "/kith.v1.JobService/SubmitJob", ":authority", "a", "content-type", "application/grpc", "te", "trailers",
	} {
		if text[0] == ':' || text == "content-type" || text == "te" {
			block = append(block, 0) // a header that is not indexed
		}
		block = append(append(block, byte(len(text))), text...)
	}
	sent := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame := func(kind, flags, stream byte, payload []byte) {
		sent = append(sent, 0, byte(len(payload)>>8), byte(len(payload)), kind, flags, 0, 0, 0, stream)
		sent = append(sent, payload...)
	}
	frame(settings, 0, 0, nil)
	frame(headers, endHeaders, 1, block)
	frame(data, 0, 1, append([]byte{0, 0, 0x10, 0, 0}, make([]byte, 1000)...))
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // reading says so
	const reset = 3
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatalf("the call is not ended: %v", err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			t.Fatal(err)
		}
		if head[8] == 1 && (head[3] == headers || head[3] == reset) {
			return
		}
	}
}

// A call that is answered gives its place back at once, and once: the end of its context,
// which comes after, gives none back.
func TestAnAnsweredCallGivesItsPlaceBackOnce(t *testing.T) {
	for name, host := range map[string]string{"of the port": "10.0.0.1", "of the socket": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := smallBorder()
				b.socketCalls.Most, b.socketCalls.MostOne = 10, 10
				taken := func() int { return b.calls.Taken() + b.socketCalls.Taken() }
				of := from(t.Context(), host)
				if host == "" {
					of = peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Net: "unix", Name: "@"}})
				}
				other, err := b.tap(of, nil)
				if err != nil {
					t.Fatal(err)
				}
				stream, end := context.WithCancel(of)
				ctx, err := b.tap(stream, nil)
				if err != nil || taken() != 2 {
					t.Fatal(err, taken())
				}
				if _, err := wholeUnary(ctx, nil, nil, func(context.Context, any) (any, error) { return nil, nil }); err != nil {
					t.Fatal(err)
				}
				if taken() != 1 {
					t.Errorf("%d calls are counted after one of two was answered", taken())
				}
				end()
				synctest.Wait()
				if taken() != 1 {
					t.Errorf("%d calls are counted after the answered one has ended", taken())
				}
				if ctx.Err() == nil || other.Err() != nil {
					t.Errorf("contexts: %v, %v", ctx.Err(), other.Err())
				}
			})
		})
	}
}

// BenchmarkTap is what a call pays at the border from its headers to its answer.
func BenchmarkTap(b *testing.B) {
	border := newBorder(defaultBounds(1024), slog.New(slog.DiscardHandler))
	accepted := make(handed, 1)
	accepted <- addressed{host: "10.0.0.1"}
	c, err := border.listener(accepted).Accept()
	if err != nil {
		b.Fatal(err)
	}
	at := peer.NewContext(b.Context(), &peer.Peer{Addr: c.RemoteAddr()})
	answer := func(context.Context, any) (any, error) { return nil, nil }
	b.ReportAllocs()
	for b.Loop() {
		stream, end := context.WithCancel(at)
		ctx, err := border.tap(stream, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := wholeUnary(ctx, nil, nil, answer); err != nil {
			b.Fatal(err)
		}
		end()
	}
}
