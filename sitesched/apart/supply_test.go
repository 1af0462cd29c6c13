package apart

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// hungSite is another site that answers nothing.
type hungSite struct{ asked atomic.Int32 }

func (h *hungSite) ReadFile(ctx context.Context, _ job.SiteID, _ *kithv1.FileRequest) (*kithv1.FileReply, error) {
	h.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A site that hangs keeps what the machine needs of it waiting, and nothing else.
func TestASiteThatHangsKeepsNothingElseWaiting(t *testing.T) {
	t.Parallel()
	m, hung := newFakeMachine(t), new(hungSite)
	m.peers = hung
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	ctx, cancel := context.WithCancel(t.Context())
	var over atomic.Int32
	const needs = 2 * readsAtOnce
	for range needs {
		go func() {
			defer over.Add(1)
			supplies{m.worker}.ReadFile(ctx, "beta", &kithv1.FileRequest{}) //nolint:errcheck // it has no answer
		}()
	}
	eventually(t, "all its places are taken", func() bool { return hung.asked.Load() >= readsAtOnce })
	want, err := payloadOf(&request)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (supplies{m.worker}).Payload(job.ID{Origin: "alpha", Generation: 1, Seq: 9}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what a bag runs: %d bytes, %v", len(got), err)
	}
	if n := over.Load(); n > 0 {
		t.Errorf("%d needs of the site that hangs are over: the test says nothing", n)
	}
	cancel()
	eventually(t, "nothing waits", func() bool { return over.Load() == needs })
}

// Output that is waited for keeps no order waiting, and no output that is brought.
func TestReadsKeepNothingWaiting(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	a, b := attemptOf(1), attemptOf(2)
	l.Launch(launchOf(t, a, job.Wait))
	eventually(t, "it starts", func() bool { return m.count(a) == 1 })
	var asked, over atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 * readsAtOnce {
		go func() {
			defer over.Add(1)
			asked.Add(1)
			l.ReadLive(ctx, a, transfer.Stdout, 0, 0, 10*time.Second) //nolint:errcheck // there is none
		}()
	}
	eventually(t, "the output is waited for", func() bool { return asked.Load() == 2*readsAtOnce })
	time.Sleep(100 * time.Millisecond)
	l.Launch(launchOf(t, b, job.Wait))
	eventually(t, "another one starts", func() bool { return m.count(b) == 1 })
	if _, err := (source{l.Driver}).ReadChunk(ctx, a, [32]byte{1}, 0, 1); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("a chunk that is not there: %v", err)
	}
	if n := over.Load(); n > 0 {
		t.Errorf("%d reads are over: the test says nothing", n)
	}
	cancel()
}

// What is larger than a message comes in parts: what a bag runs, and what a job does.
func TestWhatIsRunMayBeLarge(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	m.runs = bytes.Repeat([]byte("0123456789"), 1<<20)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	got, err := supplies{m.worker}.Payload(job.ID{Origin: "alpha", Generation: 1, Seq: 9})
	if err != nil || !bytes.Equal(got, m.runs) {
		t.Errorf("what a bag runs has %d bytes of %d: %v", len(got), len(m.runs), err)
	}
	large := launchOf(t, attemptOf(1), job.Wait)
	var p kithv1.Payload
	if err := proto.Unmarshal(large.Payload, &p); err != nil {
		t.Fatal(err)
	}
	p.Job.Environment = map[string]string{"LARGE": strings.Repeat("x", wire.Payload+wire.Payload/2)}
	if large.Payload, err = proto.Marshal(&p); err != nil {
		t.Fatal(err)
	}
	l.Launch(large)
	small := launchOf(t, attemptOf(2), job.Wait)
	l.Launch(small)
	// It is refused for what it says, so it was read whole.
	eventually(t, "it is looked at", func() bool {
		return l.heard(func(ev meta.Event) bool {
			e, is := ev.(meta.AttemptEnded)
			return is && e.Attempt == large.Attempt && strings.Contains(e.Outcome.Reason, "environment")
		})
	})
	eventually(t, "another one starts", func() bool { return m.count(small.Attempt) == 1 })
}

// What the engine is told first changes nothing of what the driver has found out since.
func TestTheFirstWordIsNoOther(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	if word := l.FirstWord(); word.Away == "" {
		t.Error("the first word is that it is there")
	}
	if name, away := l.Machine(); name != "m" || away != "" {
		t.Errorf("machine %s is away: %s", name, away)
	}
}
