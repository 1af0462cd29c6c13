package synfilter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Where the filter of a TCP socket finds what it looks at: segments begin with their TCP
// header, and the header of IP is at a place that the kernel knows.
const (
	tcpFlags = 13
	ipHeader = 1<<32 - 0x100000 // SKF_NET_OFF

	flagSYN, flagACK = 0x02, 0x10

	keep = 1<<32 - 1 // so many bytes
	drop = 0
)

// program returns a classic BPF program that drops SYN segments from some networks: whole
// addresses of IPv4, and 32, 64 or 128 bits of IPv6.
func program(from []netip.Prefix) []unix.SockFilter {
	p := []unix.SockFilter{
		load(unix.BPF_B, tcpFlags),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: flagSYN | flagACK},
		unless(flagSYN, 1), // nothing but the request for a connection
		skip(1),
		end(keep),
		load(unix.BPF_B, ipHeader),
		{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: 4}, // the version
	}
	four := []unix.SockFilter{load(unix.BPF_W, ipHeader+12)}
	var six []unix.SockFilter
	for _, n := range from {
		if n.Addr().Is4() {
			a := n.Addr().As4()
			four = append(four, unless(binary.BigEndian.Uint32(a[:]), 1), end(drop))
			continue
		}
		a := n.Addr().As16()
		for word := range n.Bits() / 32 {
			rest := uint8(2*(n.Bits()/32-word) - 1) // past what is left of this network
			six = append(six, load(unix.BPF_W, ipHeader+8+4*uint32(word)), unless(binary.BigEndian.Uint32(a[4*word:]), rest))
		}
		six = append(six, end(drop))
	}
	four, six = append(four, end(keep)), append(six, end(keep))
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: 4}, skip(len(four)))
	return append(append(p, four...), six...)
}

func load(size uint16, at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
}

// unless skips instructions where what was loaded is not k.
func unless(k uint32, skipped uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skipped, K: k}
}

func skip(n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(n)}
}

func end(kept uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: kept}
}
