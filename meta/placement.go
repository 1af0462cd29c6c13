package meta

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// The placement pipeline (spec 999 section 2): filter, estimate, weight, rank,
// choose K. It is a pure function of the job, the view and the time; what it
// thought of each site is data, kept with the job for `kith why`.

// candidate is a site on its way through the pipeline.
type candidate struct {
	store.Verdict
	own bool
	// eligible says that no filter refused it.
	eligible bool
	// blind says that there was nothing to rank it by: it goes behind all others.
	blind bool
}

// decide runs the pipeline for a pending job. answers are what sites said
// about the start, if they were asked; nil if not.
func (e *Engine) decide(now job.Time, o *openJob, answers []startAnswer) *store.Decision {
	list := e.candidates(now, o)
	rank := e.estimate(now, o, list, answers)
	e.weigh(list)
	e.choose(list, e.cfg.Placement.copies(o.rec.Request.Copies), e.cfg.Placement.originAlways())
	return e.decision(list, rank)
}

// nextSite returns the best site that an open attempt has no copy at and that
// has not refused it, or "".
func (e *Engine) nextSite(now job.Time, o *openJob) job.SiteID {
	list := e.candidates(now, o)
	for i := range list {
		c := &list[i]
		if slices.Contains(o.rec.Sites, c.Site) || slices.Contains(o.refused, c.Site) {
			c.eligible, c.Reason = false, job.HasCopy
		}
	}
	e.estimate(now, o, list, nil)
	e.weigh(list)
	slices.SortFunc(list, compareCandidates)
	if len(list) > 0 && list[0].eligible {
		return list[0].Site
	}
	return ""
}

// candidates filters: width, reach, drain, scheme.
func (e *Engine) candidates(now job.Time, o *openJob) []candidate {
	list := e.scratch[:0]
	r := &o.rec.Request
	own := candidate{Verdict: store.Verdict{Site: e.self, Weight: 1, Reason: e.site.Refuse(r)}, own: true}
	if own.Reason == job.NoReason && e.st.Site().Draining {
		own.Reason = job.Draining
	}
	if own.Reason == job.NoReason && r.Directory != "" && (e.cfg.AllowDirectory == nil || !e.cfg.AllowDirectory(r.Directory)) {
		own.Reason = job.Directory
	}
	own.eligible = own.Reason == job.NoReason
	list = append(list, own)
	for _, p := range e.view.Peers() {
		c := candidate{Verdict: store.Verdict{Site: p.Site, Weight: 1}}
		if p.Known {
			c.Age = p.Age(now)
		}
		switch {
		case e.cfg.Placement.Scheme == Independent:
			c.Reason = job.LocalOnly
		case p.Known && fits(r, p.Digest.Processors, p.Digest.MemoryBytes) != job.NoReason:
			c.Reason = fits(r, p.Digest.Processors, p.Digest.MemoryBytes)
		case !p.Connected:
			c.Reason = job.Unreachable
		case !p.Known:
			c.Reason = job.UnknownLoad
		case p.Digest.Draining:
			c.Reason = job.Draining
		default:
			c.eligible = true
		}
		list = append(list, c)
	}
	e.scratch = list
	return list
}

// estimate gives every eligible site its score and returns what it stands for.
func (e *Engine) estimate(now job.Time, o *openJob, list []candidate, answers []startAnswer) Rank {
	rank := e.cfg.Placement.Rank
	if rank.asks() && answers == nil {
		rank = RankWork // nobody was asked
	}
	eligible := 0
	for i := range list {
		c := &list[i]
		if !c.eligible {
			continue
		}
		eligible++
		switch {
		case answers != nil:
			e.scoreAnswer(o, c, answers)
		case c.own:
			c.Score = scoreOf(rank, e.site.Load(now))
		case c.Age > e.cfg.Placement.MaxLoadAge:
			c.blind, c.Reason = true, job.StaleLoad
		default:
			c.Score = scoreOf(rank, e.view.Get(c.Site).Digest.Load)
		}
	}
	if eligible == 1 {
		return RankNone
	}
	return rank
}

func scoreOf(r Rank, l job.Load) float64 {
	if r == RankProcs {
		return l.Procs
	}
	return l.Work
}

// scoreAnswer takes a site's own word on when the job would start there.
func (e *Engine) scoreAnswer(o *openJob, c *candidate, answers []startAnswer) {
	i := slices.IndexFunc(answers, func(a startAnswer) bool { return a.site == c.Site })
	if i < 0 || !answers[i].known {
		c.blind, c.Reason = true, job.NoAnswer
		if i >= 0 && answers[i].reason != job.NoReason {
			c.Reason = answers[i].reason
		}
		return
	}
	c.Age = 0
	c.Score = answers[i].wait.Seconds()
	if e.cfg.Placement.Rank == RankCompletion {
		c.Score += o.rec.Request.Walltime.Seconds() / e.speedOf(c)
	}
}

func (e *Engine) speedOf(c *candidate) float64 {
	speed := e.cfg.Self.Speed
	if !c.own {
		speed = e.view.Get(c.Site).Digest.Speed
	}
	if speed <= 0 || math.IsNaN(speed) {
		return 1
	}
	return speed
}

