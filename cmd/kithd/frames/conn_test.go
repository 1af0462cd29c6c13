package frames

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// sender is a connection whose other end has sent all of it.
type sender struct {
	net.Conn
	bytes.Reader
	most   int // bytes a read
	closed int
}

func (s *sender) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.most)]) }
func (s *sender) Close() error               { s.closed++; return nil }

func sent(most int, frames ...[]byte) *sender {
	s := &sender{most: most}
	s.Reset(connection(frames...))
	return s
}

func pings(n int) []byte { return bytes.Repeat(frame(6, 8), n) }

// A connection is read as fast as its bucket pays for its frames, and all that it brings
// comes; others with a bucket of their own do not notice.
func TestConnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := rate.NewLimiter(1000, 100)
		told := 0
		began := time.Now()
		s := sent(1700, pings(5100))
		c := Pace(s, Bounds{Bucket: bucket, Met: func(closed bool) {
			if closed {
				t.Error("it was closed")
			}
			told++
		}})
		got, err := io.ReadAll(c)
		if took := time.Since(began); err != nil || took < 4900*time.Millisecond || took > 5*time.Second || told != 1 {
			t.Errorf("after %v %d bytes, told %d times: %v", took, len(got), told, err)
		}
		if want := connection(pings(5100)); !bytes.Equal(got, want) {
			t.Errorf("%d bytes came, want %d", len(got), len(want))
		}
		time.Sleep(time.Second)
		began = time.Now()
		if _, err := io.ReadAll(Pace(sent(1700, pings(100)), Bounds{Bucket: bucket})); err != nil || time.Since(began) != 0 {
			t.Errorf("what may come together took %v: %v", time.Since(began), err)
		}
	})
}

// A read of more frames than may come together waits for all of them.
func TestConnWaitsForMoreThanComesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := io.ReadAll(Pace(sent(1<<20, pings(950)), Bounds{Bucket: rate.NewLimiter(100, 50)}))
		if took := time.Since(began); err != nil || took != 9*time.Second {
			t.Errorf("it took %v: %v", took, err)
		}
	})
}

// One that sends frames that bring nothing without a pause is closed, and what else it sent
// is dropped. One that brings calls and data waits only, and so does one that pauses.
func TestConnIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			s      *sender
			pause  time.Duration
			closed bool
		}{
			"pings": {sent(1700, pings(100_000)), 0, true},
			"calls": {sent(1700, bytes.Repeat(append(frame(1, 100), frame(0, 20)...), 10_000)), 0, false},
			"calls in turn": {sent(1700, bytes.Repeat(slices.Concat(
				frame(1, 100), frame(0, 20), frame(6, 8), frame(6, 8), frame(8, 4)), 10_000)), 0, false},
			"calls taken back": {sent(1700, bytes.Repeat(append(frame(1, 100), frame(3, 4)...), 10_000)), 0, true},
			"pauses":           {sent(1700, pings(10_000)), 200 * time.Millisecond, false},
		} {
			closed := 0
			conn := Pace(c.s, Bounds{Bucket: rate.NewLimiter(1000, 100), Idle: 1000, Met: func(is bool) {
				if is {
					closed++
				}
			}})
			p, err := make([]byte, 32<<10), error(nil)
			for err == nil {
				_, err = conn.Read(p)
				time.Sleep(c.pause)
			}
			want := io.EOF
			if c.closed {
				want = ErrFlood
			}
			if !errors.Is(err, want) || (closed == 1) != c.closed || (c.s.closed > 0) != c.closed {
				t.Errorf("%s: %v, told %d times, closed %d times", name, err, closed, c.s.closed)
			}
		}
	})
}

// Closing ends a wait.
func TestCloseEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Pace(sent(1700, pings(100)), Bounds{Bucket: rate.NewLimiter(0.001, 1)})
		began := time.Now()
		time.AfterFunc(time.Second, func() { c.Close() }) //nolint:errcheck // the test looks at the reader
		if _, err := io.ReadAll(c); !errors.Is(err, net.ErrClosed) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// What comes a byte at a time costs tokens for each read.
func TestConnPaysForSmallReads(t *testing.T) {
	bucket := rate.NewLimiter(1e-9, 1e6)
	if _, err := io.ReadAll(Pace(sent(1, frame(0, 1000)), Bounds{Bucket: bucket})); err != nil {
		t.Fatal(err)
	}
	const want = (24+1009-1)*smallReadCost + 1 // the frame begins in one of them
	if got := 1e6 - bucket.Tokens(); got < want-1 || got > want+1 {
		t.Errorf("%v tokens for %d reads, want %d", got, 24+1009, want)
	}
	before := bucket.Tokens()
	c := Pace(sent(smallRead, frame(0, 15*smallRead-9-24)), Bounds{Bucket: bucket})
	for p, err := make([]byte, 32<<10), error(nil); err == nil; {
		_, err = c.Read(p)
	}
	if got := before - bucket.Tokens(); got > 2 {
		t.Errorf("%v tokens for large reads", got)
	}
}

// Reading costs no memory, whether it waits or not.
func TestReadAllocatesNothing(t *testing.T) {
	for name, bucket := range map[string]*rate.Limiter{
		"free": rate.NewLimiter(rate.Inf, 1), "in time": rate.NewLimiter(1e9, 1e9), "waits": rate.NewLimiter(1e6, 1),
	} {
		s := &sender{most: 1700}
		all := connection(pings(1000))
		c := Pace(s, Bounds{Bucket: bucket})
		p := make([]byte, 32<<10)
		if _, err := c.Read(p); err == nil { // the timer is made
			t.Fatal("something was there")
		}
		c.hold(time.Nanosecond, Cost{}) //nolint:errcheck // nobody closes it
		n := testing.AllocsPerRun(100, func() {
			if s.Len() == 0 {
				s.Reset(all)
			}
			c.Read(p) //nolint:errcheck // it has no error
		})
		if n > 0 {
			t.Errorf("%s: %v allocations a read", name, n)
		}
	}
}

