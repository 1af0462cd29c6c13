package trust

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

// handshake connects the two configurations and returns what each end says. The server
// writes a byte and the client reads it, so that both are certain.
func handshake(t testing.TB, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer conn.Close()                                 //nolint:errcheck // a connection of this test
		conn.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a TCP connection takes it
		c := tls.Server(conn, server)
		if err = c.Handshake(); err == nil {
			state = c.ConnectionState()
			_, err = c.Write([]byte{1})
		}
		done <- err
		io.Copy(io.Discard, conn) //nolint:errcheck // until the client has read the alert
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a TCP connection takes it
	c := tls.Client(conn, client)
	_, clientErr = c.Read(make([]byte, 1))
	conn.Close() //nolint:errcheck // a connection of this test
	return state, <-done, clientErr
}

func endpoint(k *Keys, s *Set) *Endpoint { return &Endpoint{Keys: k, Trusted: s, Now: at(noon)} }

// pair is beta, which serves, and alpha, which it knows and which knows it.
func pair(t testing.TB) (alpha, beta *Endpoint) {
	a, b := twoSites(t)
	return endpoint(a, known(t, b)), endpoint(b, known(t, a))
}

// crude is a client that shows any certificate and checks nothing.
func crude(f *forged, alpn ...string) *tls.Config {
	c := &tls.Config{InsecureSkipVerify: true, NextProtos: alpn}
	if f != nil && f.der != nil {
		cert := &tls.Certificate{Certificate: f.der, PrivateKey: f.key}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return c
}

func TestPeersMeet(t *testing.T) {
	alpha, beta := pair(t)
	for _, alpn := range []string{ALPNPeer, ALPNGossip} {
		state, serverErr, clientErr := handshake(t, beta.ServerTLS(), alpha.ClientTLS("beta", alpn))
		if serverErr != nil || clientErr != nil {
			t.Fatalf("%s: server %v, client %v", alpn, serverErr, clientErr)
		}
		if site, err := PeerSite(state); site != "alpha" || err != nil || state.NegotiatedProtocol != alpn || state.Version != tls.VersionTLS13 {
			t.Errorf("%s: site %q, %v; protocol %q, version %x", alpn, site, err, state.NegotiatedProtocol, state.Version)
		}
	}
}

// Each bad certificate is refused in the handshake, at either end.
func TestHandshakeRefusesCertificates(t *testing.T) {
	alpha, beta := pair(t)
	if err := beta.Trusted.Put(beta.Keys.Bundle()); err != nil { // a third site's, for the forgeries of its name
		t.Fatal(err)
	}
	for name, f := range forgeries(t, alpha.Keys, beta.Keys) {
		for _, alpn := range []string{ALPNPeer, ALPNGossip} {
			t.Run("client shows "+name+" for "+alpn, func(t *testing.T) {
				_, serverErr, clientErr := handshake(t, beta.ServerTLS(), crude(&f.forged, alpn))
				if serverErr == nil || clientErr == nil {
					t.Errorf("server %v, client %v", serverErr, clientErr)
				}
				if f.der != nil && !errors.Is(serverErr, f.want) {
					t.Errorf("error %v, want %v", serverErr, f.want)
				}
			})
		}
		if f.der == nil {
			continue
		}
		t.Run("server shows "+name, func(t *testing.T) {
			server := &tls.Config{NextProtos: []string{ALPNPeer}, Certificates: []tls.Certificate{{Certificate: f.der, PrivateKey: f.key}}}
			caller := endpoint(beta.Keys, beta.Trusted)
			if _, _, err := handshake(t, server, caller.ClientTLS("alpha", ALPNPeer)); !errors.Is(err, f.want) {
				t.Errorf("error %v, want %v", err, f.want)
			}
		})
	}
}

func TestOtherSiteAtTheAddress(t *testing.T) {
	alpha, beta := pair(t)
	gamma := endpoint(memoryKeys(t, "gamma"), known(t, alpha.Keys))
	if err := alpha.Trusted.Put(gamma.Keys.Bundle()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := handshake(t, gamma.ServerTLS(), alpha.ClientTLS("beta", ALPNPeer)); !errors.Is(err, ErrOtherSite) {
		t.Errorf("gamma answered for beta: %v", err)
	}
	if _, _, err := handshake(t, beta.ServerTLS(), alpha.ClientTLS("beta", ALPNPeer)); err != nil {
		t.Error(err)
	}
}

// A server that speaks another protocol than was asked for is not talked to.
func TestServerWithoutALPN(t *testing.T) {
	alpha, beta := pair(t)
	server := &tls.Config{Certificates: []tls.Certificate{*beta.Keys.Leaf()}}
	if _, _, err := handshake(t, server, alpha.ClientTLS("beta", ALPNPeer)); !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
}

func TestProtocols(t *testing.T) {
	alpha, beta := pair(t)
	good := &forged{alpha.Keys.Leaf().PrivateKey.(*ecdsa.PrivateKey), alpha.Keys.Leaf().Certificate}
	for name, c := range map[string]struct {
		client *tls.Config
		refuse bool
	}{
		"a user":                    {crude(nil, ALPNUsers), false},
		"a user with http/1.1":      {crude(nil, "http/1.1", ALPNUsers), false},
		"a peer":                    {crude(good, ALPNPeer), false},
		"a peer without":            {crude(nil, ALPNPeer), true},
		"gossip without":            {crude(nil, ALPNGossip), true},
		"a peer that offers h2 too": {crude(nil, ALPNPeer, ALPNUsers), true},
		"unknown":                   {crude(good, "kith-raft/1"), true},
		"none":                      {crude(good), true},
		"joining, none invited":     {crude(good, ALPNJoin), true},
	} {
		t.Run(name, func(t *testing.T) {
			state, serverErr, clientErr := handshake(t, beta.ServerTLS(), c.client)
			if c.refuse != (serverErr != nil) || c.refuse != (clientErr != nil) {
				t.Errorf("refused: %v; server %v, client %v", c.refuse, serverErr, clientErr)
			}
			if state.NegotiatedProtocol == ALPNUsers && len(state.PeerCertificates) > 0 {
				t.Error("a user was asked for a certificate")
			}
		})
	}
}

func TestOnlyTLS13(t *testing.T) {
	_, beta := pair(t)
	for _, alpn := range []string{ALPNUsers, ALPNPeer} {
		client := crude(nil, alpn)
		client.MaxVersion = tls.VersionTLS12
		if _, serverErr, clientErr := handshake(t, beta.ServerTLS(), client); serverErr == nil || clientErr == nil {
			t.Errorf("%s by TLS 1.2: server %v, client %v", alpn, serverErr, clientErr)
		}
	}
}

// tickets is a session cache that counts what it is given.
type tickets struct {
	tls.ClientSessionCache
	given int
}

func (c *tickets) Put(key string, s *tls.ClientSessionState) {
	if s != nil {
		c.given++
	}
	c.ClientSessionCache.Put(key, s)
}

// A site that was removed does not come back, by a session of before neither.
func TestRemovedSite(t *testing.T) {
	alpha, beta := pair(t)
	cache := &tickets{ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	client, server := alpha.ClientTLS("beta", ALPNPeer), beta.ServerTLS()
	client.SessionTicketsDisabled, client.ClientSessionCache = false, cache
	for range 2 {
		if _, serverErr, clientErr := handshake(t, server, client); serverErr != nil || clientErr != nil {
			t.Fatalf("server %v, client %v", serverErr, clientErr)
		}
	}
	if cache.given > 0 {
		t.Errorf("%d session tickets were given out", cache.given)
	}
	beta.Trusted.Remove("alpha")
	if state, serverErr, clientErr := handshake(t, server, client); !errors.Is(serverErr, ErrUnknownSite) || clientErr == nil {
		t.Errorf("came back: server %v, client %v, resumed %v", serverErr, clientErr, state.DidResume)
	}
}

func TestJoining(t *testing.T) {
	a, b := twoSites(t)
	joiner, inviter := endpoint(a, new(Set)), endpoint(b, new(Set))
	open := false
	inviter.JoinOpen = func() bool { return open }
	pinned := func(site job.SiteID, ca *x509.Certificate) error {
		if site != "beta" || Fingerprint(ca) != Fingerprint(b.CA()) {
			return errors.New("not who invited")
		}
		return nil
	}
	if _, serverErr, _ := handshake(t, inviter.ServerTLS(), joiner.JoinTLS(pinned)); !errors.Is(serverErr, ErrProtocol) {
		t.Errorf("without an invitation: %v", serverErr)
	}
	open = true
	state, serverErr, clientErr := handshake(t, inviter.ServerTLS(), joiner.JoinTLS(pinned))
	if serverErr != nil || clientErr != nil {
		t.Fatalf("server %v, client %v", serverErr, clientErr)
	}
	site, ca, err := SelfMade(state.PeerCertificates, noon)
	if site != "alpha" || err != nil || !ca.Equal(a.CA()) {
		t.Errorf("%q, %v", site, err)
	}
	other := endpoint(memoryKeys(t, "beta"), new(Set))
	other.JoinOpen = inviter.JoinOpen
	if _, _, err := handshake(t, other.ServerTLS(), joiner.JoinTLS(pinned)); err == nil || !strings.Contains(err.Error(), "not who invited") {
		t.Errorf("another beta: %v", err)
	}
	if _, serverErr, _ := handshake(t, inviter.ServerTLS(), crude(nil, ALPNJoin)); serverErr == nil {
		t.Error("joining without a certificate")
	}
	if _, serverErr, _ := handshake(t, inviter.ServerTLS(), joiner.ClientTLS("beta", ALPNPeer)); serverErr == nil {
		t.Error("who is only invited came in as a peer")
	}
}

// A client that knows no SPIFFE IDs verifies a site by its CA file and its name.
func TestPlainClient(t *testing.T) {
	_, beta := pair(t)
	roots := x509.NewCertPool()
	roots.AddCert(beta.Keys.CA())
	for name, good := range map[string]bool{"beta": true, "alpha": false} {
		client := &tls.Config{RootCAs: roots, ServerName: name, NextProtos: []string{ALPNUsers}, Time: at(noon)}
		if _, _, err := handshake(t, beta.ServerTLS(), client); good != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkHandshake(b *testing.B) {
	alpha, beta := pair(b)
	server, client := beta.ServerTLS(), alpha.ClientTLS("beta", ALPNPeer)
	for b.Loop() {
		if _, s, c := handshake(b, server, client); s != nil || c != nil {
			b.Fatal(s, c)
		}
	}
}
