package trust

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
)

// A folder of keys may be put back from a copy that is older than what was in use. Other
// sites take no bundle that is earlier than the one they know, and no leaf that they know as
// void. A site finds it by the sequence that it recorded elsewhere, or, while it runs, by
// the keys that it has.

// ErrOlder is returned when a folder of keys is not the latest that was in use.
var ErrOlder = errors.New("the folder of keys is an older copy")

// StepOver says that a bundle with this sequence has been in use. The next one is later,
// also where the folder is an older copy: other sites take no earlier one.
func (k *Keys) StepOver(sequence uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = max(k.latest, sequence)
}

// Outdated reports whether a later bundle than the one in use has been in use.
func (k *Keys) Outdated() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.outdated()
}

// Older reports whether the folder, or what was read of it, is an older copy.
func (k *Keys) Older() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.outdated() || k.behind
}

// Latest returns the sequence of the latest bundle that is known to have been in use.
func (k *Keys) Latest() uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return max(k.bundle.Sequence, k.latest)
}

// outdated reports whether a later bundle than this one has been in use. The caller holds k.mu.
func (k *Keys) outdated() bool { return k.bundle.Sequence < k.latest }

// following is the sequence of the next bundle. The caller holds k.mu.
func (k *Keys) following() uint64 { return max(k.bundle.Sequence, k.latest) + 1 }

// bringBack has a folder that is behind hold what is in use here, before something in it is
// changed: a mixture of both would not open. The caller holds k.mu or is alone.
func (k *Keys) bringBack() error {
	if !k.behind {
		return nil
	}
	if there, err := OwnBundle(k.dir); err == nil {
		if there.Sequence > max(k.bundle.Sequence, k.latest) { // kithd renew stepped over the older copy
			return k.notRead()
		}
		if err := k.keepEarlier(there.CAs, k.bundle.CAs...); err != nil {
			return err
		}
	}
	token, err := keyPEM(k.token)
	leaf, err2 := certificatePEM(k.leaf)
	caKey, signature, err3 := []byte(nil), k.signature, error(nil)
	if k.caKey != nil {
		signature = nil
		caKey, err3 = keyPEM(k.caKey)
	}
	next, nextSignature, err4 := []byte(nil), []byte(nil), error(nil)
	switch {
	case k.nextLeaf != nil:
		nextSignature = k.nextSignature
		next, err4 = certificatePEM(k.nextLeaf)
	case k.next != nil:
		next, err4 = keyPEM(k.nextKey)
		next = append(next, certPEM(k.next)...)
	}
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte // nil: the file is not to be there
	}{
		{tokenFile, token}, {leafFile, leaf}, {caKeyFile, caKey}, {CAFile, certPEM(k.ca)}, {signatureFile, signature},
		{bundleFile, k.bundle.Marshal()}, {nextFile, next}, {nextSignatureFile, nextSignature},
	} {
		path := filepath.Join(k.dir, f.name)
		put := func() error { return writeFile(path, f.text) }
		if f.text == nil {
			put = func() error { return removeFile(path) }
		}
		if err := put(); err != nil {
			return err
		}
	}
	k.behind = false
	return nil
}

// notRead says that the folder holds later keys than those in use.
func (k *Keys) notRead() error {
	return fmt.Errorf("site %s: %s is not the one in use; have kithd read it by SIGHUP", k.site, filepath.Join(k.dir, bundleFile))
}

// certificatePEM is the text of a key and its chain.
func certificatePEM(c *tls.Certificate) ([]byte, error) {
	text, err := keyPEM(c.PrivateKey.(*ecdsa.PrivateKey))
	for _, raw := range c.Certificate {
		text = append(text, certPEM(&x509.Certificate{Raw: raw})...)
	}
	return text, err
}
