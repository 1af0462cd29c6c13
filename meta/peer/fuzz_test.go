package peer

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/store"
)

// Whatever comes first on a stream, the site is the one that the connection has proved, or
// the stream is refused with a reason that has a bound.
func FuzzFirstFrame(f *testing.F) {
	hello := func(change func(*kithv1.Hello)) {
		h := &kithv1.Hello{SiteId: "beta", Generation: 1, Incarnation: 1, Version: "v", Protocol: Protocol, PeerSiteId: "alpha", Folder: make([]byte, 16), Daemon: 7}
		change(h)
		b, err := proto.Marshal(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: h}}}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	hello(func(*kithv1.Hello) {})
	hello(func(h *kithv1.Hello) { h.SiteId = "gamma" })
	hello(func(h *kithv1.Hello) { h.SiteId = "be\nta" })
	hello(func(h *kithv1.Hello) { h.Protocol = 1 << 31 })
	hello(func(h *kithv1.Hello) { h.Incarnation, h.Generation = 1<<64-1, 1<<32-1 })
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	told := 0
	l := New(Config{
		Site: "alpha", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Admit: func(s job.SiteID) bool { return s == "beta" },
		Refused: func(r Refusal) { told++ },
	}, nil, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r kithv1.ConnectRequest
		if proto.Unmarshal(b, &r) != nil {
			return
		}
		h, err := l.greet(r.GetFrame(), "beta")
		if err == nil {
			if h.GetSiteId() != "beta" || len(h.GetVersion()) > 256 {
				t.Errorf("let in: %v", h)
			}
			return
		}
		before := told
		l.troubles.refused(r.GetFrame(), "192.0.2.7:1", err)
		l.tellRefusal(Refusal{What: WhatHello, Address: "192.0.2.7:1", Claimed: claimedIn(r.GetFrame()), Err: err})
		if told != before+1 || len(err.Error()) > 2000 || toStatus(err) == nil {
			t.Errorf("refused with %.300v, told %d times", err, told-before)
		}
	})
}

// live is a site of two processors: a job of its own runs on one, one waits here and at
// beta, and one of beta waits here.
func live(t testing.TB) (*meta.Engine, *store.State, job.Time) {
	t.Helper()
	site, err := sitesched.New(sitesched.Config{Processors: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 2, Speed: 1}
	state := store.NewState("alpha", 1)
	e, err := meta.New(cfg, state, site)
	if err != nil {
		t.Fatal(err)
	}
	now := job.Time(time.Hour)
	e.Restore(now, []job.SiteID{"beta"})
	step := func(ev meta.Event) {
		e.Step(now, ev)
		e.Step(now, meta.Pass{})
		state.DropChanges()
	}
	step(meta.PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	step(meta.LoadSeen{Digest: samples()[liveLoad].(meta.LoadDigest).Digest})
	for range 2 {
		step(meta.Submit{Request: job.Request{Processors: 2, Walltime: time.Hour, Copies: 2}})
	}
	step(meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: theirs, Request: job.Request{Processors: 1, Walltime: time.Hour}}})
	return e, state, now
}

const liveLoad = 17 // of the samples

var (
	running = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 1}, Number: 1}
	queued  = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 2}, Number: 1}
	theirs  = job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
)

// about returns a message about another attempt.
func about(m meta.Message, a job.AttemptID) *kithv1.PeerMessage {
	p := toProto(m)
	msg := p.ProtoReflect()
	if fd := msg.WhichOneof(msg.Descriptor().Oneofs().Get(0)); fd != nil {
		inner := msg.Get(fd).Message()
		at := inner.Descriptor().Fields().ByName("attempt")
		if v := p.GetTaskVerdict(); v != nil {
			inner = v.GetBundles()[0].ProtoReflect()
		}
		if bundle := inner.Descriptor().Fields().ByName("bundle"); bundle != nil && bundle.Message() != nil {
			at = bundle
		}
		if at != nil {
			name := toProto(meta.Withdraw{Attempt: a}).GetWithdraw().GetAttempt()
			inner.Set(at, inner.NewField(at))
			proto.Merge(inner.Get(at).Message().Interface(), name)
		}
	}
	return p
}

// Whatever frame another site sends to an engine with jobs: nothing breaks, what runs here
// runs on, and the facts load again.
func FuzzFrameIntoLiveEngine(f *testing.F) {
	add := func(messages ...*kithv1.PeerMessage) {
		b, err := proto.Marshal(&kithv1.Frame{Messages: messages})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, m := range samples() {
		add(about(m, running), about(m, queued), about(m, theirs))
	}
	add(about(meta.CopyAnswer{Accepted: true}, queued), about(meta.Claim{Stamp: 1}, queued), about(meta.Started{At: 9}, queued), about(meta.Result{Outcome: sampleOutcome}, queued))
	add(about(meta.Claim{Stamp: 1}, running), about(meta.Result{Outcome: sampleOutcome}, running), about(meta.Stop{}, running), about(meta.Withdraw{}, theirs))
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame kithv1.Frame
		if proto.Unmarshal(b, &frame) != nil || len(frame.GetMessages()) > mostInFrame {
			return
		}
		e, state, now := live(t)
		if j := state.Job(running.Job); j == nil || j.State.Terminal() {
			t.Fatalf("before: %+v", j)
		}
		for _, p := range frame.GetMessages() {
			m, err := fromProto(p)
			if err != nil {
				if !errors.Is(err, ErrMessage) && len(err.Error()) > 2000 {
					t.Errorf("refused with %.300v", err)
				}
				continue
			}
			e.Step(now, meta.Receive{From: "beta", Message: m})
		}
		e.Step(now, meta.Pass{})
		e.Step(now.Add(time.Minute), meta.Pass{})
		if j := state.Job(running.Job); j == nil || j.State.Terminal() {
			t.Errorf("what runs here was ended: %+v", j)
		}
		site, err := sitesched.New(sitesched.Config{Processors: 2})
		if err != nil {
			t.Fatal(err)
		}
		cfg := meta.Default()
		cfg.Self = meta.Self{Processors: 2, Speed: 1}
		again, err := meta.New(cfg, state, site)
		if err != nil {
			t.Fatal(err)
		}
		again.Restore(now.Add(time.Hour), []job.SiteID{"beta"})
	})
}
