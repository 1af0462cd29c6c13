package meta

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/store"
)

// A host that cannot start anything must not fail what it is given: it would take
// one job after the other, as it looks idle, and none would run. So a start that
// fails for a reason of the host ([StartFailed]) is no outcome. The attempt goes
// back to its origin, which looks for another place, and the host stops starting
// for a while. After that one start is tried at a time; the first that succeeds ends
// the trouble, each that fails makes the next pause twice as long.

const (
	// firstPause and longestPause are how long a host starts nothing after a start
	// that failed: for the first in a row, and at most.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// awayPause is from which pause on copies that wait here go elsewhere, and no
	// further ones are taken. What passes sooner is not worth the moves.
	awayPause = 15 * time.Second
)

// starting is what a host knows of its own ability to start. The zero value starts.
// It is not kept across a restart of the daemon, which may have been the remedy.
type starting struct {
	pause   time.Duration // the latest; 0 if starts succeed
	until   job.Time      // when it ends
	pausing bool          // it has not ended
	reason  string
	probe   job.AttemptID // the latest start after the pause
	held    bool          // the local scheduler was told to start nothing
	machine string        // why the machine with the processors cannot be driven; empty if it can
	low     string        // how little room the disk has for jobs of others; empty if enough
}

// away reports whether copies are better off elsewhere.
func (s *starting) away() bool { return s.machine != "" || s.pausing && s.pause >= awayPause }

// stopped reports whether nothing starts now.
func (s *starting) stopped() bool { return s.machine != "" || s.pausing }

// machineSeen takes up whether the machine with the processors can be driven. While it cannot,
// this site is for others as one that cannot start, without an end.
func (e *Engine) machineSeen(now job.Time, ev MachineSeen) {
	h := e.host
	was := h.starting.machine
	h.starting.machine = job.ClipReason(ev.Away)
	if ev.BootID != "" {
		h.cfg.BootID = ev.BootID
	}
	if (was == "") == (ev.Away == "") {
		return
	}
	h.advertise(now)
	h.passing = true
	h.tasks.lookAll()
	if ev.Away == "" {
		e.origin.retrySoon(now, e.self)
		return
	}
	h.returnCopies(now, job.CannotStart)
	e.origin.moveOwn(now, job.CannotStart)
}

// startFailed takes an attempt back that could not be started and returns it to its
// origin. One that was to be stopped has got what it wanted.
func (h *host) startFailed(now job.Time, ev StartFailed) {
	c := h.copies.Get(ev.Attempt)
	if c == nil && h.tasks.startFailed(now, ev) || c == nil || c.rec.Phase != store.CopyBegun || c.started != 0 {
		return
	}
	h.pauseStarts(now, ev.Reason)
	if c.killed {
		h.end(now, c, Kill{Attempt: ev.Attempt, Lease: c.lapsed}.Unstarted(now))
		return
	}
	record(h.st, store.RequeueCopy{Attempt: ev.Attempt})
	h.site.Finish(now, ev.Attempt)
	c.status, c.returned = waiting, true
	if ev.Attempt.Job.Origin != h.self {
		h.giveBack(now, c, job.CannotStart)
		return
	}
	h.drop(now, c)
	h.origin.givenBack(now, ev.Attempt, job.CannotStart)
}

// pauseStarts begins a pause, unless there is one: starts that fail during it were
// under way with the one that began it.
func (h *host) pauseStarts(now job.Time, reason string) {
	s := &h.starting
	h.counters.StartsFailed++
	if s.pausing {
		return
	}
	s.pause = min(max(firstPause, 2*s.pause), longestPause)
	s.until, s.pausing, s.reason = now.Add(s.pause), true, job.ClipReason(reason)
	h.emit(StartsPaused{Until: s.until, Reason: s.reason})
	h.advertise(now) // ahead of what goes back, so that it does not return
	h.passing = true
	h.tasks.lookAll()
	if s.away() {
		h.returnCopies(now, job.CannotStart)
	}
}

// returnCopies gives back what waits here for origins in reach.
func (h *host) returnCopies(now job.Time, reason job.Reason) {
	for _, l := range h.peers.linked {
		for _, c := range h.copiesOf(l.site) {
			if c.rec.Phase == store.CopyQueued && l.up {
				h.giveBack(now, c, reason)
			}
		}
	}
}

// resumeStarts ends a pause whose time has come.
func (h *host) resumeStarts(now job.Time) {
	s := &h.starting
	if !s.pausing || now < s.until {
		return
	}
	s.pausing = false
	h.passing = true
	h.advertise(now)
}

// startSucceeded notes that an attempt which began after the pause has run.
func (h *host) startSucceeded(now job.Time, c *hostCopy) {
	if !c.adopted {
		h.startsAgain(c.rec.Begun)
	}
}

// startsAgain ends the trouble if what has started now was begun after the pause.
func (h *host) startsAgain(begun job.Time) {
	if s := &h.starting; s.pause == 0 || s.pausing || begun < s.until {
		return
	}
	h.starting = starting{held: h.starting.held, machine: h.starting.machine, low: h.starting.low}
	h.emit(StartsPaused{})
	h.passing = true
}

// probing reports whether the start that shows whether starts succeed is under way.
func (h *host) probing() bool {
	c := h.copies.Get(h.starting.probe)
	return c != nil && (c.status == claiming || c.rec.Phase == store.CopyBegun && c.started == 0) || h.tasks.proving(h.starting.probe)
}

// holdStarts tells the local scheduler whether to start anything, before it is asked.
func (h *host) holdStarts(now job.Time) {
	s := &h.starting
	if hold := s.stopped() || s.pause > 0 && h.probing() || h.tasks.adopting > 0; hold != s.held {
		s.held = hold
		h.site.Drain(now, hold || h.st.Site().Draining)
	}
}

// mayStart reports whether a copy whose turn has come may start: while starts have
// failed, one at a time. Another waits in its place.
func (h *host) mayStart(now job.Time, c *hostCopy) bool {
	s := &h.starting
	switch origin := c.rec.ID.Job.Origin; {
	case s.machine != "":
		h.postpone(now, c, now)
		return false
	case h.shuns(origin) && h.peers.reachable(origin):
		h.giveBack(now, c, job.DiskLow) // it was out of reach when the others went back
		return false
	case h.shuns(origin):
		h.postpone(now, c, now.Add(h.cfg.Timing.Retry)) // not now: it would be proposed again in this instant
		return false
	case s.pause == 0:
		return true
	case s.pausing || h.probing():
		h.postpone(now, c, now)
		return false
	}
	s.probe = c.rec.ID
	return true
}

// nextStart returns when a pause ends.
func (s *starting) nextStart() job.Time {
	if s.pausing {
		return s.until
	}
	return job.Never
}

// trouble says for people why this site does not start jobs as usual, "" if it does.
func (s *starting) trouble(now job.Time) string {
	switch {
	case s.machine != "":
		return "has no processors now: " + s.machine
	case s.pause == 0 && s.low != "":
		return "starts no jobs of other sites: " + s.low
	case s.pause == 0:
		return ""
	case s.pausing:
		return fmt.Sprintf("starts no jobs, tries again in %v: %s", max(0, s.until.Sub(now)).Round(time.Second), s.reason)
	}
	return "starts one job at a time until one succeeds: " + s.reason
}
