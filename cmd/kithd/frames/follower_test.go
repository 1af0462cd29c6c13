package frames

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frame is one of so many bytes of payload, of which nothing counts.
func frame(kind byte, length int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(length)<<8|uint32(kind)) //nolint:gosec // a length has 24 bits
	return append(b, make([]byte, 5+length)...)
}

func connection(frames ...[]byte) []byte {
	return slices.Concat(append([][]byte{[]byte(preface)}, frames...)...)
}

// slow is what the follower should say of all bytes of a connection, written without it.
func slow(all []byte, begins int) (sum Cost) {
	r := bytes.NewReader(all)
	skip := func(n int) { r.Seek(int64(n), 1) } //nolint:errcheck // beyond the end there is nothing
	skip(len(preface))
	for r.Len() >= 9 {
		var h struct {
			Length [3]byte
			Kind   byte
			Rest   [5]byte
		}
		binary.Read(r, binary.BigEndian, &h) //nolint:errcheck // there are nine bytes
		length := int(binary.BigEndian.Uint32(append([]byte{0}, h.Length[:]...)))
		skip(length)
		length = min(length, 16384)
		cost, isIdle := 1, true
		switch h.Kind {
		case 0: // DATA
			isIdle = length == 0
		case 1: // HEADERS
			cost, isIdle = 2+length/256, false
			if begins > 0 {
				cost, isIdle = begins+length/256, true
			}
		case 3: // RST_STREAM
			cost = 5
		case 4: // SETTINGS
			cost += length / 6
		default:
			cost += length / 256
		}
		sum.All += cost
		if isIdle {
			sum.Idle += cost
		}
	}
	return sum
}

func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		bytes  []byte
		begins int
		want   Cost
	}{
		"nothing":                 {nil, 0, Cost{}},
		"half a preface":          {[]byte(preface)[:10], 0, Cost{}},
		"preface":                 {[]byte(preface), 0, Cost{}},
		"another preface":         {make([]byte, 24), 0, Cost{}},
		"half a header":           {connection(frame(6, 8)[:8]), 0, Cost{}},
		"ping without its bytes":  {connection(frame(6, 8)[:9]), 0, Cost{1, 1}},
		"ping":                    {connection(frame(6, 8)), 0, Cost{1, 1}},
		"two pings":               {connection(frame(6, 8), frame(6, 8)), 0, Cost{2, 2}},
		"data":                    {connection(frame(0, 16384)), 0, Cost{1, 0}},
		"a byte of data":          {connection(frame(0, 1)), 0, Cost{1, 0}},
		"empty data":              {connection(frame(0, 0)), 0, Cost{1, 1}},
		"call":                    {connection(frame(1, 255), frame(0, 100)), 0, Cost{3, 0}},
		"call with large headers": {connection(frame(1, 1024)), 0, Cost{6, 0}},
		"call of a peer":          {connection(frame(1, 255), frame(0, 100)), 100, Cost{101, 100}},
		"call taken back":         {connection(frame(1, 100), frame(3, 4)), 0, Cost{7, 5}},
		"continuation":            {connection(frame(9, 16384)), 0, Cost{65, 65}},
		"settings":                {connection(frame(4, 0), frame(4, 36)), 0, Cost{8, 8}},
		"full settings":           {connection(frame(4, 16380)), 0, Cost{2731, 2731}},
		"window":                  {connection(frame(8, 4)), 0, Cost{1, 1}},
		"unknown":                 {connection(frame(200, 300)), 0, Cost{2, 2}},
		"longer than it may be":   {connection(frame(9, 1<<24-1)[:9], frame(6, 8)), 0, Cost{65, 65}},
	} {
		f := newFollower(c.begins)
		if got := f.follow(c.bytes); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := slow(c.bytes, c.begins); got != c.want {
			t.Errorf("%s: the reference says %+v, want %+v", name, got, c.want)
		}
		for _, size := range []int{1, 2, 8, 9, 10, 23, 24, 25} {
			if got := inPieces(c.bytes, c.begins, func() int { return size }); got != c.want {
				t.Errorf("%s, %d bytes at a time: %+v, want %+v", name, size, got, c.want)
			}
		}
	}
}

// inPieces follows bytes that come in pieces of such sizes.
func inPieces(all []byte, begins int, size func() int) (sum Cost) {
	f := newFollower(begins)
	for len(all) > 0 {
		n := min(max(0, size()), len(all))
		one := f.follow(all[:n])
		sum.All, sum.Idle = sum.All+one.All, sum.Idle+one.Idle
		all = all[n:]
	}
	return sum
}

// However a connection is cut into reads, its frames cost what the reference says.
func TestFollowTornReads(t *testing.T) {
	seed := uint64(1)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		all := []byte(preface)
		for range r.IntN(20) {
			length := []int{0, 4, 8, r.IntN(40), r.IntN(3000)}[r.IntN(5)]
			all = append(all, frame(byte(r.IntN(12)), length)...) //nolint:gosec // fits
		}
		all = all[:r.IntN(len(all)+1)]
		begins, most := 100*r.IntN(2), 1+r.IntN(100)
		want := slow(all, begins)
		if got := inPieces(all, begins, func() int { return r.IntN(most + 1) }); got != want {
			t.Fatalf("seed %d: %+v, want %+v, in pieces of up to %d: %x", seed, got, want, most, all)
		}
	}
}

// What strangers send is followed as the reference does, however it is cut.
func FuzzFollow(f *testing.F) {
	f.Add(connection(frame(4, 0), frame(1, 50), frame(0, 5), frame(6, 8)), []byte{1, 9, 30}, true)
	f.Add(connection(frame(9, 300), frame(0, 0)), []byte{0, 24}, false)
	f.Add([]byte(preface+"\xff\xff\xff\x04"), []byte{25}, false)
	f.Fuzz(func(t *testing.T, all, sizes []byte, peer bool) {
		begins := 0
		if peer {
			begins = 100
		}
		i := 0
		got := inPieces(all, begins, func() int {
			if i++; i > len(sizes) {
				return len(all)
			}
			return int(sizes[i-1])
		})
		if want := slow(all, begins); got != want || got.Idle > got.All {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
