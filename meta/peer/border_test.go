package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// silentWire is a stream on which nothing comes.
type silentWire struct{ ctx context.Context }

func (w silentWire) send(*kithv1.Frame) error { return nil }

func (w silentWire) recv() (*kithv1.Frame, error) {
	<-w.ctx.Done()
	return nil, w.ctx.Err()
}

// bare returns links without a network, and what they log and hear.
func bare(t *testing.T) (*Links, *recorder, *lines) {
	t.Helper()
	r, log := &recorder{up: map[job.SiteID]int{"beta": 1}}, &lines{}
	l := New(Config{Site: "alpha", Logger: slog.New(slog.NewTextHandler(log, nil))}, r, echo{})
	t.Cleanup(l.Close)
	return l, r, log
}

// talking returns a stream to beta that is up.
func talking(t *testing.T, l *Links) *session {
	t.Helper()
	s := &session{
		stream:  newStream(t.Context(), silentWire{t.Context()}, &kithv1.Hello{SiteId: "beta"}, true, time.Minute),
		pending: make(map[uint64]chan *kithv1.FileReply), serving: make(chan struct{}, servedAtOnce),
		limits: l.limitsOf("beta"),
	}
	l.streams["beta"] = s
	t.Cleanup(func() { s.cancel(nil) })
	return s
}

// A stream on which no hello comes ends after ten seconds, whoever opened it.
func TestStreamWithoutHelloEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, log := bare(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		_, err := l.firstFrame(ctx, silentWire{ctx}, "10.0.0.1:5")
		if took := time.Since(began); !errors.Is(err, ErrNoHello) || took != HelloWait {
			t.Errorf("after %v: %v", took, err)
		}
		if got := log.with("peer stream closed before it said hello", "10.0.0.1:5"); len(got) != 1 {
			t.Errorf("the log has %q", got)
		}
		if n := l.waiting.Taken(); n != 0 {
			t.Errorf("its place is still taken: %d", n)
		}
	})
}

// One address takes a part of the places for streams without a hello; others find
// some. Meeting the bound is one line a minute.
func TestStreamsWithoutHelloAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, log := bare(t)
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan error, 2000)
		open := func(address string) {
			go func() { _, err := l.firstFrame(ctx, silentWire{ctx}, address); opened <- err }()
		}
		for n := range 1000 {
			open(fmt.Sprint("10.0.0.1:", n))
		}
		synctest.Wait()
		if n := len(opened); n != 1000-mostWaitingOne {
			t.Errorf("%d of 1000 were refused, want all but %d", n, mostWaitingOne)
		}
		for range len(opened) {
			if err := <-opened; !errors.Is(err, ErrManyWaiting) {
				t.Fatal(err)
			}
		}
		for n := range 1000 { // from a thousand others
			open(fmt.Sprint("10.0.", 1+n/200, ".", n%200, ":1"))
		}
		synctest.Wait()
		if n := len(opened); n != 1000-(mostWaiting-mostWaitingOne) {
			t.Errorf("%d of 1000 from others were refused", n)
		}
		if got := log.with("peer stream closed"); len(got) != 1 {
			t.Errorf("%d lines", len(got))
		}
		cancel()
		synctest.Wait()
	})
}

// A /64 is one address.
func TestStreamsOfOneSubnetAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := bare(t)
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan error, 100)
		for n := range 100 {
			go func() {
				_, err := l.firstFrame(ctx, silentWire{ctx}, fmt.Sprintf("[2001:db8::%x]:1", n))
				opened <- err
			}()
		}
		synctest.Wait()
		if n := len(opened); n != 100-mostWaitingOne {
			t.Errorf("%d of 100 were refused, want all but %d", n, mostWaitingOne)
		}
		cancel()
		synctest.Wait()
	})
}

// However many messages of a peer are refused, and whatever is in them, the log gets a
// short line a second that says how many there were.
func TestRefusedMessagesMakeALineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r, log := bare(t)
		l.cfg.Rates = unbounded
		s := talking(t, l)
		long := toProto(meta.PlaceCopy{Attempt: sampleAttempt, Request: sampleRequest})
		long.GetPlaceCopy().GetAttempt().GetJob().Origin = strings.Repeat("\x1b[31m\n", 1<<18)
		for range 50 {
			f := &kithv1.Frame{}
			for range 400 {
				f.Messages = append(f.Messages, &kithv1.PeerMessage{}, long)
			}
			l.received(s, f)
		}
		time.Sleep(refusedEvery)
		l.received(s, &kithv1.Frame{Messages: []*kithv1.PeerMessage{long}})
		got := log.with("peer message refused")
		if len(got) != 2 || !strings.Contains(got[1], "refused_since_last_line=39999") {
			t.Errorf("%d lines, the last %.300q", len(got), got[len(got)-1])
		}
		for _, line := range got {
			if len(line) > 600 || strings.ContainsAny(line, "\x1b") {
				t.Errorf("a line of %d bytes: %.300q", len(line), line)
			}
		}
		l.received(s, &kithv1.Frame{Messages: make([]*kithv1.PeerMessage, mostInFrame+1)})
		if r.count() != 0 {
			t.Errorf("%d messages came through", r.count())
		}
	})
}

