package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kith/internal/durable"
)

// nextFile is the key and certificate of the CA that follows, in one file so that they
// always fit; where the operator keeps that key, a leaf of that CA as in [leafFile]. It is
// there from [Keys.BeginCA] or [Keys.ReplaceWith] to the end of [Keys.FinishCA].
const nextFile = "next.pem"

// OverlapLimit is how long two CAs of a site are valid together when not all other sites
// have confirmed the bundle with both.
const OverlapLimit = 30 * 24 * time.Hour

// ErrRotating is returned when a CA is to be replaced while another change of CA is under way.
var ErrRotating = errors.New("a new CA is under way already")

// bundlePrefix keeps the signature over a bundle apart from those over other messages.
const bundlePrefix = "kith bundle 1\x00"

// SignedBundle returns what other sites are told of this one, with a signature by the CA
// that signs leafs now, or the operator's where that keeps its key; nil if there was none.
func (k *Keys) SignedBundle() (Bundle, []byte) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.caKey == nil {
		return k.bundle, k.signature
	}
	sig, err := ecdsa.SignASN1(rand.Reader, k.caKey, bundleSum(k.bundle.Marshal()))
	if err != nil { // only without randomness, which ends the process anyway
		panic("sign: " + err.Error())
	}
	return k.bundle, sig
}

func bundleSum(raw []byte) []byte { return messageSum(append([]byte(bundlePrefix), raw...)) }

// Signed reports whether a CA of b has signed next. Who holds a leaf only cannot make that.
func (b Bundle) Signed(next Bundle, signature []byte) bool {
	sum := bundleSum(next.Marshal())
	return slices.ContainsFunc(b.CAs, func(ca *x509.Certificate) bool {
		key, ok := ca.PublicKey.(*ecdsa.PublicKey)
		return ok && ecdsa.VerifyASN1(key, sum, signature)
	})
}

// RotateLeaf makes a new leaf and raises the floor of the bundle, so that sites that know
// it refuse all leafs of before. After an error the keys are those of before, or the new
// leaf without the floor.
func (k *Keys) RotateLeaf(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.caKey == nil {
		return fmt.Errorf("site %s: %w; kithd renew --ca-key FILE --void does that with it, then SIGHUP", k.site, ErrOffline)
	}
	next, err := k.voiding(now)
	if err != nil {
		return err
	}
	if err := k.makeLeafAbove(next.Floor, k.caKey, now, leafLife); err != nil {
		return err
	}
	return k.putBundle(next)
}

// voiding returns the bundle that voids the present leaf and all before it. The caller holds k.mu.
func (k *Keys) voiding(now time.Time) (Bundle, error) {
	if k.leaf == nil {
		return Bundle{}, fmt.Errorf("%s cannot be read, so it is not known what to void; renew it first, without voiding", filepath.Join(k.dir, leafFile))
	}
	next := k.bundle
	next.Sequence = k.following()
	if k.outdated() {
		next.Floor = now.Truncate(time.Second) // that of the bundle which was lost was no later
	}
	// As low as can be: the new leaf stays valid for sites whose clocks are behind. Who has
	// read the one leaf may have read that of the next CA, too.
	for _, leaf := range []*tls.Certificate{k.leaf, k.nextLeaf} {
		if leaf == nil {
			continue
		}
		if floor := leaf.Leaf.NotBefore.Add(time.Second); floor.After(next.Floor) {
			next.Floor = floor
		}
	}
	if next.Floor.After(now) {
		return Bundle{}, fmt.Errorf("site %s: the leaf was made at %s, which is to come; correct the clock", k.site, k.leaf.Leaf.NotBefore.Format(time.RFC3339))
	}
	return next, nil
}

// VoidWith is [Keys.RotateLeaf] with the key of the CA from a file, for a leaf of 90 days, or
// that itself if caKeyPath is empty. The signature of the bundle is kept beside it. After an error, what was not done yet is
// done by calling it again. While a new CA is under way it is for [Keys.ReplaceWith].
func (k *Keys) VoidWith(caKeyPath string, now time.Time) error {
	if caKeyPath == "" {
		return k.RotateLeaf(now)
	}
	key, err := k.caKeyOf(caKeyPath)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.next != nil && k.caKey == nil:
		return fmt.Errorf("site %s: %w, since %s, and has a leaf that is to be void, too; name the file with the key of the next CA with --next-ca-key",
			k.site, ErrRotating, k.since().Format(time.RFC3339))
	}
	next, err := k.voiding(now)
	if err != nil {
		return err
	}
	if err := k.makeLeafAbove(next.Floor, key, now, offlineLeafLife); err != nil {
		return err
	}
	return k.putSigned(next, key)
}

// caKeyOf reads the key of the site's CA from a file.
func (k *Keys) caKeyOf(path string) (*ecdsa.PrivateKey, error) {
	key, _, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	if key == nil || !key.PublicKey.Equal(k.CA().PublicKey) {
		return nil, fmt.Errorf("%s is not the key of the CA of site %s, whose fingerprint is %s; name the file that has it", path, k.site, Fingerprint(k.CA()))
	}
	return key, nil
}

