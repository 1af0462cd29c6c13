package meta

import (
	"fmt"
	"slices"

	"kith/internal/fifo"
	"kith/internal/job"
	"kith/store"
)

// dependencies takes jobs and bags on that wait for others, when those have ended. What waits
// for what is facts of the store; here is an index of them, by what is waited for.
type dependencies struct {
	*core
	jobs *origin
	bags *bagOrigin

	waitsFor map[job.ID]*idList
	// names has the jobs and bags that have not ended of each user and name, in the order of
	// ids. It is kept from the first singleton on: nil before.
	names map[userName]*idList
	// due are ends that others wait for; singletons are such as nothing is before any more.
	due        fifo.Queue[job.ID]
	singletons fifo.Queue[job.ID]
}

type userName struct{ user, name string }

// idList is a list of ids. Those that are no longer of interest leave it when they are half of it.
type idList struct {
	ids  []job.ID
	gone int
}

func (l *idList) drop(keep func(job.ID) bool) {
	if l.gone++; l.gone > 32 && l.gone > len(l.ids)/2 {
		l.ids = slices.DeleteFunc(l.ids, func(id job.ID) bool { return !keep(id) })
		l.gone = 0
	}
}

// mostResolved is of how many dependencies one step takes up that they are decided: what
// many wait for must not keep the site from all else when it ends.
const mostResolved = 64

func newDependencies(c *core, jobs *origin, bags *bagOrigin) *dependencies {
	return &dependencies{core: c, jobs: jobs, bags: bags, waitsFor: make(map[job.ID]*idList)}
}

// ask returns what a submission is to wait for, ready to be recorded, or a [DependencyError].
func (d *dependencies) ask(r *job.Request, after []job.Dependency) ([]job.Dependency, error) {
	if len(after) == 0 {
		return nil, nil
	}
	after = slices.Clone(after)
	for i := range after {
		on := after[i].On
		if after[i].Condition == job.Singleton {
			after[i].State = job.DependencyMet
			if d.firstOf(r) != nil {
				after[i].State = job.DependencyWaits
			}
			continue
		}
		state, _, _ := d.st.Ending(on)
		switch {
		case on.Origin != d.self:
			return nil, &DependencyError{i, fmt.Sprintf("%v is of site %s; what is submitted at site %s can wait for jobs and bags of site %s only: submit it at site %s, or wait for %v with: kith wait",
				on, on.Origin, d.self, d.self, on.Origin, on)}
		case state == "":
			return nil, &DependencyError{i, fmt.Sprintf("site %s has no job or bag %v; those that ended long ago are forgotten: look with: kith queue --all, and leave out what has ended", d.self, on)}
		}
	}
	return after, nil
}

// isOpen reports whether a job or a bag has not ended.
func (d *dependencies) isOpen(id job.ID) bool {
	return d.jobs.open.Get(id) != nil || d.bags.byID[id] != nil
}

// added takes up a job or a bag that was just recorded, or comes back with a restart.
func (d *dependencies) added(id job.ID, r *job.Request) {
	for _, on := range d.st.After(id) {
		if on.State == job.DependencyWaits && !on.On.IsZero() {
			d.wait(id, on.On)
		}
	}
	if d.names != nil {
		d.name(id, r)
	}
}

func (d *dependencies) wait(id, on job.ID) {
	l := d.waitsFor[on]
	if l == nil {
		l = &idList{}
		d.waitsFor[on] = l
	}
	if len(l.ids) == 0 || l.ids[len(l.ids)-1] != id {
		l.ids = append(l.ids, id)
	}
}

func (d *dependencies) name(id job.ID, r *job.Request) {
	n := userName{r.User, r.Name}
	l := d.names[n]
	if l == nil {
		l = &idList{}
		d.names[n] = l
	}
	at, known := slices.BinarySearchFunc(l.ids, id, job.ID.Compare)
	if !known { // a bag that runs again may not have left it yet
		l.ids = slices.Insert(l.ids, at, id)
	}
}

// again takes up a bag that had ended and is to run again.
func (d *dependencies) again(id job.ID, r *job.Request) {
	if d.names != nil {
		d.name(id, r)
	}
}

// beside returns what goes on already of the user and the name of a bag that has ended, if
// the bag is to be the only one of them; the zero id for nothing.
func (d *dependencies) beside(b *store.Bag) job.ID {
	if !slices.ContainsFunc(d.st.After(b.ID), func(a job.Dependency) bool { return a.Condition == job.Singleton }) {
		return job.ID{}
	}
	l := d.firstOf(&b.Request)
	if l == nil {
		return job.ID{}
	}
	at := slices.IndexFunc(l.ids, func(id job.ID) bool { return d.isOpen(id) && !d.waits(id, job.ID{}) })
	if at < 0 {
		return job.ID{}
	}
	return l.ids[at]
}

