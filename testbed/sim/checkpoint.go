package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// resumePayload is what a grant of a simulated job has: the number of the checkpoint that it
// goes on from, nothing if it begins.
func resumePayload(r store.Resume) []byte {
	if r.Sequence == 0 {
		return nil
	}
	return binary.AppendUvarint(nil, r.Sequence)
}

// resume has a process go on from what its launch says.
func (p *process) resume(f meta.Launch) {
	p.from = f.Resume.Sequence
	if f.Payload != nil {
		p.from, _ = binary.Uvarint(f.Payload)
	}
}

// plan says how a process ends that does one of the pieces of its job.
func (p *process) plan(pieces int) {
	if p.saves = p.from + 1; pieces > 1 && p.saves < uint64(pieces) {
		p.kind = job.Demoted
	}
}

// next is the number of what a process saves next.
func (p *process) next() uint64 { return max(p.from, p.mark) + 1 }

// copySaved copies what a process has saved. The jobs save just before, but every fourth time they save again
// while they are copied, and then there is no copy.
func (s *Site) copySaved(f meta.CopySaved) {
	p := s.procs[f.Attempt]
	if p == nil || p.outcome != nil || p.estimating != nil { // that saves nothing
		s.soon(meta.SavedCopied{Attempt: f.Attempt})
		return
	}
	p.mark = p.next()
	p.copies++
	sequence, changes, life, ran := p.mark, p.copies%4 == 0, s.life, s.now().Sub(p.started)
	p.keepsWork(sequence)
	s.w.agenda.add(s.w.now.Add(time.Duration(p.copies%3)*time.Second), completion, s.w.order(f.Attempt.Job), call(func() {
		switch {
		case s.life != life || p.outcome != nil:
		case changes:
			p.mark = p.next()
			p.keepsWork(p.mark)
			s.feed(meta.SavedCopied{Attempt: f.Attempt, Reason: "DONE changed while it was copied"})
		default:
			s.w.watch.saved.copied[copiedKey{f.Attempt, sequence}] = ran
			s.feed(meta.SavedCopied{
				Attempt: f.Attempt, Sequence: sequence, Files: []byte("saved"), FilesRemain: f.Attempt.Job.Origin != s.cfg.ID && s.w.output(f.Attempt.Job) > 0,
			})
		}
	}))
}

// fetchSaved brings what an attempt has saved to its origin, unless its host is out of reach by then or the
// attempt has ended.
func (s *Site) fetchSaved(f meta.FetchSaved) {
	life := s.life
	s.fetchingSaved[f.Attempt] = f.Sequence
	s.w.agenda.add(s.w.now.Add(s.w.output(f.Attempt.Job)), message, 0, call(func() {
		if s.life != life || s.fetchingSaved[f.Attempt] != f.Sequence {
			return
		}
		delete(s.fetchingSaved, f.Attempt)
		host := s.w.byID[f.From]
		ev := meta.SavedHome{Attempt: f.Attempt, Sequence: f.Sequence}
		if pair, _ := s.w.net.pair(s, host); !pair.up || host.frozen {
			ev.Error = "its host is out of reach"
		} else if p := host.procs[f.Attempt]; p == nil || p.outcome != nil {
			ev.Error = "it is gone"
		} else {
			s.w.watch.saved.homeSaved[copiedKey{f.Attempt, f.Sequence}] = true
		}
		s.feed(ev)
	}))
}

// copiedKey names what was copied of an attempt while it ran.
type copiedKey struct {
	attempt  job.AttemptID
	sequence uint64
}

