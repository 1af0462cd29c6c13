package shim

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/clock"
)

// LeaseName is the file in an attempt's folder that says how long the attempt
// may go on, if it runs under a lease. The daemon writes to it whenever the lease
// is prolonged, and so can one that was started after the shim. Without it the
// lease has ended.
//
// It has two slots of text:
//
//	kith-lease 1 stop=… gone=… sum=…
//
// A longer lease is written over the shorter one of the two, in place: that
// needs no room on the disk, and a reader that comes meanwhile finds the other slot
// whole. The longest lease of a slot whose sum is right counts. An earlier
// version had the two numbers alone, see [Lease.OldText].
const LeaseName = "lease"

const (
	// LeaseSize is the size of the file.
	LeaseSize     = 2 * leaseSlotSize
	leaseSlotSize = 128
	leaseMark     = "kith-lease 1"
)

// Lease is until when an attempt may run, by the machine's clock since boot
// (CLOCK_BOOTTIME): that goes on while the machine sleeps, and cannot be set.
type Lease struct {
	// Stop is when the job gets SIGTERM, Gone when all of it must be gone.
	Stop, Gone time.Duration
}

// Slot returns the lease as it stands in the file.
func (l Lease) Slot() []byte {
	b := append(make([]byte, 0, leaseSlotSize), leaseMark...)
	b = appendField(b, " stop=", int64(l.Stop))
	b = appendField(b, " gone=", int64(l.Gone))
	b = strconv.AppendUint(append(b, " sum="...), checksum(b), 16)
	for len(b) < leaseSlotSize-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// File returns a new file with the lease in its first slot.
func (l Lease) File() []byte {
	b := append(l.Slot(), bytes.Repeat([]byte{' '}, leaseSlotSize)...)
	b[LeaseSize-1] = '\n'
	return b
}

// BlankLease returns a file of the size of a lease that has ended.
func BlankLease() []byte { return append(bytes.Repeat([]byte{' '}, LeaseSize-1), '\n') }

// OldText returns the whole file as shims of an earlier version read it. What
// they began goes on under a later daemon.
func (l Lease) OldText() []byte {
	return []byte(strconv.FormatInt(int64(l.Stop), 10) + " " + strconv.FormatInt(int64(l.Gone), 10) + "\n")
}

// ParseLease reads a file, of an earlier version too; anything else is a lease
// that has ended.
func ParseLease(b []byte) Lease {
	if l := parseOldLease(string(b)); l != (Lease{}) {
		return l
	}
	first, second := parseLeaseSlots(b)
	if second.Gone > first.Gone {
		return second
	}
	return first
}

// IsOldLease reports whether a file was written for a shim of an earlier version.
func IsOldLease(b []byte) bool { return parseOldLease(string(b)) != (Lease{}) }

// LeaseOffset returns where in a file the next lease goes: over the shorter one.
func LeaseOffset(b []byte) int64 {
	if first, second := parseLeaseSlots(b); first.Gone > second.Gone {
		return leaseSlotSize
	}
	return 0
}

func parseLeaseSlots(b []byte) (first, second Lease) {
	if len(b) != LeaseSize {
		return Lease{}, Lease{}
	}
	return parseLeaseSlot(b[:leaseSlotSize]), parseLeaseSlot(b[leaseSlotSize:])
}

func parseLeaseSlot(slot []byte) Lease {
	f := openSlot(slot, leaseMark)
	l := Lease{Stop: time.Duration(f.int("stop")), Gone: time.Duration(f.int("gone"))}
	if !f.done() {
		return Lease{}
	}
	return l.checked()
}

func parseOldLease(text string) Lease {
	stop, gone, ok := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	s, err1 := strconv.ParseInt(stop, 10, 64)
	g, err2 := strconv.ParseInt(gone, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return Lease{}
	}
	return Lease{Stop: time.Duration(s), Gone: time.Duration(g)}.checked()
}

// checked returns a lease that makes sense, or one that has ended.
func (l Lease) checked() Lease {
	if l.Stop < 0 || l.Gone < l.Stop {
		return Lease{}
	}
	return l
}

// readLease reads the lease of the attempt in a folder.
func (s *shim) readLease(folder string) Lease {
	fd, errno := openat(s.dir, folder+"/"+LeaseName, syscall.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return Lease{}
	}
	defer closeFD(fd)
	b := make([]byte, LeaseSize+1)
	n, errno := readAt(fd, b, 0)
	if errno != 0 {
		return Lease{}
	}
	return ParseLease(b[:n])
}

const leaseEnded = "the lease of the claim has ended"

// checkLease ends a job whose lease comes to its end, and otherwise notes when
// to look again.
func (s *shim) checkLease() {
	j := s.job
	if !j.run.Leased || j.estimate == nil && (j.phase > asked || j.over) {
		return
	}
	l := s.readLease(j.run.Folder)
	if clock.SinceBoot() < l.Stop {
		j.leaseLook = l.Stop
		return
	}
	s.stop(CauseLease, leaseEnded)
}

// leaseGone reports whether a job that is being stopped has no lease any more,
// and otherwise notes when to look again. The grace time is longer than what
// is left of many a lease, and whatever a job is stopped for, it must not
// outlive that.
func (s *shim) leaseGone() bool {
	j := s.job
	if !j.run.Leased || clock.SinceBoot() < j.leaseLook {
		return false
	}
	j.leaseLook = s.readLease(j.run.Folder).Gone
	return clock.SinceBoot() >= j.leaseLook
}
