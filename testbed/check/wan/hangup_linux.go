package wan

import (
	"net"
	"syscall"
)

// States of a TCP socket in which the other side has ended the connection.
const (
	tcpClose     = 7
	tcpCloseWait = 8
)

// hungUp reports whether the other side of conn has closed it, without
// reading what it may have sent before.
func hungUp(conn net.Conn) bool {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	state := 0
	err = raw.Control(func(fd uintptr) {
		// The first byte of the answer is the state; an int has room for it.
		info, infoErr := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if infoErr == nil {
			state = info & 0xff
		}
	})
	return err != nil || state == tcpClose || state == tcpCloseWait
}
