package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// What attempts have saved while they run comes home (saves.go): the host tells its origin, which
// fetches the files, commits that it has them ([store.RecordSaved]) and answers. What it takes says
// [store.Job.Saves], so that an older one never takes the place of a later one; the attempt number
// fences it as all else. When the host is lost the next attempt goes on from it.

// homeward is what an attempt has saved while it runs and is on its way home.
type homeward struct {
	coming  *Saved // nil if nothing is
	trouble string // why the latest did not come
}

// home returns what is on its way home, made if need be.
func (o *openJob) home() *homeward {
	if o.homeward == nil {
		o.homeward = new(homeward)
	}
	return o.homeward
}

// onSaved learns what the holder of a claim has saved.
func (or *origin) onSaved(now job.Time, from job.SiteID, m Saved) {
	o := or.open.Get(m.Attempt.Job)
	if o == nil || o.rec.Attempt != m.Attempt.Number || o.rec.Holder != from {
		or.answerSaved(from, m, false)
		return
	}
	if m.Sequence == 0 {
		or.noteTrouble(o, m.Reason)
		return
	}
	if m.Reason != "" { // as the driver found
		or.noteTrouble(o, fmt.Sprintf("checkpoint %d: %s", m.Sequence, m.Reason))
		or.answerSaved(from, m, false)
		return
	}
	if err := o.rec.Saves(m.Sequence); err != nil {
		s := o.rec.Saved
		or.answerSaved(from, m, s != nil && s.Attempt == m.Attempt.Number && s.Sequence == m.Sequence)
		return
	}
	if c := o.home().coming; c != nil {
		if c.Sequence == m.Sequence {
			return // it is on its way
		}
		or.dropComing(o)
	}
	if !m.FilesRemain {
		or.recordSaved(now, o, m)
		or.answerSaved(from, m, true)
		return
	}
	o.home().coming = &m
	or.emit(FetchSaved{Attempt: m.Attempt, From: from, Sequence: m.Sequence, Files: m.Files})
}

// savedHere takes what an attempt at this very site has saved.
func (or *origin) savedHere(now job.Time, m Saved) {
	o := or.open.Get(m.Attempt.Job)
	switch {
	case o == nil || o.rec.Attempt != m.Attempt.Number || o.rec.Holder != or.self:
	case m.Sequence == 0:
		or.noteTrouble(o, m.Reason)
	case o.rec.Saves(m.Sequence) == nil:
		or.recordSaved(now, o, m)
	}
}

// savedHome learns that the files of a checkpoint are here, or will not come.
func (or *origin) savedHome(now job.Time, ev SavedHome) {
	o := or.open.Get(ev.Attempt.Job)
	if o == nil || o.homeward == nil || o.homeward.coming == nil || o.homeward.coming.Attempt != ev.Attempt || o.homeward.coming.Sequence != ev.Sequence || o.rec.Attempt != ev.Attempt.Number {
		return
	}
	m := *o.homeward.coming
	o.homeward.coming = nil
	taken := ev.Error == "" && o.rec.Saves(m.Sequence) == nil
	if taken {
		or.recordSaved(now, o, m)
	} else if ev.Error != "" {
		or.noteTrouble(o, fmt.Sprintf("checkpoint %d did not come home: %s", m.Sequence, ev.Error))
	}
	or.answerSaved(o.rec.Holder, m, taken)
}

// recordSaved commits that a checkpoint is home which [store.Job.Saves].
func (or *origin) recordSaved(now job.Time, o *openJob, m Saved) {
	record(or.st, store.RecordSaved{
		Attempt: m.Attempt, Site: o.rec.Holder, Sequence: m.Sequence, Files: m.Files, Ran: m.Ran, Speed: or.speedOf(o.rec.Holder, &o.rec.Request), Time: now,
	})
	o.home().trouble = ""
	or.changed(o.rec.ID)
}

// answerSaved has a host go on to its next copy.
func (or *origin) answerSaved(host job.SiteID, m Saved, accepted bool) {
	if m.Sequence != 0 {
		or.peers.send(host, SavedAck{Attempt: m.Attempt, Sequence: m.Sequence, Accepted: accepted})
	}
}

// noteTrouble keeps in mind why what a job saves does not come home.
func (or *origin) noteTrouble(o *openJob, why string) {
	if why = job.ClipReason(why); o.home().trouble != why {
		o.homeward.trouble = why
		or.changed(o.rec.ID)
	}
}

// dropComing ends the fetching of what an attempt has saved.
func (or *origin) dropComing(o *openJob) {
	if o.homeward != nil && o.homeward.coming != nil {
		or.emit(Unfetch{Attempt: o.homeward.coming.Attempt})
	}
	o.homeward = nil
}
