package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"

	"kith/store"
)

// MaxEntry is the most that an entry may carry, in bytes. Package raftstore keeps far below.
const MaxEntry = 64 << 20

// entryHead is checksum, type, term, time and the length of the extensions.
const entryHead = 4 + 1 + 8 + 8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntry encodes an entry of the log behind b.
func appendEntry(b []byte, l *raft.Log) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, l.Term)
	var appended int64
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(appended))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(append(b, l.Extensions...), l.Data...)
	binary.BigEndian.PutUint32(b[at:], entrySum(l.Index, b[at+4:]))
	return b
}

// entrySum includes the index, so that an entry in another's place is noticed.
func entrySum(index uint64, content []byte) uint32 {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], index)
	return crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, content)
}

// checkEntry reports whether a stored entry is as it was written.
func checkEntry(index uint64, b []byte) error {
	if len(b) < entryHead || binary.BigEndian.Uint32(b) != entrySum(index, b[4:]) ||
		uint64(binary.BigEndian.Uint32(b[21:])) > uint64(len(b)-entryHead) {
		return fmt.Errorf("entry %d: checksum does not match: %w", index, store.ErrCorrupt)
	}
	return nil
}

// decodeEntry sets l to a stored entry. Nothing of b is kept.
func decodeEntry(index uint64, b []byte, l *raft.Log) error {
	if err := checkEntry(index, b); err != nil {
		return err
	}
	extensions := binary.BigEndian.Uint32(b[21:])
	rest := append([]byte(nil), b[entryHead:]...)
	*l = raft.Log{Index: index, Type: raft.LogType(b[4]), Term: binary.BigEndian.Uint64(b[5:]), Data: rest[extensions:]}
	if appended := int64(binary.BigEndian.Uint64(b[13:])); appended != 0 {
		l.AppendedAt = time.Unix(0, appended)
	}
	if extensions > 0 {
		l.Extensions = rest[:extensions:extensions]
	}
	return nil
}
