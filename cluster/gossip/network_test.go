package gossip

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// network is some sites, what they trust, and the connections between them.
type network struct {
	t testing.TB

	mu    sync.Mutex
	sites map[job.SiteID]*site
	cut   map[[2]job.SiteID]bool
	conns map[[2]job.SiteID][]net.Conn // by who dialled whom
	dials map[job.SiteID]int           // by who was dialled
	keys  map[string]string            // certificate to the secret of its key
	bad   map[string]bool              // certificates that count no more
	found []Refusal                    // what any site refused
	log   *slog.Logger
}

// site is a member in a test.
type site struct {
	*Gossip
	net   *network
	name  job.SiteID
	serve bool // others can dial it

	mu     sync.Mutex
	trusts map[job.SiteID]bool
	heard  map[job.SiteID]cluster.Digest
	heads  map[job.SiteID]*cluster.AuditHead
	cert   string
	seq    uint64
	start  uint64
}

func newNetwork(t testing.TB) *network {
	return &network{
		t: t, sites: make(map[job.SiteID]*site), cut: make(map[[2]job.SiteID]bool), conns: make(map[[2]job.SiteID][]net.Conn),
		dials: make(map[job.SiteID]int), keys: make(map[string]string), bad: make(map[string]bool), log: slog.New(slog.DiscardHandler),
	}
}

func pair(a, b job.SiteID) [2]job.SiteID {
	if a > b {
		a, b = b, a
	}
	return [2]job.SiteID{a, b}
}

// member makes a site that is not started.
func (n *network) member(name job.SiteID) *site {
	s := &site{net: n, name: name, serve: true, trusts: make(map[job.SiteID]bool), heard: make(map[job.SiteID]cluster.Digest), start: 1}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sites[name] = s
	s.cert = n.newCert(name)
	return s
}

func (n *network) newCert(name job.SiteID) string {
	cert := fmt.Sprint("certificate ", len(n.keys), " of ", name)
	n.keys[cert] = fmt.Sprint("secret ", len(n.keys))
	return cert
}

// trust has all sites of a group trust each other.
func trust(group ...*site) {
	for _, a := range group {
		for _, b := range group {
			if a != b {
				a.mu.Lock()
				a.trusts[b.name] = true
				a.mu.Unlock()
			}
		}
	}
}

func (s *site) config() Config {
	return Config{
		Site: s.name, Lanes: s, Signer: s, Verifier: s, Logger: s.net.log, Seen: s.saw, Head: s.sawHead, Refused: s.net.refused,
		Trusted: func(o job.SiteID) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.trusts[o]
		},
		Sites: func() (all []job.SiteID) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for o, yes := range s.trusts {
				if yes {
					all = append(all, o)
				}
			}
			slices.Sort(all)
			return all
		},
	}
}

// begin starts the site, again if it was stopped.
func (s *site) begin() {
	g, err := Start(s.config())
	if err != nil {
		s.net.t.Fatal(err)
	}
	s.net.mu.Lock()
	s.Gossip = g
	s.net.mu.Unlock()
}

// crash ends the site without a word.
func (s *site) crash() {
	s.net.mu.Lock()
	g := s.Gossip
	s.Gossip = nil
	s.net.mu.Unlock()
	if g == nil {
		return
	}
	g.cancel()
	g.list.Shutdown() //nolint:errcheck // it is a crash
	g.wg.Wait()
	s.start++
	s.seq = 0
}

func (n *network) end() {
	for _, s := range n.sites {
		s.crash()
	}
	time.Sleep(time.Minute) // what memberlist had begun ends
}

func (s *site) saw(d cluster.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[d.Site] = d
}

func (s *site) sawHead(o job.SiteID, h *cluster.AuditHead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heads == nil {
		s.heads = make(map[job.SiteID]*cluster.AuditHead)
	}
	s.heads[o] = h
}

func (n *network) refused(r Refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.found = append(n.found, r)
}

// refusals returns what any site refused so far.
func (n *network) refusals() []Refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.found)
}

func (s *site) of(o job.SiteID) cluster.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[o]
}

// digest is the next one that the site makes.
func (s *site) digest() cluster.Digest {
	s.seq++
	return cluster.Digest{
		Site: s.name, Incarnation: s.start, Sequence: s.seq, Processors: 64, Speed: 1, Time: job.Instant(time.Now()),
		Policy: "easy backfilling, its own jobs first", Version: "v1.2.3", Address: "10.20.30.40:7410",
	}
}

func (s *site) advertise() { s.Advertise(s.digest()) }

// Sign implements Signer.
func (s *site) Sign(msg []byte) ([]byte, [][]byte) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	return mac(s.net.keys[s.cert], msg), [][]byte{[]byte(s.cert)}
}

func mac(secret string, msg []byte) []byte {
	sum := sha256.Sum256(append([]byte(secret), msg...))
	return append(sum[:], sum[:]...) // as long as a real one
}

// CheckKey implements Verifier.
func (s *site) CheckKey(o job.SiteID, chain [][]byte) error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if len(chain) != 1 || s.net.keys[string(chain[0])] == "" || s.net.bad[string(chain[0])] || !bytes.HasSuffix(chain[0], []byte(" of "+o)) {
		return errors.New("certificate of another")
	}
	return nil
}

// Verify implements Verifier.
func (s *site) Verify(o job.SiteID, chain [][]byte, msg, signature []byte) error {
	if err := s.CheckKey(o, chain); err != nil {
		return err
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if !bytes.Equal(signature, mac(s.net.keys[string(chain[0])], msg)) {
		return errors.New("wrong signature")
	}
	return nil
}

// headText is what a head is signed over here.
func headText(h *cluster.AuditHead) []byte { return fmt.Appendf(nil, "head %d %x", h.Number, h.Hash) }

// VerifyHead implements Verifier.
func (s *site) VerifyHead(o job.SiteID, h *cluster.AuditHead) error {
	return s.Verify(o, h.Chain, headText(h), h.Signature)
}

// Dial implements Lanes.
func (s *site) Dial(_ context.Context, to job.SiteID) (Conn, error) {
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials[to]++
	o := n.sites[to]
	if o == nil || o.Gossip == nil || !o.serve || n.cut[pair(s.name, to)] {
		return nil, errors.New("out of reach")
	}
	near, far := net.Pipe()
	key := [2]job.SiteID{s.name, to}
	n.conns[key] = append(n.conns[key], near)
	g := o.Gossip
	go g.Accept(s.name, far)
	return near, nil
}

// sever cuts two sites off from each other.
func (n *network) sever(a, b job.SiteID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[pair(a, b)] = true
	for _, key := range [][2]job.SiteID{{a, b}, {b, a}} {
		for _, c := range n.conns[key] {
			c.Close() //nolint:errcheck // it is a cut
		}
		delete(n.conns, key)
	}
}

func (n *network) heal(a, b job.SiteID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cut, pair(a, b))
}

// until waits, in virtual time, until ok holds, and returns how long that took.
func until(t testing.TB, most time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) <= most {
		if ok() {
			return time.Since(began)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("after %v: not %s", most, what)
	return 0
}
