package places

import (
	"net"
	"net/netip"
)

// subnetBits is how much of an IPv6 address a network hands out: who has one has 2⁶⁴
// addresses.
const subnetBits = 64

// Sender returns what an address, with a port or without, counts as where something is
// bounded for each address: one of IPv4 as itself, one of IPv6 that holds an IPv4 address as
// that, any other of IPv6 as the /64 that it is in, with its zone. A text that is no address
// counts as itself.
func Sender(address string) string {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap()
	if ip.Is4() || ip.IsLoopback() { // one machine has one ::1
		return ip.String()
	}
	subnet := netip.PrefixFrom(ip.WithZone(""), subnetBits).Masked().String()
	if zone := ip.Zone(); zone != "" {
		return subnet + "%" + zone
	}
	return subnet
}
