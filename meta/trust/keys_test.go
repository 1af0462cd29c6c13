package trust

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	k, err := Init(dir, "alpha", Options{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	if _, err := known(t, k).Verify(k.Leaf().Certificate, noon.Add(-backdated)); err != nil {
		t.Errorf("at a site whose clock is behind: %v", err)
	}
	again, err := Open(dir, "alpha", noon)
	if err != nil || Fingerprint(again.CA()) != Fingerprint(k.CA()) || !again.Leaf().Leaf.Equal(k.Leaf().Leaf) {
		t.Errorf("opened again: %v", err)
	}
	if _, err := Init(dir, "alpha", Options{}, noon); !errors.Is(err, ErrKeysExist) {
		t.Errorf("made over the old ones: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".keys-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Init(dir+"2", "Alpha", Options{}, noon); err == nil {
		t.Error("a bad name was taken")
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(dir string) error
		want string
	}{
		"none":        {func(dir string) error { return os.RemoveAll(dir) }, "kithd init"},
		"open folder": {func(dir string) error { return os.Chmod(dir, 0o750) }, "chmod 700"},
		"open CA key": {func(dir string) error { return os.Chmod(filepath.Join(dir, caKeyFile), 0o640) }, "chmod 600"},
		"open leaf":   {func(dir string) error { return os.Chmod(filepath.Join(dir, leafFile), 0o604) }, "chmod 600"},
		"empty leaf":  {func(dir string) error { return os.WriteFile(filepath.Join(dir, leafFile), nil, 0o600) }, leafFile},
		"huge leaf": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, leafFile), make([]byte, maxKeyFile+1), 0o600)
		}, "more than"},
		"no bundle":     {func(dir string) error { return os.Remove(filepath.Join(dir, bundleFile)) }, bundleFile},
		"broken bundle": {func(dir string) error { return os.WriteFile(filepath.Join(dir, bundleFile), []byte("x"), 0o600) }, "bundle"},
		"a folder as CA": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, CAFile)), os.Mkdir(filepath.Join(dir, CAFile), 0o700))
		}, "regular"},
		"other CA key": {func(dir string) error {
			key, _ := newKey()
			raw, _ := keyPEM(key)
			return os.WriteFile(filepath.Join(dir, caKeyFile), raw, 0o600)
		}, "not the key of"},
		"strange block": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, caKeyFile), []byte("-----BEGIN X-----\n-----END X-----\n"), 0o600)
		}, "unknown block"},
	} {
		t.Run(name, func(t *testing.T) {
			k := makeKeys(t, "alpha", noon)
			if err := c.harm(k.dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(k.dir, "alpha", noon); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	k := makeKeys(t, "alpha", noon)
	if _, err := Open(k.dir, "beta", noon); err == nil || !strings.Contains(err.Error(), "of site alpha") {
		t.Errorf("another site's keys: %v", err)
	}
}

func TestRenew(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	first, half := k.Leaf().Leaf, k.halfLife()
	if d := half.Sub(noon); d < leafLife/2-backdated || d > leafLife/2 {
		t.Errorf("due after %v", d)
	}
	if done, err := k.Renew(half.Add(-time.Second)); done || err != nil || !k.Leaf().Leaf.Equal(first) {
		t.Errorf("before half of its life: %v, %v", done, err)
	}
	if done, err := k.Renew(half); !done || err != nil || k.Leaf().Leaf.Equal(first) {
		t.Errorf("at half of its life: %v, %v", done, err)
	}
	if _, err := known(t, k).Verify(k.Leaf().Certificate, half); err != nil {
		t.Error(err)
	}
	// After a long stop the leaf has ended, and Open makes another.
	late := noon.AddDate(1, 0, 0)
	again, err := Open(k.dir, "alpha", late)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known(t, again).Verify(again.Leaf().Certificate, late); err != nil {
		t.Error(err)
	}
	if err := k.Reload(); err != nil || !k.Leaf().Leaf.Equal(again.Leaf().Leaf) {
		t.Errorf("not taken up: %v", err)
	}
}

// A leaf is never older than the floor of its site's bundle, and never outlives its CA.
func TestRenewBounds(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	k.bundle.Floor = k.halfLife()
	s := known(t, k)
	if _, err := s.Verify(k.Leaf().Certificate, noon); !errors.Is(err, ErrBelowFloor) {
		t.Fatalf("the old leaf: %v", err)
	}
	if _, err := k.Renew(k.bundle.Floor); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(k.Leaf().Certificate, k.bundle.Floor); err != nil {
		t.Errorf("the new leaf: %v", err)
	}
	end := k.CA().NotAfter
	if _, err := k.Renew(end.Add(-time.Hour)); err != nil || !k.Leaf().Leaf.NotAfter.Equal(end) {
		t.Errorf("ends at %v, its CA at %v: %v", k.Leaf().Leaf.NotAfter, end, err)
	}
	if _, err := k.Renew(end); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("by a CA that has ended: %v", err)
	}
}

func TestOfflineCA(t *testing.T) {
	folder := t.TempDir()
	dir, caKey := filepath.Join(folder, "keys"), filepath.Join(folder, "ca-of-alpha.key")
	if _, err := Init(dir, "alpha", Options{CAOffline: true}, noon); err == nil {
		t.Error("no line says where the key is")
	}
	k, err := Init(dir, "alpha", Options{CAOffline: true, CAKeyPath: caKey}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, caKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key of the CA is at the site: %v", err)
	}
	if !k.Offline() {
		t.Error("it would renew by itself")
	}
	if life := k.Leaf().Leaf.NotAfter.Sub(noon); life != offlineLeafLife {
		t.Errorf("the leaf lives for %v", life)
	}
	late := noon.Add(offlineLeafLife)
	if done, err := k.Renew(late); done || err != nil {
		t.Errorf("renewed without the key: %v", err)
	}
	if err := k.RenewWith(caKey, late); err != nil {
		t.Fatal(err)
	}
	if _, err := known(t, k).Verify(k.Leaf().Certificate, late); err != nil {
		t.Error(err)
	}
	if err := k.RenewWith(filepath.Join(makeKeys(t, "alpha", noon).dir, caKeyFile), late); err == nil {
		t.Error("another CA's key was taken")
	}
	if _, err := Init(filepath.Join(folder, "more"), "alpha", Options{CAOffline: true, CAKeyPath: caKey}, noon); !errors.Is(err, ErrKeysExist) {
		t.Errorf("the key of a CA was written over: %v", err)
	}
}

func TestExpiries(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	end := k.Leaf().Leaf.NotAfter
	for _, c := range []struct {
		before time.Duration
		soon   bool
	}{{leafLife / 2, false}, {leafLife * 4 / 10, false}, {leafLife * 3 / 10, true}, {-time.Hour, true}} {
		e := k.Expiries(end.Add(-c.before))[0]
		if e.What != "leaf" || e.Soon != c.soon || e.Left(end.Add(-c.before)) != c.before {
			t.Errorf("%v before: %+v", c.before, e)
		}
	}
	if e := k.Expiries(noon)[1]; e.What != "ca" || e.Soon || !e.At.Equal(noon.AddDate(caYears, 0, 0)) {
		t.Errorf("of the CA: %+v", e)
	}
}

// No way of printing keys shows one.
func TestKeysAreNotShown(t *testing.T) {
	k := makeKeys(t, "alpha", noon)
	secret := k.caKey.D.Bytes() //nolint:staticcheck // what must not be shown
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	l.Info("keys", "keys", k, "in a struct", struct{ K *Keys }{k})
	slog.New(slog.NewJSONHandler(&log, nil)).Info("keys", "keys", k, "in a struct", struct{ K *Keys }{k})
	text := log.String() + fmt.Sprint(k) + fmt.Sprintf("%v %+v %#v %s %q %x", k, k, k, k, k, k)
	for _, form := range []string{hex.EncodeToString(secret), new(big.Int).SetBytes(secret).String(), "PrivateKey", "caKey:"} {
		if strings.Contains(text, form) {
			t.Errorf("%q is in %q", form, text)
		}
	}
	if !strings.Contains(text, "keys of site alpha") {
		t.Errorf("not even the site is in %q", text)
	}
}
