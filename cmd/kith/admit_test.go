package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	kithv1 "kith/proto/gen/kith/v1"
)

// inviter is a site with invitations by which nobody comes until they expire.
type inviter struct {
	kithv1.UnimplementedTrustServiceServer
	invitations []*kithv1.Invitation
	decided     *kithv1.DecideInvitationRequest
}

// serveInviter has an inviter answer at a socket.
func serveInviter(t *testing.T) (socket string, i *inviter) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	i = &inviter{}
	g := grpc.NewServer()
	kithv1.RegisterTrustServiceServer(g, i)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(g.Stop)
	return socket, i
}

func (i *inviter) ListInvitations(context.Context, *kithv1.ListInvitationsRequest) (*kithv1.ListInvitationsResponse, error) {
	return &kithv1.ListInvitationsResponse{Invitations: i.invitations}, nil
}

func (i *inviter) WatchInvitation(r *kithv1.WatchInvitationRequest, s grpc.ServerStreamingServer[kithv1.WatchInvitationResponse]) error {
	return s.Send(&kithv1.WatchInvitationResponse{Invitation: &kithv1.Invitation{
		Id: r.GetInvitationId(), SiteId: "beta", State: kithv1.Invitation_STATE_EXPIRED,
	}})
}

func (i *inviter) DecideInvitation(_ context.Context, r *kithv1.DecideInvitationRequest) (*kithv1.DecideInvitationResponse, error) {
	i.decided = r
	return &kithv1.DecideInvitationResponse{Invitation: &kithv1.Invitation{Id: r.GetInvitationId(), SiteId: "beta", State: kithv1.Invitation_STATE_REFUSED}}, nil
}

// With --refuse an invitation ends, whether or not somebody has come by it, without a question.
func TestAdmitRefuses(t *testing.T) {
	socket, i := serveInviter(t)
	i.invitations = []*kithv1.Invitation{{Id: "one", SiteId: "beta", State: kithv1.Invitation_STATE_OPEN}}
	code, stdout, stderr := kith(t.Context(), "site", "admit", "--refuse", "--site", "unix:"+socket)
	if code != 0 || stdout != "Invitation one for site beta is over; nobody is admitted by it.\n" {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	if d := i.decided; d.GetInvitationId() != "one" || d.GetAdmit() || d.GetFingerprint() != "" {
		t.Errorf("decided %v", d)
	}
	if code, _, stderr := kith(t.Context(), "site", "admit", "one", "--refuse", "--yes", "--site", "unix:"+socket); code != 2 || !strings.Contains(stderr, "--refuse") {
		t.Errorf("with --yes: code %d, %s", code, stderr)
	}
}

// An invitation need not be named where one alone is open.
func TestAdmitWithoutAnInvitation(t *testing.T) {
	socket, i := serveInviter(t)
	is := func(id, site string, state kithv1.Invitation_State) *kithv1.Invitation {
		return &kithv1.Invitation{Id: id, SiteId: site, State: state}
	}
	over := is("over", "beta", kithv1.Invitation_STATE_REFUSED)
	came := is("two", "gamma", kithv1.Invitation_STATE_CAME)
	came.Joiner = &kithv1.JoiningSite{SiteId: "gamma", Fingerprint: "F1"}
	for name, c := range map[string]struct {
		invitations []*kithv1.Invitation
		code        int
		want        []string
	}{
		"none":    {[]*kithv1.Invitation{over}, 1, []string{"no invitation is open; make one with: kith site invite SITE"}},
		"one":     {[]*kithv1.Invitation{over, is("one", "beta", kithv1.Invitation_STATE_OPEN)}, 1, []string{"no site came by invitation one until it expired"}},
		"several": {[]*kithv1.Invitation{is("one", "beta", kithv1.Invitation_STATE_OPEN), came}, 2, []string{"name one of them", "one for site beta", "two for site gamma", "fingerprint F1"}},
	} {
		i.invitations = c.invitations
		code, stdout, stderr := kith(t.Context(), "site", "admit", "--site", "unix:"+socket)
		if code != c.code || stdout != "" {
			t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: %q is not in %s", name, want, stderr)
			}
		}
	}
}
