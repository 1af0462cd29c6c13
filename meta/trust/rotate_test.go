package trust

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A leaf of before is refused by who knows the floor, and the new one is valid also for
// a site whose clock is behind.
func TestRotateLeaf(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	now := noon.Add(time.Hour)
	old, before := k.Leaf().Certificate, k.Bundle()
	s := known(t, k)
	if err := k.RotateLeaf(now); err != nil {
		t.Fatal(err)
	}
	b, sig := k.SignedBundle()
	if b.Sequence != before.Sequence+1 || !before.Signed(b, sig) {
		t.Errorf("bundle %d, signed %v", b.Sequence, before.Signed(b, sig))
	}
	if err := s.Put(b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(old, now); !errors.Is(err, ErrBelowFloor) {
		t.Errorf("the old leaf: %v", err)
	}
	for _, skew := range []time.Duration{0, backdated - time.Second, -time.Second} {
		if _, err := s.Verify(k.Leaf().Certificate, now.Add(-skew)); err != nil {
			t.Errorf("the new leaf, %v behind: %v", skew, err)
		}
	}
	if err := k.RotateLeaf(now); err != nil { // at once again
		t.Error(err)
	}
	if b := k.Bundle(); b.Sequence != 3 || !b.Floor.After(before.Floor) || k.Leaf().Leaf.NotBefore.Before(b.Floor) {
		t.Errorf("bundle %d with floor %v, the leaf is of %v", b.Sequence, b.Floor, k.Leaf().Leaf.NotBefore)
	}
}

// Only a CA by which a site is known proves its next bundle: a stolen leaf does not.
func TestSigned(t *testing.T) {
	k, other := memoryKeys(t, "alpha"), memoryKeys(t, "alpha")
	b, sig := k.SignedBundle()
	later := b
	later.Sequence++
	byLeaf, err := ecdsa.SignASN1(rand.Reader, k.Leaf().PrivateKey.(*ecdsa.PrivateKey), bundleSum(b.Marshal()))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ecdsa.SignASN1(rand.Reader, k.caKey, messageSum(b.Marshal()))
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := other.SignedBundle()
	for name, c := range map[string]struct {
		b    Bundle
		sig  []byte
		want bool
	}{
		"right": {b, sig, true}, "none": {b, nil, false}, "another bundle": {later, sig, false}, "by the leaf": {b, byLeaf, false},
		"by another CA": {b, foreign, false}, "another kind of message": {b, plain, false},
	} {
		if got := k.Bundle().Signed(c.b, c.sig); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// ends reports whether the keys are those of one CA that signs the leaf, and of which.
func (k *Keys) ends() (ca *x509.Certificate, ok bool) {
	return k.ca, k.next == nil && len(k.bundle.CAs) == 1 && k.bundle.Holds(k.ca) && k.leaf.Leaf.CheckSignatureFrom(k.ca) == nil &&
		k.caKey.PublicKey.Equal(k.ca.PublicKey)
}

// Two CAs are valid together until the change is finished; then it is the new one alone.
func TestRotateCA(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	s, first := known(t, k), k.CA()
	now := noon.Add(time.Hour)
	if err := k.FinishCA(now); err != nil || !k.CA().Equal(first) {
		t.Errorf("finished without a beginning: %v", err)
	}
	if err := k.BeginCA(now); err != nil {
		t.Fatal(err)
	}
	if since, ok := k.Rotating(); !ok || !since.Equal(now) {
		t.Errorf("rotating since %v, %v", since, ok)
	}
	if err := k.BeginCA(now); !errors.Is(err, ErrRotating) {
		t.Errorf("begun twice: %v", err)
	}
	both, sig := k.SignedBundle()
	if known, _ := s.Get("alpha"); !known.Signed(both, sig) || len(both.CAs) != 2 {
		t.Errorf("the bundle with %d CAs is not signed", len(both.CAs))
	}
	if _, err := s.Verify(k.Leaf().Certificate, now); err != nil {
		t.Errorf("for who knows the old one: %v", err)
	}
	if err := s.Put(both); err != nil {
		t.Fatal(err)
	}
	if err := k.FinishCA(now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(k.Leaf().Certificate, now); err != nil {
		t.Errorf("for who knows both: %v", err)
	}
	if ca, ok := k.ends(); !ok || ca.Equal(first) {
		t.Error("not the new one alone")
	}
	if only, sig := k.SignedBundle(); !both.Signed(only, sig) || only.Sequence != 3 {
		t.Errorf("bundle %d is not signed", only.Sequence)
	}
}

// A crash before any file that a step replaces leaves keys that open, that sites with the
// bundle of before believe, and with which the step can be taken again.
func TestCrashWhileRotating(t *testing.T) {
	defer func(f func(string) error) { beforeFile = f }(beforeFile)
	crash := errors.New("crash")
	begin := func(k *Keys) error { return k.BeginCA(noon.Add(time.Hour)) }
	for name, c := range map[string]struct {
		prepare, step func(*Keys) error
		files         int
		// final says whether a crash before file n leaves, after a start, what the step was to do.
		final func(n int) bool
	}{
		"now":    {func(*Keys) error { return nil }, func(k *Keys) error { return k.RotateLeaf(noon.Add(time.Hour)) }, 2, func(int) bool { return false }},
		"begin":  {func(*Keys) error { return nil }, begin, 2, func(int) bool { return false }},
		"finish": {begin, func(k *Keys) error { return k.FinishCA(noon.Add(2 * time.Hour)) }, 6, func(n int) bool { return n > 0 }},
	} {
		for n := range c.files + 1 {
			beforeFile = func(string) error { return nil }
			k := makeKeys(t, "alpha", noon)
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
			done := again.Bundle().Sequence > before.Sequence
			if done != c.final(n) {
				t.Errorf("%s, crash before file %d: done is %v", name, n+1, done)
			}
			if _, err := os.Stat(filepath.Join(k.dir, nextFile)); (err == nil) != (again.next != nil) {
				t.Errorf("%s, crash before file %d: %s: %v", name, n+1, nextFile, err)
			}
			if done {
				if _, ok := again.ends(); !ok {
					t.Errorf("%s, crash before file %d: not one CA with its leaf", name, n+1)
				}
			} else if err := c.step(again); err != nil || again.Bundle().Sequence != before.Sequence+1 {
				t.Errorf("%s, crash before file %d: again: %v, bundle %d", name, n+1, err, again.Bundle().Sequence)
			}
		}
	}
}
