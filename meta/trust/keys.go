package trust

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kith/internal/durable"
	"kith/internal/job"
)

// Files in the folder of keys.
const (
	// CAFile is the certificate of the CA, which users may be given.
	CAFile = "ca.crt"
	// caKeyFile is the key of the CA; it is missing where the operator keeps it.
	caKeyFile = "ca.key"
	// leafFile is the leaf's key and chain, in one file so that they always fit.
	leafFile = "leaf.pem"
	// tokenFile is the key that signs tokens of users.
	tokenFile = "token.key"
	// bundleFile is what other sites are told of this one.
	bundleFile = "bundle"
)

// Errors of opening keys.
var (
	// ErrNoKeys is returned when a site has no keys yet.
	ErrNoKeys = errors.New("the site has no keys; make them with kithd init")
	// ErrKeysExist is returned when keys would be replaced.
	ErrKeysExist = errors.New("the site has keys already")
	// ErrOffline is returned when the key of the CA is needed and not here.
	ErrOffline = errors.New("the key of the CA is not at the site")
)

// Keys are what a site proves itself with: its CA, its leaf and its own bundle, in a
// folder of mode 0700. They are safe for use by several goroutines. No way of printing
// them shows a key.
type Keys struct {
	dir  string
	site job.SiteID

	mu     sync.RWMutex
	ca     *x509.Certificate
	caKey  *ecdsa.PrivateKey // nil where the operator keeps it
	leaf   *tls.Certificate  // replaced as a whole, never changed
	token  *ecdsa.PrivateKey
	bundle Bundle
	// signature is that of the operator's CA over the bundle, nil if there is none.
	signature []byte
	// latest is the sequence of the latest bundle that is known to have been in use, also
	// where an older copy of the folder came back. See [Keys.StepOver].
	latest uint64
	// behind says that the folder is not what is in use here. See [Keys.Reload].
	behind bool

	// next is the CA that follows, nil if none is under way.
	next    *x509.Certificate
	nextKey *ecdsa.PrivateKey // nil where the operator keeps it; then there are these
	// nextLeaf is what the next CA has signed, and nextSignature that over the bundle which
	// has it alone.
	nextLeaf      *tls.Certificate
	nextSignature []byte
}

// Options says how keys are made.
type Options struct {
	// CAOffline leaves the key of the CA to the operator: it is written to CAKeyPath
	// instead of the folder of keys, and leafs live for 90 days.
	CAOffline bool
	CAKeyPath string
}

// Init makes the keys of a site in dir, which must not be there. A crash leaves the
// whole folder or none.
func Init(dir string, site job.SiteID, o Options, now time.Time) (*Keys, error) {
	if _, err := job.ParseSiteID(string(site)); err != nil {
		return nil, err
	}
	for _, path := range []string{dir, o.CAKeyPath} {
		if path == "" {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s: %w", path, ErrKeysExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if o.CAOffline && o.CAKeyPath == "" {
		return nil, errors.New("no file is named for the key of the CA")
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".keys-*") // 0700
	if err != nil {
		return nil, err
	}
	if err := fill(temporary, site, o, now); err != nil {
		return nil, errors.Join(fmt.Errorf("keys of site %s: %w", site, err), os.RemoveAll(temporary))
	}
	if err := os.Rename(temporary, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(temporary))
	}
	if err := durable.SyncFolder(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	return Open(dir, site, now)
}

// fill writes new keys into an empty folder.
func fill(dir string, site job.SiteID, o Options, now time.Time) error {
	caKey, ca, err := newCA(site, now)
	if err != nil {
		return err
	}
	k := &Keys{dir: dir, site: site, ca: ca, bundle: Bundle{Site: site, Sequence: 1, CAs: []*x509.Certificate{ca}}}
	raw := k.bundle.Marshal()
	if _, err := ParseBundle(raw); err != nil {
		return err
	}
	key, err := keyPEM(caKey)
	if err != nil {
		return err
	}
	place, life := filepath.Join(dir, caKeyFile), leafLife
	if o.CAOffline {
		place, life = o.CAKeyPath, offlineLeafLife
	}
	tokenKey, err := newKey()
	if err != nil {
		return err
	}
	rawToken, err := keyPEM(tokenKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(dir, tokenFile), rawToken),
		writeFile(filepath.Join(dir, CAFile), certPEM(ca)),
		writeFile(filepath.Join(dir, bundleFile), raw),
		k.makeLeaf(caKey, now, life),
		writeFile(place, key),
	)
}

