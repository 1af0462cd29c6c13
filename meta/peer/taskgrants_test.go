package peer

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// taskStream is a stream over a slow wire to a site that knows tasks.
func taskStream(t *testing.T, rate int, read BundleFunc) (*stream, slowWire) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w := slowWire{rate: rate, ctx: ctx, sent: new(atomic.Int64), frames: make(chan *kithv1.Frame, 10_000)}
	s := newStream(ctx, w, &kithv1.Hello{SiteId: "beta", Tasks: true}, true, 15*time.Second)
	go s.write(5 * time.Second) //nolint:errcheck // it ends with the context
	go s.taskGrants.load(ctx, read, s.poke)
	return s, w
}

func bundlesOf(stamp uint64, n int) meta.TaskVerdict {
	v := meta.TaskVerdict{Stamp: stamp, Sent: job.Time(stamp)}
	for i := range n {
		v.Bundles = append(v.Bundles, meta.GivenBundle{
			Bundle: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: stamp}, Number: uint32(i + 1)}, Tasks: job.TaskRange(0, 3),
		})
	}
	return v
}

// taskVerdicts are the answers that have left.
func (w slowWire) taskVerdicts(t *testing.T) (all []meta.TaskVerdict) {
	t.Helper()
	for len(w.frames) > 0 {
		for _, p := range (<-w.frames).GetMessages() {
			m, err := fromProto(p)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := m.(meta.TaskVerdict); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

// An answer that is large comes in messages that a stream takes, each bundle once, however
// often the claim is repeated meanwhile.
func TestTaskGrantsComeInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := taskStream(t, 100_000, func(b job.AttemptID, _ *job.TaskSet) ([]byte, error) {
			return bytes.Repeat([]byte{byte(b.Number)}, 700_000), nil
		})
		for n := range 4 {
			v := bundlesOf(7, 8)
			v.Sent = job.Time(n)
			s.taskGrants.add(v)
			time.Sleep(5 * time.Second)
		}
		s.taskGrants.mu.Lock()
		if s.taskGrants.held > 2*maxReadyBytes {
			t.Errorf("%d bytes are read ahead", s.taskGrants.held)
		}
		s.taskGrants.mu.Unlock()
		time.Sleep(2 * time.Minute)
		seen := map[uint32]int{}
		all := w.taskVerdicts(t)
		for _, v := range all {
			if v.Stamp != 7 {
				t.Errorf("an answer to claim %d", v.Stamp)
			}
			for _, b := range v.Bundles {
				if seen[b.Bundle.Number]++; len(b.Payload) != 700_000 || b.Payload[0] != byte(b.Bundle.Number) {
					t.Errorf("bundle %v has another payload", b.Bundle)
				}
			}
		}
		for n, times := range seen {
			if times != 1 {
				t.Errorf("bundle %d came %d times", n, times)
			}
		}
		if len(seen) != 8 || len(all) < 4 || all[len(all)-1].Sent != 3 {
			t.Errorf("%d bundles in %d messages, the last for the claim of %v", len(seen), len(all), all[len(all)-1].Sent)
		}
	})
}

// Small ones come together; what is gone is left out, and what cannot be read is tried again.
func TestTaskGrantsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := 3
		s, w := taskStream(t, 1<<20, func(b job.AttemptID, _ *job.TaskSet) ([]byte, error) {
			switch {
			case b.Number == 2:
				return nil, ErrNoGrant
			case b.Number == 3 && broken > 0:
				broken--
				return nil, errors.New("the disk")
			}
			return []byte("x"), nil
		})
		s.taskGrants.add(bundlesOf(1, 4))
		time.Sleep(time.Minute)
		all := w.taskVerdicts(t)
		if len(all) != 1 || len(all[0].Bundles) != 3 || broken != 0 {
			t.Errorf("%+v", all)
		}
	})
}

// Answers that wait have a bound.
func TestTaskGrantsAreBounded(t *testing.T) {
	q := newTaskGrants()
	for n := range uint64(3 * maxTaskGrants) {
		q.add(bundlesOf(n, 1))
	}
	if len(q.waiting) != maxTaskGrants {
		t.Errorf("%d wait", len(q.waiting))
	}
}
