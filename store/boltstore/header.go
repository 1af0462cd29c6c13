package boltstore

import (
	"encoding/binary"
	"hash/fnv"
	"os"

	"kith/store"
)

// The two header pages of a bbolt file take turns; each holds, behind a page
// header of 16 bytes, the fields below in the machine's byte order. They are
// read here to learn how long the file must be and where its trees begin.
const (
	headerOffset   = 16
	headerMagic    = 0xED0CDAED
	magicAt        = 0
	pageSizeAt     = 8
	rootAt         = 16
	usedPagesAt    = 40
	transactionAt  = 48
	checksumAt     = 56
	headerLength   = 64
	largestPage    = 1 << 24
	smallestHeader = 1 << 10
)

// header is what the newer valid header page says.
type header struct {
	pageSize    uint64 // bytes
	pages       uint64 // in use
	root        uint64 // the page of the tree of tables
	transaction uint64
}

// newestHeader returns the newer valid header of a file.
// A file with none is left to bbolt, which refuses it.
//
// Records hold bytes of users, which may look like a header: only the two places of
// headers count.
func newestHeader(f *os.File, size int64) (header, error) {
	first, found := readHeader(f, 0)
	if found {
		if second, ok := readHeader(f, int64(first.pageSize)); ok && second.pageSize == first.pageSize && second.transaction > first.transaction {
			return second, nil
		}
		return first, nil
	}
	// The second header lies one page behind the first, and the page size is
	// in the header, so all sizes are tried.
	for at := int64(smallestHeader); at < min(size, 1<<25); at <<= 1 {
		if h, ok := readHeader(f, at); ok && h.pageSize == uint64(at) {
			return h, nil
		}
	}
	return header{}, store.ErrCorrupt
}

func readHeader(f *os.File, at int64) (header, bool) {
	var b [headerLength]byte
	if _, err := f.ReadAt(b[:], at+headerOffset); err != nil {
		return header{}, false
	}
	h := fnv.New64a()
	h.Write(b[:checksumAt])
	order := binary.NativeEndian
	pageSize := uint64(order.Uint32(b[pageSizeAt:]))
	if order.Uint32(b[magicAt:]) != headerMagic || order.Uint64(b[checksumAt:]) != h.Sum64() || pageSize < smallestHeader || pageSize > largestPage {
		return header{}, false
	}
	return header{
		pageSize: pageSize, pages: order.Uint64(b[usedPagesAt:]), root: order.Uint64(b[rootAt:]),
		transaction: order.Uint64(b[transactionAt:]),
	}, true
}
