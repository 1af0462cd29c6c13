package shim

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LeaseName is the file in an attempt's folder that says how long the attempt
// may go on, if it runs under a lease. The daemon replaces it whenever the lease
// is prolonged, and so can one that was started after the shim. Without it the
// lease has ended.
const LeaseName = "lease"

// Lease is until when an attempt may run, by the machine's clock since boot
// (CLOCK_BOOTTIME): that goes on while the machine sleeps, and nobody sets it.
type Lease struct {
	// Stop is when the job gets SIGTERM, Gone when all of it must be gone.
	Stop, Gone time.Duration
}

// SinceBoot reads the clock of leases.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 1<<63 - 1 // every lease has ended
	}
	return time.Duration(t.Nano())
}

// Text returns the content of the file.
func (l Lease) Text() string {
	return strconv.FormatInt(int64(l.Stop), 10) + " " + strconv.FormatInt(int64(l.Gone), 10) + "\n"
}

// ParseLease reads it; anything else is a lease that has ended.
func ParseLease(text string) Lease {
	stop, gone, ok := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	s, err1 := strconv.ParseInt(stop, 10, 64)
	g, err2 := strconv.ParseInt(gone, 10, 64)
	if !ok || err1 != nil || err2 != nil || s < 0 || g < s {
		return Lease{}
	}
	return Lease{Stop: time.Duration(s), Gone: time.Duration(g)}
}

// readLease reads the lease of the attempt in a folder.
func (s *shim) readLease(folder string) Lease {
	fd, errno := openat(s.dir, folder+"/"+LeaseName, syscall.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return Lease{}
	}
	defer closeFD(fd)
	b := make([]byte, 64)
	n, errno := readAt(fd, b, 0)
	if errno != 0 {
		return Lease{}
	}
	return ParseLease(string(b[:n]))
}

const leaseEnded = "the lease of the claim has ended"

// checkLease ends a job whose lease comes to its end, and otherwise notes when
// to look again.
func (s *shim) checkLease(now time.Duration) {
	j := s.job
	if !j.run.Leased || j.phase != watching || j.over {
		return
	}
	l, clock := s.readLease(j.run.Folder), SinceBoot()
	if clock < l.Stop {
		j.leaseLook = now + (l.Stop - clock)
		return
	}
	s.stop(CauseLease, leaseEnded)
	if j.phase == stopping {
		j.killAt = min(j.killAt, now+max(0, l.Gone-clock))
		s.poll.wakeAt(j.due())
	}
}
