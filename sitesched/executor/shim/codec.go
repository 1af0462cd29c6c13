package shim

import "errors"

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

func appendUint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendInt maps small negative numbers to small positive ones first.
func appendInt(b []byte, v int64) []byte {
	return appendUint(b, uint64(v)<<1^uint64(v>>63))
}

func appendString(b []byte, s string) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendUint(b, uint64(len(list)))
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
	var v uint64
	for i, c := range d.rest {
		if i == 9 && c > 1 || i > 9 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.bad, d.rest = true, nil
	return 0
}

func (d *decoder) int() int64 {
	v := d.uint()
	return int64(v>>1) ^ -int64(v&1)
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

// err reports a mistake, or bytes that nobody read.
func (d *decoder) err() error {
	if d.bad || len(d.rest) > 0 {
		return errMalformed
	}
	return nil
}
