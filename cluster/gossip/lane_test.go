package gossip

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
)

// Whatever bytes come, a frame is within its bounds or the lane ends, and what is read
// is what was written.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0})
	f.Add(appendFrame(nil, frame{packet, 0, []byte("abc")}))
	f.Add(appendFrame(nil, frame{lastRequest, 7, make([]byte, maxPiece)}))
	f.Add([]byte{6, 0, 0, 0, 1, 0, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for read := 0; ; {
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			if len(fr.data) > mostData(fr.kind) || fr.kind <= packet && fr.exchange != 0 {
				t.Errorf("%+v", fr)
			}
			again := appendFrame(nil, fr)
			if !bytes.HasPrefix(b[read:], again) {
				t.Errorf("%x was read from %x", again, b[read:])
			}
			read += len(again)
		}
	})
}

func TestFramesBeyondBounds(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown kind":         {7, 0, 0, 0, 0, 0, 0},
		"long packet":          {1, 0, 0, 0, 0, 5, 0xb9},
		"long piece":           {2, 0, 0, 0, 1, 0x40, 1},
		"idle with data":       {0, 0, 0, 0, 0, 0, 1},
		"refusal with data":    {6, 0, 0, 0, 1, 0, 1},
		"packet in a exchange": {1, 0, 0, 0, 1, 0, 1},
	} {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(b))); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err) // before any of its data was waited for
		}
	}
}

// eve is a member that writes what it likes on its lane to a site.
type eve struct {
	net.Conn
	t    *testing.T
	came chan frame
}

// hostile has eve, whom the site trusts, open a lane to it.
func hostile(t *testing.T, s *site) *eve {
	near, far := net.Pipe()
	s.mu.Lock()
	s.trusts["eve"] = true
	s.mu.Unlock()
	go s.Accept("eve", far)
	e := &eve{near, t, make(chan frame, 10_000)}
	go func() {
		defer close(e.came)
		r := bufio.NewReader(near)
		for {
			f, err := readFrame(r)
			if err != nil {
				return
			}
			select {
			case e.came <- f:
			default:
			}
		}
	}()
	return e
}

// say writes frames, and reports whether the lane is still up.
func (e *eve) say(frames ...frame) bool {
	for _, f := range frames {
		if _, err := e.Write(appendFrame(nil, f)); err != nil {
			return false
		}
	}
	return true
}

// ended reports whether the site has closed the lane.
func (e *eve) ended() bool {
	synctest.Wait()
	for {
		select {
		case _, more := <-e.came:
			if !more {
				return true
			}
		default:
			return false
		}
	}
}

func (e *eve) count(k kind) (n int) {
	synctest.Wait()
	for len(e.came) > 0 {
		if f := <-e.came; f.kind == k {
			n++
		}
	}
	return n
}

// alone runs f with a site and eve.
func alone(t *testing.T, f func(*network, *site, *eve)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		s := n.member("me")
		s.begin()
		e := hostile(t, s)
		defer e.Close() //nolint:errcheck // the test is over
		synctest.Wait()
		f(n, s, e)
	})
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Frames of a site are taken at a pace, whichever lane they come over; no lane ends for it.
func TestLanesHaveAPace(t *testing.T) {
	alone(t, func(_ *network, s *site, e *eve) {
		began := time.Now()
		const seconds = 10
		for range (1 + seconds) * framesPerSecond {
			if !e.say(frame{kind: idle}) {
				t.Fatal("the lane was closed")
			}
		}
		synctest.Wait()
		if took := time.Since(began); took < (seconds-1)*time.Second || took > (seconds+1)*time.Second {
			t.Errorf("%d frames were read within %v", (1+seconds)*framesPerSecond, took)
		}
		if e.ended() {
			t.Error("the lane has ended")
		}
	})
}

// A thousand requests that do not end: two are kept, and no more than a bound of them.
func TestThousandRequests(t *testing.T) {
	alone(t, func(_ *network, s *site, e *eve) {
		before := heap()
		piece := make([]byte, maxPiece)
		for range 8 {
			for i := range uint32(1000) {
				if !e.say(frame{request, i, piece}) {
					t.Fatal("the lane was closed for requests that may yet end")
				}
			}
		}
		synctest.Wait()
		if grown := heap() - before; grown > 4<<20 && grown < 1<<40 {
			t.Errorf("memory grew by %d bytes", grown)
		}
		var serving int
		for _, c := range s.transport.sites {
			for _, l := range c.lanes {
				l.mu.Lock()
				serving += len(l.serving)
				l.mu.Unlock()
			}
		}
		if serving != maxExchanges {
			t.Errorf("%d are kept", serving)
		}
		for i := range uint32(20) {
			e.say(frame{lastRequest, 5000 + i, nil})
		}
		time.Sleep(10 * time.Second) // the lane is read at a pace
		if got := e.count(refuse); got != 20 {
			t.Errorf("%d of 20 were refused", got)
		}
		time.Sleep(2 * replyWait) // the two are given up
		if e.say(frame{lastRequest, 9000, []byte{mlPing}}); e.count(refuse) != 1 {
			t.Log("the lane ended of silence meanwhile")
		}
	})
}