// BenchmarkRead is what a read of 16 KiB costs more: of data, and of calls.
func BenchmarkRead(b *testing.B) {
	for name, all := range map[string][]byte{
		"data":  bytes.Repeat(frame(0, 16384-9), 64),
		"calls": bytes.Repeat(append(frame(1, 60), frame(0, 120)...), 5000),
	} {
		b.Run(name, func(b *testing.B) {
			s := &sender{most: 16384}
			c := Pace(s, Bounds{Bucket: rate.NewLimiter(1e12, 1e9)})
			p := make([]byte, 32<<10)
			b.SetBytes(16384)
			for b.Loop() {
				if s.Len() == 0 {
					s.Reset(all)
				}
				c.Read(p) //nolint:errcheck // it has no error
			}
		})
	}
}

// Data that comes while no call is under way brings nothing: who sends it waits for all of its
// bytes, and is closed. While a call is under way it costs one a frame.
func TestDataWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := bytes.Repeat(frame(data, maxPayload), 100)
		read := func(calls bool, begun int) (took time.Duration, err error) {
			c := Pace(sent(32<<10, full), Bounds{Bucket: rate.NewLimiter(1000, 200), Calls: calls, Idle: 1000})
			for range begun {
				c.Begin()
			}
			began := time.Now()
			_, err = io.ReadAll(c)
			return time.Since(began), err
		}
		if took, err := read(true, 0); !errors.Is(err, ErrFlood) {
			t.Errorf("without a call: after %v %v", took, err)
		}
		if took, err := read(true, 1); err != nil || took != 0 {
			t.Errorf("in a call: after %v %v", took, err)
		}
		if took, err := read(false, 0); err != nil || took != 0 {
			t.Errorf("where nobody says what is a call: after %v %v", took, err)
		}
		c := Pace(sent(32<<10, full), Bounds{Bucket: rate.NewLimiter(1000, 200), Calls: true, Idle: 1000})
		c.Begin()
		c.End()
		if _, err := io.ReadAll(c); !errors.Is(err, ErrFlood) {
			t.Errorf("after a call: %v", err)
		}
	})
}

// What a server sends begins with a frame.
func TestConnThatWasDialled(t *testing.T) {
	s := &sender{most: 1024}
	s.Reset(pings(3))
	bucket := rate.NewLimiter(0, 100)
	if _, err := io.ReadAll(Pace(s, Bounds{Bucket: bucket, Dialled: true})); err != nil || bucket.Tokens() != 97 {
		t.Errorf("three pings of a server leave %v of 100 tokens: %v", bucket.Tokens(), err)
	}
}

// silent is a connection on which nothing comes until it is closed.
type silent struct {
	net.Conn
	closed chan struct{}
}

func (s silent) Read([]byte) (int, error) { <-s.closed; return 0, net.ErrClosed }
func (s silent) Close() error             { close(s.closed); return nil }

// A connection without a first call is closed in time; one that had one may rest.
func TestConnWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, calls := range []int{0, 1} {
			c := Pace(silent{closed: make(chan struct{})}, Bounds{Bucket: rate.NewLimiter(1, 1), Calls: true, First: 5 * time.Second})
			began := time.Now()
			for range calls {
				c.Begin()
				c.End()
				time.AfterFunc(time.Hour, func() { c.Close() }) //nolint:errcheck // the test's end
			}
			c.Read(make([]byte, 1)) //nolint:errcheck // it is closed
			if took, want := time.Since(began), []time.Duration{5 * time.Second, time.Hour}[calls]; took != want {
				t.Errorf("after %d calls it is closed after %v, want %v", calls, took, want)
			}
		}
	})
}

// That the server closes a connection for what it has sent before its first call is told as a
// flood; not if the other end has hung up, a call was let in, or it had hardly begun.
func TestClosedBeforeTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			frames []byte
			call   bool
			all    bool // it is read to its end
			first  time.Duration
			told   int
		}{
			"headers without an end": {frames: slices.Concat(frame(1, 100), bytes.Repeat(frame(9, 12<<10), 8)), first: time.Second, told: 1},
			"a call":                 {frames: slices.Concat(frame(1, 100), bytes.Repeat(frame(9, 12<<10), 8)), call: true, first: time.Second},
			"it hung up":             {frames: slices.Concat(frame(1, 100), bytes.Repeat(frame(9, 12<<10), 8)), all: true, first: time.Second},
			"a hello":                {frames: slices.Concat(frame(4, 18), frame(8, 4), frame(6, 8)), first: time.Second},
			"that was dialled":       {frames: slices.Concat(frame(1, 100), bytes.Repeat(frame(9, 12<<10), 8))},
		} {
			told := 0
			conn := Pace(sent(32<<10, c.frames), Bounds{Bucket: rate.NewLimiter(1e6, 1e6), First: c.first, Met: func(closed bool) {
				if closed {
					told++
				}
			}})
			if c.call {
				conn.Begin()
			}
			p := make([]byte, 32<<10)
			for n := 0; n < 2 || c.all; n++ {
				if _, err := conn.Read(p); err != nil {
					break
				}
			}
			for range 2 {
				conn.Close() //nolint:errcheck // the test looks at what is told
			}
			if told != c.told {
				t.Errorf("%s: told %d times, want %d", name, told, c.told)
			}
		}
	})
}
