package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
)

// contents is a folder of keys: the name, mode and bytes of each file.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintf(&b, "%s %v ", path, info.Mode())
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o400 != 0 {
			raw, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%x", raw)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Whatever is wrong with a file of the keys, a start names the file and a remedy, changes
// nothing, and works again once the file is back.
func TestDamagedKeys(t *testing.T) {
	other := makeKeys(t, "beta", noon)
	put := func(path string, raw []byte) error { return os.WriteFile(path, raw, 0o600) }
	damages := map[string]func(path string, raw []byte) error{
		"cut":            func(p string, raw []byte) error { return put(p, raw[:len(raw)/2]) },
		"empty":          func(p string, _ []byte) error { return put(p, nil) },
		"0644":           func(p string, _ []byte) error { return os.Chmod(p, 0o644) },
		"another site's": func(p string, _ []byte) error { return put(p, read(t, filepath.Join(other.dir, filepath.Base(p)))) },
		"too long":       func(p string, raw []byte) error { return put(p, append(raw, make([]byte, maxKeyFile)...)) },
		"unreadable":     func(p string, _ []byte) error { return os.Chmod(p, 0) },
		"missing":        func(p string, _ []byte) error { return os.Remove(p) },
		"a folder":       func(p string, _ []byte) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"a pipe":         func(p string, _ []byte) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) },
		"words":          func(p string, _ []byte) error { return put(p, []byte("hello\n")) },
	}
	for damage, do := range damages {
		for _, file := range []string{bundleFile, CAFile, caKeyFile, leafFile, tokenFile} {
			t.Run(damage+" "+file, func(t *testing.T) {
				if damage == "unreadable" && os.Geteuid() == 0 {
					t.Skip("root reads files whatever their mode is: run it as another user")
				}
				k := makeKeys(t, "alpha", noon)
				path, want := filepath.Join(k.dir, file), contents(t, k.dir)
				raw := read(t, path)
				if err := do(path, bytes.Clone(raw)); err != nil {
					t.Fatal(err)
				}
				damaged := contents(t, k.dir)
				_, err := Open(k.dir, "alpha", noon)
				if file == tokenFile && damage == "another site's" {
					// Nothing binds it to the site: tokens of before are refused, and no others are taken.
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "; ") {
					t.Fatalf("opened: %v", err)
				}
				if strings.Contains(err.Error(), "PRIVATE") {
					t.Errorf("a key in %v", err)
				}
				if got := contents(t, k.dir); got != damaged {
					t.Error("the folder was changed")
				}
				if (file == leafFile || file == tokenFile) && damage != "a folder" {
					mended, err := OpenToRenew(k.dir, "alpha")
					switch {
					case err != nil:
					case file == leafFile:
						err = mended.RenewWith("", noon)
					default:
						err = mended.RenewTokenKey()
					}
					if err != nil {
						t.Errorf("kithd renew: %v", err)
					}
					if _, err := Open(k.dir, "alpha", noon); err != nil {
						t.Errorf("after kithd renew: %v", err)
					}
				}
				if err := errors.Join(os.RemoveAll(path), put(path, raw)); err != nil {
					t.Fatal(err)
				}
				if _, err := Open(k.dir, "alpha", noon); err != nil || contents(t, k.dir) != want {
					t.Errorf("after it was brought back: %v", err)
				}
			})
		}
	}
}

