// Package clock reads the clock by which leases are counted: the time since the
// machine was started. Unlike the wall's clock it is never set, and it goes on
// while the machine sleeps. Every process of a machine reads the same.
package clock

import (
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SinceBoot returns the time since the machine was started, times of sleep
// included. On a kernel that cannot tell it is the end of time, so that every
// lease has ended.
func SinceBoot() time.Duration {
	var t unix.Timespec
	// It never waits, so the runtime need not know of the call: that takes as long again.
	_, _, errno := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return math.MaxInt64
	}
	return time.Duration(t.Nano())
}
