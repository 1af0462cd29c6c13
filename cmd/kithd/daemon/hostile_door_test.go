package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/meta/peer"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// A certificate that does not prove the name of a known site opens neither of the
// protocols of sites. The audit log counts each try under its reason.
func TestHostileCertificates(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	now, beta := time.Now(), a.beta
	stranger := newInsider(t, "delta")
	free := *beta.keys.CA() // a CA without a constraint on names, as other software makes it
	free.PermittedDNSDomains, free.PermittedURIDomains = nil, nil
	leaf := func(change func(*x509.Certificate)) *x509.Certificate {
		c := *beta.keys.Leaf().Leaf
		change(&c)
		return &c
	}
	const handshake = "handshake"
	certificate, floor, unknown := "certificate", "below-floor", "unknown-site"
	rows := map[string]struct {
		shown *tls.Certificate
		rule  string
	}{
		"none":          {nil, handshake},
		"self-signed":   {beta.sign(leaf(func(*x509.Certificate) {}), nil, nil), certificate},
		"expired":       {beta.forge(func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), certificate},
		"not yet valid": {beta.forge(func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }), certificate},
		"for servers only": {beta.forge(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), certificate},
		"a DNS name only": {beta.forge(func(c *x509.Certificate) { c.URIs = nil }), certificate},
		"two URI names": {beta.forge(func(c *x509.Certificate) {
			c.URIs = []*url.URL{uri(t, "spiffe://beta/kithd"), uri(t, "spiffe://beta/other")}
		}), certificate},
		"gamma's name from beta's CA": {beta.sign(leaf(func(c *x509.Certificate) {
			c.URIs, c.DNSNames = []*url.URL{uri(t, "spiffe://gamma/kithd")}, nil
		}), &free, beta.caKey), certificate},
		"this site's name from beta's CA": {beta.sign(leaf(func(c *x509.Certificate) {
			c.URIs, c.DNSNames = []*url.URL{uri(t, "spiffe://alpha/kithd")}, nil
		}), &free, beta.caKey), unknown},
		"below the floor":          {beta.forge(func(c *x509.Certificate) { c.NotBefore = now.Add(-2 * floorAge) }), floor},
		"a site that is not known": {stranger.keys.Leaf(), unknown},
	}
	want := make(map[string]uint64)
	for name, row := range rows {
		for _, alpn := range []string{trust.ALPNPeer, trust.ALPNGossip} {
			for range 5 {
				if err := a.enter(crude(row.shown, alpn)); !shut(err) {
					t.Errorf("%s for %s: %v", name, alpn, err)
				}
				want[row.rule]++
			}
		}
	}
	old := crude(beta.keys.Leaf(), trust.ALPNPeer)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := a.enter(old); !shut(err) {
		t.Errorf("TLS 1.2: %v", err)
	}
	for _, alpn := range [][]string{nil, {"http/1.1"}, {"kith-peer/2"}} {
		if err := a.enter(crude(beta.keys.Leaf(), alpn...)); !shut(err) {
			t.Errorf("protocols %q: %v", alpn, err)
		}
	}
	want[handshake]++
	want["protocol"] = 3
	if err := a.enter(crude(beta.keys.Leaf(), trust.ALPNPeer)); err != nil {
		t.Errorf("the certificate of beta: %v", err)
	}
	a.quiet("certificates")
	for rule, n := range want {
		if got := a.refused("refused-handshake", rule); got != n {
			t.Errorf("the audit log tells of %d refusals by %q, want %d", got, rule, n)
		}
	}
}

// A site that is not trusted any more does not come in, not by resumption either.
func TestHostileRevokedSiteComesBack(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	kept := tls.NewLRUClientSessionCache(8)
	resuming := func() *tls.Config {
		c := a.beta.end.ClientTLS("alpha", trust.ALPNPeer)
		c.SessionTicketsDisabled, c.ClientSessionCache = false, kept
		return c
	}
	for range 2 {
		conn, err := a.dialTLS(resuming())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if conn.ConnectionState().DidResume {
			t.Error("a session was resumed")
		}
		conn.Close() //nolint:errcheck // a connection of this test
	}
	a.d.identity.trusted.Remove("beta")
	for range 3 {
		if err := a.enter(resuming()); !shut(err) {
			t.Errorf("after its removal: %v", err)
		}
	}
	if n := a.refused("refused-handshake", "unknown-site"); n != 3 {
		t.Errorf("the audit log tells of %d refusals", n)
	}
}

