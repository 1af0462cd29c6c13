package meta

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kith/cluster"
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
	// digest is what the site says of itself; nil if it never did. It is valid
	// while the pipeline runs.
	digest *cluster.Digest
	// promised is when the job would be completed there, from now on; zero if
	// the rank does not say.
	promised time.Duration
	// tie decides between equal scores, before the origin does.
	tie float64
}

// decide runs the pipeline for a pending job. answers are what sites said
// about the start, if they were asked; nil if not.
func (e *Engine) decide(now job.Time, o *openJob, answers []startAnswer) *store.Decision {
	return e.decideAmong(now, o, e.candidates(now, o), answers)
}

// decideAmong runs the rest of the pipeline over what the filters made.
func (e *Engine) decideAmong(now job.Time, o *openJob, list []candidate, answers []startAnswer) *store.Decision {
	rank := e.estimate(now, o, list, answers)
	e.weigh(list)
	e.choose(list, e.cfg.Placement.copies(o.rec.Request.Copies), e.cfg.Placement.originAlways())
	e.notePromises(now, o, list)
	return e.decision(list, rank)
}

// nextSite returns the best site that an open attempt has no copy at and that
// has not refused it, or "".
func (e *Engine) nextSite(now job.Time, o *openJob) job.SiteID {
	list := e.candidates(now, o)
	for i := range list {
		c := &list[i]
		if slices.Contains(o.rec.Sites, c.Site) || o.refusedBy(c.Site) != job.NoReason {
			c.eligible, c.Reason = false, job.HasCopy
		}
	}
	e.estimate(now, o, list, nil)
	e.weigh(list)
	rankFirst(list, 1)
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
	for _, p := range e.view.PeersAt(now) {
		c := candidate{Verdict: store.Verdict{Site: p.Site, Weight: 1}}
		if p.Known {
			c.Age, c.digest = p.Age(now), &p.Digest
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
			e.scoreAnswer(now, o, c, answers)
		case c.own:
			c.Score = scoreOf(rank, e.site.Load(now))
		case c.Age > e.cfg.Placement.MaxLoadAge:
			c.blind, c.Reason = true, job.StaleLoad
		default:
			c.Score = scoreOf(rank, c.digest.Load)
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
func (e *Engine) scoreAnswer(now job.Time, o *openJob, c *candidate, answers []startAnswer) {
	i := slices.IndexFunc(answers, func(a startAnswer) bool { return a.site == c.Site })
	if i < 0 || !answers[i].known {
		c.blind, c.Reason = true, job.NoAnswer
		if i >= 0 && answers[i].reason != job.NoReason {
			c.Reason = answers[i].reason
		}
		return
	}
	c.Age = 0
	c.promised = answers[i].wait + scaled(o.rec.Request.Walltime, e.speedOf(c))
	c.Score = answers[i].wait.Seconds()
	switch {
	case e.cfg.Placement.Rank == RankCompletion:
		c.Score = c.promised.Seconds()
	case e.cfg.Placement.Scheme != Hierarchical:
	case c.own:
		c.tie = e.site.Load(now).Work
	default:
		c.tie = c.digest.Load.Work
	}
}

func (e *Engine) speedOf(c *candidate) float64 {
	speed := e.cfg.Self.Speed
	if !c.own {
		speed = c.digest.Speed
	}
	if speed <= 0 || math.IsNaN(speed) {
		return 1
	}
	return speed
}

// compareCandidates ranks: eligible sites before refused ones, sites with a
// score before blind ones, then by score, then, for the Hierarchical scheme, by
// load (spec 001 section 2.4), then the origin, then by name.
func compareCandidates(a, b *candidate) int {
	switch {
	case a.eligible != b.eligible:
		return btoi(b.eligible) - btoi(a.eligible)
	case a.blind != b.blind:
		return btoi(a.blind) - btoi(b.blind)
	}
	if c := cmp.Compare(a.Score, b.Score); c != 0 {
		return c
	}
	if c := cmp.Compare(a.tie, b.tie); c != 0 {
		return c
	}
	if a.own != b.own {
		return btoi(b.own) - btoi(a.own)
	}
	return compareSites(a.Site, b.Site)
}

// rankFirst brings the best n candidates to the front, in order.
func rankFirst(list []candidate, n int) {
	if n >= len(list)/8 {
		slices.SortFunc(list, func(a, b candidate) int { return compareCandidates(&a, &b) })
		return
	}
	for i := range n {
		best := i
		for k := i + 1; k < len(list); k++ {
			if compareCandidates(&list[k], &list[best]) < 0 {
				best = k
			}
		}
		list[i], list[best] = list[best], list[i]
	}
}

// choose marks the first k. With originAlways the origin is one of them
// unless a filter refused it.
func (e *Engine) choose(list []candidate, k int, originAlways bool) {
	own := slices.IndexFunc(list, func(c candidate) bool { return c.own })
	if originAlways && own >= 0 && list[own].eligible && k > 0 {
		list[own].Chosen = true
		k--
	}
	rankFirst(list, max(k, e.cfg.Limits.verdicts())+1) // the origin may be among them
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

// newDecision returns a decision with room for n verdicts, few of them in one
// piece with it.
func newDecision(n int) *store.Decision {
	if n > 1 {
		return &store.Decision{Verdicts: make([]store.Verdict, 0, n)}
	}
	b := new(struct {
		store.Decision
		verdict [1]store.Verdict
	})
	b.Verdicts = b.verdict[:0]
	return &b.Decision
}

// decision keeps what is worth keeping: chosen sites first, then by rank.
func (e *Engine) decision(list []candidate, rank Rank) *store.Decision {
	n := 0
	for i := range list {
		n += btoi(list[i].Chosen)
	}
	n = min(len(list), max(n, e.cfg.Limits.verdicts()), store.MaxVerdicts)
	d := newDecision(n)
	d.Rank = uint8(rank)
	for _, want := range []bool{true, false} {
		for i := range list {
			if list[i].Chosen == want && len(d.Verdicts) < n {
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
	query := StartQuery{Query: e.query, Request: o.rec.Request, Predict: e.cfg.Placement.Rank == RankCompletion}
	answers, missing := e.answers[:0], 0
	list := e.candidates(now, o)
	for i := range list {
		switch c := &list[i]; {
		case !c.eligible:
		case c.own:
			answers = append(answers, e.ownAnswer(now, o, query.Predict))
		default:
			a := e.askSite(now, c.Site, &query)
			if a.awaited {
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
		e.openAttempt(now, o, e.decideAmong(now, o, list, answers))
	}
	return true
}

// startsHere reports whether a job whose origin always holds a copy would start
// here at once. Nobody is asked about it then: it will keep its copies at home
// (see [Engine.sendPlaced]) and need not wait for answers.
func (e *Engine) startsHere(now job.Time, o *openJob) bool {
	if !e.cfg.Placement.originAlways() || e.site.Refuse(&o.rec.Request) != job.NoReason {
		return false
	}
	a := e.ownAnswer(now, o, e.cfg.Placement.Rank == RankCompletion)
	return a.known && a.wait == 0
}

// askSite asks one site, and returns its answer or that it is awaited.
func (e *Engine) askSite(now job.Time, site job.SiteID, q *StartQuery) startAnswer {
	if e.cfg.Starts != nil {
		if m, ok := e.cfg.Starts.StartAt(now, site, e.self, q); ok {
			a := startAnswer{site: site}
			a.take(&m)
			return a
		}
	}
	e.send(site, *q)
	return startAnswer{site: site, awaited: true}
}

// take notes what a site answered.
func (a *startAnswer) take(m *StartAnswer) {
	a.awaited, a.wait, a.reason, a.known = false, max(0, m.Wait), m.Reason, m.Reason == job.NoReason
}

func (e *Engine) ownAnswer(now job.Time, o *openJob, predict bool) startAnswer {
	c := job.Copy{ID: job.AttemptID{Job: o.rec.ID, Number: o.rec.Attempt + 1}, Request: e.here(&o.rec.Request), Arrival: now}
	wait, ok := e.waitHere(now, c, predict)
	return startAnswer{site: e.self, wait: wait, known: ok, reason: job.WouldNotStart}
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
			if a.site == from && a.awaited {
				a.take(&m)
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
