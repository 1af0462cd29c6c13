package scratch

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports of [Address] are below those that the system gives out by itself to listeners and to
// connections, which would else take one before the test does.
const firstPort, ports = 20_000, 12_000

var given struct {
	sync.Mutex
	ports map[int]bool
}

// Address returns an address on loopback for a site that a test starts later. No other call of
// this process gets it.
func Address(t testing.TB) string {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(ports)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // somebody has it
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if given.ports == nil {
			given.ports = make(map[int]bool)
		}
		given.ports[port] = true
		return address
	}
	t.Fatalf("no port of %d to %d is free", firstPort, firstPort+ports-1)
	return ""
}
