package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// Submission is a job to come.
type Submission struct {
	Request job.Request
	// RunTime is how long the job runs on processors of speed 1 if it is not stopped.
	RunTime time.Duration
	// Transfer is how long its input takes to another site than its origin; the
	// host's processors are held meanwhile (spec 001 section 2.6).
	Transfer time.Duration
	// Pieces is, above 1, in how many attempts the job does its work: each runs for RunTime and
	// saves what was done, the last one ends the job. The request says then that it saves.
	Pieces int
	// Estimators are those that it brings, of its attempts one after the other; the last one is that of all
	// later ones, too. The request says then that it brings one.
	Estimators []Estimator
	// Fills says that the job fills the disk of the site that it runs at.
	Fills bool
	// After is what must have ended first, of the same origin.
	After []job.Dependency
	// RequestID is the submitter's name of the submission.
	RequestID string
	// Tag is the driver's own: [World.Tag] returns it.
	Tag int
	// Done learns of the job's id, or why it was refused; nil if it does not matter.
	Done func(id job.ID, err error)
}

// entry is what the world knows of a job that its engines do not.
type entry struct {
	run, transfer time.Duration
	tag           int
	pieces        int
	fills         bool
	estimators    []Estimator
}

// book keeps the entries of the jobs of one origin.
type book struct {
	byGeneration map[uint32]*pages
	// latest is that of generation.
	latest     *pages
	generation uint32
}

// pages hold entries by sequence number. They never move, so that a long run
// does not copy them again and again.
type pages []*[pageSize]entry

const pageSize = 128

func (b *book) put(id job.ID, e entry) {
	p := b.of(id.Generation)
	page, i := (id.Seq-1)/pageSize, (id.Seq-1)%pageSize
	for uint64(len(*p)) <= page {
		*p = append(*p, new([pageSize]entry))
	}
	(*p)[page][i] = e
}

// of returns the entries of a generation, which becomes the latest.
func (b *book) of(generation uint32) *pages {
	if b.latest == nil || generation != b.generation {
		if b.byGeneration == nil {
			b.byGeneration = make(map[uint32]*pages)
		}
		if b.byGeneration[generation] == nil {
			b.byGeneration[generation] = &pages{}
		}
		b.generation, b.latest = generation, b.byGeneration[generation]
	}
	return b.latest
}

// get returns the entry of a job, the zero entry if there is none.
func (b *book) get(id job.ID) entry {
	p := *b.of(id.Generation)
	if page := (id.Seq - 1) / pageSize; id.Seq >= 1 && page < uint64(len(p)) {
		return p[page][(id.Seq-1)%pageSize]
	}
	return entry{}
}

func (w *World) entry(id job.ID) entry {
	if s := w.byID[id.Origin]; s != nil {
		return s.book.get(id)
	}
	return entry{}
}

// Tag returns the tag of the submission that became job or bag id.
func (w *World) Tag(id job.ID) int {
	if b := w.bagOf(id); b != nil {
		return b.Tag
	}
	return w.entry(id).tag
}

// Transfer returns how long the input of job id takes to another site.
func (w *World) Transfer(id job.ID) time.Duration { return w.entry(id).transfer }

// Submit submits a job at a site at a time to come.
func (w *World) Submit(at job.Time, origin job.SiteID, sub Submission) {
	s := w.byID[origin]
	w.agenda.add(max(at, w.now), arrival, jobOrder(s.index, 0), call(func() { w.arrive(s, &sub) }))
}

// SubmitAll submits the jobs that next returns, in the order of time, until it
// says that there are no more. It asks for one when the one before has arrived,
// so that a long workload does not lie on the agenda as a whole.
func (w *World) SubmitAll(origin job.SiteID, next func() (at job.Time, sub Submission, ok bool)) {
	st := &stream{w: w, s: w.byID[origin], next: next}
	st.schedule()
}

// stream is a site's submissions to come; sub is the next one.
type stream struct {
	w    *World
	s    *Site
	next func() (job.Time, Submission, bool)
	sub  Submission
}

func (st *stream) schedule() {
	at, sub, ok := st.next()
	if !ok {
		return
	}
	st.sub = sub
	st.w.agenda.add(max(at, st.w.now), arrival, jobOrder(st.s.index, 0), st)
}

func (st *stream) act() {
	sub := st.sub
	st.schedule() // first, so that it is known whether another one comes in this instant
	st.w.arrive(st.s, &sub)
}

// arrive submits a job now. Where messages take no time, its copies are in the
// queues before the next job of the same instant is placed.
func (w *World) arrive(s *Site, sub *Submission) {
	s.submit(sub)
	if !w.net.instant {
		return
	}
	if at, c, ok := w.agenda.next(); ok && at == w.now && c == arrival {
		w.drain()
		s.feed(meta.SendCopies{})
	}
}

func (s *Site) submit(sub *Submission) {
	if s.misled(func() { s.submit(sub) }) {
		return
	}
	switch {
	case s.engine == nil:
		if sub.Done != nil {
			sub.Done(job.ID{}, errDown)
		}
		return
	case s.frozen: // which id it may get is not known yet
		s.hold(func() { s.submit(sub) })
		return
	}
	// The run time must be known before the engine can start the job, and
	// the engine may start it in this very step.
	p := submitted{
		entry: entry{run: sub.RunTime, transfer: sub.Transfer, tag: sub.Tag, pieces: sub.Pieces, fills: sub.Fills, estimators: sub.Estimators}, expected: s.state.NextID(), done: sub.Done,
	}
	if !s.deposed { // else another job has that id
		s.book.put(p.expected, p.entry)
		delete(s.bags, p.expected) // one whose record was lost
	}
	s.rush(originTurn)
	s.tokens++
	p.token = s.tokens
	p.as = s.w.watch.depends.submitted(s, p.expected, &sub.Request, sub.After)
	s.submissions.Push(p)
	s.feed(meta.Submit{Token: p.token, Request: sub.Request, RequestID: sub.RequestID, After: sub.After})
}

// submitted is a submission that the daemon has not answered yet.
type submitted struct {
	entry
	bag      *BagSubmission // nil for a job
	as       submittedAs
	token    uint64
	expected job.ID
	done     func(job.ID, error)
}

// answered takes up the answer to a submission. Answers come in the order of
// questions; a daemon that died gives none.
func (s *Site) answered(r *meta.Reply) bool {
	for {
		p, ok := s.submissions.First()
		if !ok || p.token > r.Token {
			return false
		}
		s.submissions.Pop()
		if p.token < r.Token {
			continue
		}
		if r.Err == nil {
			s.w.log.submitted(s, r.Job)
			s.w.watch.depends.acknowledged(r.Job, p.as)
			if p.bag != nil {
				s.w.watch.tasks.acknowledged(r.Job)
				s.bags[r.Job] = p.bag
			} else if s.w.watch.acknowledged(r.Job); r.Job != p.expected {
				s.book.put(r.Job, p.entry) // it was known under this request id, or others came first
			}
		} else if s.w.cfg.Refused != nil {
			s.w.cfg.Refused(s.cfg.ID, p.tag, r.Err)
		}
		if p.done != nil {
			p.done(r.Job, r.Err)
		}
		return true
	}
}
