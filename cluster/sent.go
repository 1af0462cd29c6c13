package cluster

import (
	"time"

	"kith/internal/job"
)

// Sent is what a site knows of another one from its own dealings with it: what
// it has sent there since the other's latest digest, which cannot tell of it yet,
// and how much more the other is ready to take. The zero Sent knows nothing.
type Sent struct {
	// Work is the work of the copies sent less that of those withdrawn since the
	// latest digest, in processor-seconds of their time limits; Procs are their
	// processors. Both may be negative.
	Work, Procs float64
	// FullUntil is when the site, which said that it takes no more copies of this
	// one, is asked again.
	FullUntil job.Time
	// credit is how many copies more it is offered before it has answered; it
	// counts only while limited.
	credit  int
	limited bool
	// counted says that it refused because it has as many copies as it takes: one that
	// leaves it makes room for one.
	counted bool
	// open is how many copies were offered and not answered, before how many of them were
	// offered before the latest copy left.
	open, before int
}

// Count counts a copy that was sent (sign 1) or withdrawn (sign -1).
func (s *Sent) Count(r *job.Request, sign float64) {
	s.Procs += sign * float64(r.Processors)
	s.Work += sign * float64(r.Processors) * r.Walltime.Seconds()
}

// told forgets what a digest tells of.
func (s *Sent) told() { s.Work, s.Procs = 0, 0 }

// Full reports whether the site is offered no copies at now.
func (s *Sent) Full(now job.Time) bool { return now < s.FullUntil }

// Credits of a site that has said that it is full: it is offered firstCredit copies
// after the pause, creditGrowth more for each that it takes, and dryCredit once it has
// run dry, but for one that counts copies. With more than fullCredit it counts as a site
// like any other.
const (
	firstCredit  = 1
	dryCredit    = 64
	creditGrowth = 4
	fullCredit   = 256
)

// Refused records that the site has said that it is full; counted, that it has as many
// copies as it takes. It is asked again after the pause, or when a copy leaves it.
func (s *Sent) Refused(now job.Time, pause time.Duration, counted bool) {
	s.limited, s.credit, s.FullUntil, s.counted = true, firstCredit, now.Add(pause), counted
}

// Left records that a copy of this site has left the other one, which has room for
// another one then if it counts copies. It reports whether it may be offered one that it
// was not before.
func (s *Sent) Left() bool {
	if !s.limited || !s.counted {
		return false
	}
	s.FullUntil, s.credit, s.before = 0, max(s.credit, firstCredit), s.open
	return true
}

// Answered records that it has answered an offer. It reports whether that was made after the latest
// copy left: if not, it may have refused for what has left since.
func (s *Sent) Answered() bool {
	s.open = max(0, s.open-1)
	if s.before > 0 {
		s.before--
		return false
	}
	return true
}

// Offered records that a copy is sent to it. A site that took its last credit
// counts as full until it has answered, or for the pause.
func (s *Sent) Offered(now job.Time, pause time.Duration) {
	s.open++
	if !s.limited {
		return
	}
	if s.credit--; s.credit <= 0 {
		s.credit, s.FullUntil = firstCredit, now.Add(pause)
	}
}

// Unsent records that a copy that it was offered has not left. It reports whether it may be offered
// one that it was not before.
func (s *Sent) Unsent(now job.Time) bool {
	s.open = max(0, s.open-1)
	switch {
	case !s.limited:
		return false
	case s.Full(now): // that was its last credit
		s.FullUntil = 0
	default:
		s.credit++
	}
	return true
}

// RanDry records that the site has nothing waiting any more: whatever it was full
// of is gone. One that counts copies may be dry and still have room for one only.
func (s *Sent) RanDry() {
	s.FullUntil, s.credit = 0, max(s.credit, firstCredit)
	if !s.counted {
		s.credit = max(s.credit, dryCredit)
	}
}

// Accepted records that the site has taken a copy, or had room for it. It reports whether it may be offered
// more than before.
func (s *Sent) Accepted() bool {
	if !s.limited {
		return false
	}
	s.FullUntil = 0
	if s.credit += creditGrowth; s.credit > fullCredit {
		s.limited = false
	}
	return true
}
