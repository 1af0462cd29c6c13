package daemon

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// gossiper is a lane of gossip of an insider, who writes its frames by hand.
type gossiper struct {
	a    *attacked
	i    *insider
	conn net.Conn
	seq  uint64
}

func (a *attacked) lane(i *insider) *gossiper {
	a.t.Helper()
	conn, err := a.dialTLS(i.end.ClientTLS("alpha", trust.ALPNGossip))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() }) //nolint:errcheck // a connection of this test
	go func() {                          // what alpha says is of no interest, and must not fill the connection
		for b := make([]byte, 4096); ; {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	}()
	return &gossiper{a: a, i: i, conn: conn}
}

func (g *gossiper) frame(kind byte, data []byte) {
	g.a.t.Helper()
	b := append([]byte{kind, 0, 0, 0, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(data)))...)
	if _, err := g.conn.Write(append(b, data...)); err != nil {
		g.a.t.Fatal(err)
	}
}

func (g *gossiper) note(n *kithv1.GossipNote) {
	g.a.t.Helper()
	b, err := proto.Marshal(n)
	if err != nil {
		g.a.t.Fatal(err)
	}
	g.frame(1, append([]byte{8}, b...))
}

func (g *gossiper) key() {
	g.note(&kithv1.GossipNote{Note: &kithv1.GossipNote_Key{Key: &kithv1.SigningKey{SiteId: "beta", Chain: g.i.keys.Leaf().Certificate}}})
}

// digest says the next digest of the insider, as change left it, and signed as spoil left it.
func (g *gossiper) digest(change func(*cluster.Digest), spoil func(*kithv1.SignedDigest)) uint64 {
	g.a.t.Helper()
	g.seq++
	d := cluster.Digest{Site: "beta", Incarnation: 1, Sequence: g.seq, Processors: 8, Speed: 1, Time: job.Instant(time.Now())}
	if change != nil {
		change(&d)
	}
	data, err := proto.Marshal(wire.DigestMessage(&d))
	if err != nil {
		g.a.t.Fatal(err)
	}
	sig, chain := g.i.keys.Sign(append([]byte("kith digest 1\x00"), data...))
	m := &kithv1.SignedDigest{SiteId: string(d.Site), Digest: data, KeyId: keyIDOf(chain), Signature: sig}
	if spoil != nil {
		spoil(m)
	}
	g.note(&kithv1.GossipNote{Note: &kithv1.GossipNote_Digest{Digest: m}})
	return g.seq
}

// settled waits until what was said so far is dealt with, as a digest behind it is.
func (g *gossiper) settled() {
	g.a.t.Helper()
	procs := int32(1000 + g.seq)
	g.a.eventually("a true digest is heard", func() bool {
		g.digest(func(d *cluster.Digest) { d.Processors = procs }, nil)
		time.Sleep(300 * time.Millisecond) // more often than that it does not count
		r, err := g.a.sites.ListSites(g.a.ctx(), &kithv1.ListSitesRequest{})
		if err != nil {
			return false
		}
		for _, s := range r.GetSites() {
			if s.GetId() == "beta" && s.GetProcessors() == procs {
				return true
			}
		}
		return false
	})
}

// What a site may not say in gossip is in the audit log, counted under its rule and the
// name of the site that proved the lane, and costs little log.
func TestHostileGossip(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	g := a.lane(a.beta)
	g.key()
	g.settled()
	forged := func(d *cluster.Digest) {
		h := audit.Head{Site: "beta", Number: 7, Time: time.Now()}
		sig, chain := a.gamma.keys.Sign(h.Message())
		d.Head = &cluster.AuditHead{Number: 7, Time: job.Instant(h.Time), Signature: sig, Chain: chain}
	}
	of := map[string]func(){
		"unproven":   func() { g.digest(nil, func(m *kithv1.SignedDigest) { m.Signature = nil }) },
		"other-site": func() { g.digest(nil, func(m *kithv1.SignedDigest) { m.SiteId = "gamma" }) },
		"clock":      func() { g.digest(func(d *cluster.Digest) { d.Time = d.Time.Add(-24 * time.Hour) }, nil) },
		"impossible": func() { g.digest(func(d *cluster.Digest) { d.Load.Work = math.NaN() }, nil) },
		"site-name":  func() { g.digest(func(d *cluster.Digest) { d.Site = "No Site" }, nil) },
		"audit-head": func() { g.digest(forged, nil) },
		"note":       func() { g.frame(1, []byte{8, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}) },
		"membership": func() { g.frame(1, []byte("\x05\x83\xabIncarnation\x03\xa4Node\xa5gamma\xa4From\xa4beta")) },
	}
	a.begin()
	const times = 20
	for rule, say := range of {
		for range times {
			if say(); rule == "audit-head" { // digests count four times a second
				time.Sleep(300 * time.Millisecond)
			}
		}
		g.settled()
		a.tells("refused-gossip", rule, "beta")
	}
	for range times {
		bad := a.lane(a.beta)
		bad.frame(77, nil)
	}
	a.tells("refused-gossip", "lane", "beta")
	a.quiet("gossip")
	for rule := range of {
		if n := a.refused("refused-gossip", rule); n != times {
			t.Errorf("%d refusals by %q, want %d", n, rule, times)
		}
	}
}

func keyIDOf(chain [][]byte) []byte {
	sum := sha256.Sum256(chain[0])
	return sum[:16]
}
