package meta

import (
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta/place"
)

// Asking sites when a job would start there, where a placement policy goes by
// that, and answering those that ask.

// startQuery collects what sites say about the start of a job.
type startQuery struct {
	id       uint64
	deadline job.Time
	missing  int
	answers  []place.Answer
	// forecast says that sites were asked for a forecast.
	forecast bool
}

// ask asks all sites that could take the job when it would start there, and
// reports whether that decides where it goes, now or when they have answered.
func (or *origin) ask(now job.Time, o *openJob) bool {
	or.query++
	query := StartQuery{Query: or.query, Request: o.rec.Asked(), Before: o.rec.Before(), Predict: or.predicts(), Draws: or.forecastDraws()}
	answers, missing, own := or.answers[:0], 0, -1
	or.beginRound(now, o, nil)
	for i := range or.round.Sites {
		switch c := &or.round.Sites[i]; {
		case !c.Eligible:
		case c.Own && query.Draws > 0:
			own = len(answers)
			answers = append(answers, place.Answer{Site: or.self, Awaited: true})
			missing++
		case c.Own:
			answers = append(answers, or.ownAnswer(now, o))
		default:
			a := or.askSite(now, c.Site, &query)
			if a.Awaited {
				missing++
			}
			answers = append(answers, a)
		}
	}
	or.answers = answers
	switch {
	case missing > 0:
		o.query = &startQuery{
			id: query.Query, deadline: now.Add(or.cfg.Placement.QueryTimeout), missing: missing, answers: slices.Clone(answers),
			forecast: query.Draws > 0,
		}
		or.queries = append(or.queries, o)
		if own >= 0 { // when the others have been asked: they answer while this one plays
			or.seer.inquirePlacing(now, query.Query, or.ownCopy(now, o))
		}
	case len(answers) == 0:
		return false
	default:
		or.openAttempt(now, o, or.decideRound(now, o, answers))
	}
	return true
}

// predicts reports whether sites are asked to predict the start. Where a forecast is asked for
// that is what a site says that makes none.
func (or *origin) predicts() bool {
	return or.policy.Question == place.AskPredict || or.policy.Question == place.AskForecast
}

// forecastDraws is of how many scenarios forecasts are that placement asks for; 0 if it asks
// for none.
func (or *origin) forecastDraws() uint16 {
	if or.policy.Question != place.AskForecast || or.seer == nil {
		return 0
	}
	return uint16(or.cfg.Forecasts.draws()) //nolint:gosec // At most mostDraws.
}

// startsHere reports whether a job whose origin always holds a copy would start
// here at once. No site is asked about it then: it will keep its copies at home
// (see [origin.sendPlaced]) and need not wait for answers.
func (or *origin) startsHere(now job.Time, o *openJob) bool {
	if o.rec.Level > 0 || !or.policy.KeepsOwn || or.site.Refuse(&o.rec.Request) != job.NoReason || or.host.leavesNothing(&o.rec.Request) {
		return false
	}
	a := or.ownAnswer(now, o)
	return a.Known && a.Wait == 0
}

// askSite asks one site, and returns its answer or that it is awaited.
func (or *origin) askSite(now job.Time, site job.SiteID, q *StartQuery) place.Answer {
	if or.cfg.Starts != nil && q.Draws == 0 { // a forecast is played, and comes as a message
		if m, ok := or.cfg.Starts.StartAt(now, site, or.self, q); ok {
			return answerOf(site, &m)
		}
	}
	or.peers.send(site, *q)
	return place.Answer{Site: site, Awaited: true}
}

// longestWait bounds what a site says of a wait, so that no sum with it overflows: one that says
// never would else seem to be the first.
const longestWait = 2 * job.MaxWalltime

// saidWait is the wait that a site says, within its bounds.
func (m *StartAnswer) saidWait() time.Duration { return min(max(0, m.Wait), longestWait) }

// answerOf is what a site's message says.
func answerOf(site job.SiteID, m *StartAnswer) place.Answer {
	return place.Answer{Site: site, Wait: m.saidWait(), Reason: m.Reason, Known: m.Reason == job.NoReason}
}

// read is what a site's message says to a query, which may have asked for a forecast.
func (or *origin) read(from job.SiteID, m *StartAnswer, asked bool) place.Answer {
	a := answerOf(from, m)
	if !asked || or.seer == nil || !a.Known {
		return a
	}
	f := or.seer.foretoldBy(m)
	if f.basis != forecast.NoStart {
		a.Waits, a.Wait = &f.waits, f.waits.Median()
	}
	return a
}