// What is no proper hello is answered with the end of the stream, in little space.
func TestHostileHello(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	says := func(change func(*kithv1.Hello)) *kithv1.PeerMessage {
		m := helloOf("beta")
		change(m.GetHello())
		return m
	}
	huge := strings.Repeat("v\n", 3<<19)
	for name, c := range map[string]struct {
		first []*kithv1.PeerMessage
		code  codes.Code
		rule  string
	}{
		"another site":       {[]*kithv1.PeerMessage{helloOf("gamma")}, codes.FailedPrecondition, "other-site"},
		"the receiver":       {[]*kithv1.PeerMessage{helloOf("alpha")}, codes.FailedPrecondition, "other-site"},
		"no site":            {[]*kithv1.PeerMessage{helloOf("")}, codes.InvalidArgument, "site-name"},
		"a name with breaks": {[]*kithv1.PeerMessage{helloOf("be\nta\x1b[2J")}, codes.InvalidArgument, "site-name"},
		"for another site":   {[]*kithv1.PeerMessage{says(func(h *kithv1.Hello) { h.PeerSiteId = "delta" })}, codes.FailedPrecondition, "other-site"},
		"another protocol":   {[]*kithv1.PeerMessage{says(func(h *kithv1.Hello) { h.Protocol = 99 })}, codes.FailedPrecondition, "protocol"},
		"two in a frame":     {[]*kithv1.PeerMessage{helloOf("beta"), helloOf("beta")}, codes.InvalidArgument, "message"},
		"none":               {[]*kithv1.PeerMessage{{}}, codes.InvalidArgument, "message"},
		"an empty frame":     {nil, codes.InvalidArgument, "message"},
		"of megabytes":       {[]*kithv1.PeerMessage{says(func(h *kithv1.Hello) { h.Version = huge })}, codes.InvalidArgument, "message"},
	} {
		a.begin()
		conn := a.peers(a.beta) // fifty streams without a pause on one are a flood
		for range 5 {
			r := a.stream(conn)
			r.say(c.first...)
			if _, err := r.stream.Recv(); status.Code(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		a.tells("refused-hello", c.rule, "")
		a.quiet(name)
	}
	r := a.joined(a.beta)
	r.say(helloOf("beta"))
	a.tells("refused-message", "message", "beta")
	if a.logged("vvvv") || a.logged(strings.Repeat(`v\n`, 200)) {
		t.Error("the log has the whole version")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range strings.Lines(string(a.log)) {
		if len(line) > 1024 {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
}

// A connection that has proved its site and opens no stream, and a stream without hello,
// end by themselves.
func TestHostileNoHello(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes as long as a hello may")
	}
	t.Parallel()
	a := attack(t, nil)
	r := a.stream(a.peers(a.beta))
	if _, err := r.stream.Recv(); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), peer.ErrNoHello.Error()) {
		t.Errorf("a stream without a hello: %v", err)
	}
	a.tells("refused-stream", "hello-in-time", "")
}

// Each protocol serves its own services to its own kind of caller, and nothing else.
func TestHostileProtocols(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	through := func(c *tls.Config) *grpc.ClientConn {
		return a.connect("passthrough:///"+a.d.Address(), anyCredentials{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}), c})
	}
	calls := map[string]func(*grpc.ClientConn) error{
		"a question of a user": func(c *grpc.ClientConn) error {
			_, err := kithv1.NewSiteServiceClient(c).GetSite(a.ctx(), &kithv1.GetSiteRequest{})
			return err
		},
		"a stream of a peer": func(c *grpc.ClientConn) error {
			s, err := kithv1.NewPeerServiceClient(c).Connect(a.ctx())
			if err == nil {
				s.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{helloOf("beta")}}}) //nolint:errcheck // Recv says why
				_, err = s.Recv()
			}
			return err
		},
	}
	own := a.beta.keys.Leaf()
	for _, row := range []struct {
		alpn, call string
		code       codes.Code
	}{
		{trust.ALPNPeer, "a question of a user", codes.Unimplemented},
		{trust.ALPNPeer, "a stream of a peer", codes.OK},
		{trust.ALPNGossip, "a question of a user", codes.Unavailable},
		{trust.ALPNGossip, "a stream of a peer", codes.Unavailable},
		{trust.ALPNUsers, "a question of a user", codes.Unauthenticated},
		{trust.ALPNUsers, "a stream of a peer", codes.Unauthenticated},
	} {
		if err := calls[row.call](through(crude(own, row.alpn))); status.Code(err) != row.code {
			t.Errorf("%s by %s: %v, want %v", row.call, row.alpn, err, row.code)
		}
	}
	a.tells("refused-token", "missing", "")
}

// anyCredentials are of a client that does TLS as it likes.
type anyCredentials struct {
	credentials.TransportCredentials
	config *tls.Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (c anyCredentials) ClientHandshake(ctx context.Context, _ string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn := tls.Client(raw, c.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	return conn, peerConnection{secured, job.SiteID("alpha"), nil, nil}, nil
}

// Clone implements credentials.TransportCredentials.
func (c anyCredentials) Clone() credentials.TransportCredentials { return c }

// Texts of others make no line of their own in either log, and move no cursor.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	const evil = "1\r\ntime=2026 level=ERROR msg=forged\x1b[2J\u2028\u202e\x00"
	hello := helloOf("beta")
	hello.GetHello().Version = evil[:len(evil)-1]
	r := a.stream(a.peers(a.beta))
	r.say(hello)
	r.hear(func(m *kithv1.PeerMessage) bool { return m.GetHello() != nil })
	at := attemptOf(t, "beta.1.1", 1)
	place := a.about(at)["place-copy"]
	place.GetPlaceCopy().Request.Name, place.GetPlaceCopy().Request.User = evil, evil
	r.say(place, &kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: &kithv1.LoadDigest{SiteId: evil, Policy: evil, Version: evil, Speed: -1}}})
	r.settled()
	conn := a.stream(a.peers(a.gamma))
	conn.say(helloOf(evil))
	if _, err := conn.stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a name with line breaks: %v", err)
	}
	if _, err := a.sites.DrainSite(a.ctx(), &kithv1.DrainSiteRequest{Reason: evil}); err != nil && status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	a.tells("refused-hello", "message", "")
	a.close()
	a.mu.Lock()
	defer a.mu.Unlock()
	raw, err := os.ReadFile(filepath.Join(a.cfg.Data, auditFolder, "audit-000000000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string]struct{ text, begins string }{"log": {string(a.log), "time="}, "audit log": {string(raw), `{"n":`}} {
		for line := range strings.Lines(log.text) {
			bad := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) })
			if bad >= 0 || !strings.HasPrefix(line, log.begins) {
				t.Errorf("%s: a line %q", name, line)
			}
		}
	}
}