// weigh multiplies the scores. Every site weighs 1.
func (e *Engine) weigh(list []candidate) {
	for i := range list {
		list[i].Score *= list[i].Weight
	}
}

// compareCandidates ranks: eligible sites before refused ones, sites with a
// score before blind ones, then by score, then the origin, then by name.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		btoi(b.eligible)-btoi(a.eligible),
		btoi(a.blind)-btoi(b.blind),
		cmp.Compare(a.Score, b.Score),
		btoi(b.own)-btoi(a.own),
		compareSites(a.Site, b.Site),
	)
}

// choose marks the first k. With originAlways the origin is one of them
// unless a filter refused it.
func (e *Engine) choose(list []candidate, k int, originAlways bool) {
	own := slices.IndexFunc(list, func(c candidate) bool { return c.own })
	if originAlways && own >= 0 && list[own].eligible && k > 0 {
		list[own].Chosen = true
		k--
	}
	slices.SortFunc(list, compareCandidates)
	for i := range list {
		c := &list[i]
		switch {
		case !c.eligible || c.Chosen:
		case k > 0:
			c.Chosen = true
			k--
		case c.Reason == job.NoReason:
			c.Reason = job.Outranked
		}
	}
}

// decision keeps what is worth keeping: chosen sites first, then by rank.
func (e *Engine) decision(list []candidate, rank Rank) *store.Decision {
	d := &store.Decision{Rank: uint8(rank), Verdicts: make([]store.Verdict, 0, min(len(list), store.MaxVerdicts))}
	for _, want := range []bool{true, false} {
		for i := range list {
			if list[i].Chosen == want && len(d.Verdicts) < store.MaxVerdicts {
				d.Verdicts = append(d.Verdicts, list[i].Verdict)
			}
		}
	}
	return d
}

// chosen returns the sites that get a copy, in rank order. That the origin
// goes first when several could start the job at once (spec 001 section 2.5)
// is not in this order: copies leave behind the origin's own pass.
func chosen(d *store.Decision) []job.SiteID {
	n := 0
	for n < len(d.Verdicts) && d.Verdicts[n].Chosen {
		n++
	}
	if n == 0 {
		return nil
	}
	sites := make([]job.SiteID, n)
	for i := range sites {
		sites[i] = d.Verdicts[i].Site
	}
	return sites
}

// startQuery collects what sites say about the start of a job.
type startQuery struct {
	id       uint64
	deadline job.Time
	missing  int
	answers  []startAnswer
}

type startAnswer struct {
	site    job.SiteID
	wait    time.Duration
	reason  job.Reason
	known   bool
	awaited bool
}

// ask asks all sites that could take the job when it would start there, and
// reports whether there is somebody to wait for.
func (e *Engine) ask(now job.Time, o *openJob) bool {
	e.query++
	q := &startQuery{id: e.query, deadline: now.Add(e.cfg.Placement.QueryTimeout)}
	predict := e.cfg.Placement.Rank == RankCompletion
	for _, c := range e.candidates(now, o) {
		if !c.eligible {
			continue
		}
		if c.own {
			q.answers = append(q.answers, e.ownAnswer(now, o, predict))
			continue
		}
		q.answers = append(q.answers, startAnswer{site: c.Site, awaited: true})
		q.missing++
		e.send(c.Site, StartQuery{Query: q.id, Request: o.rec.Request, Predict: predict})
	}
	if q.missing == 0 {
		if len(q.answers) == 0 {
			return false
		}
		e.openAttempt(now, o, e.decide(now, o, q.answers))
		return true
	}
	o.query = q
	e.queries = append(e.queries, o)
	return true
}

func (e *Engine) ownAnswer(now job.Time, o *openJob, predict bool) startAnswer {
	c := job.Copy{ID: job.AttemptID{Job: o.rec.ID, Number: o.rec.Attempt + 1}, Request: o.rec.Request, Arrival: now}
	wait, ok := e.waitHere(now, c, predict)
	return startAnswer{site: e.self, wait: wait, known: ok, reason: job.WouldNotStart}
}

// waitHere says how long a copy that arrived now would wait here.
func (e *Engine) waitHere(now job.Time, c job.Copy, predict bool) (time.Duration, bool) {
	at, ok := job.Never, false
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
	answer := StartAnswer{Query: m.Query}
	next := PlaceCopy{Attempt: job.AttemptID{Job: job.ID{Origin: from}, Number: 1}, Request: m.Request}
	if answer.Reason = e.refusal(from, &next); answer.Reason == job.NoReason {
		wait, ok := e.waitHere(now, job.Copy{ID: next.Attempt, Request: m.Request, Arrival: now, Remote: true}, m.Predict)
		answer.Wait = wait
		if !ok {
			answer.Reason = job.WouldNotStart
		}
	}
	e.send(from, answer)
}

func (e *Engine) onStartAnswer(now job.Time, from job.SiteID, m StartAnswer) {
	for _, o := range e.queries {
		if o.query.id != m.Query {
			continue
		}
		for i := range o.query.answers {
			a := &o.query.answers[i]
			if a.site == from && a.awaited {
				a.awaited, a.wait, a.reason = false, max(0, m.Wait), m.Reason
				a.known = m.Reason == job.NoReason
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
