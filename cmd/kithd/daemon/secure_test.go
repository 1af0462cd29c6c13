package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta/trust"
	"kith/meta/trust/token"
	kithv1 "kith/proto/gen/kith/v1"
)

// secureConfig is a small site with keys.
func secureConfig(t *testing.T, site string) (config.Config, *trust.Keys) {
	t.Helper()
	c := testConfig(t, site)
	c.Listen.InsecureLoopback, c.Listen.AllowOwnUID = false, true
	c.Listen.Socket = filepath.Join(t.TempDir(), "s")
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	k, err := trust.Init(c.KeysPath(), job.SiteID(site), trust.Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// startSecure starts a site with keys, with clients over its socket.
func startSecure(t *testing.T, c config.Config, o Options) *testSite {
	t.Helper()
	s, closed := openSecure(t, c, o)
	t.Cleanup(closed)
	return s
}

// openSecure is startSecure for a test that closes the site itself.
func openSecure(t *testing.T, c config.Config, o Options) (s *testSite, closed func()) {
	t.Helper()
	s = &testSite{t: t, cfg: c}
	d, err := OpenWith(c, slog.New(slog.NewTextHandler(s, nil)), o)
	if err != nil {
		t.Fatal(err)
	}
	s.d = d
	s.use(s.connect("unix:"+c.SocketPath(), insecure.NewCredentials()))
	return s, sync.OnceFunc(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *testSite) connect(target string, c credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	conn, err := grpc.NewClient(target, append(more, grpc.WithTransportCredentials(c))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

func (s *testSite) use(conn *grpc.ClientConn) {
	s.jobs, s.sites, s.files = kithv1.NewJobServiceClient(conn), kithv1.NewSiteServiceClient(conn), kithv1.NewFileServiceClient(conn)
}

func knowing(k *trust.Keys, address string) Options {
	return Options{Known: func() []Known { return []Known{{Bundle: k.Bundle(), Address: address}} }}
}

// Two sites that know each other run each other's jobs over mutual TLS.
func TestJobRunsAtAnotherSiteOverTLS(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	ca.Scheduler.Processors, ca.Placement.Copies = 1, 2
	alpha := startSecure(t, ca, knowing(betaKeys, ""))
	beta := startSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	alpha.eventually("connected", func() bool {
		r, err := alpha.sites.ListSites(alpha.ctx(), &kithv1.ListSitesRequest{})
		return err == nil && len(r.GetSites()) == 2 && r.GetSites()[1].GetProcessors() == 2
	})
	j := shell("echo from $KITH_SITE_ID; id -u")
	j.Processors = 2 // alpha has one
	id := alpha.submit(j)
	alpha.waitState(id, completed)
	if at := alpha.get(id).GetStatus().GetHostSiteId(); at != "beta" {
		t.Errorf("ran at %q", at)
	}
	me := alpha.get(id).GetStatus().GetUser()
	if want := accountName(uint32(os.Getuid())); me != want { //nolint:gosec // a uid fits
		t.Errorf("submitted by %q, want %q", me, want)
	}
	if hidden, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || hidden != 0 && !alpha.logged("keys may get into a core file") {
		t.Errorf("the memory with the keys can be dumped: %d, %v", hidden, err)
	}
	for _, s := range []*testSite{alpha, beta} {
		s.eventually("a lane of gossip", func() bool { return s.d.gossip.Up("alpha") || s.d.gossip.Up("beta") })
		if s.logged("gossip refused") {
			t.Error("gossip between the two was refused")
		}
	}
}

// dialTLS opens a TLS connection to the site as any client could.
func (s *testSite) dialTLS(c *tls.Config) (*tls.Conn, error) {
	raw, err := net.Dial("tcp", s.d.Address())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { raw.Close() })               //nolint:errcheck // a connection of this test
	raw.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // a TCP connection takes it
	conn := tls.Client(raw, c)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	return conn, nil
}

// What a protocol does not serve is not there, and a connection of a protocol that
// nothing serves is closed.
func TestProtocolsServeTheirServices(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	_, betaKeys := secureConfig(t, "beta")
	alpha := startSecure(t, ca, knowing(betaKeys, ""))
	trusted := new(trust.Set)
	if err := trusted.Put(alphaKeys.Bundle()); err != nil {
		t.Fatal(err)
	}
	beta := &trust.Endpoint{Keys: betaKeys, Trusted: trusted, Now: time.Now}
	peers := alpha.connect("passthrough:///"+alpha.d.Address(), siteCredentials{beta, "alpha", nil})
	call := func(conn *grpc.ClientConn, header ...string) error {
		ctx := metadata.AppendToOutgoingContext(alpha.ctx(), header...)
		_, err := kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{})
		return err
	}
	if err := call(peers); status.Code(err) != codes.Unimplemented {
		t.Errorf("SiteService for a peer: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(alphaKeys.CA())
	users := alpha.connect("passthrough:///"+alpha.d.Address(), credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "alpha"}))
	for _, header := range [][]string{nil, {"authorization", "Bearer x"}, {"authorization", "Basic x"}, {"authorization", "Bearer " + strings.Repeat("x", 9000)}} {
		if err := call(users, header...); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a user with %.40v: %v", header, err)
		}
	}
	if _, err := grpc_health_v1.NewHealthClient(users).Check(alpha.ctx(), &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("health of a user without a token: %v", err)
	}
	signer, err := token.NewSigner("alpha", alphaKeys.TokenKey())
	if err != nil {
		t.Fatal(err)
	}
	good, _, err := signer.Create("ann", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := call(users, "authorization", "Bearer "+good); err != nil {
		t.Errorf("a user with a token: %v", err)
	}
	if err := call(users, "authorization", "Bearer "+good[:len(good)-8]); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a user with a bad token: %v", err)
	}
	stream, err := kithv1.NewPeerServiceClient(users).Connect(metadata.AppendToOutgoingContext(alpha.ctx(), "authorization", "Bearer "+good))
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("PeerService for a user: %v", err)
	}
	if _, err := alpha.dialTLS(beta.ClientTLS("alpha", trust.ALPNGossip)); err != nil {
		t.Errorf("gossip: %v", err)
	}
	if _, err := alpha.dialTLS(beta.JoinTLS(func(job.SiteID, *x509.Certificate) error { return nil })); err == nil {
		t.Error("joining although none is invited")
	}
}

// A site that says in its hello that it is another one is refused.
func TestHelloMustBeOfTheCertificate(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	_, betaKeys := secureConfig(t, "beta")
	_, gammaKeys := secureConfig(t, "gamma")
	alpha := startSecure(t, ca, Options{Known: func() []Known { return []Known{{Bundle: betaKeys.Bundle()}, {Bundle: gammaKeys.Bundle()}} }})
	trusted := new(trust.Set)
	if err := trusted.Put(alphaKeys.Bundle()); err != nil {
		t.Fatal(err)
	}
	conn := alpha.connect("passthrough:///"+alpha.d.Address(), siteCredentials{&trust.Endpoint{Keys: betaKeys, Trusted: trusted, Now: time.Now}, "alpha", nil})
	for name, want := range map[string]codes.Code{"gamma": codes.FailedPrecondition, "beta": codes.OK} {
		stream, err := kithv1.NewPeerServiceClient(conn).Connect(alpha.ctx())
		if err != nil {
			t.Fatal(err)
		}
		hello := &kithv1.Hello{SiteId: name, Generation: 1, Incarnation: 1, Version: "test", Protocol: 1, PeerSiteId: "alpha"}
		frame := &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: hello}}}}
		if err := stream.Send(&kithv1.ConnectRequest{Frame: frame}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("beta says that it is %s: %v", name, err)
		}
	}
}

