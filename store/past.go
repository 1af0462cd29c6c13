package store

import (
	"hash/fnv"
	"time"

	"kith/internal/job"
)

// MaxPast is how many attempts that have ended a site remembers.
const MaxPast = 100_000

// Past is an attempt that has ended, as its origin and its host remember it when its record is
// gone: what forecasts learn from, and what a site may hand on without saying whose jobs they
// were. It is written and not kept in memory, see Backend.Past. A drain that has ended is among
// them, see [Past.Drained].
type Past struct {
	// Number counts them at this site, from 1 on.
	Number uint64
	// Origin is where the job was submitted, Site where the attempt ran: one of them is here.
	// Site is empty of a job that was cancelled while it waited.
	Origin, Site job.SiteID
	User         string
	// Name is a hash of the job's name, zero if it had none, and Script one of what it ran, zero
	// if that is not known, as at a host that is not its origin.
	Name       uint64
	Script     uint64
	Processors int32
	// Limit is the walltime, and Run how long the attempt ran, both on a processor of speed 1.
	Limit, Run time.Duration
	// Submitted is when the job was submitted, at a host when its copy came; Started is zero
	// if the command never ran. They are by the clocks of those sites.
	Submitted, Started, Ended job.Time
	// Ready is from when on the job could start, after a hold or what it waited for; zero if
	// that was when it was submitted. Harm is what guests cost it. Both at its origin only.
	Ready job.Time
	Harm  Harm
	// Before is how long the attempts ran whose work it went on with, on a processor of speed 1: that of
	// the job as a whole is Run with it. At its origin only.
	Before time.Duration
	// MemoryBytes is the memory of the whole job; zero if it asked for none.
	MemoryBytes int64
	// Kind is how it ended. Only [job.Success], [job.Failure] and [job.Timeout] say anything
	// about run times: one that was stopped at its limit would have run longer.
	Kind job.OutcomeKind
}

// Drained reports whether it is no attempt, but a time in which this site started nothing: from
// Started to Ended. Nothing else in it is set but the number and the site.
func (p *Past) Drained() bool { return p.Origin == "" && p.Processors == 0 }

// Learnt reports whether a run time can be learnt from it.
func (p *Past) Learnt() bool {
	return p.Started != 0 && (p.Kind == job.Success || p.Kind == job.Failure || p.Kind == job.Timeout)
}

// pastLog numbers what is past; the records are the back end's.
type pastLog struct {
	first, next uint64 // of the numbers that are kept, first is the least, and next comes next
	most        uint64
	told        func(*Past) // see OnPast
}

// PastChanges are changes of what is past.
type PastChanges struct {
	Past []Past
	// ForgottenPast are numbers of the oldest, which make room.
	ForgottenPast []uint64
}

// OnPast has a function called with each attempt that ends from now on, while the fact is
// applied: it must change nothing here.
func (s *State) OnPast(told func(*Past)) { s.past.told = told }

// KeepPast bounds how many attempts are remembered from now on, [MaxPast] if nothing is said; at
// least one. What is too many goes with the attempts that end.
func (s *State) KeepPast(most int) { s.past.most = uint64(max(most, 1)) }

// PastNumbers returns the least number that is remembered and the next one to be given.
func (s *State) PastNumbers() (first, next uint64) { return s.past.first, s.past.next }

// RestorePast says which numbers a back end has: from first to last.
func (s *State) RestorePast(first, last uint64) { s.past.first, s.past.next = first, last+1 }

// rememberHome adds a job of this site that has ended.
func (s *State) rememberHome(j *Job, o *job.Outcome, speed float64) {
	p := Past{Origin: s.site.ID, Site: j.Holder, Submitted: j.Submitted, Ready: s.Ready(j), Harm: s.harm[j.ID], Before: j.Carried()}
	s.remember(p, &j.Request, o, speed)
}

// remember adds an attempt that has ended at a site whose processors have that speed.
func (s *State) remember(p Past, r *job.Request, o *job.Outcome, speed float64) {
	p.Number = s.past.next
	s.past.next++
	p.User, p.Processors, p.Limit, p.MemoryBytes, p.Script = r.User, r.Processors, r.Walltime, r.MemoryBytes, r.Script
	if r.Name != "" {
		h := fnv.New64a()
		h.Write([]byte(r.Name))
		p.Name = h.Sum64()
	}
	p.Kind, p.Started, p.Ended = o.Kind, o.Start, o.End
	if run := o.End.Sub(o.Start); o.Start != 0 && run > 0 {
		if p.Run = run; speed > 0 {
			p.Run = job.Scaled(run, 1/speed)
		}
	}
	s.addPast(p)
}

// rememberDrain adds a drain, or a part of one, that has ended. One that took no time, or began by
// a clock that was set back since, leaves nothing.
func (s *State) rememberDrain(from, until job.Time) {
	if from == 0 || until <= from {
		return
	}
	p := Past{Number: s.past.next, Site: s.site.ID, Started: from, Ended: until}
	s.past.next++
	s.addPast(p)
}

// addPast adds what is past, and makes room for it.
func (s *State) addPast(p Past) {
	s.changes.Past = append(s.changes.Past, p)
	if s.past.told != nil {
		s.past.told(&p)
	}
	// Two for one that comes, so that a smaller bound is met in the end.
	for n := 0; n < 2 && s.past.next-s.past.first > s.past.most; n++ {
		s.changes.ForgottenPast = append(s.changes.ForgottenPast, s.past.first)
		s.past.first++
	}
}
