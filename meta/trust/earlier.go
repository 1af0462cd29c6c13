package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

const (
	// earlierFile has the certificates, without keys, of the CAs that the site had before
	// its present ones: what they have signed in the audit log stays provable.
	earlierFile = "earlier.crt"
	// mostEarlier bounds them; the oldest goes first.
	mostEarlier = 32
)

// keepEarlier notes the CAs of a bundle but those that stay. The caller holds k.mu or is alone.
func (k *Keys) keepEarlier(cas []*x509.Certificate, stay ...*x509.Certificate) error {
	path := filepath.Join(k.dir, earlierFile)
	text, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var blocks [][]byte
	for rest := text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		blocks = append(blocks, pem.EncodeToMemory(b))
	}
	for _, ca := range cas {
		// A crash may have come after this file was written.
		if one := certPEM(ca); !slices.ContainsFunc(stay, ca.Equal) && !bytes.Contains(text, one) {
			blocks = append(blocks, one)
		}
	}
	return writeFile(path, bytes.Join(blocks[max(0, len(blocks)-mostEarlier):], nil))
}

// EarlierCAs returns the CAs that a site had before its present ones, a bundle for each,
// as its folder of keys has them: at most 32. Nothing of today may be proved by them.
func EarlierCAs(dir string) ([]Bundle, error) {
	path := filepath.Join(dir, earlierFile)
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Bundle
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || len(list) == mostEarlier {
			return list, nil
		}
		b, err := ParseCAs(pem.EncodeToMemory(block))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, b)
	}
}
