package meta

import (
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// The origin's side of forecasts: it asks the sites that hold a copy of a job when it would
// start there, keeps with the job what comes of the answers, and scores it when the job
// starts.

// foresight collects what the sites of an attempt say of its start.
type foresight struct {
	query   uint64
	attempt uint32
	made    job.Time
	// sites are those that hold a copy; asked says which of them were asked and have not
	// answered, limit is the least wait by the limits, negative if none is known.
	sites   []store.SiteForecast
	pending []answerState
	missing int
	limit   time.Duration
}

// answerState is how far the answer of a site has come.
type answerState uint8

const (
	siteToAsk answerState = iota // it has yet to take its copy
	siteAsked
	siteAnswered
)

type foresightDue struct {
	at    job.Time
	query uint64
}

// foresightWait is how long answers of sites are waited for.
const foresightWait = 2 * time.Second

// startedAtOnce is how soon after its forecast a start says nothing about it: a job that finds a
// site idle waits for the messages only.
const startedAtOnce = time.Second

// placed notes a job that has got an attempt.
func (s *seer) placed(o *openJob) {
	s.drop(o)
	s.fresh = append(s.fresh, o)
}

// begin asks about the jobs that were placed in this instant and have not started.
func (s *seer) begin(now job.Time) {
	for i, o := range s.fresh {
		s.fresh[i] = nil
		if !o.ended && o.rec.State == job.Queued && o.foresight == nil { // it may have been placed twice in this instant
			s.ask(now, o)
		}
	}
	s.fresh = s.fresh[:0]
}

// ask asks the sites that hold a copy of a job.
func (s *seer) ask(now job.Time, o *openJob) {
	if len(s.waiting) >= mostForesights {
		s.book.Missed(forecast.NotMade)
		return
	}
	s.origin.query++
	f := &foresight{query: s.origin.query, attempt: o.rec.Attempt, made: now, limit: -1}
	n := min(len(o.rec.Sites), store.MaxForecastSites)
	f.sites, f.pending, f.missing = make([]store.SiteForecast, n), make([]answerState, n), n
	for i := range n {
		f.sites[i].Site = o.rec.Sites[i]
	}
	o.foresight, s.waiting[f.query] = f, o
	s.due.Push(foresightDue{now.Add(foresightWait), f.query})
	for i := range n {
		if f.sites[i].Site == s.self || o.at[i] == queued {
			s.askSite(now, o, f, i)
			if o.foresight != f {
				return
			}
		}
	}
}

// askSite asks one site, which holds the copy by now.
func (s *seer) askSite(now job.Time, o *openJob, f *foresight, i int) {
	if f.pending[i] != siteToAsk {
		return
	}
	f.pending[i] = siteAsked
	draws := s.cfg.Forecasts.draws()
	if site := f.sites[i].Site; site != s.self {
		s.peers.send(site, StartQuery{Query: f.query, Request: o.rec.Asked(), Before: o.rec.Before(), Draws: uint16(draws), Attempt: o.rec.AttemptID()}) //nolint:gosec // At most mostDraws.
		return
	}
	c := s.host.copies.Get(o.rec.AttemptID())
	if c == nil || !s.wants(now, inquiry{copy: s.host.entry(c.rec), from: s.self, query: f.query, draws: draws}) {
		s.told(now, s.self, f.query, &foretold{limit: -1})
	}
}

// accepted learns that a site has taken its copy of a job.
func (s *seer) accepted(now job.Time, o *openJob, site job.SiteID) {
	if f := o.foresight; f != nil {
		if i := f.place(site); i >= 0 {
			s.askSite(now, o, f, i)
		}
	}
}

// place returns where a site is in the list, -1 if it is not.
func (f *foresight) place(site job.SiteID) int {
	for i := range f.sites {
		if f.sites[i].Site == site {
			return i
		}
	}
	return -1
}

// asks reports whether a query is one of forecasts.
func (s *seer) asks(query uint64) bool {
	_, ok := s.probes[query]
	return ok || s.waiting[query] != nil
}

// awaits reports whether the answer of a site is waited for.
func (s *seer) awaits(site job.SiteID, query uint64) bool {
	if p, ok := s.probes[query]; ok {
		return p.place(site) >= 0
	}
	o := s.waiting[query]
	if o == nil {
		return false
	}
	i := o.foresight.place(site)
	return i >= 0 && o.foresight.pending[i] == siteAsked
}

// told learns what a site says, and is done when all have said something.
func (s *seer) told(now job.Time, site job.SiteID, query uint64, a *foretold) {
	if s.toldProbe(now, site, query, a) {
		return
	}
	o := s.waiting[query]
	if o == nil {
		if site == s.self {
			s.origin.foretoldHere(now, query, a)
		}
		return
	}
	f := o.foresight
	i := f.place(site)
	if i < 0 || f.pending[i] == siteAnswered {
		return
	}
	f.pending[i] = siteAnswered
	f.sites[i].Basis, f.sites[i].Waits = uint8(a.basis), a.waits
	if a.limit >= 0 && (f.limit < 0 || a.limit < f.limit) {
		f.limit = a.limit
	}
	if f.missing--; f.missing == 0 {
		s.finish(now, o)
	}
}

// heard is told by a message.
func (s *seer) heard(now job.Time, from job.SiteID, m *StartAnswer) {
	f := s.foretoldBy(m)
	s.told(now, from, m.Query, &f)
}

// foretoldBy is what a message says. An earlier version, and a site that makes no forecast, says
// only how long the limits let the job wait.
func (s *seer) foretoldBy(m *StartAnswer) foretold {
	f := foretold{waits: m.Waits, basis: m.Basis, limit: -1, reason: m.Reason}
	if m.Reason != job.NoReason {
		f.basis = forecast.NoStart
	} else if m.Wait > 0 || m.Basis == forecast.NoStart {
		f.limit = m.saidWait()
	}
	if f.basis == forecast.NoStart && f.limit >= 0 {
		if waits, ok := s.book.ByLimits(f.limit); ok {
			f.waits, f.basis = waits, forecast.ByLimits
		}
	}
	return f
}

// silent learns that a site will say nothing about a job.
func (s *seer) silent(now job.Time, o *openJob, site job.SiteID) {
	if o.foresight != nil {
		s.told(now, site, o.foresight.query, &foretold{limit: -1})
	}
}

// expire goes on without those that did not answer in time.
func (s *seer) expire(now job.Time) {
	for {
		d, ok := s.due.First()
		if !ok || d.at > now {
			return
		}
		s.due.Pop()
		if o := s.waiting[d.query]; o != nil {
			s.finish(now, o)
		} else if p, ok := s.probes[d.query]; ok {
			s.answerProbe(p.probe)
		}
	}
}

// finish keeps with a job what the sites said.
func (s *seer) finish(now job.Time, o *openJob) {
	f := o.foresight
	s.drop(o)
	if o.rec.State != job.Queued || o.rec.Attempt != f.attempt {
		s.book.Missed(forecast.AtOnce)
		return
	}
	var all []forecast.Waits
	basis := forecast.NoStart
	for i := range f.sites {
		if b := forecast.StartBasis(f.sites[i].Basis); b != forecast.NoStart {
			all, basis = append(all, f.sites[i].Waits), max(basis, b)
		}
	}
	if len(all) == 0 {
		s.book.Missed(forecast.NotMade)
		return
	}
	raw := forecast.LeastWaits(all)
	told, _ := s.book.Tell(&raw)
	if old := o.rec.Forecast; old != nil && old.End == store.ForecastOpen {
		s.book.Missed(forecast.Replaced)
	}
	record(s.st, store.NoteForecast{Job: o.rec.ID, Forecast: &store.Forecast{
		Attempt: f.attempt, Made: f.made, Basis: uint8(basis), Raw: raw, Told: told, Limit: f.limit, Sites: f.sites,
	}})
	s.origin.changed(o.rec.ID)
}

// drop ends what is asked about a job.
func (s *seer) drop(o *openJob) {
	if o.foresight != nil {
		delete(s.waiting, o.foresight.query)
		o.foresight = nil
	}
}

// started scores what was said of a job of which it is recorded that it has started.
func (s *seer) started(now job.Time, o *openJob) {
	if o.foresight != nil {
		s.drop(o)
		s.book.Missed(forecast.AtOnce)
	}
	f := o.rec.Forecast
	if f == nil || f.End != store.ForecastOpen {
		return
	}
	wait := s.startOf(now, o.rec).Sub(f.Made)
	if f.Attempt != o.rec.Attempt {
		s.unscored(o, forecast.Replaced)
		return
	}
	if wait < startedAtOnce {
		s.unscored(o, forecast.AtOnce)
		return
	}
	raw, told := forecast.Waits(f.Raw), forecast.Waits(f.Told)
	s.book.Started(&raw, &told, wait, s.rng(o.rec.AttemptID(), f.Made))
	s.book.Waited(o.rec.Request.Processors, wait, f.Limit, f.Limit >= 0)
	g := *f
	g.End, g.Waited = store.ForecastScored, wait
	record(s.st, store.NoteForecast{Job: o.rec.ID, Forecast: &g})
	s.save()
}

// startOf returns when a job started, by this site's clock. Another one's may be wrong, but
// the start lies between the grant and now.
func (s *seer) startOf(now job.Time, j *store.Job) job.Time {
	granted := job.Time(0)
	for i := range j.Events {
		if e := &j.Events[i]; e.Kind == store.ClaimGranted && e.Attempt == j.Attempt {
			granted = e.Time
		}
	}
	return max(min(j.Started, now), granted)
}

// unscored notes that nothing comes of what was said of a job.
func (s *seer) unscored(o *openJob, why forecast.Unresolved) {
	s.drop(o)
	f := o.rec.Forecast
	if f == nil || f.End != store.ForecastOpen {
		return
	}
	g := *f
	g.End = store.ForecastUnscored
	record(s.st, store.NoteForecast{Job: o.rec.ID, Forecast: &g})
	s.book.Missed(why)
}

// down gives up waiting for a site whose stream is gone.
func (s *seer) down(now job.Time, site job.SiteID) {
	for d := range s.due.All {
		if o := s.waiting[d.query]; o != nil {
			if i := o.foresight.place(site); i >= 0 && o.foresight.pending[i] == siteAsked {
				s.silent(now, o, site)
			}
		} else if _, ok := s.probes[d.query]; ok {
			s.toldProbe(now, site, d.query, &foretold{limit: -1, reason: job.Unreachable})
		}
	}
}

// nextWake returns when a seer has to do something next.
func (s *seer) nextWake() job.Time {
	if s == nil {
		return job.Never
	}
	if d, ok := s.due.First(); ok {
		return d.at
	}
	return job.Never
}
