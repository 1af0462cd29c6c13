package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/flood"
)

// about is messages of each kind about an attempt.
func (*attacked) about(a *kithv1.AttemptName) map[string]*kithv1.PeerMessage { return flood.About(a) }

// Words of the table of who may say what.
var (
	originsOnly = flood.OriginsOnly
	hostsOnly   = []string{"copy-answer", "claim", "renew", "withdraw-ack", "result", "give-back", "copy-digest", "task-results"}
)

func attemptOf(t *testing.T, id string, number uint32) *kithv1.AttemptName {
	t.Helper()
	parsed, err := job.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return wire.AttemptName(job.AttemptID{Job: parsed, Number: number})
}

// settled waits until a site's messages so far have been dealt with, as what is behind
// them is.
func (r *rogue) settled() {
	r.t.Helper()
	query := uint64(time.Now().UnixNano()) //nolint:gosec // after 1970
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartQuery{StartQuery: &kithv1.StartQuery{
		Query: query, Request: &kithv1.CopyRequest{Processors: 1, WalltimeNs: int64(time.Minute)},
	}}})
	r.hear(func(m *kithv1.PeerMessage) bool { return m.GetStartAnswer().GetQuery() == query })
}

// copies returns what a host says that it holds for a site.
func (r *rogue) copies() string {
	r.t.Helper()
	r.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_DigestRequest{DigestRequest: &kithv1.DigestRequest{}}})
	m := r.hear(func(m *kithv1.PeerMessage) bool { return m.GetCopyDigest() != nil })
	var b strings.Builder
	for _, e := range m.GetCopyDigest().GetEntries() {
		b.WriteString(e.GetPhase().String() + " ")
	}
	return strings.TrimSpace(b.String())
}

// What a site may not say of a job changes neither that job nor a copy, and is in the
// audit log: gamma speaks for beta, whose job waits here, runs and ends, of jobs of
// alpha, of which it has no copy, and of those of a third site.
func TestHostileSpeaker(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	wait, open := barrier(t)
	own := shell(wait)
	own.Processors = 2
	ownID := a.submit(own)
	a.waitState(ownID, kithv1.JobStatus_STATE_RUNNING)
	held := attemptOf(t, ownID, 1)
	beta, gamma := a.joined(a.beta), a.joined(a.gamma)

	ran := filepath.Join(t.TempDir(), "ran")
	theirs, foreign := attemptOf(t, "beta.1.1", 1), attemptOf(t, "delta.1.1", 1)
	work := &kithv1.Job{Command: []string{"/bin/sh", "-c", "echo x >> " + ran + "; while [ ! -e " + ran + ".end ]; do sleep 0.05; done"}, Processors: 2, Walltime: durationpb.New(time.Minute)}
	payload, err := proto.Marshal(&kithv1.Payload{Job: work})
	if err != nil {
		t.Fatal(err)
	}
	place := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
		Attempt: theirs, Request: &kithv1.CopyRequest{Processors: 2, WalltimeNs: int64(time.Minute)},
	}}}
	grant := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Verdict{Verdict: &kithv1.Verdict{Attempt: theirs, Granted: true, Payload: payload}}}
	beta.say(place)
	if m := beta.hear(func(m *kithv1.PeerMessage) bool { return m.GetCopyAnswer() != nil }).GetCopyAnswer(); !m.GetAccepted() {
		t.Fatalf("alpha takes no copy: %v", m)
	}
	var notOrigin, notHere uint64
	// slander says of an attempt what only others may.
	slander := func(at *kithv1.AttemptName, kinds []string) {
		t.Helper()
		messages := a.about(at)
		for _, kind := range kinds {
			gamma.say(messages[kind])
		}
		gamma.settled()
	}
	asOrigin := func() {
		t.Helper()
		slander(theirs, originsOnly)
		notOrigin += uint64(len(originsOnly))
	}
	asOrigin()
	slander(foreign, hostsOnly)
	notHere += uint64(len(hostsOnly))
	slander(held, []string{"claim", "renew", "result", "give-back", "copy-answer", "withdraw-ack", "started", "copy-digest", "task-results"})
	gamma.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: &kithv1.LoadDigest{
		SiteId: "beta", Incarnation: 9, Sequence: 9, Processors: 4096, FreeProcessors: 4096, Speed: 1, TimeNs: time.Now().UnixNano(),
	}}})
	gamma.settled()
	if j := a.get(ownID).GetStatus(); j.GetState() != kithv1.JobStatus_STATE_RUNNING || j.GetHostSiteId() != "alpha" {
		t.Errorf("the job of alpha: %v", j)
	}
	if got := beta.copies(); got != "COPY_PHASE_QUEUED" {
		t.Errorf("the copy of beta: %s", got)
	}

	open()
	beta.hear(func(m *kithv1.PeerMessage) bool { return m.GetClaim() != nil })
	asOrigin() // among it a grant of a job of its own
	beta.say(grant)
	lines := func() string {
		raw, err := os.ReadFile(ran)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	a.eventually("the job of beta runs", func() bool { return lines() == "x\n" })
	asOrigin()
	if got := beta.copies(); got != "COPY_PHASE_BEGUN" {
		t.Errorf("the copy of beta runs: %s", got)
	}
	if r := gamma.reads(theirs, "stdout"); r.GetError() != kithv1.FileReply_ERROR_DENIED || len(r.GetData()) > 0 {
		t.Errorf("gamma reads what the job of beta writes: %v", r)
	}
	again := a.joined(a.beta) // which ends the first stream
	again.say(grant, place, grant)
	again.settled()
	if err := os.WriteFile(ran+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	result := again.hear(func(m *kithv1.PeerMessage) bool { return m.GetResult() != nil }).GetResult()
	if result.GetOutcome().GetKind() != 1 {
		t.Errorf("the job of beta: %v", result)
	}
	asOrigin()
	again.say(grant)
	again.settled()
	if got := again.copies(); got != "COPY_PHASE_ENDED" {
		t.Errorf("its end is kept until beta has it: %s", got)
	}
	again.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_ResultAck{ResultAck: &kithv1.ResultAck{Attempt: theirs, Accepted: true}}})
	again.settled()
	if got := again.copies(); got != "" || lines() != "x\n" {
		t.Errorf("after its end: %q, it ran %q", got, lines())
	}
	a.waitState(ownID, completed)
	a.quiet("slander")
	for rule, n := range map[string]uint64{"not-the-origin": notOrigin, "job-of-another-site": notHere, "about-another-site": 1} {
		if got := a.refused("refused-right", rule); got != n {
			t.Errorf("the audit log tells of %d refusals by %q, want %d", got, rule, n)
		}
	}
}

