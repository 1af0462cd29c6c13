package boltstore

import (
	"encoding/binary"
	"hash/fnv"
	"os"

	"kith/store"
)

// The two header pages of a bbolt file take turns; each holds, behind a page
// header of 16 bytes, the fields below in the machine's byte order. They are
// read here only to learn how long the file must be.
const (
	headerOffset   = 16
	headerMagic    = 0xED0CDAED
	magicAt        = 0
	pageSizeAt     = 8
	usedPagesAt    = 40
	transactionAt  = 48
	checksumAt     = 56
	headerLength   = 64
	largestPage    = 1 << 24
	smallestHeader = 1 << 10
)

// usedBytes returns how many bytes the newer valid header says are in use.
// A file with no valid header is left to bbolt, which refuses it.
func usedBytes(f *os.File, size int64) (int64, error) {
	var used, newest uint64
	found := false
	try := func(at int64) {
		page, tx, ok := readHeader(f, at)
		if ok && (!found || tx > newest) {
			found, newest, used = true, tx, page
		}
	}
	try(0)
	// The second header lies one page behind the first, and the page size is
	// in the header, so all sizes are tried.
	for at := int64(smallestHeader); at < min(size, 1<<25); at <<= 1 {
		try(at)
	}
	if !found {
		return 0, store.ErrCorrupt
	}
	return int64(used), nil
}

func readHeader(f *os.File, at int64) (usedBytes, transaction uint64, ok bool) {
	var b [headerLength]byte
	if _, err := f.ReadAt(b[:], at+headerOffset); err != nil {
		return 0, 0, false
	}
	h := fnv.New64a()
	h.Write(b[:checksumAt])
	order := binary.NativeEndian
	pageSize := uint64(order.Uint32(b[pageSizeAt:]))
	if order.Uint32(b[magicAt:]) != headerMagic || order.Uint64(b[checksumAt:]) != h.Sum64() || pageSize > largestPage {
		return 0, 0, false
	}
	return order.Uint64(b[usedPagesAt:]) * pageSize, order.Uint64(b[transactionAt:]), true
}
