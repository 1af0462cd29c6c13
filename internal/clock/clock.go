// Package clock reads the clock by which leases are counted: the time since the
// machine was started. Unlike the wall's clock it is never set, and it goes on
// while the machine sleeps. Every process of a machine reads the same.
package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot returns the time since the machine was started, times of sleep
// included. On a kernel that cannot tell it is the end of time, so that every
// lease has ended.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return math.MaxInt64
	}
	return time.Duration(t.Nano())
}
