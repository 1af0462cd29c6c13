package trust

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kith/internal/job"
)

// OwnBundle reads what the folder of keys of a site tells other sites of it, without its
// keys. It returns [ErrNoKeys] if there is no bundle in the folder.
func OwnBundle(dir string) (Bundle, error) {
	path := filepath.Join(dir, bundleFile)
	raw, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Bundle{}, fmt.Errorf("%s: %w", dir, ErrNoKeys)
	}
	if err != nil {
		return Bundle{}, err
	}
	b, err := ParseBundle(raw)
	if err != nil {
		return Bundle{}, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// ParseCAs reads the CAs of one site from PEM, as in its ca.crt: 1 to [MaxCAs]
// certificates. The bundle that it returns has sequence 1 and no floor.
func ParseCAs(text []byte) (Bundle, error) {
	b := Bundle{Sequence: 1}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != certBlock || len(b.CAs) == MaxCAs {
			return Bundle{}, fmt.Errorf("it must hold 1 to %d certificates and nothing else: %w", MaxCAs, ErrBundle)
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Bundle{}, fmt.Errorf("certificate %d is unreadable: %w", len(b.CAs)+1, ErrBundle)
		}
		b.CAs = append(b.CAs, ca)
	}
	if len(b.CAs) == 0 {
		return Bundle{}, fmt.Errorf("it holds no certificate: %w", ErrBundle)
	}
	if uris := b.CAs[0].URIs; len(uris) == 1 {
		b.Site = job.SiteID(uris[0].Host)
	}
	// The rules of a bundle are those of ParseBundle.
	return ParseBundle(b.Marshal())
}