// askCheckpoint has a process save what it has done and end. Those of one job do not all do as
// they are asked: every third attempt saves at once, every third after half of its grace, and every
// third never does.
func (s *Site) askCheckpoint(f meta.AskCheckpoint) {
	p := s.procs[f.Attempt]
	if p == nil || p.outcome != nil || p.asked {
		return
	}
	p.asked, p.cause = true, f.Cause
	after, saves, reason := time.Duration(0), uint64(0), "it begins again"
	switch {
	case p.estimating != nil:
		reason = "its command had not begun"
	case !p.saving:
	case s.w.cfg.Saves != nil:
		after, saves, reason = p.savesWork(f)
	default:
		saves, reason = p.next(), ""
		switch (f.Attempt.Job.Seq + uint64(f.Attempt.Number)) % 3 {
		case 1:
			after = f.Grace / 2
		case 2:
			after, saves, reason = f.Grace, 0, "it had not saved anything in time"
		}
	}
	s.w.agenda.add(s.w.now.Add(after), completion, s.w.order(f.Attempt.Job), call(func() {
		if p.outcome == nil {
			p.saves = saves
			p.end(job.Demoted, reason)
		}
	}))
}

// checkpointWatch checks that a job goes on from what it has saved: that it is pending again
// only after the end of the attempt, that no checkpoint is lost without a reason, that none
// takes the place of a later one, and that no time is counted twice.
type checkpointWatch struct {
	x *watch
	// ends are processes that ended as demoted; known is what the origin's facts say of
	// each job, which may be on their way to the disk yet, kept the checkpoint that is on it.
	ends  map[job.AttemptID]job.Outcome
	known map[job.ID]store.Resume
	kept  map[job.ID]uint64
	// home are attempts whose output has come home.
	home map[job.AttemptID]bool
	// copied are the copies of what attempts had saved that were told to their hosts, and how long
	// those had run by then; homeSaved those that have come home.
	copied    map[copiedKey]time.Duration
	homeSaved map[copiedKey]bool
}

func (c *checkpointWatch) init(x *watch) {
	c.x, c.ends, c.known = x, make(map[job.AttemptID]job.Outcome), make(map[job.ID]store.Resume)
	c.home, c.kept = make(map[job.AttemptID]bool), make(map[job.ID]uint64)
	c.copied, c.homeSaved = make(map[copiedKey]time.Duration), make(map[copiedKey]bool)
}

// started watches an attempt that begins.
func (c *checkpointWatch) started(p *process) {
	if at := c.known[p.attempt.Job]; p.from != at.Sequence && p.attempt.Number > at.Attempt {
		c.x.violate("C1: attempt %v goes on from checkpoint %d, and that of the job is %d of attempt %d", p.attempt, p.from, at.Sequence, at.Attempt)
	}
}

func (c *checkpointWatch) ended(p *process) {
	if o := p.outcome; o.Kind == job.Demoted {
		switch evicted := o.Cause == job.Evicted; {
		case evicted && !p.movable:
			c.x.violate("E1: attempt %v was evicted at %s, and its job cannot go on elsewhere", p.attempt, p.s.cfg.ID)
		case evicted && p.attempt.Job.Origin == p.s.cfg.ID:
			c.x.violate("E1: attempt %v was evicted at its own site", p.attempt)
		}
		c.ends[p.attempt] = *o
	}
}

