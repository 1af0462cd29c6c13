package meta

import (
	"maps"
	"slices"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/store"
)

// Views shows what an engine knows and lets nothing be changed. What it returns
// is copied, so the caller may keep it. Views belong to the goroutine of their
// engine, between two steps.
type Views struct {
	origin *origin
	host   *host
	peers  *peers
}

// Views returns the views of the engine.
func (e *Engine) Views() Views { return Views{e.origin, e.host, e.peers} }

// JobView is all that the engine knows of a job submitted here.
type JobView struct {
	Record store.Job
	// After is what it waits for, or waited for.
	After  []job.Dependency
	Copies []CopyView
	// Bound is what [Views.BoundTold] returns.
	Bound float64
	// Decision is why a pending job has no place; nil if its latest decision
	// is the stored one.
	Decision *store.Decision
	// HostAway is since when there is no stream to the other site that holds the
	// job's claim; 0 while there is one, and if no other site holds it.
	HostAway job.Time
	// SaveTrouble is why what the job has saved while it runs does not come home.
	SaveTrouble string
	// FilesWait is why the output of a job whose processes are gone cannot come home
	// for now; empty if it can.
	FilesWait string
	// Over says that all processes of the job's attempt are gone while its output is being
	// collected at the holder.
	Over bool
	// Foresees says that sites are asked when it would start.
	Foresees bool
	// Forecasts is how the latest forecasts of the class of [store.Job].Forecast did.
	Forecasts forecast.Record
	// WantedCopies is how many sites the job is to queue at: what it asks
	// for, or the site's default.
	WantedCopies int32
	// Levels is what the sites say that are of the level of the hierarchy that the job is at.
	Levels []LevelView
}

