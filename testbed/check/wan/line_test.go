package wan

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipe is a connection over two ways in fake time: no kernel buffers anything,
// so that every moment is exact.
type pipe struct {
	client, target net.Conn // the ends in the hands of the test
	out, back      *way
	conn           *connection
}

// withPipe runs f in fake time with a connection over two ways.
func withPipe(t *testing.T, path Path, bufferBytes int, f func(t *testing.T, p *pipe)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{}
		var clientEnd, targetEnd net.Conn
		p.client, clientEnd = net.Pipe()
		p.target, targetEnd = net.Pipe()
		p.out = newWay("a", "b", path, rand.New(rand.NewPCG(1, 0)))
		p.back = newWay("b", "a", path, rand.New(rand.NewPCG(1, 1)))
		p.conn = newConnection(clientEnd, targetEnd, p.out, p.back, bufferBytes)
		var running sync.WaitGroup
		running.Go(p.conn.run)
		f(t, p)
		p.conn.reset()
		running.Wait()
		for _, c := range []net.Conn{p.client, p.target} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// send writes text and fails the test if it cannot.
func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Errorf("write %q: %v", text, err)
	}
}

// expect reads text and returns when it had come.
func expect(t *testing.T, conn net.Conn, text string) time.Time {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Errorf("read %q, %v; want %q", got, err, text)
	}
	return time.Now()
}

// silent fails the test if conn says something within d.
func silent(t *testing.T, conn net.Conn, d time.Duration) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func TestDelayIsExact(t *testing.T) {
	withPipe(t, Path{Delay: 100 * time.Millisecond}, 1<<20, func(t *testing.T, p *pipe) {
		begin := time.Now()
		send(t, p.client, "ping")
		if took := expect(t, p.target, "ping").Sub(begin); took != 100*time.Millisecond {
			t.Errorf("one way took %v", took)
		}
		send(t, p.target, "pong")
		if took := expect(t, p.client, "pong").Sub(begin); took != 200*time.Millisecond {
			t.Errorf("the round trip took %v", took)
		}
	})
}

// TestDelayIsALine sends without waiting: each text takes the delay, and not
// one after the other.
func TestDelayIsALine(t *testing.T) {
	withPipe(t, Path{Delay: time.Second}, 1<<20, func(t *testing.T, p *pipe) {
		begin := time.Now()
		var sender sync.WaitGroup
		sender.Go(func() {
			for range 100 {
				send(t, p.client, "0123456789")
				time.Sleep(10 * time.Millisecond)
			}
		})
		for i := range 100 {
			want := time.Second + time.Duration(i)*10*time.Millisecond
			if took := expect(t, p.target, "0123456789").Sub(begin); took != want {
				t.Fatalf("text %d came after %v, want %v", i, took, want)
			}
		}
		sender.Wait()
	})
}

