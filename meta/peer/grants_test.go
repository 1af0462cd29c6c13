package peer

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// slowWire takes a frame in the time that its bytes need.
type slowWire struct {
	rate   int // bytes a second
	ctx    context.Context
	sent   *atomic.Int64
	frames chan *kithv1.Frame
}

func (w slowWire) send(f *kithv1.Frame) error {
	n := proto.Size(f)
	select {
	case <-time.After(time.Duration(n) * time.Second / time.Duration(w.rate)):
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	w.sent.Add(int64(n))
	w.frames <- f
	return nil
}

func (slowWire) recv() (*kithv1.Frame, error) { return nil, io.EOF }

// grantStream is a stream over a slow wire, with what payload reads.
func grantStream(t *testing.T, rate int, payload PayloadFunc) (*stream, slowWire) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w := slowWire{rate: rate, ctx: ctx, sent: new(atomic.Int64), frames: make(chan *kithv1.Frame, 10_000)}
	s := newStream(ctx, w, &kithv1.Hello{SiteId: "beta"}, true, 15*time.Second)
	go s.write(5 * time.Second) //nolint:errcheck // it ends with the context
	go s.grants.load(ctx, payload, s.poke)
	return s, w
}

func grantOf(n int, sent time.Duration) meta.Grant {
	return meta.Grant{
		To: "beta", Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: uint64(n + 1)}, Number: 1},
		Lease: time.Minute, Sent: job.Time(sent),
	}
}

// verdicts are the grants that have left.
func (w slowWire) verdicts(t *testing.T) (all []meta.Verdict) {
	t.Helper()
	for len(w.frames) > 0 {
		for _, p := range (<-w.frames).GetMessages() {
			m, err := fromProto(p)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := m.(meta.Verdict); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

// A host behind a thin line claims for 1,200 jobs at once, each with 130 kB to run,
// and again every five seconds: the stream stays, each grant leaves once, and what
// waits is not kept in memory.
func TestGrantsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, size, rate = 1200, 130_000, 4_000_000
		var read atomic.Int64
		s, w := grantStream(t, rate, func(meta.Grant) ([]byte, error) {
			read.Add(size)
			return make([]byte, size), nil
		})
		left := make(map[job.AttemptID]bool)
		var late time.Duration
		for now := time.Duration(0); len(left) < jobs && now < 5*time.Minute; now += 5 * time.Second {
			for n := range jobs {
				if g := grantOf(n, now); !left[g.Attempt] {
					s.grants.add(g)
				}
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if ahead := read.Load() - w.sent.Load(); ahead > maxReadyBytes+maxFrameBytes+2*size {
				t.Errorf("%d bytes were read ahead of the stream, expected %d at most", ahead, maxReadyBytes+maxFrameBytes+2*size)
			}
			for _, v := range w.verdicts(t) {
				if left[v.Attempt] {
					t.Errorf("the grant of %v left twice", v.Attempt)
				}
				if len(v.Payload) != size || v.Lease != time.Minute {
					t.Fatalf("%v: %d bytes, lease %v", v.Attempt, len(v.Payload), v.Lease)
				}
				left[v.Attempt] = true
				late = max(late, now-time.Duration(v.Sent))
			}
		}
		if s.ctx.Err() != nil {
			t.Fatalf("the stream was closed: %v", context.Cause(s.ctx))
		}
		if len(left) != jobs {
			t.Fatalf("%d grants left, expected %d", len(left), jobs)
		}
		if late > 5*time.Second {
			t.Errorf("a grant answers a claim of %v before, and a later one was made", late)
		}
	})
}

// What a job runs and cannot be read is tried again, and holds up no other grant; a
// job that is gone is not granted.
func TestGrantsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		s, w := grantStream(t, 1<<30, func(g meta.Grant) ([]byte, error) {
			switch {
			case g.Attempt.Job.Seq == 1 && broken.Load():
				return nil, errors.New("input/output error")
			case g.Attempt.Job.Seq == 2:
				return nil, ErrNoGrant
			}
			return []byte("x"), nil
		})
		for n := range 4 {
			s.grants.add(grantOf(n, 0))
		}
		seqs := func() (list []uint64) {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			for _, v := range w.verdicts(t) {
				list = append(list, v.Attempt.Job.Seq)
			}
			return list
		}
		if got := seqs(); !slices.Equal(got, []uint64{3, 4}) {
			t.Errorf("%v left, expected 3 and 4", got)
		}
		broken.Store(false)
		if got := seqs(); !slices.Equal(got, []uint64{1}) {
			t.Errorf("%v left, expected 1", got)
		}
	})
}

// Protocol messages go ahead of grants.
func TestGrantsGoBehindMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := grantStream(t, 1<<20, func(meta.Grant) ([]byte, error) { return make([]byte, 3<<20), nil })
		for n := range 3 {
			s.grants.add(grantOf(n, 0))
		}
		time.Sleep(100 * time.Millisecond) // the first is on its way
		s.enqueue(toProto(meta.Withdraw{Attempt: grantOf(0, 0).Attempt}))
		time.Sleep(time.Minute)
		synctest.Wait()
		var order []string
		for len(w.frames) > 0 {
			for _, p := range (<-w.frames).GetMessages() {
				m, err := fromProto(p)
				if err != nil {
					t.Fatal(err)
				}
				order = append(order, m.Word())
			}
		}
		if want := []string{"verdict", "withdraw", "verdict", "verdict"}; !slices.Equal(order, want) {
			t.Errorf("%v left, expected %v", order, want)
		}
	})
}
