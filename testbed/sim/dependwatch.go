package sim

import (
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// dependencyWatch checks what jobs and bags wait for, from the outside: by what clients
// submitted, what runs on machines and what is on disks.
//
//	S7 nothing of a job or a bag starts before all that it waits for has ended as it asks, a
//	   singleton not before all of its user and name that were submitted before, unless its
//	   user has its tasks run again; and it is cancelled without its user's wish only if one
//	   of these can never be met
//	L1 it goes on, or is cancelled, once what it waits for has ended
type dependencyWatch struct {
	x    *watch
	work map[job.ID]submittedAs
	// ends says how jobs and bags have ended, as was on disk at one time: a bag may run again.
	// decided is how they have ended by what their origins know: that may be on its way to the
	// disk, along with a wish of their users to have tasks run again.
	ends, decided map[job.ID]ending
	// pending are those that wait, as far as is known; stuck is since which life of its origin
	// one of them has not gone on although it should.
	pending []job.ID
	stuck   map[job.ID]int
	// retries counts how often users had tasks of a bag run again, whatever it waits for.
	retries map[job.ID]int
	looking bool
}

// submittedAs is what a client said of a job or a bag.
type submittedAs struct {
	user, name string
	after      []job.Dependency
}

// ending is how a job or a bag has ended, which may be in more than one way.
type ending struct{ ok, otherwise bool }

func (e ending) and(ok bool) ending { return ending{e.ok || ok, e.otherwise || !ok} }

func (e ending) or(f ending) ending { return ending{e.ok || f.ok, e.otherwise || f.otherwise} }

// lookAtWaiting is how often those that wait are looked at. A site takes what ends up at once.
const lookAtWaiting = 10 * time.Second

func (x *dependencyWatch) init(w *watch) {
	x.x = w
	x.work, x.ends, x.decided = make(map[job.ID]submittedAs), make(map[job.ID]ending), make(map[job.ID]ending)
	x.stuck, x.retries = make(map[job.ID]int), make(map[job.ID]int)
}

// submitted returns what a submission says, and notes it for the id that it will probably
// get: it may start before its client has an answer.
func (x *dependencyWatch) submitted(s *Site, id job.ID, r *job.Request, after []job.Dependency) submittedAs {
	as := submittedAs{r.User, r.Name, after}
	if x.x.w.cfg.Check {
		x.work[id] = as
	}
	return as
}

// acknowledged notes under which id a submission is known.
func (x *dependencyWatch) acknowledged(id job.ID, as submittedAs) {
	if !x.x.w.cfg.Check {
		return
	}
	x.work[id] = as
	if len(as.after) == 0 || slices.Contains(x.pending, id) {
		return
	}
	x.pending = append(x.pending, id)
	if !x.looking {
		x.looking = true
		x.x.w.agenda.add(x.x.w.now.Add(lookAtWaiting), housekeeping, 0, x)
	}
}

// act implements action: it looks at all that wait.
func (x *dependencyWatch) act() {
	x.pending = slices.DeleteFunc(x.pending, func(id job.ID) bool { return !x.look(id) })
	if x.looking = len(x.pending) > 0; x.looking {
		x.x.w.agenda.add(x.x.w.now.Add(lookAtWaiting), housekeeping, 0, x)
	}
}

// stepped notes which jobs and bags a step of an origin has ended. A later step may have a bag
// run again before the end is on disk: both are facts of one batch then.
func (x *dependencyWatch) stepped(s *Site, effects []meta.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case meta.Changed:
			if j := s.state.Job(f.Job); j != nil && j.State.Terminal() {
				x.decided[j.ID] = x.decided[j.ID].and(j.State == job.Completed)
			}
		case meta.BagChanged:
			if b := s.state.Bag(f.Bag); b != nil && b.State.Terminal() {
				x.decided[b.ID] = x.decided[b.ID].and(b.State == job.BagCompleted)
			}
		}
	}
}

// booted forgets what an earlier life of an origin knew and did not write.
func (x *dependencyWatch) booted(s *Site) {
	maps.DeleteFunc(x.decided, func(id job.ID, _ ending) bool { return id.Origin == s.cfg.ID })
}

// committed notes how the jobs and bags have ended that a batch speaks of, which is on disk.
// What it starts comes after.
func (x *dependencyWatch) committed(list []closed) {
	for _, c := range list {
		id, e := c.job, c.ending
		if c.bag != nil {
			id = c.bag.id
		}
		x.ends[id] = x.ends[id].or(e)
	}
}

// started watches what begins to run of a job or a bag.
func (x *dependencyWatch) started(id job.ID, at job.SiteID) {
	if x.retries[id] > 0 {
		return
	}
	for _, d := range x.work[id].after {
		on, e := d.On, x.ends[d.On]
		met := e.ok && d.Condition != job.AfterNotOK || e.otherwise && d.Condition != job.AfterOK
		if d.Condition == job.Singleton {
			on, met = x.before(id)
		}
		if !met {
			x.x.violate("S7: %v starts at %s, is to wait for %v, and %v has not ended so", id, at, d, on)
		}
	}
}

