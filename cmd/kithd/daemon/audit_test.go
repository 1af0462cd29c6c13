package daemon

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kith/cmd/kithd/config"
	"kith/meta"
	"kith/meta/peer"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// audited returns the lines of a kind in a site's audit log.
func (s *testSite) audited(kind string) (lines []*audit.Line) {
	s.t.Helper()
	_, err := audit.Read(filepath.Join(s.cfg.Data, auditFolder), func(l *audit.Line) bool {
		if l.Kind == kind {
			lines = append(lines, l)
		}
		return true
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return lines
}

// What operators have done is in the audit log when they are answered; a cancelled job
// soon after, and its environment never.
func TestAuditLogTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	if _, err := s.sites.DrainSite(s.ctx(), &kithv1.DrainSiteRequest{Reason: "new\ndisk"}); err != nil {
		t.Fatal(err)
	}
	if got := s.audited("drain"); len(got) != 1 || got[0].User != "anonymous" || got[0].Text != `new\x0adisk` || !strings.HasPrefix(got[0].From, "127.0.0.1") {
		t.Errorf("drain: %+v", got)
	}
	if _, err := s.sites.ResumeSite(s.ctx(), &kithv1.ResumeSiteRequest{}); err != nil || len(s.audited("resume")) != 1 {
		t.Errorf("resume: %+v, %v", s.audited("resume"), err)
	}
	if _, err := s.sites.ForgetSite(s.ctx(), &kithv1.ForgetSiteRequest{SiteId: "nowhere"}); err == nil || len(s.audited("forget")) != 0 {
		t.Errorf("what was not done is no decision: %+v, %v", s.audited("forget"), err)
	}
	id := s.submit(shell("sleep 600"))
	if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: id, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the cancelled job is in the audit log", func() bool { return len(s.audited("cancel")) == 1 })
	if got := s.audited("cancel")[0]; got.Job != id || got.User != "anonymous" || got.Text != "enough" {
		t.Errorf("cancel: %+v", got)
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.open()
	r, err := audit.Verify(filepath.Join(s.cfg.Data, auditFolder), audit.VerifyOptions{})
	if err != nil || len(r.Faults) > 0 || len(s.audited(audit.KindOpened)) != 2 {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
}

// What peers and strangers are refused is in the audit log, with the rule.
func TestAuditLogTellsWhoWasRefused(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Peers = []config.Peer{{Site: "beta"}}
	c.Timing.Heartbeat = 1e10 // it sends none
	s := startSite(t, c)
	r := s.dialAs("beta")
	foreign := &kithv1.AttemptName{Job: &kithv1.JobName{Origin: "gamma", Generation: 1, Seq: 1}, Number: 1}
	r.say(&kithv1.PeerMessage{}, &kithv1.PeerMessage{}, &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Stop{Stop: &kithv1.Stop{Attempt: foreign}}})

	conn, err := grpc.NewClient(s.d.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := kithv1.NewPeerServiceClient(conn).Connect(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	hello := &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{SiteId: "mallory", Protocol: peer.Protocol}}}
	if err := stream.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{hello}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Fatal("a site that is not known was let in")
	}
	s.d.border.mu.Lock()
	s.d.border.tell("calls", "10.0.0.7", 1)
	s.d.border.mu.Unlock()
	s.d.effects.carry(meta.GivenUp{Site: "beta", Jobs: 3})
	for _, want := range []audit.Line{
		{Kind: "given-up", Peer: "beta", Text: "3 jobs"},
		{Kind: "refused-message", Peer: "beta", Rule: "message"},
		{Kind: "refused-right", Peer: "beta", Rule: "not-the-origin", Text: "stop"},
		{Kind: "refused-hello", From: "127.0.0.1", Rule: "not-admitted", Text: "as mallory: site mallory: it is not admitted here; name it in [[peers]]"},
		{Kind: "refused-bound", From: "10.0.0.7", Rule: "calls"},
	} {
		s.eventually("the audit log tells of "+want.Kind, func() bool {
			return slices.ContainsFunc(s.audited(want.Kind), func(l *audit.Line) bool {
				return l.Peer == want.Peer && l.From == want.From && l.Rule == want.Rule && strings.HasPrefix(l.Text, want.Text)
			})
		})
	}
}

// A site with keys signs a head when it starts and when it stops.
func TestAuditLogIsSigned(t *testing.T) {
	t.Parallel()
	c, keys := secureConfig(t, "alpha")
	d, err := OpenWith(c, slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	check, err := audit.CheckedBy(keys.Bundle())
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.Verify(filepath.Join(c.Data, auditFolder), audit.VerifyOptions{Check: check})
	if err != nil || r.Signed != 2 || len(r.Faults) > 0 {
		t.Errorf("got %+v, %v; want two heads of the site's", r, err)
	}
}
