package sim

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// levelWatch checks jobs of a hierarchy of levels: they start only at sites of the level that they
// are at, and for no longer than that lets a job run (V1), and each level that one outgrew is left
// for good (V2), for the next one (V3), unless that has no site. Where jobs are moved inside a level
// one that was moved rests (V4).
type levelWatch struct {
	x    *watch
	bags map[job.ID]uint8 // the level that a bag was at
}

// launched watches an attempt that a site is to start, with the request as it counts there.
func (v levelWatch) launched(s *Site, a job.AttemptID, r *job.Request) {
	if r.Level == 0 || v.x.liars[a.Job.Origin] || v.x.liars[s.cfg.ID] {
		return
	}
	switch p := &s.cfg.Meta.Level; {
	case p.Rank != int(r.Level):
		v.x.violate("V1: attempt %v, at level %d, starts at %s, whose level is %d", a, r.Level, s.cfg.ID, p.Rank)
	case r.Walltime > p.Run:
		v.x.violate("V1: attempt %v may run for %v at %s, whose level lets a job run for %v", a, r.Walltime, s.cfg.ID, p.Run)
	}
}

// durableBag watches what is on disk of a bag: it goes down, one level at a time but for those
// without a site, and what it is given at is its level or one that it has left.
func (v levelWatch) durableBag(id job.ID, l *store.BagLevel) {
	if l.Level == 0 || v.x.liars[id.Origin] {
		return
	}
	at := uint8(1)
	for i := range l.Demotions {
		d := &l.Demotions[i]
		switch {
		case i > 0 && d.From != at, d.To <= d.From:
			v.x.violate("V2: bag %v went from level %d to level %d, and was at level %d", id, d.From, d.To, at)
		case d.Reason != job.Level && d.To != d.From+1:
			v.x.violate("V3: bag %v went from level %d to level %d", id, d.From, d.To)
		}
		at = d.To
	}
	if len(l.Demotions) > 0 && l.Level != at {
		v.x.violate("V2: bag %v is at level %d, and went to level %d", id, l.Level, at)
	}
	if was := v.bags[id]; l.Level < was {
		v.x.violate("V2: bag %v is at level %d, and was at level %d", id, l.Level, was)
	}
	v.bags[id] = l.Level
}

// rested watches the moves of a job inside a level, by the clock of its origin.
func (v levelWatch) rested(j *store.Job) {
	s := v.x.w.site(j.ID.Origin)
	if s == nil {
		return
	}
	period := cmp.Or(s.cfg.Meta.Level.SharePeriod, time.Minute)
	var last job.Time
	for _, e := range j.Events {
		if e.Kind != store.CopyReplaced || e.Reason != job.Pushed {
			continue
		}
		if ago := e.Time.Sub(last); last != 0 && ago != 0 && ago < 5*period {
			v.x.violate("V4: job %v was moved inside its level %v after another such move, and rests for %v", j.ID, ago, 5*period)
		}
		last = e.Time
	}
}

// durable watches what is on disk of a job.
func (v levelWatch) durable(j *store.Job) {
	if j.Level == 0 || v.x.liars[j.ID.Origin] {
		return
	}
	v.rested(j)
	var at uint8
	for _, d := range j.Demotions {
		if v.x.liars[d.Site] {
			return
		}
		if d.Level <= at && at > 0 && d.Level > 0 {
			v.x.violate("V2: attempt %d of job %v ran at level %d, and it had outgrown level %d", d.Attempt, j.ID, d.Level, at)
		}
		if d.Cause == job.OutOfLevel {
			at = d.Level
		}
	}
	if n := len(j.Demotions); n > 0 && j.State == job.Pending {
		d := &j.Demotions[n-1]
		lowered := slices.ContainsFunc(j.Events, func(e store.ClaimEvent) bool { return e.Kind == store.ClaimLowered && e.Attempt == d.Attempt })
		if d.Cause == job.OutOfLevel && j.Attempt == d.Attempt && !lowered && j.Level != d.Level+1 {
			v.x.violate("V3: job %v went from level %d to level %d", j.ID, d.Level, j.Level)
		}
	}
	if at > 0 && j.Level <= at && !j.State.Terminal() {
		v.x.violate("V2: job %v is at level %d, and has outgrown level %d", j.ID, j.Level, at)
	}
}