// A request of 20 MiB ends the lane at its first MiB.
func TestLongRequest(t *testing.T) {
	alone(t, func(_ *network, _ *site, e *eve) {
		piece, sent := make([]byte, maxPiece), 0
		for sent < 20<<20 && e.say(frame{request, 1, piece}) {
			sent += len(piece)
		}
		if sent > maxMessage+maxPiece || !e.ended() {
			t.Errorf("%d bytes were taken", sent)
		}
	})
}

// A reply of more than a message may have ends the lane, as such a request does.
func TestLongReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		l := newLane("eve", far, false, &recorder{})
		go l.run()
		e, err := l.ask()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(e, "?"); err != nil {
			t.Fatal(err)
		}
		if f, err := readFrame(bufio.NewReader(near)); err != nil || f.kind != lastRequest {
			t.Fatal(f, err)
		}
		piece, sent := make([]byte, maxPiece), 0
		for sent < 20<<20 {
			if _, err := near.Write(appendFrame(nil, frame{reply, e.number, piece})); err != nil {
				break
			}
			sent += len(piece)
		}
		if sent > maxMessage+maxPiece || !errors.Is(l.why(), errTooLong) {
			t.Errorf("%d bytes were taken; the lane: %v", sent, l.why())
		}
		near.Close() //nolint:errcheck // the test is over
	})
}

// Who says nothing is gone after 30 s, who does not read after 10 s of a write, and who
// asks on without reading the refusals is gone, too.
func TestDeadLanesEnd(t *testing.T) {
	alone(t, func(_ *network, s *site, e *eve) {
		began := time.Now()
		for !e.ended() {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < silence-time.Second || took > silence+2*time.Second || s.Up("eve") {
			t.Errorf("a silent lane ended after %v", took)
		}
	})
	alone(t, func(_ *network, s *site, _ *eve) {
		near, far := net.Pipe()
		defer near.Close() //nolint:errcheck // the test is over
		s.mu.Lock()
		s.trusts["slow"] = true
		s.mu.Unlock()
		s.Accept("slow", far)
		for i := range 2 * int(silence/time.Second) { // it writes, and never reads
			if _, err := near.Write(appendFrame(nil, frame{})); err != nil {
				if i > int((beat+stuck)/time.Second)+1 {
					t.Errorf("after %d s", i)
				}
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("a lane that is not read is still up")
	})
	alone(t, func(_ *network, s *site, _ *eve) {
		near, far := net.Pipe()
		defer near.Close() //nolint:errcheck // the test is over
		s.mu.Lock()
		s.trusts["deaf"] = true
		s.mu.Unlock()
		s.Accept("deaf", far)
		n := 0
		for i := range uint32(1000) { // all at once, and never reads
			if _, err := near.Write(appendFrame(nil, frame{lastRequest, i, []byte("?")})); err != nil {
				break
			}
			n++
		}
		if n > 2*maxQueuedRefusals+maxExchanges {
			t.Errorf("%d requests were taken of who does not read refusals", n)
		}
	})
}

// A site that asks on without reading has few replies wait for it, and reads on later.
func TestUnreadReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		l := newLane("deaf", far, false, answerer{&recorder{}})
		go l.run()
		const asks = 30
		for i := range uint32(asks) {
			if _, err := near.Write(appendFrame(nil, frame{lastRequest, i, []byte("?")})); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		l.mu.Lock()
		if n, most := len(l.pieces), maxExchanges*maxMessage/maxPiece; n > most {
			t.Errorf("%d pieces wait, more than the %d of %d replies", n, most, maxExchanges)
		}
		l.mu.Unlock()
		r, came := bufio.NewReader(near), map[kind]int{}
		for came[lastReply]+came[refuse] < asks {
			f, err := readFrame(r)
			if err != nil {
				t.Fatal(err)
			}
			came[f.kind]++
		}
		if came[lastReply] != maxExchanges {
			t.Errorf("%d replies came, %d refusals", came[lastReply], came[refuse])
		}
		if _, err := near.Write(appendFrame(nil, frame{lastRequest, asks, []byte("?")})); err != nil {
			t.Fatal(err)
		}
		for f, err := readFrame(r); f.kind != lastReply; f, err = readFrame(r) {
			if err != nil || f.kind == refuse {
				t.Fatal(f.kind, err)
			}
		}
		near.Close() //nolint:errcheck // the test is over
	})
}

// answerer replies to every request with the longest message.
type answerer struct{ *recorder }

func (answerer) gotRequest(_ *lane, e *exchange) {
	e.Write(make([]byte, maxMessage)) //nolint:errcheck // the test looks at what comes
	e.Close()                         //nolint:errcheck // it cannot fail
}

// A lane of a site that is not trusted, whoever it was that let it so far, is closed.
func TestLaneOfAStranger(t *testing.T) {
	alone(t, func(_ *network, s *site, _ *eve) {
		near, far := net.Pipe()
		s.Accept("stranger", far)
		if s.Up("stranger") { // not for a moment, until somebody looks whom lanes are with
			t.Error("it is up")
		}
		if _, err := near.Write(appendFrame(nil, frame{})); err == nil {
			t.Error("it is open")
		}
	})
}

// Who doubts that this site lives hears from it at once that it does.
func TestDoubtsAreAnswered(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		others := []*site{n.member("a"), n.member("b"), n.member("c")}
		trust(append(others, s)...)
		for _, o := range others {
			o.begin()
		}
		until(t, 10*time.Second, "members", func() bool { return len(s.Members()) == 3 })
		for range 20 { // eve is no member, so that nothing is gossiped to her
			e.say(frame{packet, 0, ml(mlSuspect, mlSuspectBody{1 << 10, "me", "eve"})})
			e.count(packet)
			time.Sleep(2 * time.Second)
			if e.count(packet) > 0 {
				return
			}
		}
		t.Error("she was never answered")
	})
}

