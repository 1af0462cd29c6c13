package trust

import (
	"bytes"
	"fmt"
	"path/filepath"
	"time"
)

// Renew makes a new leaf when the present one has half of its life behind it or is older than the floor, and
// reports whether it did. Where the operator keeps the key of the CA it does nothing:
// [Keys.RenewWith] is for him.
func (k *Keys) Renew(now time.Time) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.caKey == nil || now.Before(k.halfLife()) && !k.leaf.Leaf.NotBefore.Before(k.bundle.Floor) {
		return false, nil
	}
	if err := k.makeLeaf(k.caKey, now, leafLife); err != nil {
		return false, fmt.Errorf("renew the certificate of site %s: %w", k.site, err)
	}
	return true, nil
}

// RenewWith makes a new leaf of 90 days with the key of the CA from a file, or with that of
// the site, if it has it and caKeyPath is empty, one of a week.
func (k *Keys) RenewWith(caKeyPath string, now time.Time) error {
	if caKeyPath == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.caKey == nil {
			return fmt.Errorf("site %s: %w; name the file that has it with --ca-key", k.site, ErrOffline)
		}
		return k.makeLeaf(k.caKey, now, leafLife)
	}
	key, err := k.caKeyOf(caKeyPath)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.makeLeaf(key, now, offlineLeafLife)
}

// RenewTokenKey makes a new key for tokens. All tokens of before are void for a daemon that
// is started with it.
func (k *Keys) RenewTokenKey() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	raw, err := keyPEM(key)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.bringBack(); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(k.dir, tokenFile), raw); err != nil {
		return err
	}
	k.token = key
	return nil
}

// Reload reads the folder again, after somebody else has renewed the leaf. When that
// fails the keys stay as they were. So they do, with [ErrOlder], when the folder has neither
// their bundle nor a later one than any that has been in use.
func (k *Keys) Reload() error {
	// What this program itself changes it does not read half done.
	k.mu.Lock()
	defer k.mu.Unlock()
	next := &Keys{dir: k.dir, site: k.site}
	if err := next.read(whole); err != nil {
		return fmt.Errorf("keys of site %s: %w", k.site, err)
	}
	same := bytes.Equal(next.bundle.Marshal(), k.bundle.Marshal())
	if latest := max(k.bundle.Sequence, k.latest); !same && (next.bundle.Sequence < latest || next.bundle.Sequence == k.bundle.Sequence) {
		k.behind = true
		if next.bundle.Sequence == latest {
			return fmt.Errorf("keys of site %s: %s has another bundle %d than was in use; make a later one: kithd renew --void --above %[3]d: %w", k.site, k.dir, latest, ErrOlder)
		}
		return fmt.Errorf("keys of site %s: %s has bundle %d, not the latest, %d: %w", k.site, k.dir, next.bundle.Sequence, latest, ErrOlder)
	}
	k.behind = false
	k.ca, k.caKey, k.leaf, k.token, k.bundle = next.ca, next.caKey, next.leaf, next.token, next.bundle
	k.next, k.nextKey, k.signature = next.next, next.nextKey, next.signature
	k.nextLeaf, k.nextSignature = next.nextLeaf, next.nextSignature
	return nil
}

// halfLife is when the leaf is to be renewed. The caller holds k.mu.
func (k *Keys) halfLife() time.Time {
	leaf := k.leaf.Leaf
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
}

// Offline reports whether the operator keeps the key of the CA.
func (k *Keys) Offline() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.caKey == nil
}

// Expiry is the end of a certificate.
type Expiry struct {
	// What is "leaf" or "ca".
	What string
	At   time.Time
	// Soon says that less than a third of its life is left: it belongs into the log.
	Soon bool
}

// Left returns how long the certificate lives on, negative once it has ended.
func (e Expiry) Left(now time.Time) time.Duration { return e.At.Sub(now) }

// Expiries returns the ends of the leaf and of the CA.
func (k *Keys) Expiries(now time.Time) []Expiry {
	k.mu.RLock()
	defer k.mu.RUnlock()
	of := func(what string, from, to time.Time) Expiry {
		return Expiry{What: what, At: to, Soon: to.Sub(now) < to.Sub(from)/3}
	}
	return []Expiry{
		of("leaf", k.leaf.Leaf.NotBefore, k.leaf.Leaf.NotAfter),
		of("ca", k.ca.NotBefore, k.ca.NotAfter),
	}
}
