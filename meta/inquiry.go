package meta

import (
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
)

// Foresee has an inquiry answered ([forecast.Stage.Play]), on another goroutine if there is
// one: it takes up to some tens of milliseconds. The driver answers with [Foreseen]. There is
// one at a time.
type Foresee struct {
	// Number comes back in the answer.
	Number  uint64
	Inquiry *forecast.Inquiry
}

// Foreseen is the answer to an inquiry.
type Foreseen struct {
	Number  uint64
	Inquiry *forecast.Inquiry
	Answer  forecast.Answer
}

func (Foresee) effect()      {}
func (Foresee) Word() string { return "foresee" }
func (Foreseen) event()      {}

// inquiry is a forecast that somebody wants of a start at this site.
type inquiry struct {
	// copy is what would start: one that is queued here, or that would come now.
	copy job.Copy
	// from is who asks, and query its number there. It is this site for its own jobs.
	from  job.SiteID
	query uint64
	draws int
	// placing says that a job waits for it to be placed: a prediction at once serves it better
	// than a forecast too late.
	placing bool
}

// foretold is the forecast of a start at a site.
type foretold struct {
	waits forecast.Waits
	basis forecast.StartBasis
	// limit is how long the copy waits at most by the limits; negative if it is not known.
	limit time.Duration
	// reason is why there is no forecast, as another site says.
	reason job.Reason
}

// wants takes up an inquiry; false if too many wait.
func (s *seer) wants(now job.Time, q inquiry) bool {
	if s.asked.Len() >= mostAsked || q.placing && s.asked.Len() >= mostPlacing || q.from != s.self && s.of[q.from] >= mostOfPeer {
		return false
	}
	s.of[q.from]++
	s.asked.Push(q)
	s.next(now)
	return true
}

// next plays the next inquiry unless one is played.
func (s *seer) next(now job.Time) {
	for s.playing == 0 {
		q, ok := s.asked.Pop()
		if !ok {
			return
		}
		if s.of[q.from]--; s.of[q.from] == 0 {
			delete(s.of, q.from)
		}
		if q.from == s.self && !s.asks(q.query) && !s.origin.awaits(s.self, q.query) {
			continue // the job has started, or was told without it
		}
		if !s.play(now, &q) {
			s.answer(now, &q, &forecast.Answer{})
		}
	}
}

// mostPlayed is how many copies a site may hold to be played: of more the steps would not be
// enough, and to hand them out would hold up the loop for longer than some milliseconds.
const mostPlayed = 4096

// play hands out a copy of the site; false if there are no scenarios of this.
func (s *seer) play(now job.Time, q *inquiry) bool {
	if s.site == nil || s.host.copies.Len() > mostPlayed {
		return false
	}
	scene, err := s.site.Foresee(now, &q.copy, forecast.Steps, s.used)
	if s.used = nil; err != nil {
		return false
	}
	roles := s.roles[:0]
	for range scene.Numbers() {
		roles = append(roles, forecast.Role{})
	}
	s.roles = nil
	for number, c := range scene.Copies {
		roles[number] = s.role(&c, q)
	}
	x := &forecast.Inquiry{Scene: scene, Roles: roles, Now: now, Seed: forecast.SeedOf(s.self, q.copy.ID, now), Draws: q.draws}
	if s.cfg.Forecasts.Arrivals {
		x.Days = s.days.Copy()
	}
	s.count++
	s.playing, s.under = s.count, *q
	s.emit(Foresee{Number: s.count, Inquiry: x})
	return true
}

// role is what is known of a copy that plays.
func (s *seer) role(c *job.Copy, q *inquiry) forecast.Role {
	x := forecast.Role{Limit: c.Request.Walltime, Origin: c.ID.Job.Origin}
	if held := s.host.copies.Get(c.ID); held != nil {
		r := held.rec.Request
		x.User, x.Runs = r.User, s.runsHere(r, x.Limit)
	} else if c.ID == q.copy.ID { // it would come now; how long it runs is not asked for
		x.User, x.Runs = q.copy.Request.User, q.copy.Request.Runs
	} else { // a pilot, which runs whatever there is
		x.Origin = ""
	}
	return x
}

