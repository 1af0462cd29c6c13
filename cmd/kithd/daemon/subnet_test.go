package daemon

import (
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/identity"
)

// Who has an address of IPv6 has 2⁶⁴ of them: a network hands out a /64. What is bounded for
// each address is bounded for each of those, another one finds its places, and an IPv4 address
// within IPv6 counts as itself.
func TestSubnetIsOneAddress(t *testing.T) {
	b, _ := smallBorder()
	many := []string{"2001:db8::1", "2001:db8::2", "2001:db8::3:4", "2001:db8::ffff:1:2:3", "2001:db8:0:0:8000::"}
	others := []string{"2001:db8:0:1::1", "192.0.2.1"}

	h := make(handed, len(many)+len(others))
	for _, host := range append(many, others...) {
		h <- addressed{host: host}
	}
	close(h)
	var in []string
	for l := b.listener(h); ; {
		c, err := l.Accept()
		if err != nil {
			break
		}
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		in = append(in, host)
	}
	if want := b.bounds.connectionsOne + len(others); len(in) != want {
		t.Errorf("connections of %q are in, want %d", in, want)
	}

	refused := 0
	for n := range 60 {
		_, err := b.tap(from(t.Context(), many[n%len(many)]), nil)
		if status.Code(err) == codes.ResourceExhausted {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 60 calls are refused, want 10", refused)
	}

	lanes := make(map[lane]bool)
	for _, address := range []string{"[2001:db8::1]:1", "[2001:db8::2]:2", "[::ffff:192.0.2.1]:3", "192.0.2.1:4"} {
		lanes[laneOf(identity.With(t.Context(), identity.Caller{Address: address}))] = true
	}
	if len(lanes) != 2 {
		t.Errorf("callers have the lanes %v, want two", lanes)
	}
}
