package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// signatureFile is the signature over the bundle where the operator keeps the CA's key.
const signatureFile = "bundle.sig"

// Remedies for files that are damaged.
const (
	fromCopy   = "bring it back from a copy; without one make new keys with kithd init in another data folder, and join the other sites anew"
	renewToken = "bring it back from a copy, or make another one, which ends all tokens: kithd renew --token-key"
	renewLeaf  = "kithd renew makes a new one, with --ca-key FILE where the key of the CA is kept elsewhere"
)

// How much of the keys is to be there.
type wanted bool

const (
	whole   wanted = false
	toRenew wanted = true // all but the leaf, the CA's key and that of tokens
)

// fault names a file, what is wrong with it, and what to do.
func (k *Keys) fault(file, what, remedy string) error {
	return fmt.Errorf("%s %s; %s", filepath.Join(k.dir, file), what, remedy)
}

// mended says of an error of a file what to do. It names the file already.
func mended(err error, remedy string) error {
	switch {
	case errors.Is(err, errShared):
		return err // it has its remedy
	case errors.Is(err, fs.ErrPermission):
		remedy = "make it readable for the user of kithd"
	}
	return fmt.Errorf("%w; %s", err, remedy)
}

// read reads the files and checks that they fit each other and the site.
func (k *Keys) read(want wanted) error {
	path := filepath.Join(k.dir, bundleFile)
	raw, err := readFile(path)
	if err != nil {
		return mended(err, fromCopy)
	}
	if k.bundle, err = ParseBundle(raw); err != nil {
		return mended(fmt.Errorf("%s: %w", path, err), fromCopy)
	}
	if k.bundle.Site != k.site {
		return k.fault(bundleFile, "is of site "+string(k.bundle.Site), "correct the site in the configuration, or "+fromCopy)
	}
	k.token, _, err = readPEM(filepath.Join(k.dir, tokenFile))
	switch {
	case want == toRenew:
	case err != nil:
		return mended(err, renewToken)
	case k.token == nil || !onP256(k.token):
		return k.fault(tokenFile, "does not hold one ECDSA key on P-256", renewToken)
	}
	if err := k.readLeaf(); err != nil {
		next := filepath.Join(k.dir, nextFile)
		if want == whole || present(next) {
			return err
		}
		k.leaf = nil
	} else if done, err := k.readNext(); err != nil || done {
		return err
	}
	return k.readCA(want)
}

// readLeaf reads the leaf, its key and the CA that signed it.
func (k *Keys) readLeaf() error {
	key, chain, err := readPEM(filepath.Join(k.dir, leafFile))
	if err != nil {
		return mended(err, renewLeaf)
	}
	bad := func(what string) error { return k.fault(leafFile, what, renewLeaf) }
	switch {
	case key == nil || len(chain) != 2:
		return bad(fmt.Sprintf("is not a key, its leaf and its CA: it has %d certificates", len(chain)))
	case !key.PublicKey.Equal(chain[0].PublicKey):
		return bad("has a leaf that does not belong to the key in it")
	case chain[0].CheckSignatureFrom(chain[1]) != nil:
		return bad("has a leaf that its CA did not sign")
	case !k.bundle.Holds(chain[1]):
		return bad("has a CA that is not one of the site's bundle")
	}
	if site, err := claimedSite(chain); err != nil || site != k.site {
		return bad("has a leaf that is not of this site")
	}
	k.leaf = certificate(key, chain[0], chain[1])
	return nil
}

// readCA reads the CA and its key, if that is here.
func (k *Keys) readCA(want wanted) error {
	const remedy = "users who call this site have the file, too, and so has whoever made a copy"
	_, cas, err := readPEM(filepath.Join(k.dir, CAFile))
	if err != nil {
		return mended(err, remedy)
	}
	if len(cas) != 1 || !k.bundle.Holds(cas[0]) {
		return k.fault(CAFile, "is not the one CA of the site's bundle", remedy)
	}
	k.ca = cas[0]
	caKey, _, err := readPEM(filepath.Join(k.dir, caKeyFile))
	const elsewhere = "bring it back from a copy; to keep it elsewhere, kithd renew --ca-key FILE"
	switch {
	case errors.Is(err, fs.ErrNotExist): // the operator keeps it
		if want == whole && k.renewsItself() {
			return k.fault(caKeyFile, "is missing, by which the site renews its certificate", elsewhere)
		}
	case err != nil:
		return mended(err, elsewhere)
	case caKey == nil || !caKey.PublicKey.Equal(k.ca.PublicKey):
		return k.fault(caKeyFile, "is not the key of "+CAFile, elsewhere)
	default:
		k.caKey = caKey
	}
	return k.readSignature()
}

// renewsItself reports whether the leaf was made by a site that has its CA's key: such a
// leaf lives for a week, one that the operator makes for 90 days.
func (k *Keys) renewsItself() bool {
	leaf := k.leaf.Leaf
	return leaf.NotAfter.Sub(leaf.NotBefore) <= leafLife+backdated && leaf.NotAfter.Before(k.ca.NotAfter)
}

// readSignature reads the operator's signature over the bundle. One that does not fit is of a
// change that was broken off, and is as good as none.
func (k *Keys) readSignature() error {
	raw, err := readFile(filepath.Join(k.dir, signatureFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return mended(err, "kithd renew --ca-key FILE --void writes it anew")
	case k.bundle.Signed(k.bundle, raw):
		k.signature = raw
	}
	return nil
}
