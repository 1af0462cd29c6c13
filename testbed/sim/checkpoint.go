package sim

import (
	"encoding/binary"
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

// checkpointWatch checks that a job goes on from what it has saved: that it is pending again
// only after the end of the attempt, that no checkpoint is lost without a reason, that none
// takes the place of a later one, and that no time is counted twice.
type checkpointWatch struct {
	x *watch
	// ends are processes that ended as demoted; known is what the origin's facts say of
	// each job as far as they are durable.
	ends  map[job.AttemptID]job.Outcome
	known map[job.ID]store.Resume
	// home are attempts whose output has come home.
	home map[job.AttemptID]bool
}

func (c *checkpointWatch) init(x *watch) {
	c.x, c.ends, c.known = x, make(map[job.AttemptID]job.Outcome), make(map[job.ID]store.Resume)
	c.home = make(map[job.AttemptID]bool)
}

// started watches an attempt that begins.
func (c *checkpointWatch) started(p *process) {
	if at := c.known[p.attempt.Job]; p.from != at.Sequence && p.attempt.Number > at.Attempt {
		c.x.violate("C1: attempt %v goes on from checkpoint %d, and that of the job is %d of attempt %d", p.attempt, p.from, at.Sequence, at.Attempt)
	}
}

func (c *checkpointWatch) ended(p *process) {
	if o := p.outcome; o.Kind == job.Demoted {
		c.ends[p.attempt] = *o
	}
}

// durable watches what is on disk of a job.
func (c *checkpointWatch) durable(j *store.Job) {
	if c.x.liars[j.ID.Origin] {
		return
	}
	if _, goesOn := c.ends[j.AttemptID()]; goesOn && j.State == job.Completed && !c.x.liars[j.Holder] {
		c.x.violate("C6: job %v is %v, and attempt %v ended to go on", j.ID, j.State, j.AttemptID())
	}
	if len(j.Demotions) == 0 {
		return
	}
	r := j.Resume()
	c.known[j.ID] = r
	var used time.Duration
	var latest uint64
	for _, d := range j.Demotions {
		a := job.AttemptID{Job: j.ID, Number: d.Attempt}
		if c.x.liars[d.Site] {
			return
		}
		o, ended := c.ends[a]
		switch {
		case !ended:
			c.x.violate("C2: job %v goes on, and attempt %v has not ended at %s to go on", j.ID, a, d.Site)
		case d.Sequence == 0 && d.Reason == "":
			c.x.violate("C3: the checkpoint of attempt %v is left out without a reason", a)
		case d.Sequence != 0 && o.FilesRemain && !c.home[a]:
			c.x.violate("C5: job %v goes on from the checkpoint of attempt %v, whose files are not here", j.ID, a)
		case d.Sequence != 0 && d.Sequence != o.Checkpoint:
			c.x.violate("C3: the checkpoint of attempt %v is %d, and it saved %d", a, d.Sequence, o.Checkpoint)
		}
		used += max(0, o.End.Sub(o.Start)) // wall clocks are set back
		latest = max(latest, d.Sequence)
	}
	if r.Sequence != latest {
		c.x.violate("C3: job %v goes on from checkpoint %d, and has one of number %d", j.ID, r.Sequence, latest)
	}
	if r.Used != used {
		c.x.violate("C4: attempts of job %v ran for %v, and %v are counted", j.ID, used, r.Used)
	}
}
