package meta

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// What-if for users: when would a job start and end if it asked for less time, for other
// processors, for more copies? Nothing is recorded. Sites are asked by the query that they
// answer for jobs that are placed, about a copy that would come now.

// ForecastJob asks when a job would start for each of some shapes of it. The answer is
// [Reply].Forecast.
type ForecastJob struct {
	Token uint64
	// Job is one that waits and would be replaced; the zero id for one that is not
	// submitted, which is Request.
	Job     job.ID
	Request job.Request
	// Shapes are what it would ask for instead, at most [MaxShapes]; without any they are
	// chosen by what is known of its run time. Copies is for how many copies each is looked
	// at, at most [MaxSpreads], 0 being as many as it asks for; without any it is 1 up to as
	// many as there are sites.
	Shapes []Shape
	Copies []int32
	// Serial is the part of the run time that more processors do not shorten, 0 to 1; nil where
	// run times are those of such jobs whatever the width.
	Serial *float64
}

// Shape is what a job might ask for. Zero is as in the job.
type Shape struct {
	Walltime   time.Duration
	Processors int32
}

// Bounds of a question.
const (
	MaxShapes  = 16
	MaxSpreads = 16
)

func (ForecastJob) event() {}

// Errors of [ForecastJob].
var (
	// ErrNoForecasts is returned where forecasts are off.
	ErrNoForecasts = errors.New("this site makes no forecasts: forecast.enabled is off in its configuration")
	// ErrManyQuestions is returned to who asks for more than other sites would answer.
	ErrManyQuestions = errors.New("more questions than sites answer in a minute")
)

// JobForecast is the answer to [ForecastJob].
type JobForecast struct {
	// Made is when.
	Made   job.Time
	Shapes []ShapeForecast
	// Record is how the latest forecasts of starts did.
	Record forecast.Record
}

// ShapeForecast is what would become of a job that asks for Request.
type ShapeForecast struct {
	Request job.Request
	// Err is why no site takes it, with nothing else set.
	Err error
	// Runs are what is known of its run time, RunBasis what that rests on. Stopped is the
	// chance that the limit stops it; it means nothing for [forecast.LimitOnly].
	Runs     forecast.Runs
	RunBasis forecast.Basis
	Stopped  float64
	// Sites are those that would get a copy for some number of them, in the order of the
	// largest.
	Sites []SiteForecast
	// Spreads are for each number of copies.
	Spreads []SpreadForecast
}

// ends is from now until it has ended at a site of some speed after these waits.
func (f *ShapeForecast) ends(c *core, w *forecast.Waits, speed float64) forecast.Waits {
	scaled := job.Scaled(f.Request.Walltime, speed)
	most := f.Request.Walltime
	if c.cfg.ReferenceTimes {
		most = scaled
	}
	return forecast.EndsOf(w, &f.Runs, scaled, most)
}

// SiteForecast is when it would start at one site.
type SiteForecast struct {
	Site job.SiteID
	// Basis is [forecast.NoStart] without an answer, and Reason then says why, if it is known.
	Basis  forecast.StartBasis
	Reason job.Reason
	// Waits are as the site says, not recalibrated. Limit is how long the copy waits at most by
	// the limits of those ahead; negative if it is not known.
	Waits forecast.Waits
	Limit time.Duration
	// Ends are from now until it has ended there.
	Ends forecast.Waits
	// Age is how old the load was by which the site was chosen, Speed how fast it gets on there.
	Age   time.Duration
	Speed float64
}

// SpreadForecast is when it would start somewhere with a number of copies.
type SpreadForecast struct {
	Copies int32
	// Sites are places in [ShapeForecast.Sites].
	Sites []int
	// Waits are recalibrated by what came true before; none for [forecast.NoStart].
	Waits forecast.Waits
	Basis forecast.StartBasis
	// Ends is from now until it has ended, if it runs at the site at which it would probably
	// start first.
	Ends forecast.Waits
}

// bucket bounds questions: so many at once, and one a second from then on.
type bucket struct {
	used float64
	at   job.Time
}

// questionsAtOnce is how many questions about copies that would come a site answers another one,
// and asks others, at once; beyond that one a second, 60 in a minute.
const questionsAtOnce = 60

