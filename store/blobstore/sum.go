package blobstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Sum names a chunk: the sha256 of its bytes.
type Sum [sha256.Size]byte

// ErrBadSum is returned when a text is not the name of a chunk.
var ErrBadSum = errors.New("a chunk's name is 64 of 0-9 and a-f")

// SumOf returns the name of data.
func SumOf(data []byte) Sum { return sha256.Sum256(data) }

// String returns the 64 hexadecimal digits that [ParseSum] reads back.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Short returns the first 12 digits, for messages.
func (s Sum) Short() string { return hex.EncodeToString(s[:6]) }

// ParseSum reads what [Sum.String] writes and nothing else: a chunk has one
// name. The error wraps [ErrBadSum].
func ParseSum(text string) (Sum, error) {
	var s Sum
	if len(text) != hex.EncodedLen(len(s)) {
		return Sum{}, fmt.Errorf("chunk name of %d bytes: %w", len(text), ErrBadSum)
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil || s.String() != text {
		return Sum{}, fmt.Errorf("chunk name %q: %w", text, ErrBadSum)
	}
	return s, nil
}

// path is where the chunk lies in the store's folder.
func (s Sum) path() string {
	name := s.String()
	return chunksDir + "/" + name[:2] + "/" + name
}

// shardDir is the folder of the chunks whose sum begins with b.
func shardDir(b byte) string {
	return chunksDir + "/" + hex.EncodeToString([]byte{b})
}
