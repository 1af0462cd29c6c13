package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
)

// copiedKeys returns what puts a site's folder of keys back as it is now.
func copiedKeys(t *testing.T, c config.Config) (putBack func()) {
	t.Helper()
	older, keys := filepath.Join(t.TempDir(), "keys"), c.KeysPath()
	if err := os.CopyFS(older, os.DirFS(keys)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.RemoveAll(keys), os.CopyFS(keys, os.DirFS(older)), os.Chmod(keys, 0o700), chmodAll(keys)); err != nil {
			t.Fatal(err)
		}
	}
}

// rotateKeysNow voids a site's certificates and returns the sequence of its bundle.
func (s *testSite) rotateKeysNow() int64 {
	s.t.Helper()
	r, err := s.trustClient().RotateKeys(s.ctx(), &kithv1.RotateKeysRequest{Now: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.GetBundleSequence()
}

// keyTrouble is what the site shows to be wrong with its keys.
func (s *testSite) keyTrouble() string {
	s.t.Helper()
	r, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.GetSite().GetKeyTrouble()
}

// An older copy of the folder keys is noticed at the start, and said with what to do.
func TestOlderCopyOfKeys(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	putBack := copiedKeys(t, c)
	const told = "the folder keys is an older copy"
	s, closed := openSecure(t, c, Options{})
	s.rotateKeysNow()
	closed()
	s, closed = openSecure(t, c, Options{})
	s.rotateKeysNow()
	if s.logged(told) || s.keyTrouble() != "" {
		t.Errorf("the latest keys are taken for older ones: %s", s.keyTrouble())
	}
	closed()
	putBack()
	s = startSecure(t, c, Options{})
	s.eventually("the log tells", func() bool { return s.logged(told, "with sequence 1, the latest is 3", "remedy") })
	if shown := s.keyTrouble(); !strings.Contains(shown, "an older copy") || !strings.Contains(shown, "kith site rotate --now") {
		t.Errorf("shown: %q", shown)
	}
	if n := s.rotateKeysNow(); n != 4 {
		t.Errorf("rotate --now made bundle %d of the older copy", n)
	}
	if shown := s.keyTrouble(); shown != "" {
		t.Errorf("shown after it: %q", shown)
	}
}

// One that is put back while the site runs is refused at SIGHUP: the site goes on with the keys
// that it has, and says so in the log and where sites are shown. The next rotation has the folder
// hold them.
func TestOlderCopyAtReload(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	putBack := copiedKeys(t, c)
	s, closed := openSecure(t, c, Options{})
	s.rotateKeysNow()
	s.rotateKeysNow()
	latest := copiedKeys(t, c)
	leaf := s.d.identity.keys.Leaf()
	putBack()
	s.d.reloadKeys()
	if !s.logged("keys not reloaded", "has bundle 1, not the latest, 3", "kith site rotate --now") || s.d.identity.keys.Leaf() != leaf {
		t.Error("the older copy is taken up, or nothing is said")
	}
	if shown := s.keyTrouble(); !strings.Contains(shown, c.KeysPath()+" is an older copy") {
		t.Errorf("shown: %q", shown)
	}
	latest()
	s.d.reloadKeys()
	if shown := s.keyTrouble(); shown != "" || s.d.identity.keys.Leaf() == leaf { // another value of the same
		t.Errorf("the latest copy is not taken up: %q", shown)
	}
	putBack()
	s.d.reloadKeys()
	if n := s.rotateKeysNow(); n != 4 || s.keyTrouble() != "" {
		t.Errorf("bundle %d, shown: %q", n, s.keyTrouble())
	}
	closed()
	s = startSecure(t, c, Options{})
	if b := s.d.identity.keys.Bundle(); b.Sequence != 4 || s.keyTrouble() != "" {
		t.Errorf("after a restart: bundle %d, shown: %q", b.Sequence, s.keyTrouble())
	}
}

// With an older copy of its keys a site comes back by rotate: its next bundle is later than
// any that others know, and its next leaf is not one of those that they have void.
func TestRotatingAnOlderCopy(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	alpha := startSecure(t, ca, knowing(betaKeys, ""))
	beta, closed := openSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	putBack := copiedKeys(t, cb)
	beta.confirmed()
	beta.rotateKeysNow()
	beta.confirmed()
	closed()
	putBack()
	beta = startSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	if got := beta.d.identity.keys.Bundle().Sequence; got != 1 {
		t.Fatalf("the older copy has bundle %d", got)
	}
	r, err := beta.trustClient().RotateKeys(beta.ctx(), &kithv1.RotateKeysRequest{Ca: true})
	if err != nil || r.GetBundleSequence() != 4 { // the leaf of the copy is void at others: there is another one, too
		t.Fatalf("rotate --ca made bundle %d of the older copy: %v", r.GetBundleSequence(), err)
	}
	beta.eventually("the new CA is the only one", func() bool {
		_, under := beta.d.identity.keys.Rotating()
		return !under && len(beta.d.unconfirmed()) == 0
	})
	alpha.eventually("connected by the new keys", func() bool { return alpha.connected("beta") && beta.connected("alpha") })
}