// take takes n questions, or says how long to wait for them.
func (b *bucket) take(now job.Time, n int) (wait time.Duration) {
	b.used = max(0, b.used-now.Sub(b.at).Seconds())
	b.at = now
	if over := b.used + float64(n) - questionsAtOnce; over > 0 {
		return time.Duration(over * float64(time.Second))
	}
	b.used += float64(n)
	return 0
}

// asksTooMuch reports whether another site asks more about copies that would come than this one
// answers. Its questions about copies that are here do not count: it has as many as it may.
func (s *seer) asksTooMuch(now job.Time, from job.SiteID) bool {
	b := s.questionsOf[from]
	if b == nil { // at most the sites that are trusted
		b = &bucket{}
		s.questionsOf[from] = b
	}
	return b.take(now, 1) > 0
}

// probe is a [ForecastJob] under way.
type probe struct {
	token   uint64
	answer  JobForecast
	queries []uint64 // of the shapes
	missing int
}

// probed is which probe and which of its shapes a query is about.
type probed struct {
	*probe
	shape int
}

// forecastJob takes up a question.
func (e *Engine) forecastJob(now job.Time, ev ForecastJob) {
	p, err := e.probe(now, &ev)
	if err != nil {
		e.reply(ev.Token, job.ID{}, 0, err)
		return
	}
	e.seer.inquire(now, p, ev.Job)
}

// probe checks a question and chooses sites.
func (e *Engine) probe(now job.Time, ev *ForecastJob) (*probe, error) {
	s := e.seer
	if s == nil {
		return nil, ErrNoForecasts
	}
	if len(ev.Shapes) > MaxShapes || len(ev.Copies) > MaxSpreads {
		return nil, fmt.Errorf("%w: %d shapes and %d numbers of copies: at most %d and %d", ErrInvalid, len(ev.Shapes), len(ev.Copies), MaxShapes, MaxSpreads)
	}
	base := ev.Request
	if ev.Job != (job.ID{}) {
		rec, err := e.find(ev.Job)
		switch {
		case err != nil:
			return nil, err
		case rec.State.Terminal():
			return nil, fmt.Errorf("job %s: %w", ev.Job, ErrJobEnded)
		case rec.State != job.Pending && rec.State != job.Queued:
			return nil, fmt.Errorf("job %s: %w", ev.Job, ErrJobStarted)
		}
		base = rec.Request
	}
	shapes := ev.Shapes
	if len(shapes) == 0 {
		shapes = s.shapesOf(&base)
	}
	p := &probe{token: ev.Token, answer: JobForecast{Made: now}}
	takes := 0
	for _, x := range shapes {
		f := ShapeForecast{Request: base}
		f.Request.Walltime, f.Request.Processors = cmp.Or(x.Walltime, base.Walltime), cmp.Or(x.Processors, base.Processors)
		if f.Err = s.origin.admit(&f.Request); f.Err == nil {
			f.Request.Runs, f.RunBasis, f.Stopped = s.expectRun(&f.Request, base.Processors, scaleOf(ev.Serial, f.Request.Processors, base.Processors))
			f.Runs = f.Request.Runs
			s.spread(now, &f, ev.Copies)
			takes++ // also of this site alone: it has one to play them
		}
		p.answer.Shapes = append(p.answer.Shapes, f)
	}
	if !slices.ContainsFunc(p.answer.Shapes, func(f ShapeForecast) bool { return f.Err == nil }) {
		return nil, p.answer.Shapes[0].Err
	}
	if wait := s.questions.take(now, takes); wait > 0 {
		return nil, fmt.Errorf("%w: ask again in %d s", ErrManyQuestions, 1+int(wait/time.Second))
	}
	return p, nil
}

// usual is the share of such jobs that end within the walltime which is looked at beside that
// of the job.
const usual = 0.95

