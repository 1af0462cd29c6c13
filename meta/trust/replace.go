package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// Where the operator keeps the CA's key, kithd renew makes the next CA, with both keys at hand.
// The operator is not there when all sites have confirmed, so it leaves what ends the change: a leaf
// that the next CA has signed, in [nextFile] in the form of [leafFile], and its signature
// over the bundle that has that CA alone. The site brings both into force by itself.

// nextSignatureFile is the signature of the next CA over the bundle with that CA alone.
const nextSignatureFile = "next.sig"

// ReplaceWith begins to replace a CA whose key the operator keeps, as [Keys.BeginCA] does
// for one that is at the site. caKeyPath has the key of the present CA. nextPath is where
// the key and the certificate of the next one are written; what is there already from a call
// before is taken again. void raises the floor, too, as [Keys.VoidWith] does. After an error,
// what was not done yet is done by calling it again.
func (k *Keys) ReplaceWith(caKeyPath, nextPath string, void bool, now time.Time) error {
	key, err := k.caKeyOf(caKeyPath)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.caKey != nil:
		return fmt.Errorf("site %s has the key of its CA, and replaces that by kith site rotate --ca", k.site)
	case k.leaf == nil:
		return fmt.Errorf("%s cannot be read; renew it first, without a new CA", filepath.Join(k.dir, leafFile))
	}
	void = void || k.outdated() // others may have voided the leaf of an older copy
	nextKey, next, err := k.nextCA(nextPath, now)
	if err != nil {
		return err
	}
	both, err := k.withNext(next, void, now)
	if err != nil {
		return err
	}
	if void {
		if err := k.makeLeafAbove(both.Floor, key, now, offlineLeafLife); err != nil {
			return err
		}
	}
	if err := k.putNext(both, next, nextKey, now); err != nil {
		return err
	}
	return k.putSigned(both, key)
}

// nextCA returns the CA of a file that ReplaceWith has written, or writes one.
func (k *Keys) nextCA(path string, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, cas, err := readPEM(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && k.next != nil:
		return nil, nil, fmt.Errorf("site %s: %w, since %s; name the file with the key of that CA, whose fingerprint is %s",
			k.site, ErrRotating, k.since().Format(time.RFC3339), Fingerprint(k.next))
	case errors.Is(err, fs.ErrNotExist):
		key, ca, err := newCA(k.site, now)
		if err != nil {
			return nil, nil, err
		}
		raw, err := keyPEM(key)
		if err == nil {
			err = writeFile(path, append(raw, certPEM(ca)...))
		}
		return key, ca, err
	case err != nil:
		return nil, nil, err
	case key == nil || len(cas) != 1 || !key.PublicKey.Equal(cas[0].PublicKey) || checkCA(k.site, cas[0]) != nil || cas[0].Equal(k.ca):
		return nil, nil, fmt.Errorf("%s is there already and is not the key and certificate of a next CA of site %s; name a new file", path, k.site)
	case k.next != nil && !k.next.Equal(cas[0]):
		return nil, nil, fmt.Errorf("site %s: %w, since %s, to the CA with fingerprint %s; %s has another one",
			k.site, ErrRotating, k.since().Format(time.RFC3339), Fingerprint(k.next), path)
	}
	return key, cas[0], nil
}

// withNext returns the bundle with the next CA. The caller holds k.mu.
func (k *Keys) withNext(next *x509.Certificate, void bool, now time.Time) (both Bundle, err error) {
	if both = k.bundle; void {
		both, err = k.voiding(now)
	} else {
		both.Sequence++
	}
	if err == nil && !both.Holds(next) {
		both.CAs = append(slices.Clone(both.CAs), next)
	}
	return both, err
}

// alone returns the bundle that ends a change of CA: that of the overlap with the next CA
// alone.
func (b Bundle) alone(next *x509.Certificate) Bundle {
	b.Sequence++
	b.CAs = []*x509.Certificate{next}
	return b
}

// putNext writes down what ends the change. Both files count only once the bundle has the
// next CA. The caller holds k.mu.
func (k *Keys) putNext(both Bundle, next *x509.Certificate, nextKey *ecdsa.PrivateKey, now time.Time) error {
	sig, err := ecdsa.SignASN1(rand.Reader, nextKey, bundleSum(both.alone(next).Marshal()))
	if err != nil {
		return err
	}
	key, leaf, err := newLeaf(k.site, next, nextKey, both.Floor, now, offlineLeafLife)
	if err != nil {
		return err
	}
	raw, err := leafPEM(key, leaf, next)
	if err == nil {
		err = writeFile(filepath.Join(k.dir, nextSignatureFile), sig)
	}
	if err == nil {
		err = writeFile(filepath.Join(k.dir, nextFile), raw)
	}
	if err == nil {
		k.next, k.nextLeaf, k.nextSignature = next, certificate(key, leaf, next), sig
	}
	return err
}

// putSigned writes down a bundle and the signature of the operator's CA. The caller holds k.mu.
func (k *Keys) putSigned(b Bundle, caKey *ecdsa.PrivateKey) error {
	sig, err := ecdsa.SignASN1(rand.Reader, caKey, bundleSum(b.Marshal()))
	if err == nil {
		err = writeFile(filepath.Join(k.dir, signatureFile), sig)
	}
	if err == nil {
		err = k.putBundle(b)
	}
	if err == nil {
		k.signature = sig
	}
	return err
}

// finishOffline brings the leaf of the next CA into force, if its signature fits. The
// caller holds k.mu.
func (k *Keys) finishOffline() error {
	if !k.bundle.Signed(k.bundle.alone(k.next), k.nextSignature) {
		return fmt.Errorf("site %s: %s does not fit the bundle; kithd renew with --ca-key and --next-ca-key writes it anew", k.site, filepath.Join(k.dir, nextSignatureFile))
	}
	// kithd renew may have been run again without a word to a kithd that runs.
	if there, err := OwnBundle(k.dir); err != nil || !bytes.Equal(there.Marshal(), k.bundle.Marshal()) {
		return errors.Join(k.notRead(), err)
	}
	raw, err := readFile(filepath.Join(k.dir, nextFile))
	if err == nil {
		err = writeFile(filepath.Join(k.dir, leafFile), raw)
	}
	if err == nil {
		k.leaf = k.nextLeaf
	}
	return err
}

// readNextLeaf takes up a change of CA that the operator has begun. One that has not come
// into the bundle is left for the operator to go on with.
func (k *Keys) readNextLeaf(key *ecdsa.PrivateKey, chain []*x509.Certificate) (done bool, err error) {
	leaf, ca := chain[0], chain[1]
	if site, err := claimedSite(chain); !key.PublicKey.Equal(leaf.PublicKey) || leaf.CheckSignatureFrom(ca) != nil || err != nil || site != k.site {
		return false, fmt.Errorf("%s is not a key, its leaf and its CA", nextFile)
	}
	if !k.bundle.Holds(ca) {
		return false, nil
	}
	sig, err := readFile(filepath.Join(k.dir, nextSignatureFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	k.next, k.nextLeaf, k.nextSignature = ca, certificate(key, leaf, ca), sig
	if !bytes.Equal(k.leaf.Certificate[1], ca.Raw) {
		return false, nil
	}
	return true, k.dropOld()
}
