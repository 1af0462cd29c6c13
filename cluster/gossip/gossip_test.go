package gossip

import (
	"fmt"
	"log/slog"
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
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
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