func TestDelayCanChange(t *testing.T) {
	withPipe(t, Path{Delay: time.Second}, 1<<20, func(t *testing.T, p *pipe) {
		begin := time.Now()
		send(t, p.client, "slow")
		synctest.Wait()
		p.out.change(func(path *Path) { path.Delay = 10 * time.Millisecond })
		send(t, p.client, "fast")
		if took := expect(t, p.target, "slowfast").Sub(begin); took != time.Second {
			t.Errorf("both came after %v: what is sent later must not overtake", took)
		}
		begin = time.Now()
		send(t, p.client, "fast")
		if took := expect(t, p.target, "fast").Sub(begin); took != 10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestJitter(t *testing.T) {
	withPipe(t, Path{Delay: 100 * time.Millisecond, Jitter: 50 * time.Millisecond}, 1<<20, func(t *testing.T, p *pipe) {
		shortest, longest := time.Hour, time.Duration(0)
		for range 200 {
			begin := time.Now()
			send(t, p.client, "x")
			took := expect(t, p.target, "x").Sub(begin)
			shortest, longest = min(shortest, took), max(longest, took)
		}
		if shortest < 100*time.Millisecond || shortest > 110*time.Millisecond || longest < 140*time.Millisecond || longest > 150*time.Millisecond {
			t.Errorf("between %v and %v, want 100ms to 150ms", shortest, longest)
		}
	})
}

func TestRate(t *testing.T) {
	withPipe(t, Path{Delay: time.Second, BytesPerSecond: 100_000}, 1<<20, func(t *testing.T, p *pipe) {
		begin := time.Now()
		text := string(bytes.Repeat([]byte("0123456789"), 50_000))
		var sender sync.WaitGroup
		sender.Go(func() { send(t, p.client, text) })
		took := expect(t, p.target, text).Sub(begin)
		sender.Wait()
		if want := 6 * time.Second; took < want-time.Millisecond || took > want+time.Millisecond {
			t.Errorf("500 kB at 100 kB/s after 1 s took %v, want %v", took, want)
		}
		if sent := 5*time.Second - 2*maxBacklog; time.Since(begin) < sent {
			t.Errorf("the sender was done after %v: the line took in more than it sends", time.Since(begin))
		}
	})
}

func TestCutAndHeal(t *testing.T) {
	withPipe(t, Path{Delay: 100 * time.Millisecond}, 1<<20, func(t *testing.T, p *pipe) {
		send(t, p.client, "before")
		expect(t, p.target, "before")
		send(t, p.client, "under way")
		p.out.close()
		p.back.close()
		if err := p.client.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if n, err := p.client.Write([]byte("during")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("during the cut %d bytes were taken, %v", n, err)
		}
		if err := p.client.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		silent(t, p.target, time.Hour)
		silent(t, p.client, time.Hour)
		var sender sync.WaitGroup
		sender.Go(func() { send(t, p.client, ", after") })
		silent(t, p.target, time.Hour)
		p.out.open()
		p.back.open()
		healed := time.Now()
		if took := expect(t, p.target, "under way").Sub(healed); took != 0 {
			t.Errorf("what was under way came %v after the heal", took)
		}
		if took := expect(t, p.target, ", after").Sub(healed); took != 100*time.Millisecond {
			t.Errorf("what was sent during the cut came %v after the heal", took)
		}
		sender.Wait()
		send(t, p.target, "back")
		expect(t, p.client, "back")
	})
}

func TestHalfCut(t *testing.T) {
	withPipe(t, Path{Delay: time.Millisecond}, 1<<20, func(t *testing.T, p *pipe) {
		p.back.close()
		send(t, p.client, "there")
		expect(t, p.target, "there")
		var sender sync.WaitGroup
		sender.Go(func() { send(t, p.target, "and back") })
		silent(t, p.client, time.Hour)
		p.back.open()
		expect(t, p.client, "and back")
		sender.Wait()
	})
}

// TestCutStopsAWrite cuts while the target does not read: what was written in
// part is written to its end after the heal.
func TestCutStopsAWrite(t *testing.T) {
	withPipe(t, Path{}, 1<<20, func(t *testing.T, p *pipe) {
		text := string(bytes.Repeat([]byte("0123456789"), 10_000))
		send(t, p.client, text)
		expect(t, p.target, text[:15])
		p.out.close()
		silent(t, p.target, time.Hour)
		p.out.open()
		expect(t, p.target, text[15:])
	})
}

func TestBufferIsBounded(t *testing.T) {
	withPipe(t, Path{Delay: time.Hour}, 10_000, func(t *testing.T, p *pipe) {
		if err := p.client.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		taken := 0
		for {
			n, err := p.client.Write(make([]byte, 700))
			taken += n
			if err != nil {
				break
			}
		}
		if taken > 10_000 || taken < 8_000 {
			t.Errorf("%d bytes were taken into a buffer of 10000", taken)
		}
		if held := p.out.stats().HeldBytes; held != int64(taken) {
			t.Errorf("%d bytes are held, %d were taken", held, taken)
		}
	})
}

func TestSingleBytesAreBounded(t *testing.T) {
	withPipe(t, Path{Delay: time.Hour}, 10_000, func(t *testing.T, p *pipe) {
		if err := p.client.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		taken := 0
		for ; taken < 20_000; taken++ {
			if _, err := p.client.Write([]byte{1}); err != nil {
				break
			}
		}
		if taken > 10_000/packetOverhead {
			t.Errorf("%d single bytes were taken", taken)
		}
	})
}

// TestStreamsAreWhole sends random streams both ways through random cuts,
// delays and rates and compares what comes.
func TestStreamsAreWhole(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		path := Path{Delay: time.Duration(rng.IntN(50)) * time.Millisecond, Jitter: time.Duration(rng.IntN(30)) * time.Millisecond}
		if rng.IntN(2) == 0 {
			path.BytesPerSecond = int64(1000 + rng.IntN(1_000_000))
		}
		withPipe(t, path, 100+rng.IntN(20_000), func(t *testing.T, p *pipe) {
			var streams sync.WaitGroup
			for _, ends := range [][2]net.Conn{{p.client, p.target}, {p.target, p.client}} {
				text := make([]byte, rng.IntN(50_000))
				for i := range text {
					text[i] = byte(rng.Uint32())
				}
				pieces := rand.New(rand.NewPCG(seed, 9))
				streams.Go(func() {
					for rest := text; len(rest) > 0; {
						n := min(len(rest), 1+pieces.IntN(5000))
						send(t, ends[0], string(rest[:n]))
						rest = rest[n:]
					}
				})
				streams.Go(func() { expect(t, ends[1], string(text)) })
			}
			for range 30 {
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				w := p.out
				if rng.IntN(2) == 0 {
					w = p.back
				}
				if rng.IntN(2) == 0 {
					w.close()
				} else {
					w.open()
				}
			}
			p.out.open()
			p.back.open()
			streams.Wait()
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}