// isFirst reports whether nothing of its user and name is before a job or a bag.
func (d *dependencies) isFirst(id job.ID) bool {
	l := d.firstOf(d.requestOf(id))
	return l != nil && l.ids[0] == id
}

// firstOf returns the jobs and bags of a user and a name that have not ended, nil if there
// is none. The first call looks through all that have not ended.
func (d *dependencies) firstOf(r *job.Request) *idList {
	if d.names == nil {
		d.names = make(map[userName]*idList)
		for j := range d.st.OpenJobs(job.ID{}) {
			d.name(j.ID, &j.Request)
		}
		for _, o := range d.bags.open {
			d.name(o.rec.ID, &o.rec.Request)
		}
		for _, l := range d.names {
			slices.SortFunc(l.ids, job.ID.Compare)
		}
	}
	return d.names[userName{r.User, r.Name}]
}

// ended takes up that a job or a bag has ended.
func (d *dependencies) ended(id job.ID, r *job.Request) {
	if d.waitsFor[id] != nil {
		d.due.Push(id)
	}
	for _, on := range d.st.After(id) {
		if l := d.waitsFor[on.On]; l != nil && on.State == job.DependencyDropped {
			l.drop(d.isOpen)
		}
	}
	n := userName{r.User, r.Name}
	l := d.names[n]
	if l == nil {
		return
	}
	l.drop(d.isOpen)
	for len(l.ids) > 0 && !d.isOpen(l.ids[0]) {
		l.ids, l.gone = l.ids[1:], max(l.gone-1, 0)
	}
	if len(l.ids) == 0 {
		delete(d.names, n)
	} else if d.waits(l.ids[0], job.ID{}) {
		d.singletons.Push(l.ids[0])
	}
}

// waits reports whether a job or a bag waits for another, the zero id for all of its name.
func (d *dependencies) waits(id, on job.ID) bool {
	return slices.ContainsFunc(d.st.After(id), func(a job.Dependency) bool { return a.On == on && a.State == job.DependencyWaits })
}

// holds reports whether the end of a job or a bag must not be forgotten yet.
func (d *dependencies) holds(id job.ID) bool { return d.waitsFor[id] != nil }

// resolve records for what waits that what it waits for has ended, up to mostResolved at a time.
func (d *dependencies) resolve(now job.Time) {
	for left := mostResolved; left > 0; left-- {
		if id, ok := d.singletons.Pop(); ok {
			if d.waits(id, job.ID{}) && d.isFirst(id) { // no bag before it runs again
				d.resolveOne(now, id, job.ID{})
			}
			continue
		}
		on, ok := d.due.First()
		if !ok {
			return
		}
		l := d.waitsFor[on]
		if _, ended, _ := d.st.Ending(on); !ended || l == nil || len(l.ids) == 0 {
			d.due.Pop() // its tasks run again, or nothing waits for it
			if l != nil && len(l.ids) == 0 {
				delete(d.waitsFor, on)
			}
			continue
		}
		id := l.ids[0]
		l.ids = l.ids[1:]
		if d.waits(id, on) {
			d.resolveOne(now, id, on)
		}
	}
}

// resolveOne records for a job or a bag that what it waits for has ended, and takes it on.
func (d *dependencies) resolveOne(now job.Time, id, on job.ID) {
	record(d.st, store.ResolveDependency{ID: id, On: on, Time: now})
	if o := d.jobs.open.Get(id); o != nil {
		if o.rec.State.Terminal() {
			d.jobs.removeOpen(o)
		} else {
			d.jobs.place(now, o)
		}
		d.jobs.changed(id)
		return
	}
	o := d.bags.byID[id]
	d.bags.changed(o)
	d.bags.close(now, o)
}

// busy reports whether there is more to resolve.
func (d *dependencies) busy() bool { return d.due.Len()+d.singletons.Len() > 0 }

// restore takes up what waits, and what has ended meanwhile or was not taken up before.
func (d *dependencies) restore(now job.Time) {
	for id, after := range d.st.Dependants {
		for _, a := range after {
			switch {
			case a.State != job.DependencyWaits:
			case a.Condition == job.Singleton:
				if d.isFirst(id) {
					d.singletons.Push(id)
				}
			default:
				if _, ended, _ := d.st.Ending(a.On); ended && d.waitsFor[a.On] == nil {
					d.due.Push(a.On)
				}
				d.wait(id, a.On)
			}
		}
	}
	d.resolve(now)
}

func (d *dependencies) requestOf(id job.ID) *job.Request {
	if j := d.st.Job(id); j != nil {
		return &j.Request
	}
	return &d.st.Bag(id).Request
}
