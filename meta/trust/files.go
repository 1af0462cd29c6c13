package trust

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"kith/internal/durable"
)

// maxKeyFile bounds what is read of a file of keys, in bytes.
const maxKeyFile = 64 << 10

// beforeFile is called before a file of keys is replaced or removed; tests crash there.
var beforeFile = func(path string) error { return nil }

// writeFile puts data at path, mode 0600, so that a crash leaves the old file or the new.
func writeFile(path string, data []byte) error {
	if err := beforeFile(path); err != nil {
		return err
	}
	return durable.WriteFile(path, data)
}

// errShared is returned for a file that others than its owner can use.
var errShared = errors.New("others can use it")

// readFile reads a file of keys that only its owner can read. It does not wait for who would
// write into a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %04o: %w; chmod 600 it if they did not", path, info.Mode().Perm(), errShared)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(raw) > maxKeyFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxKeyFile)
	}
	return raw, err
}

// present reports whether something is at path.
func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// The types of blocks in files of keys.
const (
	keyBlock  = "PRIVATE KEY"
	certBlock = "CERTIFICATE"
)

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}

// readPEM reads the one key, if there is one, and the certificates of a file.
func readPEM(path string) (key *ecdsa.PrivateKey, certs []*x509.Certificate, err error) {
	rest, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return key, certs, nil
		}
		switch block.Type {
		case keyBlock:
			// The library's error could quote the file.
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			ec, ok := parsed.(*ecdsa.PrivateKey)
			if err != nil || !ok || key != nil {
				return nil, nil, fmt.Errorf("%s does not hold one ECDSA key", path)
			}
			key = ec
		case certBlock:
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: certificate %d is unreadable", path, len(certs)+1)
			}
			certs = append(certs, c)
		default:
			return nil, nil, fmt.Errorf("%s: unknown block; only keys and certificates belong there", path)
		}
	}
}
