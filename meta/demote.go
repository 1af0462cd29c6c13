package meta

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// Why an attempt is not asked to end for its job to go on elsewhere.
var (
	// ErrNotRunning says that it does not run: it has not started or has ended.
	ErrNotRunning = errors.New("it does not run")
	// ErrNotMovable says that its job neither writes checkpoints nor may begin again.
	ErrNotMovable = errors.New("the job writes no checkpoints and may not begin again")
	// ErrLastAttempt says that none may follow it.
	ErrLastAttempt = fmt.Errorf("it is the last attempt of the job, of %d", job.MaxAttempts)
	// ErrEnding says that it is being stopped for another reason.
	ErrEnding = errors.New("it is being stopped")
)

// demotable says why an attempt that is held here cannot be demoted now; nil if it can. It costs
// next to nothing and changes nothing, so that whoever chooses among guests may ask it of each.
func (h *host) demotable(c *hostCopy) error {
	switch {
	case c == nil || c.rec.Phase != store.CopyBegun || c.started == 0 || c.over:
		return ErrNotRunning
	case !c.rec.Request.Movable():
		return ErrNotMovable
	case c.rec.Last():
		return ErrLastAttempt
	case c.killed || c.forgotten || c.lapsed:
		return ErrEnding
	}
	return nil
}

// onDemote has an attempt go on elsewhere as the user of its job asked.
func (h *host) onDemote(m Demote) { _ = h.demote(m.Attempt, job.Requested, 0) }

// demote has an attempt end that runs here, so that its job goes on in another one: whoever wants
// a running attempt moved, for whatever cause, calls it. The attempt then ends as [job.Demoted]
// with the cause, see [AskCheckpoint]; it may end otherwise, if it is done or fails just now. Its
// processors are held until then, which is for the grace and the time that a stop takes.
//
// The grace is how long it has to save what it has done, if it writes checkpoints: at most
// [Config].MaxGrace, which 0 means, too. What the job itself said may be less.
//
// It records nothing: the driver remembers the ask, also if the daemon dies, and whoever asks
// once more after a restart does no harm. An attempt that was asked before is left alone, and the
// first cause counts. The error is that of [host.demotable], and then nothing has changed.
func (h *host) demote(a job.AttemptID, cause job.DemotionCause, grace time.Duration) error {
	c := h.copies.Get(a)
	if err := h.demotable(c); err != nil {
		return fmt.Errorf("attempt %v: %w", a, err)
	}
	if c.demoted {
		return nil
	}
	c.demoted = true
	if grace <= 0 || grace > h.cfg.maxGrace() {
		grace = h.cfg.maxGrace()
	}
	h.emit(AskCheckpoint{Attempt: a, Cause: cause, Grace: grace})
	return nil
}

// timed are the attempts that are asked to save before their limit.
type timed struct {
	list []timedAsk
	next job.Time
	// sweep is how long the list may become before those that have ended are looked for.
	sweep int
}

// leastSweep is the least such length.
const leastSweep = 64

type timedAsk struct {
	c  *hostCopy
	at job.Time
}

// keepTime notes when an attempt that has started is to be asked to save because its own time limit
// comes near. A limit that is that of its level is [host.askInTime]'s.
func (h *host) keepTime(now job.Time, c *hostCopy) {
	before := min(c.rec.Request.AskBefore(), h.cfg.maxGrace())
	if before <= 0 || h.ofLevel(c.rec) {
		return
	}
	t, limit := &h.timed, h.entry(c.rec).Request.Walltime
	if len(t.list) >= max(t.sweep, leastSweep) {
		t.list = slices.DeleteFunc(t.list, h.untimely)
		t.sweep = 2 * len(t.list)
	}
	at := max(c.since.Add(limit-min(before, limit)), now)
	t.list = append(t.list, timedAsk{c, at})
	t.next = min(t.next, at)
}

// untimely reports whether an attempt need not be asked any more.
func (h *host) untimely(a timedAsk) bool {
	return h.copies.Get(a.c.rec.ID) != a.c || h.demotable(a.c) != nil
}

// askTimed asks those whose time limit has come near. One that is about to be stopped for another
// reason is left to that.
func (h *host) askTimed(now job.Time) {
	if now < h.timed.next {
		return
	}
	next := job.Never
	h.timed.list = slices.DeleteFunc(h.timed.list, func(a timedAsk) bool {
		if h.untimely(a) {
			return true
		}
		if a.at > now {
			next = min(next, a.at)
			return false
		}
		_ = h.demote(a.c.rec.ID, job.AtWalltime, a.c.rec.Request.AskBefore())
		return true
	})
	h.timed.next = next
}