// What a stranger says in its hello does not get into the log at its length.
func TestHelloOfMegabytesIsAShortLine(t *testing.T) {
	l, _, log := bare(t)
	big := strings.Repeat("v", 3<<20)
	for n, h := range []*kithv1.Hello{
		{SiteId: "beta", Protocol: Protocol, Version: big}, {SiteId: big, Protocol: Protocol}, {SiteId: "beta", Protocol: Protocol, PeerSiteId: big},
	} {
		first := &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: h}}}}
		_, err := l.greet(first, "")
		if !errors.Is(err, ErrMessage) || len(err.Error()) > shownBytes {
			t.Errorf("hello %d: %.300v", n, err)
		}
		l.troubles.refusal = loglines.Pacer[struct{}]{} // a second later
		l.troubles.refused(first, "10.0.0.1:1", err)
	}
	got := log.with("peer refused")
	if len(got) != 3 {
		t.Errorf("%d lines", len(got))
	}
	for _, line := range got {
		if len(line) > 500 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// Strangers who invent a name for each try make a line a second.
func TestInventedNamesMakeALineASecond(t *testing.T) {
	l, _, log := bare(t)
	for n := range 5000 {
		h := &kithv1.Hello{SiteId: fmt.Sprint("stranger-", n), Protocol: Protocol + 1}
		first := &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: h}}}}
		_, err := l.greet(first, "")
		l.troubles.refused(first, "10.0.0.1:1", err)
	}
	if got := len(log.with("peer refused")); got > 20 { // the test itself takes a moment
		t.Errorf("5000 strangers made %d lines", got)
	}
}

// Who asks for starts more often than this site answers is told to ask later; nothing
// of that reaches the loop, what is refused is not free, and a moment later the site answers
// again.
func TestStartQueriesBeyondTheRateAreToldToAskLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r, _ := bare(t)
		s := talking(t, l)
		ask := func(n int) (later int) {
			before := r.count()
			l.received(s, &kithv1.Frame{Messages: slices.Repeat([]*kithv1.PeerMessage{toProto(meta.StartQuery{Query: 1, Request: sampleRequest})}, n)})
			for _, m := range s.queue {
				if a := m.GetStartAnswer(); a.GetReason() == uint32(job.AskLater) {
					later++
				}
			}
			s.queue = nil
			if got := r.count() - before; got != n-later {
				t.Errorf("%d asked, %d told later, %d reached the loop", n, later, got)
			}
			return later
		}
		if later := ask(DefaultRates()[Queries].AtOnce); later != 0 {
			t.Errorf("%d of the first %d are to ask later", later, DefaultRates()[Queries].AtOnce)
		}
		began := time.Now()
		if later := ask(1000); later != 1000 {
			t.Errorf("%d of 1000 beyond them", later)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("after 1000 that were refused the stream is read on after %v", took)
		}
		time.Sleep(2 * time.Second)
		if later := ask(DefaultRates()[Queries].AtOnce + 10); later != 10 {
			t.Errorf("a moment later: %d", later)
		}
	})
}

// A load that no site can have is as if it was not heard: told once in the log and to
// operators for as long as the site tells no other.
func TestImpossibleLoadIsAsIfUnheard(t *testing.T) {
	l, r, log := bare(t)
	l.cfg.Rates = unbounded
	s := talking(t, l)
	tell := func(speed float64) {
		d := cluster.Digest{Site: "beta", Incarnation: 1, Sequence: 2, Processors: 3, Speed: speed}
		l.received(s, &kithv1.Frame{Messages: []*kithv1.PeerMessage{toProto(meta.LoadDigest{Digest: d})}})
	}
	for range 100 {
		tell(1e300)
	}
	if got := l.Trouble()["beta"].Load; r.count() != 0 || !strings.Contains(got, "speed is 1e+300, must be") {
		t.Errorf("%d came through; operators see %q", r.count(), got)
	}
	if got := log.with("load not believed", "peer_id=beta"); len(got) != 1 {
		t.Errorf("the log has %q", got)
	}
	tell(1)
	if got := l.Trouble()["beta"].Load; r.count() != 1 || got != "" {
		t.Errorf("%d came through; operators see %q", r.count(), got)
	}
}
