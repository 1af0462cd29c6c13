package raftstore

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"kith/store"
)

// A member whose disk was replaced by an empty one gets all again. Until then it does not vote: with
// it, a member that lacks what stands could be elected.
func TestMemberWithAnEmptyDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, func(c *Config) { c.TrailingEntries = 1 })
		lead := s.lead()
		leader := lead.m.cfg.Name
		behind, forgets := s.others(leader)[0], s.others(leader)[1]
		s.commitsWithout(t, behind, lead, 2) // they stand by the leader and the one that will forget
		if err := lead.m.Snapshot(); err != nil {
			t.Fatal(err)
		}
		s.shut(forgets)
		s.kill(leader)
		s.net.heal()
		s.loses(t, forgets)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if l, err := s.members[behind].Lead(ctx); err == nil {
			t.Errorf("a member was elected that lacks what stands: it has %d jobs of 2", load(t, l).JobCount())
		}
		s.open(peer(leader))
		again := s.lead()
		if n := load(t, again).JobCount(); n != 2 {
			t.Errorf("%d jobs, want 2", n)
		}
		if err := again.m.Add(minute(), peer(forgets)); !errors.Is(err, ErrMembership) || !strings.Contains(err.Error(), "remove it and add it again") {
			t.Errorf("one that has a vote and nothing else is added: %v", err)
		}
		if s.members[forgets].machine.applied.Load() != 0 {
			t.Error("it was sent facts")
		}
		for _, change := range []func() error{
			func() error { return again.m.Remove(forgets) }, func() error { return again.m.Add(minute(), peer(forgets)) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		s.same(again)
	})
}

// A member that lost its disk and gets only a part of it back must not have others elected, or be it
// itself: what it had acknowledged would be lost.
func TestMemberThatGotAPartBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var few atomic.Bool
		s := newSite(t, 3, func(c *Config) {
			c.wrapLog = func(l raft.LogStore) raft.LogStore { return &firstEntries{LogStore: l, few: &few} }
		})
		lead := s.lead()
		leader := lead.m.cfg.Name
		behind, forgets := s.others(leader)[0], s.others(leader)[1]
		s.commitsWithout(t, behind, lead, 200)
		s.shut(forgets)
		few.Store(true)
		s.loses(t, forgets)
		time.Sleep(2 * time.Second)
		s.kill(leader)
		few.Store(false)
		s.net.heal()
		for _, name := range []string{behind, forgets} {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			if l, err := s.members[name].Lead(ctx); err == nil {
				t.Errorf("member %s leads with %d jobs of 200", name, load(t, l).JobCount())
			}
			cancel()
		}
		s.open(peer(leader))
		if n := load(t, s.lead()).JobCount(); n != 200 {
			t.Errorf("%d jobs, want 200", n)
		}
	})
}

// firstEntries is a log that takes one batch and no more while few is set.
type firstEntries struct {
	raft.LogStore
	few   *atomic.Bool
	taken bool
}

func (f *firstEntries) StoreLogs(logs []*raft.Log) error {
	if f.few.Load() {
		if f.taken {
			return errors.New("append: not now")
		}
		f.taken = len(logs) > 1
	}
	return f.LogStore.StoreLogs(logs)
}

func (f *firstEntries) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }

// A member that has a snapshot and no log yet has lost nothing: it is let in when it starts again, however long it
// takes to read the snapshot.
func TestMemberWithASnapshotAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, func(c *Config) { c.TrailingEntries = 1 })
		lead := s.lead()
		away := s.others(lead.m.cfg.Name)[0]
		state := s.commitsWithout(t, away, lead, 20)
		if err := lead.m.Snapshot(); err != nil {
			t.Fatal(err)
		}
		s.net.heal()
		s.same(lead)
		if last, err := s.members[away].log.LastIndex(); err != nil || last > 0 {
			t.Fatalf("its log ends at %d, %v", last, err)
		}
		s.shut(away)
		s.open(peer(away))
		submit(t, state, 10)
		committed(t, lead, state)
		s.same(lead)
	})
}

// commitsWithout cuts a member off, which has all so far, and has n jobs stand without it.
func (s *site) commitsWithout(t *testing.T, away string, lead *Lead, n int) *store.State {
	t.Helper()
	caughtUp(t, s.members[away], lead)
	s.net.cut(peer(away).Address)
	state := load(t, lead)
	for range n {
		submit(t, state, 1000)
		committed(t, lead, state)
	}
	return state
}

// loses has a member, which does not run, lose its disk, and start.
func (s *site) loses(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(s.folder(peer(name))); err != nil {
		t.Fatal(err)
	}
	s.open(peer(name))
}