// Files that are each in order and do not fit each other are found, too.
func TestKeysThatDoNotFit(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	pemOf := func(t *testing.T, k *Keys) (key, leaf, ca []byte) {
		t.Helper()
		secret, chain, err := readPEM(filepath.Join(k.dir, leafFile))
		if err != nil {
			t.Fatal(err)
		}
		key, err = keyPEM(secret)
		if err != nil {
			t.Fatal(err)
		}
		return key, certPEM(chain[0]), certPEM(chain[1])
	}
	for name, c := range map[string]struct {
		leaf func(t *testing.T, k, twin *Keys) []byte
		want string
	}{
		"a leaf of another key": {func(t *testing.T, k, twin *Keys) []byte {
			key, _, ca := pemOf(t, k)
			_, leaf, _ := pemOf(t, twin)
			return join(key, leaf, ca)
		}, "does not belong to the key"},
		"a CA that did not sign the leaf": {func(t *testing.T, k, twin *Keys) []byte {
			key, leaf, _ := pemOf(t, k)
			_, _, ca := pemOf(t, twin)
			return join(key, leaf, ca)
		}, "its CA did not sign"},
		"a whole leaf of another CA of the name": {func(t *testing.T, _, twin *Keys) []byte {
			return read(t, filepath.Join(twin.dir, leafFile))
		}, "not one of the site's bundle"},
		"no CA": {func(t *testing.T, k, _ *Keys) []byte {
			key, leaf, _ := pemOf(t, k)
			return join(key, leaf)
		}, "it has 1 certificates"},
	} {
		k, twin := makeKeys(t, "alpha", noon), makeKeys(t, "alpha", noon)
		path := filepath.Join(k.dir, leafFile)
		if err := os.WriteFile(path, c.leaf(t, k, twin), 0o600); err != nil {
			t.Fatal(err)
		}
		before := contents(t, k.dir)
		_, err := Open(k.dir, "alpha", noon)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "kithd renew") {
			t.Errorf("%s: %v", name, err)
		}
		if contents(t, k.dir) != before {
			t.Errorf("%s: the folder was changed", name)
		}
	}
	files := []string{bundleFile, CAFile, caKeyFile, leafFile, tokenFile}
	for i, a := range files {
		for _, b := range files[i+1:] {
			k := makeKeys(t, "alpha", noon)
			pa, pb := filepath.Join(k.dir, a), filepath.Join(k.dir, b)
			ra, rb := read(t, pa), read(t, pb)
			if err := errors.Join(os.WriteFile(pa, rb, 0o600), os.WriteFile(pb, ra, 0o600)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, k.dir)
			if _, err := Open(k.dir, "alpha", noon); err == nil || !strings.Contains(err.Error(), pa) && !strings.Contains(err.Error(), pb) {
				t.Errorf("%s and %s swapped: %v", a, b, err)
			}
			if contents(t, k.dir) != before {
				t.Errorf("%s and %s swapped: the folder was changed", a, b)
			}
		}
	}
}

// A site whose CA's key is kept elsewhere voids its certificates with it. A crash at any
// file leaves keys that open, and doing it again ends it.
func TestVoidWithOfflineCA(t *testing.T) {
	offline := func(t *testing.T, site job.SiteID) (*Keys, string) {
		t.Helper()
		caKey := filepath.Join(t.TempDir(), "away.key")
		k, err := Init(filepath.Join(t.TempDir(), "keys"), site, Options{CAOffline: true, CAKeyPath: caKey}, noon)
		if err != nil {
			t.Fatal(err)
		}
		return k, caKey
	}
	later := noon.Add(24 * time.Hour)
	for crash := range 4 { // at the leaf, the signature, the bundle, not at all
		k, caKey := offline(t, "alpha")
		peers, stolen := known(t, k), k.Leaf()
		files := 0
		beforeFile = func(string) error {
			if files++; files == crash+1 {
				return errors.New("crash")
			}
			return nil
		}
		opened, err := OpenToRenew(k.dir, "alpha")
		if err != nil {
			t.Fatal(err)
		}
		err = opened.VoidWith(caKey, later)
		beforeFile = func(string) error { return nil }
		if (err != nil) != (crash < 3) {
			t.Fatalf("crash at file %d: %v", crash+1, err)
		}
		if err := k.Reload(); err != nil {
			t.Fatalf("crash at file %d: %v", crash+1, err)
		}
		if _, err := peers.Verify(k.Leaf().Certificate, later); err != nil {
			t.Errorf("crash at file %d: other sites refuse the site: %v", crash+1, err)
		}
		if crash < 3 {
			if err := k.VoidWith(caKey, later); err != nil {
				t.Fatal(err)
			}
		}
		b, sig := k.SignedBundle()
		before, _ := peers.Get("alpha")
		if b.Sequence != 2 || !before.Signed(b, sig) {
			t.Fatalf("crash at file %d: bundle %d is not signed", crash+1, b.Sequence)
		}
		if err := peers.Put(b); err != nil {
			t.Fatal(err)
		}
		if _, err := peers.Verify(stolen.Certificate, later); !errors.Is(err, ErrBelowFloor) {
			t.Errorf("the certificate of before: %v", err)
		}
		if _, err := peers.Verify(k.Leaf().Certificate, later); err != nil {
			t.Errorf("the new certificate: %v", err)
		}
		again, err := Open(k.dir, "alpha", later)
		if err != nil {
			t.Fatal(err)
		}
		if _, sig := again.SignedBundle(); !b.Signed(b, sig) {
			t.Error("the signature is lost at a restart")
		}
	}
	k, _ := offline(t, "alpha")
	_, wrong := offline(t, "alpha")
	before := contents(t, k.dir)
	for _, err := range []error{k.VoidWith(wrong, later), k.RenewWith(wrong, later)} {
		if err == nil || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), Fingerprint(k.CA())) {
			t.Errorf("with the key of another CA: %v", err)
		}
	}
	if err := k.RenewWith("", later); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "--ca-key") {
		t.Errorf("without a key: %v", err)
	}
	if err := k.RotateLeaf(later); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "kithd renew --ca-key FILE --void") {
		t.Errorf("rotate --now: %v", err)
	}
	if contents(t, k.dir) != before {
		t.Error("the folder was changed")
	}
}
