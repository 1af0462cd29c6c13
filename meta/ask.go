package meta

import (
	"slices"
	"time"

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
}

// ask asks all sites that could take the job when it would start there, and
// reports whether that decides where it goes, now or when they have answered.
func (e *Engine) ask(now job.Time, o *openJob) bool {
	e.query++
	query := StartQuery{Query: e.query, Request: o.rec.Request, Predict: e.predicts()}
	answers, missing := e.answers[:0], 0
	e.beginRound(now, o, nil)
	for i := range e.round.Sites {
		switch c := &e.round.Sites[i]; {
		case !c.Eligible:
		case c.Own:
			answers = append(answers, e.ownAnswer(now, o))
		default:
			a := e.askSite(now, c.Site, &query)
			if a.Awaited {
				missing++
			}
			answers = append(answers, a)
		}
	}
	e.answers = answers
	switch {
	case missing > 0:
		o.query = &startQuery{
			id: query.Query, deadline: now.Add(e.cfg.Placement.QueryTimeout), missing: missing, answers: slices.Clone(answers),
		}
		e.queries = append(e.queries, o)
	case len(answers) == 0:
		return false
	default:
		e.openAttempt(now, o, e.decideRound(now, o, answers))
	}
	return true
}

// predicts reports whether sites are asked to predict the start.
func (e *Engine) predicts() bool { return e.policy.Question == place.AskPredict }

// startsHere reports whether a job whose origin always holds a copy would start
// here at once. No site is asked about it then: it will keep its copies at home
// (see [Engine.sendPlaced]) and need not wait for answers.
func (e *Engine) startsHere(now job.Time, o *openJob) bool {
	if !e.policy.KeepsOwn || e.site.Refuse(&o.rec.Request) != job.NoReason {
		return false
	}
	a := e.ownAnswer(now, o)
	return a.Known && a.Wait == 0
}

// askSite asks one site, and returns its answer or that it is awaited.
func (e *Engine) askSite(now job.Time, site job.SiteID, q *StartQuery) place.Answer {
	if e.cfg.Starts != nil {
		if m, ok := e.cfg.Starts.StartAt(now, site, e.self, q); ok {
			return answerOf(site, &m)
		}
	}
	e.send(site, *q)
	return place.Answer{Site: site, Awaited: true}
}

// answerOf is what a site's message says.
func answerOf(site job.SiteID, m *StartAnswer) place.Answer {
	return place.Answer{Site: site, Wait: max(0, m.Wait), Reason: m.Reason, Known: m.Reason == job.NoReason}
}

func (e *Engine) ownAnswer(now job.Time, o *openJob) place.Answer {
	c := job.Copy{ID: job.AttemptID{Job: o.rec.ID, Number: o.rec.Attempt + 1}, Request: e.here(&o.rec.Request), Arrival: now}
	wait, ok := e.waitHere(now, c, e.predicts())
	return place.Answer{Site: e.self, Wait: wait, Known: ok, Reason: job.WouldNotStart}
}

// waitHere says how long a copy that arrived now would wait here.
func (e *Engine) waitHere(now job.Time, c job.Copy, predict bool) (time.Duration, bool) {
	var at job.Time
	var ok bool
	if predict {
		at, ok = e.site.Predict(now, c)
	} else {
		at, ok = e.site.EarliestStart(now, c)
	}
	if !ok || at == job.Never {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func (e *Engine) onStartQuery(now job.Time, from job.SiteID, m StartQuery) {
	e.send(from, e.AnswerStart(now, from, &m))
}

// AnswerStart returns what this site answers to a query of another one now. It
// changes nothing.
func (e *Engine) AnswerStart(now job.Time, from job.SiteID, m *StartQuery) StartAnswer {
	answer := StartAnswer{Query: m.Query}
	next := job.AttemptID{Job: job.ID{Origin: from}, Number: 1}
	if answer.Reason = e.refusal(from, next, &m.Request); answer.Reason == job.NoReason {
		wait, ok := e.waitHere(now, job.Copy{ID: next, Request: e.here(&m.Request), Arrival: now, Remote: true}, m.Predict)
		answer.Wait = wait
		if !ok {
			answer.Reason = job.WouldNotStart
		}
	}
	return answer
}

func (e *Engine) onStartAnswer(now job.Time, from job.SiteID, m StartAnswer) {
	for _, o := range e.queries {
		if o.query.id != m.Query {
			continue
		}
		for i := range o.query.answers {
			a := &o.query.answers[i]
			if a.Site == from && a.Awaited {
				*a = answerOf(from, &m)
				o.query.missing--
			}
		}
		if o.query.missing == 0 {
			e.answered(now, o)
		}
		return
	}
}

// answered places a job by what the sites said.
func (e *Engine) answered(now job.Time, o *openJob) {
	answers := o.query.answers
	e.dropQuery(o)
	e.openAttempt(now, o, e.decide(now, o, answers))
	e.passing = true
}

// expireQueries goes on without those that did not answer in time.
func (e *Engine) expireQueries(now job.Time) {
	for len(e.queries) > 0 && e.queries[0].query.deadline <= now {
		e.answered(now, e.queries[0])
	}
}

// queriesDown gives up waiting for a site whose stream is gone.
func (e *Engine) queriesDown(now job.Time, site job.SiteID) {
	for _, o := range slices.Clone(e.queries) {
		e.onStartAnswer(now, site, StartAnswer{Query: o.query.id, Reason: job.Unreachable})
	}
}

func (e *Engine) dropQuery(o *openJob) {
	if o.query != nil {
		o.query = nil
		e.queries = slices.DeleteFunc(e.queries, func(q *openJob) bool { return q == o })
	}
}
