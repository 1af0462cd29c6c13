package leads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"kith/store"
	"kith/store/codec"
)

// An entry of the log is a checksum, CRC-32C of the rest, then its kind and the format of facts
// that a member must know. One that begins a lead has the name of the member behind. A part of a
// batch has its lead, its number, the part's number, all as varints, a byte that is 1 in the last
// part, and writes: a byte of flags, the table if it is another one than before, key and value.
const (
	beginEntry = 1
	partEntry  = 2
)

const (
	hasValue = 1 << iota
	isMerge
	isPrefix
	hasTable
)

// part is an entry that carries records.
type part struct {
	lead   uint64 // the index of the entry that begins the lead
	number uint64 // of the batch in its lead, from 1 on
	part   uint64 // from 0 on
	last   bool
	writes []byte // encoded
}

// entry is one of the two kinds.
type entry struct {
	begins bool
	part   part
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealed(b []byte) []byte {
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// Begin encodes the entry that begins a lead of a member.
func Begin(member string) []byte {
	return sealed(append([]byte{0, 0, 0, 0, beginEntry, codec.PlainFormat}, member...))
}

// MaxPart is how many bytes of records an entry carries, but for a single record that is larger.
const MaxPart = 256 << 10

// Parts encodes a batch as one or more entries, each of about [MaxPart] bytes at most.
func Parts(lead, number uint64, writes []codec.Write) [][]byte {
	var entries [][]byte
	for first := true; first || len(writes) > 0; first = false {
		var body []byte
		var table codec.Table
		format := byte(codec.PlainFormat)
		n := 0
		for ; n < len(writes) && (n == 0 || len(body)+len(writes[n].Key)+len(writes[n].Value) <= MaxPart); n++ {
			format = max(format, codec.FormatOf(writes[n].Table))
			body = appendWrite(body, &writes[n], table)
			table = writes[n].Table
		}
		writes = writes[n:]
		b := []byte{0, 0, 0, 0, partEntry, format}
		b = binary.AppendUvarint(b, lead)
		b = binary.AppendUvarint(b, number)
		b = binary.AppendUvarint(b, uint64(len(entries)))
		b = append(b, last(len(writes) == 0))
		entries = append(entries, sealed(append(b, body...)))
	}
	return entries
}

func last(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func appendWrite(b []byte, w *codec.Write, table codec.Table) []byte {
	var flags byte
	if w.Value != nil {
		flags |= hasValue
	}
	if w.Merge {
		flags |= isMerge
	}
	if w.Prefix {
		flags |= isPrefix
	}
	if w.Table != table {
		flags |= hasTable
	}
	b = append(b, flags)
	if w.Table != table {
		b = append(append(b, byte(len(w.Table))), w.Table...)
	}
	b = append(binary.AppendUvarint(b, uint64(len(w.Key))), w.Key...)
	if w.Value != nil {
		b = append(binary.AppendUvarint(b, uint64(len(w.Value))), w.Value...)
	}
	return b
}

var errShort = errors.New("it ends in the midst")

// decodeEntry checks an entry. The result refers to data. Its errors wrap [store.ErrCorrupt] or
// [store.ErrNewerFormat].
func decodeEntry(data []byte) (entry, error) {
	if len(data) < 6 || binary.BigEndian.Uint32(data) != crc32.Checksum(data[4:], castagnoli) {
		return entry{}, fmt.Errorf("checksum does not match: %w", store.ErrCorrupt)
	}
	if data[5] > codec.Format {
		return entry{}, fmt.Errorf("an entry of format %d, this version knows up to %d: %w; upgrade kithd", data[5], codec.Format, store.ErrNewerFormat)
	}
	switch data[4] {
	case beginEntry:
		return entry{begins: true}, nil
	case partEntry:
	default:
		return entry{}, fmt.Errorf("an entry of kind %d: %w; upgrade kithd", data[4], store.ErrNewerFormat)
	}
	b := data[6:]
	var p part
	for _, to := range []*uint64{&p.lead, &p.number, &p.part} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return entry{}, fmt.Errorf("%w: %w", errShort, store.ErrCorrupt)
		}
		*to, b = v, b[n:]
	}
	if len(b) == 0 || b[0] > 1 {
		return entry{}, fmt.Errorf("%w: %w", errShort, store.ErrCorrupt)
	}
	p.last, p.writes = b[0] == 1, b[1:]
	return entry{part: p}, nil
}

// decodeWrites returns the changes of a part. They refer to b.
func decodeWrites(b []byte) ([]codec.Write, error) {
	var writes []codec.Write
	var table codec.Table
	bytes := func(length uint64) (taken []byte, ok bool) {
		if uint64(len(b)) < length {
			return nil, false
		}
		taken, b = b[:length:length], b[length:]
		return taken, true
	}
	counted := func() (taken []byte, ok bool) {
		length, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, false
		}
		b = b[n:]
		return bytes(length)
	}
	for len(b) > 0 {
		flags := b[0]
		b = b[1:]
		ok := flags < 2*hasTable && (flags&hasTable != 0 || table != "")
		if ok && flags&hasTable != 0 {
			var name []byte
			if ok = len(b) > 0 && b[0] > 0; ok { // no table is nameless
				length := b[0]
				b = b[1:]
				name, ok = bytes(uint64(length))
			}
			table = codec.Table(name)
		}
		w := codec.Write{Table: table, Merge: flags&isMerge != 0, Prefix: flags&isPrefix != 0}
		if ok {
			w.Key, ok = counted()
		}
		if ok && flags&hasValue != 0 {
			w.Value, ok = counted()
		}
		if !ok {
			return nil, fmt.Errorf("a change to %q: %w: %w", table, errShort, store.ErrCorrupt)
		}
		writes = append(writes, w)
	}
	return writes, nil
}
