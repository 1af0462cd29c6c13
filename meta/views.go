package meta

import (
	"slices"

	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// What is in this file is for showing: copies of what the engine has in mind,
// which the caller may keep.

// JobView is all that the engine has in mind of a job submitted here.
type JobView struct {
	Record store.Job
	Copies []CopyView
	// Decision is why a pending job has no place; nil if its latest decision
	// is the stored one.
	Decision *store.Decision
}

// CopyView says where a copy of the latest attempt is.
type CopyView struct {
	Site  job.SiteID
	State CopyState
}

// CopyState says how far a copy has come, as its origin knows. The numbers are
// those of kith.v1.CopyStatus.State.
type CopyState uint8

// The states of a copy.
const (
	CopyPlacing     CopyState = 1
	CopyQueued      CopyState = 2
	CopyClaimed     CopyState = 3
	CopyWithdrawing CopyState = 4
)

// JobView returns what is known of a job, or the error of [Engine.Find].
func (e *Engine) JobView(id job.ID) (JobView, error) {
	j, err := e.Find(id)
	if err != nil {
		return JobView{}, err
	}
	v := JobView{Record: snapshot(j), Copies: e.copyViews(j)}
	if o := e.open.Get(id); o != nil {
		v.Decision = o.decision
	}
	return v, nil
}

// snapshot copies a record; its slices are replaced or appended to, never
// changed in place, except the events.
func snapshot(j *store.Job) store.Job {
	s := *j
	s.Events = slices.Clone(j.Events)
	if j.Outcome != nil {
		outcome := *j.Outcome
		s.Outcome = &outcome
	}
	return s
}

func (e *Engine) copyViews(j *store.Job) []CopyView {
	o := e.open.Get(j.ID)
	var views []CopyView
	switch j.State.Claim() {
	case job.ClaimOpen:
		for i, site := range j.Sites {
			state := CopyPlacing
			if o.at[i] == queued {
				state = CopyQueued
			}
			views = append(views, CopyView{Site: site, State: state})
		}
		return views
	case job.ClaimHeld:
		views = append(views, CopyView{Site: j.Holder, State: CopyClaimed})
	}
	key := outKey{withdrawal, j.AttemptID()}
	for _, l := range e.linked {
		if l.waits(key) {
			views = append(views, CopyView{Site: l.site, State: CopyWithdrawing})
		}
	}
	return views
}

// ListJobs returns up to limit jobs after the given id that keep wants, in the
// order of ids, and whether there may be more.
func (e *Engine) ListJobs(after job.ID, limit int, keep func(*store.Job) bool) (list []store.Job, more bool) {
	for j := range e.st.Jobs(after) {
		if !keep(j) {
			continue
		}
		if len(list) == limit {
			return list, true
		}
		list = append(list, snapshot(j))
	}
	return list, false
}

// HostedCopy is a copy that this site holds for another origin.
type HostedCopy struct {
	Attempt job.AttemptID
	Request job.Request
	// State is "queued", "claiming", "staging", "running" or "ended".
	State string
}

// HostedCopies returns up to limit copies that this site holds for other
// origins, by origin and job.
func (e *Engine) HostedCopies(limit int) []HostedCopy {
	var list []HostedCopy
	for _, origin := range slices.Sorted(func(yield func(job.SiteID) bool) {
		for o := range e.remote {
			if !yield(o) {
				return
			}
		}
	}) {
		for _, c := range e.copiesOf(origin) {
			if len(list) == limit {
				return list
			}
			list = append(list, HostedCopy{Attempt: c.rec.ID, Request: c.rec.Request, State: c.word()})
		}
	}
	return list
}

func (c *hostCopy) word() string {
	switch {
	case c.rec.Phase == store.CopyEnded:
		return "ended"
	case c.started != 0:
		return "running"
	case c.rec.Phase == store.CopyBegun:
		return "staging"
	case c.status == claiming:
		return "claiming"
	}
	return "queued"
}

// RunsHere returns the copy of an attempt that this site has begun, and
// whether it has ended.
func (e *Engine) RunsHere(a job.AttemptID) (origin job.SiteID, ended, ok bool) {
	c := e.copies.Get(a)
	if c == nil || c.rec.Phase == store.CopyQueued {
		return "", false, false
	}
	return a.Job.Origin, c.rec.Phase == store.CopyEnded, true
}

// EndedFiles returns the encoded files of an attempt that ended here and whose
// origin has not acknowledged it.
func (e *Engine) EndedFiles(a job.AttemptID) ([]byte, bool) {
	c := e.copies.Get(a)
	if c == nil || c.rec.Outcome == nil {
		return nil, false
	}
	return c.rec.Outcome.Files, true
}

// SiteView is what is known of a site.
type SiteView struct {
	cluster.Digest
	Self, Connected, Known bool
	SeenAt                 job.Time
	// Stale says that the load is too old to rank by.
	Stale bool
}

// Sites returns this site and then the others by name.
func (e *Engine) Sites(now job.Time) []SiteView {
	own := e.digest(now)
	views := []SiteView{{Digest: own, Self: true, Connected: true, Known: true, SeenAt: now}}
	for _, p := range e.view.Peers() {
		v := SiteView{Digest: p.Digest, Connected: p.Connected, Known: p.Known, SeenAt: p.SeenAt}
		v.Site = p.Site
		v.Stale = !p.Known || p.Age(now) > e.cfg.Placement.MaxLoadAge
		views = append(views, v)
	}
	return views
}

// Draining reports whether this site drains, and how many attempts still run.
func (e *Engine) Draining(now job.Time) (bool, int) {
	return e.st.Site().Draining, int(e.site.Load(now).Running)
}

// FileHolders returns what names files at this site: the jobs whose payload
// does, those whose outputs do, and the encoded files of outcomes on their way.
func (e *Engine) FileHolders() (open, closed []job.ID, outcomes [][]byte) {
	for j := range e.st.Jobs(job.ID{}) {
		if j.State.Terminal() {
			closed = append(closed, j.ID)
		} else {
			open = append(open, j.ID)
		}
		if j.Outcome != nil && len(j.Outcome.Files) > 0 {
			outcomes = append(outcomes, j.Outcome.Files)
		}
	}
	for c := range e.st.Copies() {
		if c.Outcome != nil && len(c.Outcome.Files) > 0 {
			outcomes = append(outcomes, c.Outcome.Files)
		}
	}
	return open, closed, outcomes
}

// Knows reports whether this site holds a copy of an attempt, begun or ended.
func (e *Engine) Knows(a job.AttemptID) bool {
	_, _, ok := e.RunsHere(a)
	return ok
}
