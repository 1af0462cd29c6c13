package shim

import (
	"encoding/binary"
	"errors"
)

// Bounds of a message. A job's command line and environment travel in one
// message, and the kernel takes no more than 2 MiB of those.
const (
	// MaxMessage is the longest message to a shim, in bytes.
	MaxMessage = 4 << 20
	// MaxReply is the longest message from a shim.
	MaxReply = 4 << 10
	// maxStrings bounds a list, so that a torn length cannot ask for memory.
	maxStrings = 1 << 18
)

// errMalformed is returned for a message that does not decode.
var errMalformed = errors.New("malformed message")

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads what the append functions wrote. The first mistake makes it
// bad, after which everything reads as zero; the caller looks once, at the end.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.skip(n)
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	d.skip(n)
	return v
}

// skip goes past a number of n bytes; n is not positive if there was none.
func (d *decoder) skip(n int) {
	if n <= 0 {
		d.bad, d.rest = true, nil
		return
	}
	d.rest = d.rest[n:]
}

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) strings() []string {
	n := d.uint()
	// Every string takes at least the byte of its length.
	if n > uint64(len(d.rest)) || n > maxStrings {
		d.bad, d.rest = true, nil
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) bool() bool {
	v := d.uint()
	if v > 1 {
		d.bad = true
	}
	return v == 1
}

// err reports a mistake, or bytes that were not read.
func (d *decoder) err() error {
	if d.bad || len(d.rest) > 0 {
		return errMalformed
	}
	return nil
}
