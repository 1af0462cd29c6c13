package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// copied returns a function that puts the folder of keys back as it is now.
func copied(t *testing.T, dir string) (putBack func()) {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "copy")
	move := func(from, to string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)), os.Chmod(to, 0o700)); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(to)
		for _, f := range files {
			err = errors.Join(err, os.Chmod(filepath.Join(to, f.Name()), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	move(dir, aside)
	return func() { move(aside, dir) }
}

// An older copy of the folder is refused at a reload: the keys stay, and the next change of
// them has the folder hold all that is in use, whatever the older one held.
func TestReloadOfAnOlderCopy(t *testing.T) {
	for name, since := range map[string]func(k *Keys, now time.Time) error{
		"a leaf":      func(k *Keys, now time.Time) error { return k.RotateLeaf(now) },
		"half a CA":   func(k *Keys, now time.Time) error { return k.BeginCA(now) },
		"another CA":  func(k *Keys, now time.Time) error { return errors.Join(k.BeginCA(now), k.FinishCA(now)) },
		"another key": func(k *Keys, now time.Time) error { return errors.Join(k.RenewTokenKey(), k.RotateLeaf(now)) },
	} {
		t.Run(name, func(t *testing.T) {
			k := makeKeys(t, "alpha", noon)
			putBack := copied(t, k.dir)
			now := noon.Add(time.Hour)
			if err := since(k, now); err != nil {
				t.Fatal(err)
			}
			latest, leaf, token, ca := k.Bundle(), k.Leaf(), k.TokenKey(), k.CA()
			k.StepOver(latest.Sequence)
			putBack()
			for range 2 {
				if err := k.Reload(); !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), k.dir) {
					t.Fatalf("an older copy: %v", err)
				}
			}
			if b := k.Bundle(); b.Sequence != latest.Sequence || k.Leaf() != leaf || k.TokenKey() != token || !k.Older() {
				t.Errorf("bundle %d is in use, known as older: %v", b.Sequence, k.Older())
			}
			if err := k.RotateLeaf(now.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			if k.Older() {
				t.Error("the folder is called older still")
			}
			again, err := Open(k.dir, "alpha", now.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			_, half := k.NextCA()
			_, there := again.NextCA()
			if b := again.Bundle(); b.Sequence != latest.Sequence+1 || !again.CA().Equal(ca) || !again.TokenKey().Equal(token) || half != there {
				t.Errorf("the folder has bundle %d, another CA under way: %v", b.Sequence, there)
			}
			early, err := EarlierCAs(k.dir)
			if err != nil || (len(early) > 0) != (name == "another CA") {
				t.Errorf("%d earlier CAs: %v", len(early), err)
			}
		})
	}
}

// A folder whose bundle has the number of the one in use and says something else is refused,
// and one that only has another leaf is not, though a later bundle has been in use.
func TestReloadOfAnotherFolder(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	putBack := copied(t, k.dir)
	if err := k.RotateLeaf(noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	putBack()
	other, err := Open(k.dir, "alpha", noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.BeginCA(noon.Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := k.Reload(); !errors.Is(err, ErrOlder) {
		t.Errorf("another bundle %d: %v", other.Bundle().Sequence, err)
	}

	putBack()
	older, err := Open(k.dir, "alpha", noon)
	if err != nil {
		t.Fatal(err)
	}
	older.StepOver(7)
	if err := other.RenewWith("", noon.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	putBack()
	if err := older.Reload(); err != nil || !older.Older() {
		t.Errorf("the bundle that is in use: %v", err)
	}
}

// The operator of a CA's key has a bundle made that is later than any that was in use, though
// the folder is an older copy; so has one whose site has that key.
func TestVoidAbove(t *testing.T) {
	for name, again := range map[string]func(k *Keys, caKey, next string, now time.Time) error{
		"void":    func(k *Keys, caKey, _ string, now time.Time) error { return k.VoidWith(caKey, now) },
		"next CA": func(k *Keys, caKey, next string, now time.Time) error { return k.ReplaceWith(caKey, next, false, now) },
		"both":    func(k *Keys, caKey, next string, now time.Time) error { return k.ReplaceWith(caKey, next, true, now) },
	} {
		t.Run(name, func(t *testing.T) {
			k, caKey := offlineKeys(t, "alpha")
			peers := known(t, k)
			putBack := copied(t, k.dir)
			for n := range 3 {
				now := noon.Add(time.Duration(n+1) * time.Hour)
				if err := k.VoidWith(caKey, now); err != nil {
					t.Fatal(err)
				}
				b, _ := k.SignedBundle()
				if err := peers.Put(b); err != nil {
					t.Fatal(err)
				}
			}
			putBack()
			older, err := OpenToRenew(k.dir, "alpha")
			if err != nil {
				t.Fatal(err)
			}
			older.StepOver(4)
			now := noon.Add(5 * time.Hour)
			if err := again(older, caKey, filepath.Join(t.TempDir(), "next"), now); err != nil {
				t.Fatal(err)
			}
			b, sig := older.SignedBundle()
			before, _ := peers.Get("alpha")
			if b.Sequence != 5 || !before.Signed(b, sig) || b.Floor.Before(before.Floor) {
				t.Errorf("bundle %d, signed %v, floor %v after %v", b.Sequence, before.Signed(b, sig), b.Floor, before.Floor)
			}
			if _, err := peers.Verify(older.Leaf().Certificate, now); err != nil {
				t.Errorf("at sites that know bundle 4: %v", err)
			}
			if err := k.Reload(); err != nil || k.Bundle().Sequence != 5 {
				t.Errorf("a kithd that runs has bundle %d: %v", k.Bundle().Sequence, err)
			}
		})
	}

	k := makeKeys(t, "alpha", noon)
	k.StepOver(8)
	if err := k.VoidWith("", noon.Add(time.Hour)); err != nil || k.Bundle().Sequence != 9 || k.Offline() {
		t.Errorf("with the key that is at the site: bundle %d, %v", k.Bundle().Sequence, err)
	}
	if leaf := k.Leaf().Leaf; leaf.NotAfter.Sub(leaf.NotBefore) > leafLife+backdated {
		t.Errorf("its leaf lives until %v", leaf.NotAfter)
	}
	o, _ := offlineKeys(t, "alpha")
	if err := o.VoidWith("", noon); !errors.Is(err, ErrOffline) {
		t.Errorf("without a key: %v", err)
	}
}

// A folder in which kithd renew stepped over an older copy stays as it is until kithd has
// read it: what is void in it would be in use again.
func TestFolderSteppedOverIsNotReplaced(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	putBack := copied(t, k.dir)
	now := noon.Add(time.Hour)
	if err := k.RotateLeaf(now); err != nil {
		t.Fatal(err)
	}
	putBack()
	if err := k.Reload(); !errors.Is(err, ErrOlder) {
		t.Fatalf("an older copy: %v", err)
	}
	renewed, err := OpenToRenew(k.dir, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	renewed.StepOver(k.Latest())
	now = now.Add(time.Hour)
	if err := renewed.VoidWith("", now); err != nil {
		t.Fatal(err)
	}
	if err := k.RotateLeaf(now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "SIGHUP") {
		t.Errorf("keys of before replace the folder: %v", err)
	}
	if err := k.Reload(); err != nil || k.Bundle().Sequence != renewed.Bundle().Sequence {
		t.Errorf("bundle %d of %d is in use: %v", k.Bundle().Sequence, renewed.Bundle().Sequence, err)
	}
}

// Without a leaf that can be read it is not known what to void.
func TestVoidWithoutALeaf(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	if err := os.WriteFile(filepath.Join(k.dir, leafFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := OpenToRenew(k.dir, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	if err := damaged.VoidWith("", noon.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "without voiding") {
		t.Errorf("voided: %v", err)
	}
}
