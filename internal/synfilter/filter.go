// Package synfilter has the kernel drop requests for connections (SYN segments) of some
// senders before it answers them, by a socket filter of the listener. To accept a
// connection and close it costs the site tens of microseconds, to drop its request less
// than one, and who sent it sends it again after a second, and after two more.
package synfilter

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostShut bounds the senders that are shut out at a time: each costs every SYN two to four
// instructions of the filter.
const mostShut = 64

// Filter is the filter of one listener. It is safe for use by several goroutines. A nil
// Filter, and one of a listener that takes no filter, shut nobody out.
type Filter struct {
	listener syscall.RawConn

	mu     sync.Mutex
	shut   map[netip.Prefix]*time.Timer
	failed bool // the kernel takes none
}

// New returns the filter of a listener: nil if that is no TCP socket. One of multipath TCP takes
// no filter.
func New(l net.Listener) *Filter {
	tcp, is := l.(*net.TCPListener)
	if !is {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return &Filter{listener: raw, shut: make(map[netip.Prefix]*time.Timer)}
}

// Shut drops the requests of a sender, an address or a network of IPv6 in text, for a time from now.
// What is connected already stays. It returns whether it does: not for a sender with
// a zone, not while mostShut others are shut out, and not where the kernel takes no filter.
func (f *Filter) Shut(sender string, d time.Duration) bool {
	if f == nil {
		return false
	}
	from, is := network(sender)
	if !is {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		return false
	}
	if open, is := f.shut[from]; is {
		open.Reset(d)
		return true
	}
	if len(f.shut) >= mostShut {
		return false
	}
	f.shut[from] = time.AfterFunc(d, func() { f.open(from) })
	if err := f.install(); err != nil {
		f.failed = len(f.shut) == 1 // else the kernel has no room for so many
		f.shut[from].Stop()
		delete(f.shut, from)
		return false
	}
	return true
}

// network returns whom a sender's text means.
func network(sender string) (_ netip.Prefix, is bool) {
	if p, err := netip.ParsePrefix(sender); err == nil {
		return p.Masked(), p.Addr().Is6() && p.Bits()%32 == 0 && p.Bits() > 0
	}
	a, err := netip.ParseAddr(sender)
	if a = a.Unmap(); err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// open takes the requests of a sender again.
func (f *Filter) open(from netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.shut, from)
	f.install() //nolint:errcheck // nobody is shut out then, or the listener is closed
}

// install gives the kernel the filter for who is shut out. If it takes that one not, it has none:
// nobody is shut out for longer than was said. The mutex is held.
func (f *Filter) install() error {
	var err error
	control := func(fd uintptr) {
		if err = attach(int(fd), f.shut); err != nil {
			_ = attach(int(fd), nil)
		}
	}
	if e := f.listener.Control(control); e != nil {
		return e
	}
	return err
}

func attach(fd int, shut map[netip.Prefix]*time.Timer) error {
	if len(shut) == 0 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
	}
	from := make([]netip.Prefix, 0, len(shut))
	for p := range shut {
		from = append(from, p)
	}
	slices.SortFunc(from, netip.Prefix.Compare)
	p := program(from)
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(p)), Filter: unsafe.SliceData(p)})
}