// Who connects and says nothing is let go, and does not keep others out: a connection that says nothing, nothing after its handshake, or nothing but the preface of
// HTTP/2, is closed. That it takes 5 s is told, not decided.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	alpha := startSecure(t, c, Options{})
	dial := func(t *testing.T) net.Conn {
		c, err := net.Dial("tcp", alpha.d.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })            //nolint:errcheck // a connection of this test
		c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a TCP connection takes it
		return c
	}
	user := func(t *testing.T, says string) net.Conn {
		c := tls.Client(dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{trust.ALPNUsers}}) //nolint:gosec // it tells nothing that is secret
		if _, err := c.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, connect := range map[string]func(*testing.T) net.Conn{
		"nothing":     dial,
		"a handshake": func(t *testing.T) net.Conn { return user(t, "") },
		"a preface": func(t *testing.T) net.Conn {
			return user(t, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		},
		"half of a preface": func(t *testing.T) net.Conn { return user(t, "PRI * HTTP/2.0\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, began := connect(t), time.Now()
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it was still let stay after a minute")
			}
			t.Logf("closed after %v", time.Since(began))
		})
	}
}

// The account of kithd is that of its jobs: it is refused unless that is meant.
func TestOwnAccountIsRefused(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	c.Listen.AllowOwnUID = false
	alpha := startSecure(t, c, Options{})
	_, err := alpha.sites.GetSite(alpha.ctx(), &kithv1.GetSiteRequest{})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "listen.allow_own_uid") {
		t.Errorf("the own account got %v", err)
	}
	c, _ = secureConfig(t, "beta")
	c.Listen.AllowOwnUID = true
	beta := startSecure(t, c, Options{})
	if _, err := beta.sites.GetSite(beta.ctx(), &kithv1.GetSiteRequest{}); err != nil {
		t.Errorf("with allow_own_uid: %v", err)
	}
	if !beta.logged("the account of kithd may call") {
		t.Error("no warning")
	}
}

func TestSocketFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listen := func(name string, mode fs.FileMode) (net.Listener, fs.FileMode, error) {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "s")
		l, err := listenSocket(path)
		if err != nil {
			return nil, 0, err
		}
		t.Cleanup(func() { l.Close() })
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return l, info.Mode().Perm(), nil
	}
	for name, c := range map[string]struct{ folder, socket fs.FileMode }{
		"owner": {0o700, 0o600}, "group": {0o750, 0o660}, "all": {0o755, 0o660},
	} {
		if _, mode, err := listen(name, c.folder); err != nil || mode != c.socket {
			t.Errorf("%s: mode %04o, %v", name, mode, err)
		}
	}
	if _, ok := leftOut(filepath.Join(dir, "group", "s")); ok {
		t.Error("the group of kithd is called left out")
	}
	other := filepath.Join(dir, "group", "s")
	if err := errors.Join(os.Chmod(other, 0o600), os.Chown(filepath.Dir(other), -1, 4242)); err != nil {
		t.Logf("the folder cannot be given to another group: %v", err)
	} else if gid, ok := leftOut(other); !ok || gid != 4242 {
		t.Errorf("of another group's folder %d is left out: %v", gid, ok)
	}
	if _, _, err := listen("owner", 0o700); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a second one: %v", err)
	}
	l, _, err := listen("killed", 0o700)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, _, err := listen("killed", 0o700); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "taken", "s"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := listen("taken", 0o700); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("over a file: %v", err)
	}
}

// Without keys a site does not start, and with them only as it was meant.
func TestKeysAreNeeded(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	expect := func(c config.Config, want string) {
		t.Helper()
		d, err := Open(c, log)
		if err == nil {
			d.Close() //nolint:errcheck // the test has failed
			t.Fatalf("opened, want %q", want)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	c := testConfig(t, "alpha")
	c.Listen.InsecureLoopback = false
	expect(c, fmt.Sprintf("kithd init --site alpha --data %s", c.Data))
	c, _ = secureConfig(t, "alpha")
	c.Peers = []config.Peer{{Site: "beta"}}
	expect(c, "[[peers]]")
	c, _ = secureConfig(t, "alpha")
	c.Site = "beta"
	expect(c, "of site alpha")
}
