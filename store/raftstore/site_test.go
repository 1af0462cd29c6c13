package raftstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/storetest"
)

var cluster = Cluster{1, 2, 3, 4}

// site is members of one site on a network of their own.
type site struct {
	t       testing.TB
	net     *network
	dir     string
	peers   []Peer
	members map[string]*Member
	change  func(*Config) // of each member's configuration
}

func peer(name string) Peer { return Peer{name, name + ":1"} }

// newSite founds a site of some members and starts them.
func newSite(t testing.TB, members int, change func(*Config)) *site {
	s := &site{t: t, net: newNetwork(), dir: t.TempDir(), members: make(map[string]*Member), change: change}
	for i := range members {
		s.peers = append(s.peers, peer(string(rune('a'+i))))
	}
	for _, p := range s.peers {
		if err := Found(s.config(p), s.peers); err != nil {
			t.Fatal(err)
		}
		s.open(p)
	}
	t.Cleanup(s.close)
	return s
}

func (s *site) folder(p Peer) string { return filepath.Join(s.dir, p.Name) }

func (s *site) config(p Peer) Config {
	cfg := Config{Site: "alpha", Cluster: cluster, Peer: p, Folder: s.folder(p), Dial: s.net.dialer(p.Address), Heartbeat: time.Second}
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(s.t.Output(), nil)).With("member", p.Name)
	}
	if s.change != nil {
		s.change(&cfg)
	}
	return cfg
}

func (s *site) tryOpen(p Peer) (*Member, error) {
	cfg := s.config(p)
	cfg.Listener = s.net.listen(p.Address)
	m, err := Open(cfg)
	if err != nil {
		cfg.Listener.Close()
		return nil, err
	}
	s.members[p.Name] = m
	return m, nil
}

func (s *site) open(p Peer) *Member {
	s.t.Helper()
	m, err := s.tryOpen(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// shut closes a member.
func (s *site) shut(name string) {
	s.t.Helper()
	m := s.members[name]
	delete(s.members, name)
	if err := m.Close(); err != nil {
		s.t.Errorf("close %s: %v", name, err)
	}
}

// kill ends a member so that the others hear nothing of it any more, from now on. What it writes
// until it has noticed, one that is killed a little later would have written, too.
func (s *site) kill(name string) {
	s.t.Helper()
	s.net.cut(peer(name).Address)
	s.shut(name)
	s.net.mu.Lock()
	delete(s.net.alone, peer(name).Address)
	s.net.mu.Unlock()
}

func (s *site) close() {
	s.net.heal()
	for name := range s.members {
		s.shut(name)
	}
}

func (s *site) names() []string {
	var names []string
	for name := range s.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lead returns a lead of whichever member leads, but for some.
func (s *site) lead(but ...string) *Lead {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return s.leadUntil(ctx, but...)
}

func (s *site) leadUntil(ctx context.Context, but ...string) *Lead {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		lead *Lead
		err  error
	}
	results := make(chan result)
	asked := 0
	for _, name := range s.names() {
		if slices.Contains(but, name) {
			continue
		}
		asked++
		go func(m *Member) {
			lead, err := m.Lead(ctx)
			results <- result{lead, err}
		}(s.members[name])
	}
	var lead *Lead
	var errs []error
	for range asked {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
		} else if lead == nil {
			lead = r.lead
		}
		cancel()
	}
	if lead == nil {
		s.t.Fatalf("nobody leads: %v", errs)
	}
	return lead
}

func load(t testing.TB, b store.Backend) *store.State {
	t.Helper()
	state, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// submit records a job with a payload of some bytes in memory.
func submit(t testing.TB, state *store.State, payload int) job.ID {
	t.Helper()
	id := state.NextID()
	if err := state.Apply(store.SubmitJob{ID: id, Request: job.Request{Name: "x", Processors: 1, Walltime: time.Hour}, Payload: bytes.Repeat([]byte{byte(id.Seq)}, payload)}); err != nil {
		t.Fatal(err)
	}
	return id
}

func committed(t testing.TB, b store.Backend, state *store.State) {
	t.Helper()
	if err := b.Seal(state).Commit(); err != nil {
		t.Fatal(err)
	}
}

// caughtUp waits until a member has all that a lead has.
func caughtUp(t testing.TB, m *Member, l *Lead) {
	t.Helper()
	target := l.m.machine.applied.Load()
	for range 3000 {
		if m.machine.applied.Load() >= target {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("member %s has come to entry %d of %d", m.cfg.Name, m.machine.applied.Load(), target)
}

// dump is what a member has, as bytes.
func dump(t testing.TB, m *Member) []byte {
	t.Helper()
	return codec.Dump(load(t, &Lead{m: m}))
}

// same checks that all members have the facts of a lead.
func (s *site) same(l *Lead) {
	s.t.Helper()
	want := codec.Dump(load(s.t, l))
	for _, name := range s.names() {
		caughtUp(s.t, s.members[name], l)
		if got := dump(s.t, s.members[name]); !bytes.Equal(got, want) {
			s.t.Errorf("member %s has other facts than the one that leads: %d and %d bytes", name, len(got), len(want))
		}
	}
}

// backend is a site as one back end. Whoever closes it closes the member that leads; opened
// again, another one leads, and that member comes back.
type backend struct {
	*Lead
	s *site
}

func (b *backend) Close() error {
	name := b.m.cfg.Name
	b.s.shut(name)
	if len(b.s.peers) > 1 {
		b.s.open(peer(name))
	}
	return nil
}

// The suite of back ends, by one member and by three.
func TestConformance(t *testing.T) {
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			storetest.RunWithin(t, synctest.Test, func(t *testing.T) storetest.Opener {
				s := newSite(t, members, nil)
				return func(t *testing.T) store.Backend {
					if len(s.members) == 0 {
						s.open(s.peers[0])
					}
					return &backend{s.lead(), s}
				}
			})
		})
	}
}