// shapesOf are what the job asks for, a walltime that nearly all such jobs stay below, and
// twice that.
func (s *seer) shapesOf(r *job.Request) []Shape {
	list := []Shape{{Walltime: r.Walltime}}
	q := forecast.Question{User: s.nameOf(s.self, r.User), Script: r.Script, Procs: r.Processors, Limit: r.Walltime}
	if s.history.Runs(&q, &s.dist) == forecast.LimitOnly {
		return list
	}
	s.cached = false // dist is that of another question now
	const step = 5 * time.Minute
	enough := (s.dist.Quantile(usual)/step + 1) * step
	for _, w := range [2]time.Duration{enough, 2 * enough} {
		if x := (Shape{Walltime: min(w, job.MaxWalltime)}); !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// scaleOf is how much longer a job takes on some processors than on others, by Amdahl's law: 1
// if its serial part is not known.
func scaleOf(serial *float64, processors, instead int32) float64 {
	if serial == nil || processors < 1 || instead < 1 {
		return 1
	}
	of := func(n int32) float64 { return *serial + (1-*serial)/float64(n) }
	return of(processors) / of(instead)
}

// expectRun is what is known of a run time, and the chance that the limit stops it: of such jobs
// on so many processors, times scale.
func (s *seer) expectRun(r *job.Request, processors int32, scale float64) (runs forecast.Runs, basis forecast.Basis, stopped float64) {
	limit := time.Duration(min(float64(r.Walltime)/scale, float64(job.MaxWalltime)))
	if scale == 1 {
		processors = r.Processors
	}
	q := forecast.Question{User: s.nameOf(s.self, r.User), Script: r.Script, Procs: processors, Limit: limit}
	basis = s.history.Runs(&q, &s.dist)
	s.cached = false // dist is that of another question now
	below, _ := s.dist.PIT(q.Limit)
	s.dist.Scale(scale)
	return forecast.RunsOf(&s.dist, r.Walltime), basis, 1 - below
}

// spread chooses the sites for each number of copies, as placement would.
func (s *seer) spread(now job.Time, f *ShapeForecast, copies []int32) {
	or := s.origin
	all := len(copies) == 0
	if all {
		for k := int32(1); k <= MaxSpreads; k++ {
			copies = append(copies, k)
		}
	}
	for _, k := range slices.Backward(copies) { // so that the sites are in the order of the most
		r := f.Request
		r.Copies = cmp.Or(k, r.Copies)
		or.beginRoundFor(now, job.ID{}, &r, nil, nil)
		or.round.View.Answers = nil
		d := or.round.Decide()
		x := SpreadForecast{Copies: k}
		for i := range d.Sites {
			c := &d.Sites[i]
			if !c.Chosen || len(x.Sites) == store.MaxForecastSites {
				break
			}
			x.Sites = append(x.Sites, f.place(s, c))
		}
		if n := int32(len(x.Sites)); all && n < k { //nolint:gosec // At most MaxForecastSites.
			x.Copies = n
		}
		if len(f.Spreads) > 0 && all && (x.Copies == 0 || x.Copies == f.Spreads[len(f.Spreads)-1].Copies) {
			continue // there are no more sites than that
		}
		f.Spreads = append(f.Spreads, x)
	}
	slices.Reverse(f.Spreads)
}

// place returns where a site is among those of a shape, to which it is added.
func (f *ShapeForecast) place(s *seer, c *store.SiteDecision) int {
	for i := range f.Sites {
		if f.Sites[i].Site == c.Site {
			return i
		}
	}
	f.Sites = append(f.Sites, SiteForecast{Site: c.Site, Limit: -1, Age: c.Age, Speed: s.origin.speedOf(c.Site, &f.Request)})
	return len(f.Sites) - 1
}

// inquire asks the sites of all shapes.
func (s *seer) inquire(now job.Time, p *probe, replaced job.ID) {
	var attempt job.AttemptID
	if o := s.origin.open.Get(replaced); o != nil && o.rec.State == job.Queued {
		attempt = o.rec.AttemptID()
	}
	type question struct {
		shape int
		query uint64
	}
	var list []question
	p.missing = 1 // until all are asked
	for i := range p.answer.Shapes {
		if f := &p.answer.Shapes[i]; f.Err == nil && len(f.Sites) > 0 {
			s.origin.query++
			s.probes[s.origin.query] = probed{p, i}
			s.due.Push(foresightDue{now.Add(foresightWait), s.origin.query})
			p.queries = append(p.queries, s.origin.query)
			p.missing += len(f.Sites)
			list = append(list, question{i, s.origin.query})
		}
	}
	// The others first: they answer while this one plays.
	for _, q := range list {
		f := &p.answer.Shapes[q.shape]
		for i := range f.Sites {
			if site := f.Sites[i].Site; site != s.self {
				s.peers.send(site, StartQuery{Query: q.query, Request: f.Request, Draws: uint16(s.cfg.Forecasts.draws()), Attempt: attempt}) //nolint:gosec // At most mostDraws.
			}
		}
	}
	for _, q := range list {
		f := &p.answer.Shapes[q.shape]
		if slices.ContainsFunc(f.Sites, func(x SiteForecast) bool { return x.Site == s.self }) {
			s.inquireHere(now, q.query, &f.Request, attempt)
		}
	}
	p.missing--
	s.closeProbe(now, p)
}

// inquireHere asks this very site.
func (s *seer) inquireHere(now job.Time, query uint64, r *job.Request, attempt job.AttemptID) {
	c := job.Copy{ID: job.AttemptID{Job: job.ID{Origin: s.self}}, Request: s.host.asked(r, nil), Arrival: now}
	if held := s.host.copies.Get(attempt); held != nil {
		c = s.wouldBe(now, held, r)
	}
	if !s.wants(now, inquiry{copy: c, from: s.self, query: query, draws: s.cfg.Forecasts.draws()}) {
		s.told(now, s.self, query, &foretold{limit: -1, reason: job.AskLater})
	}
}

// wouldBe is a copy that is queued here, or what would come in its place.
func (s *seer) wouldBe(now job.Time, held *hostCopy, r *job.Request) job.Copy {
	c := s.host.entry(held.rec)
	if sameShape(held.rec.Request, r) {
		return c
	}
	c.Request, c.Arrival = s.host.asked(r, nil), now
	return c
}

// sameShape reports whether two requests ask for the same of a site.
func sameShape(a, b *job.Request) bool {
	return a.Processors == b.Processors && a.MemoryBytes == b.MemoryBytes && a.Walltime == b.Walltime
}

// place returns where a site is in the list of a shape, -1 if it is not, or has answered.
func (p probed) place(site job.SiteID) int {
	for i := range p.answer.Shapes[p.shape].Sites {
		if x := &p.answer.Shapes[p.shape].Sites[i]; x.Site == site && x.Basis == forecast.NoStart && x.Reason == job.NoReason {
			return i
		}
	}
	return -1
}

// toldProbe learns what a site says; false if the query is not about a probe.
func (s *seer) toldProbe(now job.Time, site job.SiteID, query uint64, a *foretold) bool {
	p, ok := s.probes[query]
	if !ok {
		return false
	}
	i := p.place(site)
	if i < 0 {
		return true
	}
	x := &p.answer.Shapes[p.shape].Sites[i]
	x.Basis, x.Waits, x.Limit, x.Reason = a.basis, a.waits, a.limit, a.reason
	if x.Basis == forecast.NoStart && x.Reason == job.NoReason {
		x.Reason = job.NoAnswer
	}
	p.missing--
	s.closeProbe(now, p.probe)
	return true
}

// closeProbe answers a probe of which nothing is missing.
func (s *seer) closeProbe(now job.Time, p *probe) {
	if p.missing == 0 {
		s.answerProbe(p)
	}
}

// answerProbe answers with what there is.
func (s *seer) answerProbe(p *probe) {
	for _, q := range p.queries {
		delete(s.probes, q)
	}
	for i := range p.answer.Shapes {
		f := &p.answer.Shapes[i]
		for k := range f.Sites {
			x := &f.Sites[k]
			switch {
			case x.Basis != forecast.NoStart:
				x.Ends = f.ends(s.core, &x.Waits, x.Speed)
			case x.Reason == job.NoReason:
				x.Reason = job.NoAnswer
			}
		}
		for k := range f.Spreads {
			s.together(f, &f.Spreads[k])
		}
	}
	p.answer.Record = s.book.Starts().All()
	s.emit(Reply{Token: p.token, Forecast: &p.answer})
}

// together makes the forecast of a start at the first of several sites.
func (s *seer) together(f *ShapeForecast, x *SpreadForecast) {
	var all []forecast.Waits
	soonest := -1
	for _, i := range x.Sites {
		site := &f.Sites[i]
		if site.Basis == forecast.NoStart {
			continue
		}
		all = append(all, site.Waits)
		x.Basis = max(x.Basis, site.Basis)
		if soonest < 0 || site.Waits.Median() < f.Sites[soonest].Waits.Median() {
			soonest = i
		}
	}
	if soonest < 0 {
		return
	}
	raw := forecast.LeastWaits(all)
	x.Waits, _ = s.book.Tell(&raw)
	x.Ends = f.ends(s.core, &x.Waits, f.Sites[soonest].Speed)
}