// makeLeaf makes a leaf and its key, writes them down and takes them up. The caller
// holds k.mu or is alone.
func (k *Keys) makeLeaf(caKey *ecdsa.PrivateKey, now time.Time, life time.Duration) error {
	return k.makeLeafAbove(k.bundle.Floor, caKey, now, life)
}

// makeLeafAbove makes one that is not older than a floor.
func (k *Keys) makeLeafAbove(floor time.Time, caKey *ecdsa.PrivateKey, now time.Time, life time.Duration) error {
	key, leaf, err := newLeaf(k.site, k.ca, caKey, floor, now, life)
	if err != nil {
		return err
	}
	raw, err := leafPEM(key, leaf, k.ca)
	if err == nil {
		err = k.bringBack()
	}
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(k.dir, leafFile), raw); err != nil {
		return err
	}
	k.leaf = certificate(key, leaf, k.ca)
	return nil
}

// leafPEM is the content of leafFile.
func leafPEM(key *ecdsa.PrivateKey, leaf, ca *x509.Certificate) ([]byte, error) {
	raw, err := keyPEM(key)
	return append(append(raw, certPEM(leaf)...), certPEM(ca)...), err
}

// certificate is what TLS needs of a leaf. The CA goes with it: who is invited sees
// the CA of the other site for the first time.
func certificate(key *ecdsa.PrivateKey, leaf, ca *x509.Certificate) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.Raw}, PrivateKey: key, Leaf: leaf}
}

// Open reads the keys of a site. The leaf may have ended: see [Keys.Renew] and
// [Keys.Expiries]. What is damaged is named with its file and a remedy, and left as it is.
func Open(dir string, site job.SiteID, now time.Time) (*Keys, error) {
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	k := &Keys{dir: dir, site: site}
	if err := k.read(whole); err != nil {
		return nil, fmt.Errorf("keys of site %s: %w", site, err)
	}
	_, err := k.Renew(now)
	return k, err
}

// OpenToRenew is Open for [Keys.RenewWith], [Keys.VoidWith], [Keys.ReplaceWith] and [Keys.RenewTokenKey]: the leaf
// and the key of tokens may be damaged, and the key of the CA elsewhere.
func OpenToRenew(dir string, site job.SiteID) (*Keys, error) {
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	k := &Keys{dir: dir, site: site}
	if err := k.read(toRenew); err != nil {
		return nil, fmt.Errorf("keys of site %s: %w", site, err)
	}
	return k, nil
}

// checkFolder says why dir cannot be the folder of keys, nil if it can.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", dir, ErrNoKeys)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder; %s", dir, fromCopy)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("folder of keys %s has mode %04o: others can look into it; chmod 700 it if they did not", dir, info.Mode().Perm())
	}
	return nil
}

// Dir returns the folder of the keys.
func (k *Keys) Dir() string { return k.dir }

// Site returns whose keys they are.
func (k *Keys) Site() job.SiteID { return k.site }

// Bundle returns what other sites are told of this one.
func (k *Keys) Bundle() Bundle {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.bundle
}

// CA returns the certificate of the authority that signs leafs now.
func (k *Keys) CA() *x509.Certificate {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ca
}

// Leaf returns the key and chain for TLS. They are not to be changed.
func (k *Keys) Leaf() *tls.Certificate {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.leaf
}

// TokenKey returns the key that signs tokens of users, for meta/trust/token alone.
func (k *Keys) TokenKey() *ecdsa.PrivateKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.token
}

// Sign signs a message by the key of the leaf and returns the chain that proves it
// beside; [Set.VerifyMessage] checks both. Messages of different kinds begin with
// different words, so that none is taken for another.
func (k *Keys) Sign(msg []byte) (sig []byte, chain [][]byte) {
	leaf := k.Leaf()
	sig, err := ecdsa.SignASN1(rand.Reader, leaf.PrivateKey.(*ecdsa.PrivateKey), messageSum(msg))
	if err != nil { // only without randomness, which ends the process anyway
		panic("sign: " + err.Error())
	}
	return sig, leaf.Certificate
}

// String implements fmt.Stringer.
func (k *Keys) String() string { return "keys of site " + string(k.site) }

// GoString implements fmt.GoStringer.
func (k *Keys) GoString() string { return k.String() }

// LogValue implements slog.LogValuer.
func (k *Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }
