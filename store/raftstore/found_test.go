package raftstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
)

// A site of one machine, with facts, becomes one of three and is one machine again: the facts
// that it had and those of the time between are all there.
func TestFactsOfOneMachineAndBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, boltstore.FileName)
		one, err := boltstore.Open(path, "alpha")
		if err != nil {
			t.Fatal(err)
		}
		state, err := one.Load()
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			submit(t, state, 1000)
		}
		if err := one.Seal(state).Commit(); err != nil {
			t.Fatal(err)
		}
		s := newSite(t, 0, func(c *Config) { c.TrailingEntries = 1 })
		image, err := one.Image()
		if err != nil {
			t.Fatal(err)
		}
		a := peer("a")
		if err := FoundWith(s.config(a), image); err != nil {
			t.Fatal(err)
		}
		if err := FoundWith(s.config(a), image); !errors.Is(err, ErrFounded) {
			t.Errorf("founded twice: %v", err)
		}
		if err := errors.Join(image.Close(), one.Close()); err != nil {
			t.Fatal(err)
		}
		s.open(a)
		lead := s.lead()
		if got := load(t, lead); !bytes.Equal(codec.Dump(got), codec.Dump(state)) {
			t.Fatalf("the first member begins with %d jobs, of %d", got.JobCount(), state.JobCount())
		}
		// Others get what was there before there was a log.
		for _, name := range []string{"b", "c"} {
			s.open(peer(name))
			if err := lead.m.Add(minute(), peer(name)); err != nil {
				t.Fatal(err)
			}
		}
		state = load(t, lead)
		submit(t, state, 1000)
		committed(t, lead, state)
		s.same(lead)
		s.kill("a")
		lead = s.lead()
		state = load(t, lead)
		if state.JobCount() != 51 {
			t.Fatalf("without the first member there are %d jobs, of 51", state.JobCount())
		}
		submit(t, state, 1000)
		committed(t, lead, state)
		s.open(a)
		s.same(lead)

		// And back, at a member that was not the first.
		if lead.m.cfg.Name != "b" {
			if err := lead.m.Transfer(); err != nil {
				t.Fatal(err)
			}
			for lead = s.lead(); lead.m.cfg.Name != "b"; lead = s.lead() {
				if err := lead.m.Remove(lead.m.cfg.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, m := range lead.m.Members() {
			if m.Name != "b" {
				if err := lead.m.Remove(m.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
		state = load(t, lead)
		for _, name := range s.names() {
			s.shut(name)
		}
		b := s.config(peer("b"))
		b.Listener = s.net.listen(peer("b").Address)
		back := filepath.Join(dir, "back.db")
		if err := Dissolve(minute(), b, back); err != nil {
			t.Fatal(err)
		}
		again, err := boltstore.Open(back, "alpha")
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.Load()
		if err != nil || !bytes.Equal(codec.Dump(got), codec.Dump(state)) {
			t.Errorf("%d jobs came back of %d, %v", got.JobCount(), state.JobCount(), err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// One of several members does not know whether the others know more.
func TestDissolveOneOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, nil)
		s.lead()
		for _, name := range s.names() {
			s.shut(name)
		}
		a := s.config(peer("a"))
		a.Listener = s.net.listen(peer("a").Address)
		path := filepath.Join(t.TempDir(), "facts.db")
		if err := Dissolve(minute(), a, path); !errors.Is(err, ErrMembership) {
			t.Errorf("%v", err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("it has left facts")
		}
	})
}

// An image that is damaged on its way is refused, and leaves no folder.
func TestFoundWithDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), boltstore.FileName)
	one, err := boltstore.Open(path, "beta")
	if err != nil {
		t.Fatal(err)
	}
	image, err := one.Image()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Site: "alpha", Cluster: cluster, Peer: peer("a"), Folder: filepath.Join(t.TempDir(), "members")}
	if err := FoundWith(cfg, image); !errors.Is(err, store.ErrOtherSite) {
		t.Errorf("facts of another site: %v", err)
	}
	for _, left := range []string{cfg.Folder, cfg.Folder + ".new"} {
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s is there", left)
		}
	}
	if err := errors.Join(image.Close(), one.Close()); err != nil {
		t.Fatal(err)
	}
}
