package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/trust"
	"kith/meta/trust/invite"
	kithv1 "kith/proto/gen/kith/v1"
)

// trustClient is TrustService over the socket of the site.
func (s *testSite) trustClient() kithv1.TrustServiceClient {
	return kithv1.NewTrustServiceClient(s.connect("unix:"+s.cfg.SocketPath(), insecure.NewCredentials()))
}

// auditText returns all lines of the audit log.
func (s *testSite) auditText() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.cfg.Data, auditFolder, "*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			s.t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// Who has a token is a user, and no user decides about trust or about the site; nor does a site without keys.
func TestTrustIsTheOperatorsBusiness(t *testing.T) {
	t.Parallel()
	c, keys := secureConfig(t, "alpha")
	alpha := startSecure(t, c, Options{})
	operator := alpha.trustClient()
	made, err := operator.CreateToken(alpha.ctx(), &kithv1.CreateTokenRequest{User: "ann", Lifetime: durationpb.New(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(keys.CA())
	conn := alpha.connect("passthrough:///"+alpha.d.Address(), credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "alpha"}))
	ctx := metadata.AppendToOutgoingContext(alpha.ctx(), "authorization", "Bearer "+made.GetToken())
	if _, err := kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{}); err != nil {
		t.Fatalf("with the token: %v", err)
	}
	user := kithv1.NewTrustServiceClient(conn)
	calls := map[string]func() error{
		"invite": func() error { _, err := user.InviteSite(ctx, &kithv1.InviteSiteRequest{SiteId: "beta"}); return err },
		"list":   func() error { _, err := user.ListTrustedSites(ctx, &kithv1.ListTrustedSitesRequest{}); return err },
		"show": func() error {
			_, err := user.GetTrustedSite(ctx, &kithv1.GetTrustedSiteRequest{SiteId: "beta"})
			return err
		},
		"address": func() error {
			_, err := user.SetSiteAddresses(ctx, &kithv1.SetSiteAddressesRequest{SiteId: "beta", Addresses: []string{"b:1"}})
			return err
		},
		"revoke": func() error { _, err := user.RevokeSite(ctx, &kithv1.RevokeSiteRequest{SiteId: "beta"}); return err },
		"forget": func() error {
			_, err := user.ForgetTrustedSite(ctx, &kithv1.ForgetTrustedSiteRequest{SiteId: "beta"})
			return err
		},
		"leave":  func() error { _, err := user.LeaveFederation(ctx, &kithv1.LeaveFederationRequest{}); return err },
		"rotate": func() error { _, err := user.RotateKeys(ctx, &kithv1.RotateKeysRequest{Now: true}); return err },
		"token": func() error {
			_, err := user.CreateToken(ctx, &kithv1.CreateTokenRequest{User: "eve", Lifetime: durationpb.New(time.Hour)})
			return err
		},
		"decide":       func() error { _, err := user.DecideInvitation(ctx, &kithv1.DecideInvitationRequest{}); return err },
		"invitations":  func() error { _, err := user.ListInvitations(ctx, &kithv1.ListInvitationsRequest{}); return err },
		"tokens":       func() error { _, err := user.ListRevokedTokens(ctx, &kithv1.ListRevokedTokensRequest{}); return err },
		"all tokens":   func() error { _, err := user.ListTokens(ctx, &kithv1.ListTokensRequest{}); return err },
		"revoke token": func() error { _, err := user.RevokeToken(ctx, &kithv1.RevokeTokenRequest{TokenId: "x"}); return err },
		"watch": func() error {
			w, err := user.WatchInvitation(ctx, &kithv1.WatchInvitationRequest{InvitationId: "x"})
			if err == nil {
				_, err = w.Recv()
			}
			return err
		},
		"accept": func() error {
			a, err := user.AcceptInvitation(ctx, &kithv1.AcceptInvitationRequest{Text: "x"})
			if err == nil {
				_, err = a.Recv()
			}
			return err
		},
	}
	if n := len(kithv1.TrustService_ServiceDesc.Methods) + len(kithv1.TrustService_ServiceDesc.Streams); n != len(calls) {
		t.Errorf("the service has %d methods, the test calls %d", n, len(calls))
	}
	site := kithv1.NewSiteServiceClient(conn)
	calls["drain"] = func() error { _, err := site.DrainSite(ctx, &kithv1.DrainSiteRequest{}); return err }
	calls["resume"] = func() error { _, err := site.ResumeSite(ctx, &kithv1.ResumeSiteRequest{}); return err }
	calls["give up"] = func() error { _, err := site.ForgetSite(ctx, &kithv1.ForgetSiteRequest{SiteId: "beta"}); return err }
	for name, call := range calls {
		if err := call(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s with a token: %v", name, err)
		}
	}
	if _, err := operator.RevokeToken(alpha.ctx(), &kithv1.RevokeTokenRequest{TokenId: made.GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	if _, err := kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("with a revoked token: %v", err)
	}
	for id, want := range map[string]codes.Code{made.GetTokenId(): codes.OK, "mistyped": codes.NotFound} { // once more, and one that never was
		_, err := operator.RevokeToken(alpha.ctx(), &kithv1.RevokeTokenRequest{TokenId: id})
		if status.Code(err) != want || err != nil && (!strings.Contains(err.Error(), `token_id "mistyped"`) || !strings.Contains(err.Error(), "kith token list")) {
			t.Errorf("revoke %s: %v", id, err)
		}
	}
	if strings.Contains(alpha.auditText(), "mistyped") {
		t.Error("the audit log tells that a token was revoked that never was")
	}
	list, err := operator.ListTokens(alpha.ctx(), &kithv1.ListTokensRequest{})
	if err != nil || len(list.GetTokens()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if got := list.GetTokens()[0]; got.GetTokenId() != made.GetTokenId() || got.GetUser() != "ann" || got.GetMakeActor() == "" || got.GetRevokeTime() == nil ||
		!got.GetExpireTime().AsTime().Equal(made.GetExpireTime().AsTime()) {
		t.Errorf("%v", got)
	}
	text := alpha.auditText()
	for _, want := range []string{"create-token", "revoke-token"} {
		if !strings.Contains(text, want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	if strings.Contains(text, made.GetToken()) || alpha.logged(made.GetToken()) {
		t.Error("a log has the token")
	}
	if _, err := os.Stat(filepath.Join(c.Data, "keys")); err != nil {
		t.Error(err)
	}
}

func TestWithoutKeysThereIsNoTrust(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	_, err := kithv1.NewTrustServiceClient(s.connect("passthrough:///"+s.d.Address(), insecure.NewCredentials())).ListTrustedSites(s.ctx(), &kithv1.ListTrustedSitesRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "no keys") {
		t.Errorf("%v", err)
	}
}

// What is wrong with an invitation is said with the field and the remedy, and makes none.
func TestInvitationsThatCannotBe(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	alpha := startSecure(t, c, Options{})
	operator := alpha.trustClient()
	for want, r := range map[string]*kithv1.InviteSiteRequest{
		"site_id":              {SiteId: "No Site"},
		"that is this site":    {SiteId: "alpha"},
		"lifetime":             {SiteId: "beta", Lifetime: durationpb.New(time.Second)},
		"HOST:PORT":            {SiteId: "beta", Addresses: []string{"nowhere"}},
		"5 of them, at most 4": {SiteId: "beta", Addresses: []string{"a:1", "b:1", "c:1", "d:1", "e:1"}},
	} {
		if _, err := operator.InviteSite(alpha.ctx(), r); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", r, err, want)
		}
	}
	list, err := operator.ListInvitations(alpha.ctx(), &kithv1.ListInvitationsRequest{})
	if err != nil || len(list.GetInvitations()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"hello", strings.Repeat("x", 2000)} {
		a, err := operator.AcceptInvitation(alpha.ctx(), &kithv1.AcceptInvitationRequest{Text: text})
		if err == nil {
			_, err = a.Recv()
		}
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "text") {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

// An invitation that names addresses of this machine alone says so, unless the operator has
// chosen them.
func TestInvitationToLoopbackIsDoubted(t *testing.T) {
	t.Parallel()
	for advertise, doubted := range map[string]bool{"": true, "127.0.0.1:7410": true, "localhost:7410": true, "kith.example:7410": false} {
		c, _ := secureConfig(t, "alpha")
		c.Listen.Advertise = advertise
		alpha := startSecure(t, c, Options{})
		made, err := alpha.trustClient().InviteSite(alpha.ctx(), &kithv1.InviteSiteRequest{SiteId: "beta"})
		if err != nil || (made.GetDoubt() != "") != doubted {
			t.Fatalf("advertise %q: doubt %q, %v", advertise, made.GetDoubt(), err)
		}
		if doubted && (!strings.Contains(made.GetDoubt(), "kith site invite beta --address HOST:PORT") || !strings.Contains(made.GetDoubt(), alpha.d.advertised())) {
			t.Errorf("advertise %q: %s", advertise, made.GetDoubt())
		}
		if made, err = alpha.trustClient().InviteSite(alpha.ctx(), &kithv1.InviteSiteRequest{SiteId: "gamma", Addresses: []string{"127.0.0.1:7410"}}); err != nil || made.GetDoubt() != "" {
			t.Errorf("an address that was chosen: %q, %v", made.GetDoubt(), err)
		}
	}
}

// A site that was revoked keeps its name bound to its CA, and its place in the table, until
// an operator forgets it; what was bound is in the audit log.
func TestForgetTrustedSite(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	_, keys := secureConfig(t, "beta")
	alpha := startSecure(t, c, knowing(keys, ""))
	operator := alpha.trustClient()
	forget := func(site string) error {
		_, err := operator.ForgetTrustedSite(alpha.ctx(), &kithv1.ForgetTrustedSiteRequest{SiteId: site})
		return err
	}
	if err := forget("beta"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "kith site revoke beta") {
		t.Errorf("a trusted site: %v", err)
	}
	if err := forget("gamma"); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown site: %v", err)
	}
	if err := forget("No Site"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no name: %v", err)
	}
	if strings.Contains(alpha.auditText(), "forget-trust") {
		t.Error("the audit log tells of what was refused")
	}
	if _, err := operator.RevokeSite(alpha.ctx(), &kithv1.RevokeSiteRequest{SiteId: "beta"}); err != nil {
		t.Fatal(err)
	}
	r, err := operator.ForgetTrustedSite(alpha.ctx(), &kithv1.ForgetTrustedSiteRequest{SiteId: "beta"})
	if err != nil || r.GetSite().GetSiteId() != "beta" {
		t.Fatalf("%v, %v", r, err)
	}
	if text := alpha.auditText(); !strings.Contains(text, "forget-trust") || !strings.Contains(text, "its name is free; its CA was "+trust.Fingerprint(keys.CA())) {
		t.Errorf("the audit log does not say which CA the name was bound to:\n%s", text)
	}
	if list, err := operator.ListTrustedSites(alpha.ctx(), &kithv1.ListTrustedSitesRequest{}); err != nil || len(list.GetSites()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// A name belongs to the CA that it was admitted with: another site of that name is
// refused at both ends, and the text says what to do.
func TestNameOfAnotherCA(t *testing.T) {
	t.Parallel()
	ca, _ := secureConfig(t, "alpha")
	_, first := secureConfig(t, "beta")
	cb, _ := secureConfig(t, "beta")
	alpha := startSecure(t, ca, knowing(first, ""))
	beta := startSecure(t, cb, Options{})
	made, err := alpha.trustClient().InviteSite(alpha.ctx(), &kithv1.InviteSiteRequest{SiteId: "beta"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := beta.trustClient().AcceptInvitation(beta.ctx(), &kithv1.AcceptInvitationRequest{Text: made.GetText()})
	for err == nil {
		_, err = a.Recv()
	}
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "revoke") {
		t.Errorf("%v", err)
	}
	alpha.eventually("the refusal is in the audit log", func() bool { return len(alpha.audited("refused-join")) > 0 })
	for _, l := range alpha.audited("refused-join") { // a word for programs, and all of the sentence for people
		if l.Rule != "name-taken" || !strings.HasSuffix(l.Text, ": "+invite.Refusal{Reason: invite.NameTaken}.Error()) {
			t.Errorf("rule %q, text %q", l.Rule, l.Text)
		}
	}
	got, err := alpha.trustClient().GetTrustedSite(alpha.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: "beta"})
	if err != nil || got.GetSite().GetFingerprints()[0] != trust.Fingerprint(first.CA()) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := alpha.trustClient().GetTrustedSite(alpha.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: "gamma"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown site: %v", err)
	}
	if strings.Contains(alpha.auditText()+beta.auditText(), made.GetText()) || alpha.logged(made.GetText()) {
		t.Error("a log has the text of the invitation")
	}
}

// While a step of an invitation waits for the disk, handshakes do not wait for it, and
// neither does an operator longer than they like.
func TestInvitationThatIsBeingKept(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	alpha := startSecure(t, c, Options{})
	entered, release := make(chan struct{}), make(chan struct{})
	go alpha.d.loop.Look(alpha.ctx(), func(job.Time, meta.Views) { close(entered); <-release }) //nolint:errcheck // it holds the loop
	<-entered
	invited := make(chan error, 1)
	go func() {
		_, err := alpha.trustClient().InviteSite(alpha.ctx(), &kithv1.InviteSiteRequest{SiteId: "beta"})
		invited <- err
	}()
	time.Sleep(200 * time.Millisecond) // the invitation is being kept
	open := make(chan bool, 1)
	go func() { open <- alpha.d.identity.endpoint.JoinOpen() }()
	select {
	case isOpen := <-open:
		if isOpen {
			t.Error("the port is open for an invitation that is not kept")
		}
	case <-time.After(2 * time.Second):
		t.Error("a handshake waits for the disk")
	}
	close(release)
	if err := <-invited; err != nil {
		t.Error(err)
	}
	if !alpha.d.identity.endpoint.JoinOpen() {
		t.Error("the port is not open for the invitation")
	}
}

// Who leaves ends its invitations: a site that waits by one is told no.
func TestLeaveEndsInvitations(t *testing.T) {
	t.Parallel()
	ca, _ := secureConfig(t, "alpha")
	cb, _ := secureConfig(t, "beta")
	alpha, beta := startSecure(t, ca, Options{}), startSecure(t, cb, Options{})
	made, err := alpha.trustClient().InviteSite(alpha.ctx(), &kithv1.InviteSiteRequest{SiteId: "beta"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := beta.trustClient().AcceptInvitation(beta.ctx(), &kithv1.AcceptInvitationRequest{Text: made.GetText()})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := a.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetWaiting() != nil {
			break
		}
	}
	if _, err := alpha.trustClient().LeaveFederation(alpha.ctx(), &kithv1.LeaveFederationRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recv(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "said no") {
		t.Errorf("%v", err)
	}
}
