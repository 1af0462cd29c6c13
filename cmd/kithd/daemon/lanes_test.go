package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/cluster"
	"kith/cluster/gossip"
	"kith/internal/job"
	"kith/meta/trust"
)

// keyed is a site with keys that only gossips.
type keyed struct {
	name     job.SiteID
	keys     *trust.Keys
	set      *trust.Set
	listener net.Listener // nil: nobody can dial it
	gossip   *gossip.Gossip

	mu    sync.Mutex
	heard map[job.SiteID]cluster.Digest
}

func (k *keyed) sequence(of job.SiteID) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard[of].Sequence
}

func (k *keyed) advertise(sequence uint64) {
	k.gossip.Advertise(cluster.Digest{Site: k.name, Incarnation: 1, Sequence: sequence, Processors: 8, Speed: 1, Time: job.Instant(time.Now())})
}

// keyedSites are sites that trust those that may, of whom the last cannot be dialled.
func keyedSites(t *testing.T, may func(a, b job.SiteID) bool, names ...job.SiteID) map[job.SiteID]*keyed {
	t.Helper()
	all := make(map[job.SiteID]*keyed)
	for i, name := range names {
		k := &keyed{name: name, set: new(trust.Set), heard: make(map[job.SiteID]cluster.Digest)}
		var err error
		if k.keys, err = trust.Init(filepath.Join(t.TempDir(), "keys"), name, trust.Options{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if i < len(names)-1 {
			if k.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
		}
		all[name] = k
	}
	for _, a := range all {
		for _, b := range all {
			if a != b && may(a.name, b.name) {
				if err := a.set.Put(b.keys.Bundle()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, k := range all {
		endpoint := &trust.Endpoint{Keys: k.keys, Trusted: k.set, Now: time.Now}
		address := func(site job.SiteID) []string {
			if o := all[site]; o != nil && o.listener != nil {
				return []string{o.listener.Addr().String()}
			}
			return nil
		}
		var err error
		k.gossip, err = gossip.Start(gossip.Config{
			Site: k.name, Sites: k.set.Sites, Trusted: func(o job.SiteID) bool { _, ok := k.set.Get(o); return ok },
			Lanes: tlsLanes{endpoint, address}, Signer: k.keys, Verifier: proofs{k.set}, Logger: slog.New(slog.DiscardHandler),
			Seen: func(d cluster.Digest) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.heard[d.Site] = d
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.gossip.Close() }) //nolint:errcheck // nobody may be left to tell
		if k.listener == nil {
			continue
		}
		t.Cleanup(func() { k.listener.Close() })
		go func() {
			for {
				conn, err := k.listener.Accept()
				if err != nil {
					return
				}
				go func() {
					c := tls.Server(conn, endpoint.ServerTLS())
					if c.HandshakeContext(context.Background()) != nil {
						conn.Close() //nolint:errcheck // it was not let in
						return
					}
					(&Daemon{gossip: k.gossip}).acceptLane(c)
				}()
			}
		}()
	}
	return all
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never: " + what)
}

// Sites with keys gossip over TLS, one of them without being dialled; their digests are signed by their
// certificates. A and C do not trust each other. B stops trusting C: its lane, its
// membership and its digests end.
func TestGossipOverTLS(t *testing.T) {
	t.Parallel()
	sites := keyedSites(t, func(a, b job.SiteID) bool { return a == "b" || b == "b" || a == "d" || b == "d" }, "a", "b", "c", "d")
	a, b, c, d := sites["a"], sites["b"], sites["c"], sites["d"]
	soon(t, "the pairs are members", func() bool {
		return len(a.gossip.Members()) == 2 && len(b.gossip.Members()) == 3 && len(c.gossip.Members()) == 2 && len(d.gossip.Members()) == 3
	})
	for _, k := range sites {
		k.advertise(1)
	}
	soon(t, "the pairs have heard each other", func() bool {
		return a.sequence("b") == 1 && a.sequence("d") == 1 && b.sequence("a") == 1 && b.sequence("c") == 1 && b.sequence("d") == 1 &&
			c.sequence("b") == 1 && c.sequence("d") == 1 && d.sequence("a") == 1 && d.sequence("b") == 1 && d.sequence("c") == 1
	})
	if a.sequence("c") != 0 || c.sequence("a") != 0 || a.gossip.Up("c") || slices.Contains(a.gossip.Members(), "c") {
		t.Error("sites that do not trust each other know of each other")
	}
	b.set.Remove("c")
	b.gossip.TrustChanged()
	if b.gossip.Up("c") {
		t.Error("the lane to a site that was revoked is up")
	}
	c.advertise(2)
	soon(t, "who trusts it still has heard it", func() bool { return d.sequence("c") == 2 })
	a.advertise(2)
	soon(t, "others are heard", func() bool { return b.sequence("a") == 2 })
	if b.sequence("c") != 1 || b.gossip.Up("c") || slices.Contains(b.gossip.Members(), "c") {
		t.Error("a site that was revoked is still heard")
	}
}