// A claim that is said again, by the same site or by another one, on the same stream or a
// new one, gives the job to nobody else; a result counts once, and only of the latest
// attempt.
func TestHostileReplays(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	wait, open := barrier(t)
	defer open()
	busy := shell(wait)
	busy.Processors = 2
	a.waitState(a.submit(busy), kithv1.JobStatus_STATE_RUNNING)
	beta, gamma := a.joined(a.beta), a.joined(a.gamma)
	now := time.Now().UnixNano()
	beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: &kithv1.LoadDigest{
		SiteId: "beta", Incarnation: 1, Sequence: 1, Processors: 8, FreeProcessors: 8, Speed: 1, TimeNs: now,
	}}})
	beta.settled()
	j := shell("true")
	j.Processors, j.Copies = 2, 2
	id := a.submit(j)
	beta.hear(func(m *kithv1.PeerMessage) bool { return m.GetPlaceCopy() != nil })
	at := attemptOf(t, id, 1)
	beta.say(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_CopyAnswer{CopyAnswer: &kithv1.CopyAnswer{Attempt: at, Accepted: true}}})
	for _, number := range []uint32{2, 7} {
		if v := beta.claim(attemptOf(t, id, number)); v.GetGranted() {
			t.Errorf("attempt %d is granted", number)
		}
	}
	if v := gamma.claim(at); v.GetGranted() || len(v.GetPayload()) > 0 {
		t.Errorf("gamma has no copy and gets %v", v)
	}
	if v := beta.claim(at); !v.GetGranted() {
		t.Fatalf("beta, which has a copy, gets %v", v)
	}
	if v := gamma.claim(at); v.GetGranted() || v.GetReason() != uint32(job.HeldByOther) || len(v.GetPayload()) > 0 {
		t.Errorf("gamma says the claim of beta again and gets %v", v)
	}
	again := a.joined(a.beta)
	if v := again.claim(at); !v.GetGranted() {
		t.Errorf("beta says it again on a new stream and gets %v", v)
	}
	result := func(number uint32, kind uint32) *kithv1.PeerMessage {
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{
			Attempt: attemptOf(t, id, number), Outcome: &kithv1.AttemptOutcome{Kind: kind, ExitCode: int32(kind) - 1, StartTimeNs: now, EndTimeNs: now},
		}}}
	}
	gamma.say(result(1, 1))
	gamma.settled()
	again.say(result(2, 2))
	again.settled()
	if s := a.get(id).GetStatus(); s.GetState() == completed || s.GetState() == failed {
		t.Errorf("ended by who does not have it: %v", s)
	}
	again.say(result(1, 1))
	a.waitState(id, completed)
	version := a.get(id)
	again.say(result(1, 2), result(2, 2), result(1, 1))
	gamma.say(result(1, 2))
	again.settled()
	gamma.settled()
	if s := a.get(id); !proto.Equal(s, version) {
		t.Errorf("changed by results that come again: %v", s)
	}
	if v := again.claim(at); v.GetGranted() {
		t.Error("granted after its end")
	}
}