// putBundle writes the bundle down and takes it up. The caller holds k.mu.
func (k *Keys) putBundle(b Bundle) error {
	raw := b.Marshal()
	parsed, err := ParseBundle(raw)
	if err == nil {
		err = k.bringBack()
	}
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(k.dir, bundleFile), raw); err != nil {
		return err
	}
	k.bundle = parsed
	return nil
}

// BeginCA makes the next CA and adds it to the bundle. Leafs are signed by the old one
// until [Keys.FinishCA].
func (k *Keys) BeginCA(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.caKey == nil:
		return fmt.Errorf("site %s: %w; kithd renew --ca-key FILE --next-ca-key FILE makes the next one, then SIGHUP", k.site, ErrOffline)
	case k.next != nil:
		return fmt.Errorf("site %s: %w, since %s", k.site, ErrRotating, k.since().Format(time.RFC3339))
	}
	key, ca, err := newCA(k.site, now)
	if err != nil {
		return err
	}
	raw, err := keyPEM(key)
	if err == nil {
		err = k.bringBack()
	}
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(k.dir, nextFile), append(raw, certPEM(ca)...)); err != nil {
		return err
	}
	both := k.bundle
	both.Sequence = k.following()
	both.CAs = append(slices.Clone(both.CAs), ca)
	if err := k.putBundle(both); err != nil {
		return err
	}
	k.next, k.nextKey = ca, key
	return nil
}

// Rotating reports whether a new CA is under way, and since when.
func (k *Keys) Rotating() (since time.Time, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.next == nil {
		return time.Time{}, false
	}
	return k.since(), true
}

// NextCA returns the CA that follows, false if none is under way.
func (k *Keys) NextCA() (*x509.Certificate, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.next, k.next != nil
}

// since is when the next CA was made, or its leaf where the operator keeps its key: he may
// have made the CA long before. The caller holds k.mu.
func (k *Keys) since() time.Time {
	if k.nextLeaf != nil {
		return k.nextLeaf.Leaf.NotBefore.Add(backdated)
	}
	return k.next.NotBefore.Add(backdated)
}

// FinishCA signs by the next CA from now on and drops the old one from the bundle.
func (k *Keys) FinishCA(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		return nil
	}
	if err := k.bringBack(); err != nil {
		return err
	}
	signed := bytes.Equal(k.leaf.Certificate[len(k.leaf.Certificate)-1], k.next.Raw)
	switch {
	case signed:
	case k.nextKey == nil:
		if err := k.finishOffline(); err != nil {
			return err
		}
	default:
		old := k.ca
		k.ca = k.next
		if err := k.makeLeaf(k.nextKey, now, leafLife); err != nil {
			k.ca = old
			return err
		}
	}
	// From here on there is no way back: a start goes on where a crash was.
	return k.dropOld()
}

// dropOld ends a change of CA whose leaf is signed by the next one. Each step may have
// been done before a crash. The caller holds k.mu or is alone.
func (k *Keys) dropOld() error {
	if len(k.bundle.CAs) != 1 || !k.bundle.Holds(k.next) {
		if err := k.keepEarlier(k.bundle.CAs, k.next); err != nil {
			return err
		}
		if k.nextKey == nil {
			if err := writeFile(filepath.Join(k.dir, signatureFile), k.nextSignature); err != nil {
				return err
			}
		}
		alone := k.bundle.alone(k.next)
		if k.nextKey != nil { // else the signature is over that sequence
			alone.Sequence = k.following()
		}
		if err := k.putBundle(alone); err != nil {
			return err
		}
	}
	if k.nextKey != nil {
		raw, err := keyPEM(k.nextKey)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(k.dir, caKeyFile), raw); err != nil {
			return err
		}
	}
	err := writeFile(filepath.Join(k.dir, CAFile), certPEM(k.next))
	if err == nil {
		err = removeFile(filepath.Join(k.dir, nextFile))
	}
	if err == nil && k.nextKey == nil { // last: without it nextFile would be of no use
		err = removeFile(filepath.Join(k.dir, nextSignatureFile))
	}
	if err != nil {
		return err
	}
	k.ca, k.caKey, k.signature = k.next, k.nextKey, k.nextSignature
	k.next, k.nextKey, k.nextLeaf, k.nextSignature = nil, nil, nil, nil
	return nil
}

// readNext takes up a change of CA that a crash may have interrupted: one that had not
// come into the bundle is undone, one whose leaf was signed by the next CA is done. The
// caller has read the bundle and the leaf, and is alone.
func (k *Keys) readNext() (done bool, err error) {
	path := filepath.Join(k.dir, nextFile)
	key, cas, err := readPEM(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case key != nil && len(cas) == 2:
		return k.readNextLeaf(key, cas)
	case key == nil || len(cas) != 1 || !key.PublicKey.Equal(cas[0].PublicKey):
		return false, fmt.Errorf("%s is not a key and its CA", nextFile)
	case !k.bundle.Holds(cas[0]):
		return false, removeFile(path)
	}
	k.next, k.nextKey = cas[0], key
	if !bytes.Equal(k.leaf.Certificate[1], cas[0].Raw) {
		return false, nil
	}
	return true, k.dropOld()
}

// removeFile removes a file durably.
func removeFile(path string) error {
	if err := beforeFile(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}
