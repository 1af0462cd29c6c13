package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Signer signs in the name of the site. The chain is that of the certificate whose key
// has signed, the leaf first, in DER.
type Signer interface {
	Sign(message []byte) (signature []byte, chain [][]byte, err error)
}

// headPrefix begins what is signed, so that a signature means nothing elsewhere.
const headPrefix = "kith audit 1\x00"

// mostSigned bounds signature and chain of a head, in bytes.
const mostSigned = 5 << 10

// Head says what the log of a site was at a time.
type Head struct {
	Site string `json:"site"`
	// Number is that of the last line, Hash its hash.
	Number uint64    `json:"n"`
	Hash   Hash      `json:"sha256"`
	Time   time.Time `json:"time"`
	// Signature is over Message, by the key of the first certificate of Chain.
	Signature []byte   `json:"signature,omitempty"`
	Chain     [][]byte `json:"chain,omitempty"`
}

// Message is what the signature of a head is over.
func (h *Head) Message() []byte {
	m := append([]byte(headPrefix), h.Site...)
	m = append(m, 0)
	m = binary.BigEndian.AppendUint64(m, h.Number)
	m = append(m, h.Hash[:]...)
	return binary.BigEndian.AppendUint64(m, uint64(h.Time.UnixNano())) //nolint:gosec // the bits are what is signed
}

// size is how much of a line signature and chain take, in bytes before they are encoded.
func (h *Head) size() int {
	size := len(h.Signature)
	for _, c := range h.Chain {
		size += len(c)
	}
	return size
}

// String returns NUMBER:SHA256.
func (h *Head) String() string { return fmt.Sprintf("%d:%v", h.Number, h.Hash) }

// errUnsigned is why there is no head.
var errUnsigned = errors.New("the signer of the audit log gave nothing that fits into a line")

// sign returns a signed head.
func sign(s Signer, h Head) (*Head, error) {
	signature, chain, err := s.Sign(h.Message())
	if err != nil {
		return nil, fmt.Errorf("sign head %d of the audit log: %w", h.Number, err)
	}
	h.Signature, h.Chain = signature, chain
	if size := h.size(); len(signature) == 0 || size > mostSigned {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errUnsigned, size, mostSigned)
	}
	return &h, nil
}
