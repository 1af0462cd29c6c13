package daemon

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kith/cluster/wire"
	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
)

// rogue is a peer that says whatever a test wants.
type rogue struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[kithv1.ConnectRequest, kithv1.ConnectResponse]
}

// dialAs connects to a site under the name of another.
func (s *testSite) dialAs(site string) *rogue {
	s.t.Helper()
	conn, err := grpc.NewClient(s.d.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	stream, err := kithv1.NewPeerServiceClient(conn).Connect(s.ctx())
	if err != nil {
		s.t.Fatal(err)
	}
	r := &rogue{s.t, stream}
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{SiteId: site, Generation: 1, Protocol: peer.Protocol}}})
	r.hear(func(m *kithv1.PeerMessage) bool { return m.GetHello() != nil })
	return r
}

func (r *rogue) say(messages ...*kithv1.PeerMessage) {
	r.t.Helper()
	if err := r.stream.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: messages}}); err != nil {
		r.t.Fatal(err)
	}
}

// hear returns the next message that is wanted.
func (r *rogue) hear(wanted func(*kithv1.PeerMessage) bool) *kithv1.PeerMessage {
	r.t.Helper()
	for {
		resp, err := r.stream.Recv()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range resp.GetFrame().GetMessages() {
			if wanted(m) {
				return m
			}
		}
	}
}

// claim claims an attempt and returns the answer.
func (r *rogue) claim(a *kithv1.AttemptName) *kithv1.Verdict {
	r.t.Helper()
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Claim{Claim: &kithv1.Claim{Attempt: a, Stamp: 1}}})
	return r.hear(func(m *kithv1.PeerMessage) bool { return m.GetVerdict() != nil }).GetVerdict()
}

// A peer that claims what it holds no copy of gets nothing, not even a look at
// the job's files; garbage is skipped; and the jobs run as if it were not there.
func TestRoguePeer(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Peers = []config.Peer{{Site: "beta"}}
	c.Timing.Heartbeat = 1e10 // it sends none
	s := startSite(t, c)
	l := newLedger(t)
	wait, open := barrier(t)
	runs, waits := l.signed(wait), l.signed("true")
	runs.Processors, waits.Processors = 2, 2
	runs.Inputs = []*kithv1.InputFile{{Path: "secret", Content: &kithv1.InputFile_Data{Data: make([]byte, 200_000)}}}
	runsID, waitsID := s.submit(runs), s.submit(waits)
	s.waitState(runsID, kithv1.JobStatus_STATE_RUNNING)
	attempt := func(id string, number uint32) *kithv1.AttemptName {
		parsed, err := job.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		return wire.AttemptName(job.AttemptID{Job: parsed, Number: number})
	}

	r := s.dialAs("beta")
	for name, c := range map[string]struct {
		attempt *kithv1.AttemptName
		want    job.Reason
	}{
		"a job that runs here":    {attempt(runsID, 1), job.HeldByOther},
		"a job it has no copy of": {attempt(waitsID, 1), job.UnknownCopy},
		"an attempt to come":      {attempt(waitsID, 2), job.UnknownCopy},
		"a job that is not":       {attempt("alpha.zz.77", 1), job.UnknownJob},
	} {
		for range 2 {
			if v := r.claim(c.attempt); v.GetGranted() || v.GetReason() != uint32(c.want) || len(v.GetPayload()) > 0 {
				t.Errorf("%s: %v, want %v", name, v, c.want)
			}
		}
	}
	// What it may not say at all is not answered.
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_Claim{Claim: &kithv1.Claim{Attempt: attempt("beta.1.1", 1), Stamp: 1}}})
	if v := r.claim(attempt(waitsID, 1)); v.GetReason() != uint32(job.UnknownCopy) {
		t.Errorf("a claim for a job of its own is answered with %v", v)
	}
	unknown := &kithv1.PeerMessage{}
	unknown.ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 0x01, 'x'})
	noName := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Claim{Claim: &kithv1.Claim{Attempt: &kithv1.AttemptName{}}}}
	noOutcome := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{Attempt: attempt(runsID, 1)}}}
	hello := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{SiteId: "alpha"}}}
	r.say()
	r.say(unknown, noName, noOutcome, hello, nil)
	for name, target := range map[string]*kithv1.FileRequest{
		"a chunk of inputs": {Target: &kithv1.FileRequest_Chunk{Chunk: make([]byte, 32)}},
		"no sum":            {Target: &kithv1.FileRequest_Chunk{Chunk: []byte("short")}},
		"live output":       {Target: &kithv1.FileRequest_Output{Output: "stdout"}},
		"nothing":           {},
	} {
		target.Request, target.Attempt, target.Limit = 7, attempt(runsID, 1), 1000
		r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileRequest{FileRequest: target}})
		reply := r.hear(func(m *kithv1.PeerMessage) bool { return m.GetFileReply() != nil }).GetFileReply()
		if reply.GetError() == kithv1.FileReply_ERROR_UNSPECIFIED || len(reply.GetData()) > 0 {
			t.Errorf("%s: %v", name, reply)
		}
	}

	open()
	s.waitState(runsID, completed)
	s.waitState(waitsID, completed)
	l.expect(runsID, waitsID)
	if v := r.claim(attempt(waitsID, 1)); v.GetGranted() || v.GetReason() != uint32(job.Ended) {
		t.Errorf("a job that has ended: %v", v)
	}
}