// before returns what a client was told of, of the same origin, user and name as a singleton
// and before it, that has never ended; true if there is none.
func (x *dependencyWatch) before(id job.ID) (job.ID, bool) {
	for _, list := range [][]job.ID{x.x.order, x.x.tasks.order} {
		for _, other := range list {
			if x.isBefore(other, id) && x.ends[other] == (ending{}) {
				return other, false
			}
		}
	}
	return job.ID{}, true
}

// isBefore reports whether a singleton waits for another job or bag.
func (x *dependencyWatch) isBefore(other, id job.ID) bool {
	a, b := x.work[other], x.work[id]
	return other.Origin == id.Origin && other.Compare(id) < 0 && a.user == b.user && a.name == b.name
}

// look looks at a job or bag that waits, and reports whether it still does.
func (x *dependencyWatch) look(id job.ID) bool {
	s := x.x.w.byID[id.Origin]
	switch {
	case s.gone || x.x.liars[id.Origin]:
		return false
	case !s.calm():
		delete(x.stuck, id)
		return true
	}
	var blocked, held, cancelled, asked bool
	if j := s.state.Job(id); j != nil {
		blocked, held, cancelled, asked = j.State == job.Blocked, j.State == job.OnHold, j.State == job.Cancelled, j.CancelRequested
	} else if b := s.state.Bag(id); b != nil {
		blocked, held, cancelled, asked = b.State == job.BagBlocked, b.State == job.BagOnHold, b.State == job.BagCancelled, b.CancelRequested
		asked = asked || slices.ContainsFunc(b.Acts, func(a store.Act) bool { return a.Kind == store.ActCancel && a.Actor != "" }) // all of its tasks
	}
	if cancelled && !asked && !x.neverMet(id) {
		x.x.violate("S7: %v was cancelled, and all that it waits for %v may be met", id, x.work[id].after)
	}
	if !blocked && !held {
		return false // or it was lost with its disk
	}
	ended, broken := x.afterOf(s, id)
	if !broken && !(ended && blocked) {
		delete(x.stuck, id)
		return true
	}
	if x.stuck[id] == s.life {
		x.x.violate("L1: for %v %v has not gone on, and all that it waits for has ended: %v", lookAtWaiting, id, s.state.After(id))
	}
	x.stuck[id] = s.life
	return true
}

// neverMet reports whether something that a job or bag waits for has once ended otherwise
// than it asks; that may be on its way to the disk.
func (x *dependencyWatch) neverMet(id job.ID) bool {
	return slices.ContainsFunc(x.work[id].after, func(d job.Dependency) bool {
		e := x.ends[d.On].or(x.decided[d.On])
		return d.Condition == job.AfterOK && e.otherwise || d.Condition == job.AfterNotOK && e.ok
	})
}

// afterOf reports whether all that a job or bag waits for has ended, by what its origin has
// on record now, and whether some of it otherwise than it asks.
func (x *dependencyWatch) afterOf(s *Site, id job.ID) (allEnded, broken bool) {
	allEnded = true
	for _, d := range s.state.After(id) {
		switch {
		case d.State != job.DependencyWaits:
		case d.Condition == job.Singleton:
			allEnded = allEnded && !x.openBefore(s, id)
		default:
			_, ended, ok := s.state.Ending(d.On)
			allEnded = allEnded && ended
			broken = broken || ended && d.Condition.Judge(ok) == job.DependencyBroken
		}
	}
	return allEnded, broken
}

// openBefore reports whether something that a singleton waits for has not ended.
func (x *dependencyWatch) openBefore(s *Site, id job.ID) bool {
	for j := range s.state.OpenJobs(job.ID{}) {
		if x.isBefore(j.ID, id) {
			return true
		}
	}
	for b := range s.state.Bags {
		if !b.State.Terminal() && x.isBefore(b.ID, id) {
			return true
		}
	}
	return false
}

// excused reports whether a job or a bag waits for what a site keeps that has lied.
func (x *dependencyWatch) excused(s *Site, id job.ID) bool {
	for _, d := range s.state.After(id) {
		if d.State != job.DependencyWaits {
			continue
		}
		if d.Condition != job.Singleton {
			if x.kept(s, d.On) {
				return true
			}
			continue
		}
		for _, list := range [][]job.ID{x.x.order, x.x.tasks.order} {
			for _, other := range list {
				if x.isBefore(other, id) && x.kept(s, other) {
					return true
				}
			}
		}
	}
	return false
}

// kept reports whether a site that has lied may keep a job or a bag from its end.
func (x *dependencyWatch) kept(s *Site, id job.ID) bool {
	if j := s.state.Job(id); j != nil {
		return !j.State.Terminal() && (x.x.liars[j.Holder] || j.State == job.Blocked && x.excused(s, id))
	}
	b := s.state.Bag(id)
	return b != nil && x.keptBag(s, b)
}

func (x *dependencyWatch) keptBag(s *Site, b *store.Bag) bool {
	return !b.State.Terminal() && (x.x.tasks.withLiars(b) || b.State == job.BagBlocked && x.excused(s, b.ID))
}
