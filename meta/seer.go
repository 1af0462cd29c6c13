package meta

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"kith/internal/fifo"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/store"
)

// Forecaster is a [Site] that can be played forward by somebody else. A batch system is none:
// forecasts then rest on what it says of starts, and on what was.
type Forecaster interface {
	// Foresee hands out a copy of the site in which c waits: the one that is queued under its
	// name, else c arrives now. All scenarios together may take that many steps. used is a
	// scene of this site that is played no more, or nil: its memory is used again. It
	// returns an error if c does not start as things are.
	Foresee(now job.Time, c *job.Copy, steps int64, used forecast.Scene) (forecast.Scene, error)
}

// Forecasts is how a site forecasts starts.
type Forecasts struct {
	// Enabled makes forecasts. Without it none are made and none are answered.
	Enabled bool
	// Draws is how many scenarios a forecast is made of: [forecast.MinScenarios] to 1000.
	// Zero means [forecast.DefaultScenarios].
	Draws int
	// Arrivals lets copies come in as they did on earlier days.
	Arrivals bool
	// Bounds has jobs of unknown length without an estimator pass over levels that are too small for
	// nine of ten of their users' jobs, see levelguess.go.
	Bounds bool
	// Forecaster is the site that is played forward; nil if the [Site] of the engine is one,
	// or none is.
	Forecaster Forecaster
}

// mostDraws bounds [Forecasts.Draws] and what a peer may ask for.
const mostDraws = 1000

// draws returns how many scenarios a forecast is made of.
func (f *Forecasts) draws() int { return cmp.Or(f.Draws, forecast.DefaultScenarios) }

func (f *Forecasts) check(bad func(key string, value any, remedy string)) {
	if d := f.Draws; d != 0 && (d < forecast.MinScenarios || d > mostDraws) {
		bad("forecast.draws", d, fmt.Sprintf("give %d to %d, %d if in doubt", forecast.MinScenarios, mostDraws, forecast.DefaultScenarios))
	}
}

// seer makes forecasts: of the run times of this site's jobs, of the starts of copies here,
// and of the starts of jobs wherever they are first. No schedule hangs on it, unless
// placement ranks by forecasts. It is nil where forecasts are off.
type seer struct {
	*core
	host   *host
	origin *origin
	peers  *peers
	site   Forecaster // nil: no scenarios

	history *forecast.History
	days    forecast.Days
	book    *forecast.Book
	learnt  int64
	lost    bool // the book that was kept could not be read

	asked fifo.Queue[inquiry] // wait to be played
	of    map[job.SiteID]int  // how many of each site
	// playing is the number of the inquiry that is played, 0 for none; under is that one.
	playing, count uint64
	under          inquiry
	used           forecast.Scene
	roles          []forecast.Role

	// probes are questions of what would be, by the queries of their shapes; questions is how
	// many of them other sites are asked, and questionsOf how many each of them asks.
	probes      map[uint64]probed
	questions   bucket
	questionsOf map[job.SiteID]*bucket

	fresh   []*openJob // placed in this instant
	waiting map[uint64]*openJob
	due     fifo.Queue[foresightDue]

	dist   forecast.Dist
	last   forecast.Question // whose run time was asked for last, and the answer
	runs   forecast.Runs
	cached bool
}

// Bounds of a seer.
const (
	// mostAsked is how many inquiries wait, mostOfPeer how many of one other site.
	mostAsked, mostOfPeer = 256, 32
	// mostPlacing is how many others an inquiry may wait for that a job needs to be placed:
	// after more of them nobody would wait for it any more.
	mostPlacing = 8
	// mostForesights is how many jobs wait for the answers of sites.
	mostForesights = 1024
	// savedEvery is after how many outcomes it is kept how forecasts did.
	savedEvery = 50
)

func newSeer(c *core, h *host, o *origin, p *peers, site Site) *seer {
	if !c.cfg.Forecasts.Enabled {
		return nil
	}
	s := &seer{
		core: c, host: h, origin: o, peers: p, history: forecast.NewHistory(), book: forecast.NewBook(),
		of: make(map[job.SiteID]int), probes: make(map[uint64]probed), questionsOf: make(map[job.SiteID]*bucket), waiting: make(map[uint64]*openJob), site: c.cfg.Forecasts.Forecaster,
	}
	if s.site == nil {
		s.site, _ = site.(Forecaster)
	}
	if kept := c.st.Calibration(); kept != nil {
		book, err := forecast.DecodeBook(kept)
		if err != nil {
			s.lost = true
		} else {
			s.book = book
		}
	}
	c.st.OnPast(s.ended)
	return s
}