func (or *origin) ownAnswer(now job.Time, o *openJob) place.Answer {
	wait, ok := or.host.waitHere(now, or.ownCopy(now, o), or.predicts())
	return place.Answer{Site: or.self, Wait: wait, Known: ok, Reason: job.WouldNotStart}
}

// ownCopy is a copy of a job that arrives here now.
func (or *origin) ownCopy(now job.Time, o *openJob) job.Copy {
	r, before := o.rec.Asked(), o.rec.Before()
	return job.Copy{ID: job.AttemptID{Job: o.rec.ID, Number: o.rec.NextAttempt()}, Request: or.host.asked(&r, &before), Arrival: now}
}

// waitHere says how long a copy that arrived now would wait here.
func (h *host) waitHere(now job.Time, c job.Copy, predict bool) (time.Duration, bool) {
	var at job.Time
	var ok bool
	if predict {
		at, ok = h.site.Predict(now, c)
	} else {
		at, ok = h.site.EarliestStart(now, c)
	}
	if !ok || at == job.Never {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func (h *host) onStartQuery(now job.Time, from job.SiteID, m StartQuery) {
	if m.Draws > 0 && h.seer != nil {
		h.seer.onQuery(now, from, &m)
		return
	}
	h.peers.send(from, h.answerStart(now, from, &m))
}

// answerStart returns what this site answers to a query of another one now. It
// changes nothing.
func (h *host) answerStart(now job.Time, from job.SiteID, m *StartQuery) StartAnswer {
	answer := StartAnswer{Query: m.Query}
	next := job.AttemptID{Job: job.ID{Origin: from}, Number: 1}
	if answer.Reason = h.refusal(now, from, next, &m.Request, &m.Before, false); answer.Reason == job.NoReason {
		wait, ok := h.waitHere(now, job.Copy{ID: next, Request: h.asked(&m.Request, &m.Before), Arrival: now, Remote: true}, m.Predict)
		answer.Wait = wait
		if !ok {
			answer.Reason = job.WouldNotStart
		}
	}
	return answer
}

func (or *origin) onStartAnswer(now job.Time, from job.SiteID, m StartAnswer) {
	if or.seer != nil && or.seer.asks(m.Query) {
		or.seer.heard(now, from, &m)
		return
	}
	for _, o := range or.queries {
		if o.query.id != m.Query {
			continue
		}
		for i := range o.query.answers {
			a := &o.query.answers[i]
			if a.Site == from && a.Awaited {
				*a = or.read(from, &m, o.query.forecast)
				o.query.missing--
			}
		}
		if o.query.missing == 0 {
			or.answered(now, o)
		}
		return
	}
}

// answered places a job by what the sites said.
func (or *origin) answered(now job.Time, o *openJob) {
	answers := o.query.answers
	or.dropQuery(o)
	or.openAttempt(now, o, or.decide(now, o, answers))
	or.host.wantPass()
}

// expireQueries goes on without those that did not answer in time.
func (or *origin) expireQueries(now job.Time) {
	for len(or.queries) > 0 && or.queries[0].query.deadline <= now {
		o := or.queries[0]
		for i := range o.query.answers {
			if a := &o.query.answers[i]; a.Awaited && a.Site == or.self {
				*a = or.ownAnswer(now, o) // it was to play others first
			}
		}
		or.answered(now, o)
	}
}

// queriesDown gives up waiting for a site whose stream is gone.
func (or *origin) queriesDown(now job.Time, site job.SiteID) {
	for _, o := range slices.Clone(or.queries) {
		or.onStartAnswer(now, site, StartAnswer{Query: o.query.id, Reason: job.Unreachable})
	}
}

func (or *origin) dropQuery(o *openJob) {
	if o.query != nil {
		o.query = nil
		or.queries = slices.DeleteFunc(or.queries, func(q *openJob) bool { return q == o })
	}
}

// foretoldHere learns what this very site says of the start of a job that is being placed.
// Without a forecast it is a prediction.
func (or *origin) foretoldHere(now job.Time, query uint64, f *foretold) {
	for _, o := range or.queries {
		if o.query.id != query {
			continue
		}
		for i := range o.query.answers {
			a := &o.query.answers[i]
			if a.Site != or.self || !a.Awaited {
				continue
			}
			if f.basis == forecast.NoStart {
				*a = or.ownAnswer(now, o)
			} else {
				waits := f.waits
				*a = place.Answer{Site: or.self, Known: true, Wait: waits.Median(), Waits: &waits}
			}
			o.query.missing--
		}
		if o.query.missing == 0 {
			or.answered(now, o)
		}
		return
	}
}
