package explore

import "math/bits"

// digest is a hash of a state of 128 bits. Two states of one digest would be
// taken for one; among a hundred million states the chance of that is below
// one in 10^22.
type digest [2]uint64

// digestOf hashes b, eight bytes at a time, in two lanes.
func digestOf(b []byte) digest {
	const k0, k1, k2, k3 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3
	h0, h1 := uint64(len(b))^k2, uint64(len(b))*k3
	for len(b) > 0 {
		var w uint64
		if len(b) >= 8 {
			w = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
			b = b[8:]
		} else {
			for i, c := range b {
				w |= uint64(c) << (8 * i)
			}
			b = nil
		}
		h0 = mix(h0^w^k0, k1+h0)
		h1 = mix(h1+w*k3, k2^bits.RotateLeft64(h1, 29))
	}
	return digest{mix(h0^k3, h1^k0), mix(h1^k1, h0^k2)}
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a|1, b|1)
	return hi ^ lo ^ a
}

// table numbers digests in the order in which they were added.
type table struct {
	slots  []uint32 // number + 1
	keys   []digest
	growAt int
}

func newTable() *table { return &table{slots: make([]uint32, 1<<16), growAt: 1 << 15} }

// add returns the number of a digest, and whether it is new.
func (t *table) add(d digest) (int, bool) {
	if len(t.keys) >= t.growAt {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for at := d[0] & mask; ; at = (at + 1) & mask {
		n := t.slots[at]
		if n == 0 {
			t.keys = append(t.keys, d)
			t.slots[at] = uint32(len(t.keys))
			return len(t.keys) - 1, true
		}
		if t.keys[n-1] == d {
			return int(n - 1), false
		}
	}
}

func (t *table) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	t.growAt = len(t.slots) / 2
	mask := uint64(len(t.slots) - 1)
	for i, d := range t.keys {
		at := d[0] & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i + 1)
	}
}
