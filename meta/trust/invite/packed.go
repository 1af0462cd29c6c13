package invite

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// names are the letters of sites and hosts. Three of them and the blank fit into two
// bytes, as 40³ is less than 2¹⁶: two usual addresses fit into an invitation.
const names = "\x00abcdefghijklmnopqrstuvwxyz0123456789-."

const base = 40

// The first byte of an address: the length of a host's name, or one of these.
const (
	maxHost = 253 // bytes, as DNS has it
	isIPv4  = 254
	isIPv6  = 255
)

// appendName appends the length of s and its letters; s has letters of names only.
func appendName(b []byte, s string) []byte {
	b = append(b, byte(len(s)))
	for len(s) > 0 {
		n := 0
		for k := range 3 {
			n *= base
			if k < len(s) {
				n += strings.IndexByte(names, s[k])
			}
		}
		b = binary.BigEndian.AppendUint16(b, uint16(n))
		s = s[min(3, len(s)):]
	}
	return b
}

// cutName reads what appendName wrote.
func cutName(b []byte) (name string, rest []byte, ok bool) {
	if len(b) == 0 {
		return "", nil, false
	}
	length, b := int(b[0]), b[1:]
	bytes := (length + 2) / 3 * 2
	if len(b) < bytes {
		return "", nil, false
	}
	text := make([]byte, 0, bytes/2*3)
	for k := 0; k < bytes; k += 2 {
		n := int(binary.BigEndian.Uint16(b[k:]))
		for _, digit := range [...]int{n / base / base, n / base % base, n % base} {
			if digit >= len(names) {
				return "", nil, false
			}
			text = append(text, names[digit])
		}
	}
	return string(text[:length]), b[bytes:], true
}

// appendAddress appends host:port. The error names the address and the remedy.
func appendAddress(b []byte, address string) ([]byte, error) {
	bad := func(why string) ([]byte, error) {
		return nil, fmt.Errorf("address %.64q: %s; write it as HOST:PORT: %w", address, why, ErrBadField)
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return bad("no host and port")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != portText {
		return bad("the port is not a number from 1 to 65535")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		switch {
		case ip.Zone() != "":
			return bad("a zone means nothing on another machine")
		case ip.Is4():
			b = append(b, isIPv4)
		default:
			b = append(b, isIPv6)
		}
		b = append(b, ip.AsSlice()...)
	} else {
		if !isHost(host) {
			return bad("the host is neither an IP address nor a name of a-z, 0-9, '-' and '.'")
		}
		b = appendName(b, host)
	}
	return binary.BigEndian.AppendUint16(b, uint16(port)), nil
}

func isHost(host string) bool {
	if host == "" || len(host) > maxHost {
		return false
	}
	for k := range len(host) {
		if strings.IndexByte(names[1:], host[k]) < 0 {
			return false
		}
	}
	return true
}

// cutAddress reads what appendAddress wrote.
func cutAddress(b []byte) (address string, rest []byte, ok bool) {
	if len(b) == 0 {
		return "", nil, false
	}
	var host string
	switch size := map[byte]int{isIPv4: 4, isIPv6: 16}[b[0]]; {
	case size == 0:
		if host, b, ok = cutName(b); !ok {
			return "", nil, false
		}
	case len(b) < 1+size:
		return "", nil, false
	default:
		ip, _ := netip.AddrFromSlice(b[1 : 1+size])
		host, b = ip.String(), b[1+size:]
	}
	if len(b) < 2 {
		return "", nil, false
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(b)))), b[2:], true
}