// durable watches what is on disk of a job, or on its way there.
func (c *checkpointWatch) durable(j *store.Job) {
	if c.x.liars[j.ID.Origin] {
		return
	}
	if _, goesOn := c.ends[j.AttemptID()]; goesOn && j.State == job.Completed && !c.x.liars[j.Holder] {
		c.x.violate("C6: job %v is %v, and attempt %v ended to go on", j.ID, j.State, j.AttemptID())
	}
	if len(j.Demotions) == 0 && j.Saved == nil && c.kept[j.ID] == 0 {
		delete(c.known, j.ID) // a crash took it back before it was on the disk
		return
	}
	if n := j.DemotedFor(job.Evicted); n > job.MaxEvictions {
		c.x.violate("E2: job %v was evicted %d times", j.ID, n)
	}
	r := j.Resume()
	if before := c.kept[j.ID]; r.Sequence < before {
		c.x.violate("C8: job %v would go on from checkpoint %d, and had %d at home", j.ID, r.Sequence, before)
	}
	c.known[j.ID] = r
	if v := j.Saved; v != nil && !c.savedWell(j, job.AttemptID{Job: j.ID, Number: v.Attempt}, v) {
		return
	}
	var used time.Duration
	var latest uint64
	for _, d := range j.Demotions {
		a := job.AttemptID{Job: j.ID, Number: d.Attempt}
		if c.x.liars[d.Site] {
			return
		}
		if d.Cause == job.HostLost {
			ran, copied := c.copied[copiedKey{a, d.Sequence}]
			if !copied {
				c.x.violate("C8: job %v lists checkpoint %d of attempt %v, which was lost, and it was never copied", j.ID, d.Sequence, a)
			}
			if got := d.End.Sub(d.Start); got > ran && !c.x.w.oddClocks() {
				c.x.violate("C4: attempt %v had run for %v when it was copied, and %v are counted", a, ran, got)
			}
			used += max(0, d.End.Sub(d.Start))
			latest = max(latest, d.Sequence)
			continue
		}
		o, ended := c.ends[a]
		switch {
		case !ended:
			c.x.violate("C2: job %v goes on, and attempt %v has not ended at %s to go on", j.ID, a, d.Site)
		case d.Sequence == 0 && o.Checkpoint != 0 && !o.FilesRemain: // else they may be lost on their way
			c.x.violate("C3: the checkpoint of attempt %v is left out, and its files are here", a)
		case d.Sequence == 0 && d.Reason == "":
			c.x.violate("C3: the checkpoint of attempt %v is left out without a reason", a)
		case d.Sequence != 0 && o.FilesRemain && !c.home[a]:
			c.x.violate("C5: job %v goes on from the checkpoint of attempt %v, whose files are not here", j.ID, a)
		case d.Cause != o.Cause:
			c.x.violate("C7: attempt %v ended because of %v, and %v is kept", a, o.Cause, d.Cause)
		case d.Sequence != 0 && d.Sequence != o.Checkpoint:
			c.x.violate("C3: the checkpoint of attempt %v is %d, and it saved %d", a, d.Sequence, o.Checkpoint)
		}
		if o.Start != 0 { // else its command never began
			used += max(0, o.End.Sub(o.Start)) // wall clocks are set back
		}
		latest = max(latest, d.Sequence)
	}
	if j.Saved != nil {
		latest = max(latest, j.Saved.Sequence)
	}
	if r.Sequence != latest {
		c.x.violate("C3: job %v goes on from checkpoint %d, and has one of number %d", j.ID, r.Sequence, latest)
	}
	// No more counts than passed at the origin, whose clock may show less than that of the host.
	if r.Used > used || r.Used < used && !c.x.w.oddClocks() {
		c.x.violate("C4: attempts of job %v ran for %v, and %v are counted", j.ID, used, r.Used)
	}
}

// savedWell checks the checkpoint that came home last from an attempt that ran, and reports whether it is
// known of: a site that lies may have made it up.
func (c *checkpointWatch) savedWell(j *store.Job, a job.AttemptID, v *store.Saved) bool {
	if c.x.liars[v.Site] {
		return false
	}
	key := copiedKey{a, v.Sequence}
	switch _, copied := c.copied[key]; {
	case !copied:
		c.x.violate("C8: job %v has checkpoint %d of attempt %v, which was never copied", j.ID, v.Sequence, a)
	case v.Site != j.ID.Origin && c.x.w.output(j.ID) > 0 && !c.homeSaved[key]:
		c.x.violate("C5: job %v would go on from checkpoint %d of attempt %v, whose files are not here", j.ID, v.Sequence, a)
	}
	return true
}

// oddClocks reports whether two clocks of the world may differ in how much time has passed.
func (w *World) oddClocks() bool {
	return w.clocksSet || slices.ContainsFunc(w.sites, func(s *Site) bool { return s.cfg.Drift != 0 || s.cfg.Clocks != 0 })
}
