package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// A job that writes checkpoints may ask that what it has saved is copied to its origin while it runs
// ([job.Request].SaveSeconds), so that it goes on from there after its host is lost. The host has it
// copied, one copy of an attempt at a time, and tells the origin until that has answered (saved.go). A
// copy that cannot be had, or does not come home, is dropped with its reason; the one before counts, and
// the next one is made when its time has come. Nothing of this is a fact of the host: after a
// restart it begins again.

// saveShare is how many times as long as a copy took there is none at least: a job that saves much is
// copied less often than it asked.
const saveShare = 4

// saving is what a host keeps in mind of an attempt whose checkpoints are copied.
type saving struct {
	copy *hostCopy
	at   job.Time // of the next copy
	busy bool     // one is being made, or its origin has not answered
	// asked is when the latest copy began.
	asked job.Time
	// told is the one that its origin is to answer; its Sequence is 0 if there is none.
	told Saved
	// why is why there was no copy, as its origin was told.
	why string
}

// saves are the attempts that are copied while they run.
type saves struct {
	list []*saving
	// of finds them by their attempts: few copies have one, and a field of all would cost the others memory.
	of   map[job.AttemptID]*saving
	next job.Time
	// sweep is how long the list may become before those that have ended are looked for.
	sweep int
}

// keepSaving notes that what an attempt saves, which has started, is to be copied now and then.
func (h *host) keepSaving(now job.Time, c *hostCopy) {
	every := c.rec.Request.SaveEvery()
	if every <= 0 || !c.rec.Request.Checkpoint || h.savingOf(c) != nil {
		return
	}
	s := &h.saves
	if len(s.list) >= max(s.sweep, leastSweep) {
		s.list = slices.DeleteFunc(s.list, h.dropSaving)
		s.sweep = 2 * len(s.list)
	}
	v := &saving{copy: c, at: now.Add(every)}
	s.list = append(s.list, v)
	s.of[c.rec.ID] = v
	s.next = min(s.next, v.at)
}

// savingOf returns what is kept of a copy; nil if it is not copied.
func (h *host) savingOf(c *hostCopy) *saving {
	if c == nil {
		return nil
	}
	if v := h.saves.of[c.rec.ID]; v != nil && v.copy == c {
		return v
	}
	return nil
}

// dropSaving forgets an attempt that is not copied any more, and reports whether it did.
func (h *host) dropSaving(v *saving) bool {
	if !h.savesNothing(v.copy) {
		return false
	}
	if id := v.copy.rec.ID; h.saves.of[id] == v {
		delete(h.saves.of, id)
	}
	return true
}

// savesNothing reports whether an attempt is not copied any more: it has ended or is about to. One
// that was asked to save and end is collected then.
func (h *host) savesNothing(c *hostCopy) bool {
	return h.copies.Get(c.rec.ID) != c || c.rec.Phase != store.CopyBegun || c.started == 0 ||
		c.over || c.killed || c.forgotten || c.lapsed || c.demoted
}

// copySaved has those copied whose time has come.
func (h *host) copySaved(now job.Time) {
	s := &h.saves
	if now < s.next {
		return
	}
	next := job.Never
	s.list = slices.DeleteFunc(s.list, func(v *saving) bool {
		switch {
		case h.dropSaving(v):
			return true
		case v.busy:
		case v.at > now:
			next = min(next, v.at)
		default:
			v.busy, v.asked = true, now
			h.emit(CopySaved{Attempt: v.copy.rec.ID})
		}
		return false
	})
	s.next = next
}

// savedCopied takes up a copy, or why there is none.
func (h *host) savedCopied(now job.Time, ev SavedCopied) {
	c := h.copies.Get(ev.Attempt)
	v, origin := h.savingOf(c), ev.Attempt.Job.Origin
	if v == nil || !v.busy || v.told.Sequence != 0 || c.rec.Phase != store.CopyBegun {
		return
	}
	v.at = now.Add(max(c.rec.Request.SaveEvery(), saveShare*now.Sub(v.asked)))
	m := Saved{
		Attempt: ev.Attempt, Sequence: ev.Sequence, Files: ev.Files, FilesRemain: ev.FilesRemain && origin != h.self, Ran: max(0, v.asked.Sub(c.since)),
		Reason: job.ClipReason(ev.Reason),
	}
	if m.Sequence == 0 {
		h.nextSave(v)
		if m.Reason == v.why {
			return
		}
	}
	v.why = m.Reason
	switch {
	case origin == h.self:
		h.origin.savedHere(now, m)
		h.nextSave(v)
	case m.Sequence == 0:
		h.peers.send(origin, m)
	default:
		v.told = m
		h.peers.request(now, origin, outKey{saved, m.Attempt})
	}
}

// nextSave says that nothing is under way for an attempt until its next copy.
func (h *host) nextSave(v *saving) {
	v.busy, v.told = false, Saved{}
	h.saves.next = min(h.saves.next, v.at)
}

// savedOf makes the message of a request of kind saved.
func (h *host) savedOf(a job.AttemptID) (Message, bool) {
	c := h.copies.Get(a)
	v := h.savingOf(c)
	if v == nil || v.told.Sequence == 0 || c.rec.Phase != store.CopyBegun {
		return nil, false
	}
	return v.told, true
}

// onSavedAck learns that an origin has a copy, or does not want it.
func (h *host) onSavedAck(from job.SiteID, m SavedAck) {
	v := h.savingOf(h.copies.Get(m.Attempt))
	if v == nil || v.told.Sequence != m.Sequence || m.Sequence == 0 {
		return
	}
	h.peers.link(from).settle(outKey{saved, m.Attempt})
	h.nextSave(v)
}

// reviveSaved tells an origin that is back of a copy that it has not answered.
func (h *host) reviveSaved(now job.Time, site job.SiteID, c *hostCopy) {
	if v := h.savingOf(c); v != nil && v.told.Sequence != 0 {
		h.peers.request(now, site, outKey{saved, c.rec.ID})
	}
}

// savedFiles returns the encoded files of the latest copy of an attempt that runs here, and that its
// origin has not answered.
func (h *host) savedFiles(c *hostCopy) ([]byte, bool) {
	v := h.savingOf(c)
	if v == nil || v.told.Sequence == 0 {
		return nil, false
	}
	return v.told.Files, true
}