// CopyView says where a copy of the latest attempt is.
type CopyView struct {
	Site  job.SiteID
	State CopyState
	// Behind says that it waits at its origin behind the copies that have a
	// guarantee there.
	Behind bool
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

// JobView returns what is known of a job submitted here, or an error that wraps
// [ErrUnknownJob] or [ErrForeignJob].
func (v Views) JobView(id job.ID) (JobView, error) {
	j, err := v.origin.find(id)
	if err != nil {
		return JobView{}, err
	}
	view := v.brief(j)
	view.Record.Events = slices.Clone(j.Events)
	view.Copies = v.copyViews(j)
	view.Forecasts = v.recordOf(j.Forecast)
	if o := v.origin.open.Get(id); o != nil {
		view.Decision = o.decision
	}
	return view, nil
}

// brief is what costs next to nothing to tell of a job: all but its claim events,
// copies and decision.
func (v Views) brief(j *store.Job) JobView {
	copies := j.Request.Copies
	if copies == 0 {
		copies = v.origin.cfg.Placement.DefaultCopies()
	}
	view := JobView{Record: snapshot(j), After: v.origin.st.After(j.ID), HostAway: v.hostAway(j), Bound: v.BoundTold(j), WantedCopies: copies}
	if !j.State.Terminal() {
		if o := v.origin.open.Get(j.ID); o != nil {
			if o.homeward != nil {
				view.SaveTrouble = o.homeward.trouble
			}
			view.FilesWait, view.Foresees = o.filesWait, o.foresight != nil
			view.Over = o.over != 0 && o.over == j.Attempt && j.Outcome == nil
		}
	}
	return view
}

// hostAway returns since when the holder of a job's claim is out of reach, 0 if it
// is not.
func (v Views) hostAway(j *store.Job) job.Time {
	if j.Holder == "" || j.Holder == v.origin.self || j.State.Terminal() {
		return 0
	}
	switch p := v.peers.view.Get(j.Holder); {
	case p == nil: // it was never seen by this daemon
		return v.host.began
	case p.Connected:
		return 0
	default:
		return p.Since
	}
}

// snapshot copies a record without its events; its other slices are replaced or
// appended to, never changed in place.
func snapshot(j *store.Job) store.Job {
	s := *j
	s.Events = nil
	if j.Outcome != nil {
		outcome := *j.Outcome
		s.Outcome = &outcome
	}
	return s
}

func (v Views) copyViews(j *store.Job) []CopyView {
	o := v.origin.open.Get(j.ID)
	var views []CopyView
	switch j.State.Claim() {
	case job.ClaimOpen:
		for i, site := range j.Sites {
			state := CopyPlacing
			if o.at[i] == queued {
				state = CopyQueued
			}
			views = append(views, CopyView{Site: site, State: state, Behind: site == v.host.self && v.host.site.Behind(j.AttemptID())})
		}
		return views
	case job.ClaimTaken:
		views = append(views, CopyView{Site: j.Holder, State: CopyClaimed})
	}
	key := outKey{withdrawal, j.AttemptID()}
	for _, l := range v.peers.linked {
		if l.waits(key) {
			views = append(views, CopyView{Site: l.site, State: CopyWithdrawing})
		}
	}
	return views
}

// Starts returns when the copies at the head of this site's queue would start, at
// most that many, see [Site]. A job has a time there while its latest attempt waits
// at this site.
func (v Views) Starts(now job.Time, most int) map[job.AttemptID]job.Time {
	return maps.Collect(v.host.site.Starts(now, most))
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

// HeldBy reports whether a site holds the claim of an attempt of a job submitted here that
// has not ended, or has tasks of a bundle of that name.
func (v Views) HeldBy(a job.AttemptID, site job.SiteID) bool {
	j := v.origin.st.Job(a.Job)
	return v.bundleAt(a, site) || j != nil && !j.State.Terminal() && j.Attempt == a.Number && j.Holder == site
}

// Counters returns the counts so far.
func (v Views) Counters() Counters { return v.origin.counters }

// EndedFiles returns the encoded files of an attempt, or of a run of a task, that ended here
// and whose origin has not acknowledged it; of an attempt that runs, those of what it has saved, if
// its origin has not answered that.
func (v Views) EndedFiles(a job.AttemptID) ([]byte, bool) {
	c := v.host.copies.Get(a)
	if c == nil {
		return v.taskFiles(a)
	}
	if c.rec.Outcome == nil {
		return v.host.savedFiles(c)
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
	// StartTrouble says why this site does not start jobs as usual, for people. Of
	// others it is not known.
	StartTrouble string
	// Drain is set for this site only: others do not tell theirs.
	Drain Drain
}

// Drain says who began or ended a drain last, when and why. All of it is empty
// if that was before such things were recorded.
type Drain struct {
	Actor   identity.Actor
	Reason  string
	Changed job.Time
}

// Sites returns this site and then the others by name.
func (v Views) Sites(now job.Time) []SiteView {
	own := v.host.describe(now) // no digest: other sites are told nothing
	s := v.host.st.Site()
	drain := Drain{Actor: s.DrainActor, Reason: s.DrainReason, Changed: s.DrainChanged}
	views := []SiteView{{Digest: own, Self: true, Connected: true, Known: true, SeenAt: now, Drain: drain, StartTrouble: v.host.starting.trouble(now)}}
	for _, p := range v.peers.view.Peers() {
		site := SiteView{Digest: p.Digest, Connected: p.Connected, Known: p.Known, SeenAt: p.SeenAt}
		site.Site = p.Site
		site.Stale = !p.Known || p.Age(now) > v.peers.cfg.Placement.MaxLoadAge
		views = append(views, site)
	}
	return views
}

// Draining reports whether this site drains, and how many attempts still run.
func (v Views) Draining(now job.Time) (bool, int) {
	return v.origin.st.Site().Draining, int(v.host.site.Load(now).Running)
}

// ResumeOf returns what an attempt of a job submitted here goes on from.
func (v Views) ResumeOf(id job.ID) store.Resume {
	if j := v.origin.st.Job(id); j != nil {
		return j.Resume()
	}
	return store.Resume{}
}

// A DemotedAttempt is an attempt of a job submitted here that was demoted, or [store.SavedFiles].
type DemotedAttempt struct {
	ID job.AttemptID
	// Saved says that the job may go on from its checkpoint.
	Saved bool
}

// DemotedAttempts returns those whose files are kept, see [store.Backend].AttemptFiles.
func (v Views) DemotedAttempts() (list []DemotedAttempt) {
	for j := range v.origin.st.Jobs(job.ID{}) {
		if j.Saved != nil {
			list = append(list, DemotedAttempt{ID: store.SavedFiles(j.ID), Saved: !j.State.Terminal() && j.Resume().Early})
		}
		for _, d := range j.Demotions {
			list = append(list, DemotedAttempt{
				ID: job.AttemptID{Job: j.ID, Number: d.Attempt}, Saved: d.Attempt == j.Checkpoint && !j.State.Terminal(),
			})
		}
	}
	return list
}

// FileHolders returns what names files at this site: the jobs whose payload
// does, those whose outputs do, the bags, whose payload does and whose tasks may have left
// some, and the encoded files of outcomes on their way.
func (v Views) FileHolders() (open, closed, bags []job.ID, outcomes [][]byte) {
	for j := range v.origin.st.Jobs(job.ID{}) {
		if j.State.Terminal() {
			closed = append(closed, j.ID)
		} else {
			open = append(open, j.ID)
		}
		if j.Outcome != nil && len(j.Outcome.Files) > 0 {
			outcomes = append(outcomes, j.Outcome.Files)
		}
	}
	for c := range v.origin.st.Copies() {
		if c.Outcome != nil && len(c.Outcome.Files) > 0 {
			outcomes = append(outcomes, c.Outcome.Files)
		}
	}
	for b := range v.origin.st.Bags {
		bags = append(bags, b.ID)
	}
	for _, h := range v.origin.st.HeldBundles() {
		for i := range h.Unacked {
			for _, f := range h.Unacked[i].Files {
				outcomes = append(outcomes, f.Set)
			}
		}
	}
	return open, closed, bags, outcomes
}