// Of two lanes that cross, one stays, and both sides agree which.
func TestCrossedLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		a, b := n.member("a"), n.member("b")
		trust(a, b)
		a.begin()
		b.begin()
		for range 3 {
			for _, x := range [][2]*site{{a, b}, {b, a}} { // both dial, in this order and at once
				conn, err := x[0].Dial(t.Context(), x[1].name)
				if err != nil {
					t.Fatal(err)
				}
				x[0].transport.add(x[1].name, conn, true)
			}
			time.Sleep(time.Minute)
			for _, s := range []*site{a, b} {
				other := map[job.SiteID]job.SiteID{"a": "b", "b": "a"}[s.name]
				s.transport.mu.Lock()
				lanes := s.transport.sites[other].lanes
				if len(lanes) != 1 || lanes[0].dialled != (s.name == "a") {
					t.Errorf("%s has %d lanes, the first dialled by it: %v", s.name, len(lanes), lanes[0].dialled)
				}
				s.transport.mu.Unlock()
			}
		}
		a.advertise()
		b.advertise()
		until(t, 2*time.Second, "heard", func() bool { return behind([]*site{a, b}) == 0 })
	})
}

// An exchange carries what is written, of every length, and says what went wrong.
func TestExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		a, b := &recorder{}, &recorder{}
		la, lb := newLane("b", near, true, a), newLane("a", far, false, b)
		go la.run()
		go lb.run()
		for _, n := range []int{1, maxPiece, maxPiece + 1, maxMessage} {
			e, err := la.ask()
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("x", n)
			if _, err := io.WriteString(e, text); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			served := b.requests[len(b.requests)-1]
			got, err := io.ReadAll(served)
			if err != nil || string(got) != text {
				t.Fatalf("%d bytes came as %d, %v", n, len(got), err)
			}
			served.Write(got) //nolint:errcheck // what comes is compared
			back, err := io.ReadAll(e)
			if err != nil || string(back) != text {
				t.Fatalf("%d bytes came back as %d, %v", n, len(back), err)
			}
			e.Close()      //nolint:errcheck // the test is over
			served.Close() //nolint:errcheck // the test is over
		}
		e, _ := la.ask()
		if _, err := e.Write(make([]byte, maxMessage+1)); !errors.Is(err, errTooLong) {
			t.Errorf("a long one: %v", err)
		}
		e2, _ := la.ask()
		if _, err := la.ask(); !errors.Is(err, errBusy) {
			t.Errorf("a third: %v", err)
		}
		e.Close()               //nolint:errcheck // the test is over
		io.WriteString(e2, "?") //nolint:errcheck // what comes is looked at
		synctest.Wait()
		b.requests[len(b.requests)-1].Close() //nolint:errcheck // it is refused
		if _, err := io.ReadAll(e2); !errors.Is(err, errRefused) {
			t.Errorf("one that was refused: %v", err)
		}
		e2.Close() //nolint:errcheck // the test is over
		e3, _ := la.ask()
		e3.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // it cannot fail
		if _, err := io.ReadAll(e3); !errors.Is(err, errSlow) {
			t.Errorf("one that is late: %v", err)
		}
		e4, _ := la.ask()
		lb.end(nil)
		if _, err := io.ReadAll(e4); !errors.Is(err, errLaneClosed) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("one of a lane that ended: %v", err)
		}
		if _, err := la.ask(); err == nil {
			t.Error("a lane that ended takes another")
		}
		time.Sleep(time.Minute)
	})
}

// recorder is a laneServer that keeps the requests.
type recorder struct{ requests []*exchange }

func (r *recorder) gotPacket(*lane, []byte)                   {}
func (r *recorder) gotRequest(_ *lane, e *exchange)           { r.requests = append(r.requests, e) }
func (r *recorder) leaving(_ *lane, b []byte) ([]byte, error) { return b, nil }
func (r *recorder) coming(_ *lane, b []byte) ([]byte, error)  { return b, nil }
func (r *recorder) laneEnded(*lane)                           {}
