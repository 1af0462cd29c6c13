package daemon

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta/peer"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// attacked is a site with keys, alpha, that knows beta and gamma. A test has the keys of
// both, also those of their CAs, and does with them what it likes.
type attacked struct {
	*testSite
	own         *trust.Keys
	beta, gamma *insider
	close       func()

	since    time.Time
	lines    int   // bytes in the log at since
	auditLog int64 // bytes in the audit log at since
}

// insider is a hostile site that has real keys.
type insider struct {
	t     *testing.T
	keys  *trust.Keys
	caKey *ecdsa.PrivateKey
	end   *trust.Endpoint
	floor time.Time // of its bundle
}

// floorAge is how old leafs of insiders may be, by their bundles.
const floorAge = time.Hour

func newInsider(t *testing.T, site string) *insider {
	t.Helper()
	c, keys := secureConfig(t, site)
	raw, err := os.ReadFile(filepath.Join(c.KeysPath(), "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &insider{t: t, keys: keys, caKey: key.(*ecdsa.PrivateKey), floor: time.Now().Add(-floorAge).Truncate(time.Second)}
}

func (i *insider) bundle() trust.Bundle {
	b := i.keys.Bundle()
	b.Floor = i.floor // the same each time, as its sequence is
	return b
}

// attack starts alpha. When the test ends its audit log must be whole.
func attack(t *testing.T, tune func(*config.Config)) *attacked {
	t.Helper()
	c, own := secureConfig(t, "alpha")
	c.Timing.Heartbeat = 10 * time.Second // insiders send none
	if tune != nil {
		tune(&c)
	}
	a := &attacked{own: own, beta: newInsider(t, "beta"), gamma: newInsider(t, "gamma")}
	trusted := new(trust.Set)
	if err := trusted.Put(own.Bundle()); err != nil {
		t.Fatal(err)
	}
	for _, i := range []*insider{a.beta, a.gamma} {
		i.end = &trust.Endpoint{Keys: i.keys, Trusted: trusted, Now: time.Now}
	}
	t.Cleanup(func() { a.verifyAudit() }) // after the site is closed
	a.testSite, a.close = openSecure(t, c, Options{Known: func() []Known { return []Known{{Bundle: a.beta.bundle()}, {Bundle: a.gamma.bundle()}} }})
	t.Cleanup(a.close)
	a.begin()
	return a
}

func (a *attacked) verifyAudit() {
	r, err := audit.Verify(filepath.Join(a.cfg.Data, auditFolder), audit.VerifyOptions{})
	if err != nil || len(r.Faults) > 0 {
		a.t.Errorf("the audit log: %+v, %v", r.Faults, err)
	}
}

// refused says of how many refusals the audit log tells, those included that it had only
// counted. The site is closed by it.
func (a *attacked) refused(kind, rule string) (n uint64) {
	a.t.Helper()
	a.eventually("no handshake is under way", func() bool { return a.d.port.under.count() == 0 })
	a.close()
	for _, l := range a.audited(kind) {
		if l.Rule == rule {
			n += max(1, l.Count)
		}
	}
	return n
}

// tells waits until the audit log tells of a refusal.
func (a *attacked) tells(kind, rule, peer string) {
	a.t.Helper()
	a.eventually("the audit log tells of "+kind+" "+rule+" of "+peer, func() bool {
		for _, l := range a.audited(kind) {
			if l.Rule == rule && l.Peer == peer {
				return true
			}
		}
		return false
	})
}

// begin marks where an attack begins in the logs.
func (a *attacked) begin() {
	a.since, a.auditLog = time.Now(), a.auditBytes()
	a.mu.Lock()
	a.lines = len(a.log)
	a.mu.Unlock()
}

// quiet checks that since begin the site wrote no more than 1 KiB of logs a second, with
// four seconds for what it may write at once. A slow machine writes less.
func (a *attacked) quiet(what string) {
	a.t.Helper()
	a.mu.Lock()
	wrote := len(a.log) - a.lines
	a.mu.Unlock()
	wrote += int(a.auditBytes() - a.auditLog)
	took := time.Since(a.since)
	if most := 1024 * (4 + took.Seconds()); float64(wrote) > most {
		a.t.Errorf("%s: %d bytes of logs in %v", what, wrote, took)
	}
}

func (a *attacked) auditBytes() (n int64) {
	err := filepath.WalkDir(filepath.Join(a.cfg.Data, auditFolder), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		n += info.Size()
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// forge makes a certificate as the CA of a site makes them, after change had its way.
func (i *insider) forge(change func(*x509.Certificate)) *tls.Certificate {
	i.t.Helper()
	leaf := *i.keys.Leaf().Leaf
	change(&leaf)
	return i.sign(&leaf, i.keys.CA(), i.caKey)
}

func (i *insider) sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) *tls.Certificate {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(i.caKey.Curve, rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	if signer == nil { // by itself
		signer, parent = key, template
		template.PublicKey = &key.PublicKey
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.ExtraExtensions, template.Extensions = nil, nil
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.keys.CA().Raw}, PrivateKey: key}
}

// crude is a client that shows any certificate, or none, and checks nothing.
func crude(c *tls.Certificate, alpn ...string) *tls.Config {
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: alpn} //nolint:gosec // that is what it is for
	if c != nil {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	return conf
}

// enter opens a connection and returns the error with which the site ends it, nil if it
// says something.
func (a *attacked) enter(c *tls.Config) error {
	a.t.Helper()
	conn, err := a.dialTLS(c)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // a connection of this test
	_, err = conn.Read(make([]byte, 1))
	return err
}

func shut(err error) bool { return err != nil && strings.Contains(err.Error(), "remote error: tls:") }

// peers returns a gRPC connection of a site by its protocol.
func (a *attacked) peers(i *insider) *grpc.ClientConn {
	return a.connect("passthrough:///"+a.d.Address(), siteCredentials{i.end, "alpha", nil}, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20)))
}

// stream opens a stream of a site, without a hello.
func (a *attacked) stream(conn *grpc.ClientConn) *rogue {
	a.t.Helper()
	s, err := kithv1.NewPeerServiceClient(conn).Connect(a.ctx())
	if err != nil {
		a.t.Fatal(err)
	}
	return &rogue{a.t, s}
}

func helloOf(site job.SiteID) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{
		SiteId: string(site), Generation: 1, Incarnation: 1, Version: "test", Protocol: peer.Protocol, PeerSiteId: "alpha",
	}}}
}

// joined opens a stream of an insider and says hello.
func (a *attacked) joined(i *insider) *rogue {
	a.t.Helper()
	r := a.stream(a.peers(i))
	r.say(helloOf(i.keys.Bundle().Site))
	r.hear(func(m *kithv1.PeerMessage) bool { return m.GetHello() != nil })
	return r
}

func uri(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