// Recall learns from the attempts that had ended before this daemon began: all is the oldest
// first. It is called once, before [Engine.Restore]; without forecasts it does nothing.
func (e *Engine) Recall(all iter.Seq2[store.Past, error]) error {
	s := e.seer
	if s == nil {
		return nil
	}
	var arrivals []forecast.Arrival
	for p, err := range all {
		if err != nil {
			return err
		}
		s.ended(&p)
		if p.Processors < 1 || p.Site != s.self && p.Origin != s.self {
			continue
		}
		local := job.Request{Walltime: p.Limit}
		arrivals = append(arrivals, forecast.Arrival{
			At: p.Submitted, Procs: p.Processors, Limit: s.here(&local).Walltime, Run: job.Scaled(p.Run, s.cfg.Self.Speed), Remote: p.Origin != s.self,
		})
	}
	slices.SortStableFunc(arrivals, func(a, b forecast.Arrival) int { return cmp.Compare(a.At, b.At) })
	for _, a := range arrivals {
		s.days.Add(a)
	}
	return nil
}

// nameOf is how a user is known to the history: those of other origins by both names.
func (s *seer) nameOf(origin job.SiteID, user string) string {
	if origin == s.self {
		return user
	}
	return string(origin) + "/" + user
}

// ended learns the run time of an attempt that has ended.
func (s *seer) ended(p *store.Past) {
	if !p.Learnt() {
		return
	}
	s.learnt++
	s.cached = false
	s.history.Ended(&forecast.Past{
		User: s.nameOf(p.Origin, p.User), Script: p.Script, Procs: p.Processors, Limit: p.Limit, Run: p.Run + p.Before, Stopped: p.Kind == job.Timeout,
	})
}

// expect returns what is known of the run time of a request.
func (s *seer) expect(origin job.SiteID, r *job.Request) [9]uint16 {
	q := forecast.Question{User: s.nameOf(origin, r.User), Script: r.Script, Procs: r.Processors, Limit: r.Walltime}
	if !s.cached || s.last != q {
		s.history.Runs(&q, &s.dist)
		s.runs, s.last, s.cached = forecast.RunsOf(&s.dist, min(q.Limit, job.MaxWalltime)), q, true
	}
	return s.runs
}

// ran scores what was expected of the run time of a job of this site that is about to be
// closed.
func (s *seer) ran(j *store.Job, speed float64) {
	o := j.Outcome
	if o == nil || o.Start == 0 || o.Kind != job.Success && o.Kind != job.Failure && o.Kind != job.Timeout {
		return
	}
	runs := forecast.Runs(j.Request.Runs)
	if !runs.Known() {
		return
	}
	run := j.Request.Walltime
	if o.Kind != job.Timeout {
		run = max(0, o.End.Sub(o.Start))
		if speed > 0 {
			run = job.Scaled(run, 1/speed)
		}
		run = min(run+j.Carried(), j.Request.Walltime)
	}
	s.book.Ran(&runs, j.Request.Walltime, run, s.history.JobsOf(j.Request.User), s.rng(j.AttemptID(), o.End))
	s.save()
}

// save keeps how forecasts did, now and then.
func (s *seer) save() {
	if s.book.Outcomes() >= savedEvery {
		record(s.st, store.NoteCalibration{Book: s.book.Encode()})
	}
}

// stopping keeps how forecasts did since it was last kept.
func (s *seer) stopping() {
	if s != nil && s.book.Outcomes() > 0 {
		record(s.st, store.NoteCalibration{Book: s.book.Encode()})
	}
}

// rng is randomness that belongs to an attempt and an instant.
func (s *seer) rng(a job.AttemptID, at job.Time) *rand.Rand {
	return rand.New(rand.NewPCG(forecast.SeedOf(s.self, a, at), 1)) //nolint:gosec // A forecast, no secret.
}

// arrived notes a copy that comes into the queue here.
func (s *seer) arrived(now job.Time, c *hostCopy) {
	r := s.host.entry(c.rec).Request
	runs := s.runsHere(c.rec.Request, r.Walltime)
	level := s.rng(c.rec.ID, now).Float64()
	c.arrival = 1 + s.days.Add(forecast.Arrival{
		At: now, Procs: r.Processors, MemoryBytes: r.MemoryBytes, Limit: r.Walltime, Run: runs.Residual(0, r.Walltime, level),
		Remote: c.rec.ID.Job.Origin != s.self,
	})
}

// left notes how long a copy ran that has ended here.
func (s *seer) left(c *hostCopy, o *job.Outcome) {
	if c.arrival != 0 && o.Start != 0 && o.End > o.Start {
		s.days.Ran(c.arrival-1, o.End.Sub(o.Start))
	}
}
