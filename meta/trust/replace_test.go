package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

// offlineKeys are keys whose CA's key is kept in a file elsewhere.
func offlineKeys(t *testing.T, site job.SiteID) (k *Keys, caKey string) {
	t.Helper()
	caKey = filepath.Join(t.TempDir(), "away.key")
	k, err := Init(filepath.Join(t.TempDir(), "keys"), site, Options{CAOffline: true, CAKeyPath: caKey}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return k, caKey
}

// endsOffline reports whether the keys are those of one CA that signs the leaf and whose
// key is not here, and of which.
func (k *Keys) endsOffline() bool {
	b, sig := k.SignedBundle()
	return k.next == nil && k.caKey == nil && len(k.bundle.CAs) == 1 && k.bundle.Holds(k.ca) && k.leaf.Leaf.CheckSignatureFrom(k.ca) == nil &&
		b.Signed(b, sig)
}

// A site replaces a CA whose key is kept elsewhere: other sites believe each step, the site
// ends the change without either key, and the next CA's key is what renews it then.
func TestReplaceOfflineCA(t *testing.T) {
	k, caKey := offlineKeys(t, "alpha")
	nextKey := filepath.Join(t.TempDir(), "next.key")
	s, first, now := known(t, k), k.CA(), noon.Add(time.Hour)
	if err := k.ReplaceWith(caKey, nextKey, false, now); err != nil {
		t.Fatal(err)
	}
	if since, ok := k.Rotating(); !ok || !since.Equal(now) {
		t.Errorf("rotating since %v, %v", since, ok)
	}
	if err := k.Reload(); err != nil { // as a kithd that runs does
		t.Fatal(err)
	}
	both, sig := k.SignedBundle()
	if before, _ := s.Get("alpha"); !before.Signed(both, sig) || len(both.CAs) != 2 || both.Sequence != 2 {
		t.Errorf("bundle %d with %d CAs is not signed", both.Sequence, len(both.CAs))
	}
	if _, err := s.Verify(k.Leaf().Certificate, now); err != nil || !k.CA().Equal(first) {
		t.Errorf("for who knows the old one: %v", err)
	}
	if err := k.RenewWith(caKey, now); err != nil { // goes on meanwhile
		t.Error(err)
	}
	if err := s.Put(both); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(caKey), os.Rename(nextKey, nextKey+"2")); err != nil {
		t.Fatal(err)
	}
	if err := k.FinishCA(now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(k.Leaf().Certificate, now); err != nil {
		t.Errorf("for who knows both: %v", err)
	}
	only, sig := k.SignedBundle()
	if !both.Signed(only, sig) || only.Sequence != 3 || !k.endsOffline() || k.CA().Equal(first) {
		t.Errorf("bundle %d with %d CAs is not that of the next one alone, signed", only.Sequence, len(only.CAs))
	}
	if again, err := Open(k.dir, "alpha", now); err != nil || !again.endsOffline() {
		t.Errorf("after a start: %v", err)
	}
	if err := k.RenewWith(nextKey+"2", now); err != nil {
		t.Errorf("the next certificate: %v", err)
	}
	if earlier, err := EarlierCAs(k.dir); err != nil || len(earlier) != 1 || !earlier[0].Holds(first) {
		t.Errorf("the CAs of before: %v, %v", earlier, err)
	}
	if left, err := filepath.Glob(filepath.Join(k.dir, "*next*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What is stolen while a new CA is under way is void together: the leaf and the one that
// waits. Without the key of the next CA that cannot be, and is refused.
func TestVoidWhileReplacing(t *testing.T) {
	k, caKey := offlineKeys(t, "alpha")
	nextKey := filepath.Join(t.TempDir(), "next.key")
	later := noon.Add(20 * 24 * time.Hour)
	if err := k.ReplaceWith(caKey, nextKey, false, later); err != nil {
		t.Fatal(err)
	}
	stolen, waiting, before := k.Leaf(), k.nextLeaf, contents(t, k.dir)
	later = later.Add(time.Hour)
	err := k.VoidWith(caKey, later)
	if !errors.Is(err, ErrRotating) || !strings.Contains(err.Error(), "--next-ca-key") || contents(t, k.dir) != before {
		t.Errorf("without the key of the next CA: %v", err)
	}
	if err := k.ReplaceWith(caKey, filepath.Join(t.TempDir(), "third.key"), true, later); !errors.Is(err, ErrRotating) || contents(t, k.dir) != before {
		t.Errorf("to a third CA: %v", err)
	}
	s := known(t, k)
	running, err := Open(k.dir, "alpha", later)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.ReplaceWith(caKey, nextKey, true, later); err != nil {
		t.Fatal(err)
	}
	// A kithd that has not heard of it does not end the change by what it has in memory.
	if err := running.FinishCA(later); err == nil || !strings.Contains(err.Error(), "SIGHUP") {
		t.Errorf("ended by a kithd that has not read it: %v", err)
	}
	b, sig := k.SignedBundle()
	if old, _ := s.Get("alpha"); !old.Signed(b, sig) || b.Sequence != 3 {
		t.Errorf("bundle %d is not signed", b.Sequence)
	}
	if err := s.Put(b); err != nil {
		t.Fatal(err)
	}
	for what, chain := range map[string][][]byte{"the stolen leaf": stolen.Certificate, "the one that waited": waiting.Certificate} {
		if _, err := s.Verify(chain, later); !errors.Is(err, ErrBelowFloor) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2 {
		if _, err := s.Verify(k.Leaf().Certificate, later); err != nil {
			t.Error(err)
		}
		if err := k.FinishCA(later); err != nil {
			t.Fatal(err)
		}
	}
	if !k.endsOffline() {
		t.Error("not the next one alone")
	}
}

// A crash before any file that a step replaces leaves keys that open, that sites with the
// bundle of before believe, and with which the step can be taken again.
func TestCrashWhileReplacing(t *testing.T) {
	defer func(f func(string) error) { beforeFile = f }(beforeFile)
	crash := errors.New("crash")
	var caKey, nextKey string
	begin := func(k *Keys) error { return k.ReplaceWith(caKey, nextKey, false, noon.Add(time.Hour)) }
	for name, c := range map[string]struct {
		prepare, step func(*Keys) error
		files         int
		final         func(n int) bool // as in TestCrashWhileRotating
	}{
		"begin":         {func(*Keys) error { return nil }, begin, 5, func(int) bool { return false }},
		"begin by void": {func(*Keys) error { return nil }, func(k *Keys) error { return k.ReplaceWith(caKey, nextKey, true, noon.Add(time.Hour)) }, 6, func(int) bool { return false }},
		"void":          {begin, func(k *Keys) error { return k.ReplaceWith(caKey, nextKey, true, noon.Add(2*time.Hour)) }, 5, func(int) bool { return false }},
		"finish":        {begin, func(k *Keys) error { return k.FinishCA(noon.Add(2 * time.Hour)) }, 7, func(n int) bool { return n > 0 }},
	} {
		for n := range c.files + 1 {
			beforeFile = func(string) error { return nil }
			k, key := offlineKeys(t, "alpha")
			caKey, nextKey = key, filepath.Join(t.TempDir(), "next.key")
			if err := c.prepare(k); err != nil {
				t.Fatal(err)
			}
			before, s := k.Bundle(), known(t, k)
			files := 0
			beforeFile = func(string) error {
				if files++; files > n {
					return crash
				}
				return nil
			}
			if err := c.step(k); (err == nil) != (n == c.files) {
				t.Fatalf("%s, %d files: %v", name, n, err)
			}
			beforeFile = func(string) error { return nil }
			if n == c.files {
				if files != n {
					t.Errorf("%s writes %d files, not %d", name, files, n)
				}
				continue
			}
			now := noon.Add(3 * time.Hour)
			again, err := Open(k.dir, "alpha", now)
			if err != nil {
				t.Errorf("%s, crash before file %d: %v", name, n+1, err)
				continue
			}
			if _, err := s.Verify(again.Leaf().Certificate, now); err != nil {
				t.Errorf("%s, crash before file %d: for who knows the bundle of before: %v", name, n+1, err)
			}
			if done := again.Bundle().Sequence > before.Sequence; done != c.final(n) {
				t.Errorf("%s, crash before file %d: done is %v", name, n+1, done)
			} else if !done {
				if err := c.step(again); err != nil || again.Bundle().Sequence != before.Sequence+1 {
					t.Errorf("%s, crash before file %d: again: %v, bundle %d", name, n+1, err, again.Bundle().Sequence)
				}
			}
			if err := again.FinishCA(now); err != nil || !again.endsOffline() {
				t.Errorf("%s, crash before file %d: the change does not end: %v", name, n+1, err)
			}
			if after, err := Open(k.dir, "alpha", now); err != nil || !after.endsOffline() {
				t.Errorf("%s, crash before file %d: after the end: %v", name, n+1, err)
			}
		}
	}
}

// With the wrong files nothing is changed, and the error says which is meant.
func TestReplaceWithWrongFiles(t *testing.T) {
	k, caKey := offlineKeys(t, "alpha")
	_, wrong := offlineKeys(t, "alpha")
	before := contents(t, k.dir)
	other := filepath.Join(t.TempDir(), "beta.key")
	beta, betaKey := offlineKeys(t, "beta")
	if err := beta.ReplaceWith(betaKey, other, false, noon); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ caKey, nextKey, want string }{
		"the key of another CA":     {wrong, filepath.Join(t.TempDir(), "next"), Fingerprint(k.CA())},
		"the present key as next":   {caKey, caKey, "name a new file"},
		"a next CA of another site": {caKey, other, "name a new file"},
	} {
		if err := k.ReplaceWith(c.caKey, c.nextKey, false, noon); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if contents(t, k.dir) != before {
		t.Error("the folder was changed")
	}
	if err := k.BeginCA(noon); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "--next-ca-key") {
		t.Errorf("rotate --ca: %v", err)
	}
	own := makeKeys(t, "gamma", noon)
	if err := own.ReplaceWith(filepath.Join(own.dir, caKeyFile), filepath.Join(t.TempDir(), "next"), false, noon); err == nil || !strings.Contains(err.Error(), "rotate --ca") {
		t.Errorf("a site that has its CA's key: %v", err)
	}
}