// runsHere are the quantiles of the run time of a request here, as parts of the limit that its copy
// has: a request counts on a processor of speed 1, which the owner of no machine shares.
func (s *seer) runsHere(r *job.Request, limit time.Duration) forecast.Runs {
	runs := forecast.Runs(r.Runs)
	if limit <= 0 {
		return runs
	}
	return runs.Times(float64(job.Scaled(r.Walltime, s.host.speed(r))) / float64(limit))
}

// foreseen learns what scenarios came to.
func (s *seer) foreseen(now job.Time, ev Foreseen) {
	if s == nil || ev.Number != s.playing || s.playing == 0 {
		return
	}
	s.playing, s.used, s.roles = 0, ev.Inquiry.Scene, ev.Inquiry.Roles
	s.answer(now, &s.under, &ev.Answer)
	s.next(now)
}

// answer tells who asked what there is.
func (s *seer) answer(now job.Time, q *inquiry, a *forecast.Answer) {
	f := s.foretell(now, q, a)
	if q.from == s.self {
		s.told(now, s.self, q.query, &f)
		return
	}
	m := StartAnswer{Query: q.query, Wait: max(f.limit, 0), Waits: f.waits, Basis: f.basis}
	if f.basis == forecast.NoStart && !(q.placing && f.limit >= 0) {
		m.Reason = job.WouldNotStart
	}
	s.peers.send(q.from, m)
}

// foretell makes a forecast of scenarios, or of less where there were not enough of them.
func (s *seer) foretell(now job.Time, q *inquiry, a *forecast.Answer) foretold {
	f := foretold{limit: -1}
	if a.LimitKnown {
		f.limit = a.Limit
	} else if at, ok := s.host.site.EarliestStart(now, q.copy); ok && at != job.Never {
		f.limit = max(0, at.Sub(now))
	} else if s.st.Site().Draining {
		return f // it has no start
	}
	if a.Scenarios >= forecast.MinScenarios {
		f.waits, f.basis = a.Waits, forecast.ByScenarios
		return f
	}
	if f.limit >= 0 {
		if waits, ok := s.book.ByLimits(f.limit); ok {
			f.waits, f.basis = waits, forecast.ByLimits
			return f
		}
	}
	if waits, ok := s.book.ByPastWaits(q.copy.Request.Processors); ok {
		f.waits, f.basis = waits, forecast.ByPastWaits
	}
	return f
}

// onQuery answers another site that asks for a forecast, later.
func (s *seer) onQuery(now job.Time, from job.SiteID, m *StartQuery) {
	q := inquiry{from: from, query: m.Query, draws: min(max(int(m.Draws), forecast.MinScenarios), mostDraws), placing: m.Predict}
	held := s.host.copies.Get(m.Attempt)
	if held != nil && m.Attempt.Job.Origin != from {
		held = nil
	}
	if held == nil || !sameShape(held.rec.Request, &m.Request) { // about what would come
		if s.asksTooMuch(now, from) {
			s.later(now, &q, m)
			return
		}
		if m.Request.Runs == ([9]uint16{}) {
			m.Request.Runs = s.expect(from, &m.Request)
		}
	}
	if held != nil {
		q.copy = s.wouldBe(now, held, &m.Request)
	} else {
		next := job.AttemptID{Job: job.ID{Origin: from}, Number: 1}
		if reason := s.host.refusal(now, from, next, &m.Request, &m.Before, false); reason != job.NoReason {
			s.peers.send(from, StartAnswer{Query: m.Query, Reason: reason})
			return
		}
		q.copy = job.Copy{ID: next, Request: s.host.asked(&m.Request, &m.Before), Arrival: now, Remote: true}
	}
	if !s.wants(now, q) {
		s.later(now, &q, m)
	}
}

// later answers a query for which there is no time to play: with a prediction if a job waits to
// be placed, which costs as much as where no forecast was asked for.
func (s *seer) later(now job.Time, q *inquiry, m *StartQuery) {
	answer := StartAnswer{Query: m.Query, Reason: job.AskLater}
	if q.placing {
		answer = s.host.answerStart(now, q.from, m)
	}
	s.peers.send(q.from, answer)
}

// inquirePlacing asks this very site about a copy that a job which is placed would have here.
func (s *seer) inquirePlacing(now job.Time, query uint64, c job.Copy) {
	if !s.wants(now, inquiry{copy: c, from: s.self, query: query, draws: s.cfg.Forecasts.draws(), placing: true}) {
		s.told(now, s.self, query, &foretold{limit: -1})
	}
}
