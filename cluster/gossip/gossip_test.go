package gossip

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"kith/cluster"
	"kith/internal/job"
)

// seen collects digests by site.
type seen struct {
	mu sync.Mutex
	m  map[job.SiteID]cluster.Digest
}

func (s *seen) add(d cluster.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[job.SiteID]cluster.Digest)
	}
	s.m[d.Site] = d
}

func (s *seen) sequence(site job.SiteID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[site].Sequence
}

func start(t *testing.T, site job.SiteID, s *seen, join ...string) *Gossip {
	t.Helper()
	g, err := Start(Config{
		Site: site, Listen: "127.0.0.1:0", Join: join, Seen: s.add, Logger: slog.New(slog.DiscardHandler),
		Tune: func(c *memberlist.Config) { // as on a LAN, so that the test is quick
			c.GossipInterval, c.PushPullInterval, c.ProbeInterval = 20*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never: " + what)
}

func TestDigestsReachEverybody(t *testing.T) {
	const n = 4
	heard := make([]seen, n)
	members := make([]*Gossip, n)
	for i := range members {
		var join []string
		if i > 0 {
			join = []string{members[i-1].Address()} // a chain: nobody knows all
		}
		members[i] = start(t, job.SiteID(fmt.Sprint("s", i)), &heard[i], join...)
		members[i].Advertise(cluster.Digest{Site: job.SiteID(fmt.Sprint("s", i)), Incarnation: 1, Sequence: 1, Processors: 4})
	}
	all := func(sequence uint64) func() bool {
		return func() bool {
			for i := range members {
				for k := range members {
					if i != k && heard[i].sequence(job.SiteID(fmt.Sprint("s", k))) < sequence {
						return false
					}
				}
			}
			return true
		}
	}
	eventually(t, "everybody has heard of everybody", all(1))
	for i, m := range members {
		m.Advertise(cluster.Digest{Site: job.SiteID(fmt.Sprint("s", i)), Incarnation: 1, Sequence: 2, Processors: 4})
	}
	eventually(t, "everybody has heard the news", all(2))
	var late seen
	newcomer := start(t, "newcomer", &late, members[2].Address())
	newcomer.Advertise(cluster.Digest{Site: "newcomer", Incarnation: 1, Sequence: 1})
	eventually(t, "a newcomer learns of all from one", func() bool {
		return late.sequence("s0") == 2 && late.sequence("s1") == 2 && late.sequence("s2") == 2 && late.sequence("s3") == 2
	})
}

// A site that was not there when the others began is found later, though they
// have company without it: otherwise there would be two federations for ever.
func TestIslandsFindEachOther(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	missing := l.Addr().String()
	if err := l.Close(); err != nil { // nobody listens there for now
		t.Fatal(err)
	}
	var heard [3]seen
	first := start(t, "s0", &heard[0], missing)
	second := start(t, "s1", &heard[1], first.Address())
	first.Advertise(cluster.Digest{Site: "s0", Incarnation: 1, Sequence: 1})
	second.Advertise(cluster.Digest{Site: "s1", Incarnation: 1, Sequence: 1})
	eventually(t, "two have heard of each other", func() bool { return heard[0].sequence("s1") == 1 && heard[1].sequence("s0") == 1 })
	third, err := Start(Config{Site: "s2", Listen: missing, Seen: heard[2].add, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("somebody else took %s meanwhile: %v", missing, err)
	}
	defer third.Close() //nolint:errcheck // it says what happened
	third.Advertise(cluster.Digest{Site: "s2", Incarnation: 1, Sequence: 1})
	eventually(t, "the third is found", func() bool {
		return heard[0].sequence("s2") == 1 && heard[1].sequence("s2") == 1 && heard[2].sequence("s1") == 1
	})
}

func TestOnlySitesAreMembers(t *testing.T) {
	g := &Gossip{}
	if err := g.NotifyAlive(&memberlist.Node{Name: "No Site"}); err == nil {
		t.Error("a member without a site's name was admitted")
	}
	if err := g.NotifyAlive(&memberlist.Node{Name: "uni-a"}); err != nil {
		t.Error(err)
	}
}

func TestOversizedDigestIsNotSpread(t *testing.T) {
	var s seen
	g := start(t, "a", &s)
	g.Advertise(cluster.Digest{Site: "a", Incarnation: 1, Sequence: 1, Policy: strings.Repeat("x", 2*maxDigestBytes)})
	if n := g.queue.NumQueued(); n != 0 {
		t.Errorf("%d broadcasts queued, want none", n)
	}
}

// Whatever a member sends, nothing breaks, and memory is bounded.
func FuzzMerge(f *testing.F) {
	g := &Gossip{cfg: Config{Site: "me", Seen: func(cluster.Digest) {}, Logger: slog.New(slog.DiscardHandler)}, digests: map[job.SiteID]cluster.Digest{}}
	g.digests["b"] = cluster.Digest{Site: "b", Incarnation: 1, Sequence: 1, Policy: "easy"}
	f.Add(g.LocalState(false))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &Gossip{cfg: Config{Site: "me", Seen: func(cluster.Digest) {}, Logger: slog.New(slog.DiscardHandler)}, digests: map[job.SiteID]cluster.Digest{}}
		g.MergeRemoteState(b, false)
		g.learn(b)
		for site, d := range g.digests {
			if site != d.Site || site == "me" {
				t.Errorf("digest of %q filed under %q", d.Site, site)
			}
		}
	})
}
