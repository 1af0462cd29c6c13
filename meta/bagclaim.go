package meta

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// Claims for tasks at their origin, the leases of bundles, and recalls.

// onTaskClaim answers a host that wants tasks.
func (bo *bagOrigin) onTaskClaim(now job.Time, from job.SiteID, m TaskClaim) {
	v := bo.claim(now, from, m)
	switch {
	case !bo.peers.reachable(from):
	case len(v.Bundles) == 0:
		bo.peers.send(from, v)
	default:
		bo.emit(GrantTasks{To: from, Verdict: v})
	}
}

// claim grants a new claim what the desk says, and a repeated one what it got before.
func (bo *bagOrigin) claim(now job.Time, site job.SiteID, m TaskClaim) TaskVerdict {
	m.Ask.Site = site
	generation := bo.peers.generationOf(site)
	if bo.answers.New(site, generation, m.Stamp) {
		bo.grant(now, generation, &m)
	}
	v := TaskVerdict{Stamp: m.Stamp, Sent: m.Sent}
	for _, id := range bo.st.BundlesOfClaim(site, generation, m.Stamp) {
		o, t := bo.byID[id.Job], bo.st.TaskBundle(id)
		v.Bundles = append(v.Bundles, GivenBundle{Bundle: id, Request: o.rec.AskedOf(t), Tasks: t.Tasks.Clone(), Lease: bo.grantLease(now, o, t)})
	}
	return v
}

// grant gives a new claim its tasks.
func (bo *bagOrigin) grant(now job.Time, generation uint32, m *TaskClaim) {
	a := &m.Ask
	granted := 0
	places := bo.places[a.Shape]
	counts := bo.noteSeat(now, a)
	if bo.places[a.Shape] > places {
		bo.beginTails(now, a.Site, a.Shape)
	}
	held := bo.holdBack(now, a)
	if bo.spared(now, a) {
		return
	}
	for _, share := range slices.Clone(bo.desk.Answer(*a, bo.works, now)) {
		o := bo.open[share.Work]
		granted += bo.give(now, generation, m, o, bo.desk.Grant(o.rec, &bo.works[share.Work], a.Site, share.Tasks, now), false)
	}
	for _, share := range slices.Clone(bo.desk.Twice(bo.works, now)) {
		o := bo.open[share.Work]
		granted += bo.give(now, generation, m, o, bo.replicas.Tasks(o.rec, a.Site, share.Tasks), true)
	}
	if held != nil && granted > 0 {
		held.Probed(now)
	}
	if !counts || held != nil { // nothing is recalled for a host that is held back
		return
	}
	if bo.unserved.Answer(*a, granted); granted == 0 {
		bo.nextRecall = min(bo.nextRecall, now)
	}
}

// spared reports whether tasks were just recalled from the stock of an ask. With others still
// in it, it gets none.
func (bo *bagOrigin) spared(now job.Time, a *bags.Ask) bool {
	s := bo.seats[a.Site][seat{a.Node, a.Shape}]
	return s != nil && now < s.spared && a.Stock > 0
}

// give records a bundle for a claim, and returns how many tasks it has.
func (bo *bagOrigin) give(now job.Time, generation uint32, m *TaskClaim, o *openBag, tasks job.TaskSet, replica bool) int {
	if tasks.Empty() {
		return 0
	}
	a := &m.Ask
	id := job.AttemptID{Job: o.rec.ID, Number: o.rec.Number + 1}
	g := store.GrantBundle{Bundle: id, Site: a.Site, Node: a.Node, Stamp: m.Stamp, Generation: generation, Tasks: tasks, Replica: replica, Time: now, Deadline: bo.deadlineOf(now, o, a, tasks.Count()), Level: o.rec.Level, Limit: o.limit}
	if leased(&o.rec.Request) && a.Site != bo.self {
		g.Lease = bo.cfg.Timing.Lease
	}
	record(bo.st, g)
	bo.indexDeadline(now, o, o.rec.Bundle(id.Number))
	if replica {
		bo.replicas.Granted(o.rec, &tasks)
	} else {
		bo.elsewhere.Leave(o.rec.ID, &tasks)
		bo.counters.TasksGranted += int64(tasks.Count())
		bo.beginTail(now, o)
	}
	bo.changed(o)
	return tasks.Count()
}

// longest is how long a site in reach may have so many tasks of a bag: all of their
// walltimes, one after another, and Timing.Overdue.
func (bo *bagOrigin) longest(o *openBag, tasks int) time.Duration {
	each, most := bo.works[o.at].Walltime, job.MaxWalltime
	if each < most/time.Duration(tasks) {
		most = each * time.Duration(tasks)
	}
	return most + bo.cfg.Timing.Overdue
}

// mostSeats bounds the stocks that are known of one site.
const mostSeats = 4096

// noteSeat keeps what an ask says of its stock, shows it to policies, and reports whether it counts: there are
// such tasks, and the site has no more stocks than it could.
func (bo *bagOrigin) noteSeat(now job.Time, a *bags.Ask) bool {
	if !slices.ContainsFunc(bo.works, func(w bags.Work) bool { return w.Shape == a.Shape }) {
		return false
	}
	s := bo.seatOf(stockAt{a.Site, seat{a.Node, a.Shape}})
	bo.setScene(now, a, s)
	if s == nil {
		return false
	}
	bo.places[a.Shape] += a.Bounded().Places - s.places
	s.places = a.Bounded().Places
	s.heard = now
	return true
}

// seatOf returns what is known of a stock, nil if its site has more than it could.
func (bo *bagOrigin) seatOf(at stockAt) *seated {
	seats := bo.seats[at.site]
	if seats == nil {
		seats = make(map[seat]*seated)
		bo.seats[at.site] = seats
	}
	s := seats[at.seat]
	if s == nil {
		if len(seats) >= mostSeats {
			return nil
		}
		s = &seated{}
		seats[at.seat] = s
	}
	return s
}

// forgetSeats lets go of stocks that have no task of an open bag and were not heard of for
// long: their pilots have ended. Of the latest ones a host says nothing more.
func (bo *bagOrigin) forgetSeats(now job.Time) {
	busy := make(map[stockAt]bool)
	for i, o := range bo.open {
		for t := range o.rec.Bundles {
			if !t.Late {
				busy[stockAt{t.Site, seat{t.Node, bo.works[i].Shape}}] = true
			}
		}
	}
	for site, seats := range bo.seats {
		for at, s := range seats {
			if now.Sub(s.heard) < bo.cfg.Timing.AntiEntropy || busy[stockAt{site, at}] {
				continue
			}
			delete(seats, at)
			if bo.places[at.shape] -= s.places; bo.places[at.shape] <= 0 {
				delete(bo.places, at.shape)
			}
		}
		if len(seats) == 0 {
			delete(bo.seats, site)
		}
	}
}

// grantLease starts or prolongs the lease of a bundle and returns its term, 0 if it has
// none.
func (bo *bagOrigin) grantLease(now job.Time, o *openBag, t *store.TaskBundle) time.Duration {
	if !leased(&o.rec.Request) || t.Site == bo.self {
		return 0
	}
	term := cmp.Or(t.Lease, bo.cfg.Timing.Lease)
	end := now.Add(bo.cfg.Timing.heldFor(term))
	o.leases[t.Number] = end
	bo.nextLease = min(bo.nextLease, end)
	return term
}

// onRenew prolongs the lease of a bundle. One whose tasks are all to be stopped is not, nor
// one that should have ended long ago: whoever only renews would keep its tasks for ever.
func (bo *bagOrigin) onRenew(now job.Time, from job.SiteID, m Renew) {
	answer := Renewed{Attempt: m.Attempt, Sent: m.Sent}
	o, t := bo.live(m.Attempt, from)
	if t != nil && !t.Late && o.rec.State != job.BagCancelling && !bo.overdue(now, o, t) {
		answer.Lease = bo.grantLease(now, o, t)
	}
	bo.peers.send(from, answer)
}

// live returns a live bundle at a site and its bag, nil if there is none.
func (bo *bagOrigin) live(id job.AttemptID, site job.SiteID) (*openBag, *store.TaskBundle) {
	o := bo.byID[id.Job]
	if o == nil {
		return nil, nil
	}
	t := o.rec.Bundle(id.Number)
	if t == nil || t.Site != site {
		return o, nil
	}
	return o, t
}

// expireLeases takes the bundles back that were not renewed. What the host has ended by
// then may still be told, and counts.
func (bo *bagOrigin) expireLeases(now job.Time) {
	if now < bo.nextLease {
		return
	}
	next, any := job.Never, false
	for _, o := range slices.Clone(bo.open) {
		for _, number := range slices.Sorted(maps.Keys(o.leases)) {
			t := o.rec.Bundle(number)
			switch end := o.leases[number]; {
			case t == nil || t.Late:
				delete(o.leases, number)
			case now < end:
				next, any = min(next, end), true
			default:
				delete(o.leases, number)
				bo.revoke(now, o, t, store.RevokeBundle{MayRun: true})
			}
		}
	}
	if bo.nextLease = job.Never; any {
		bo.nextLease = max(next, now.Add(bo.cfg.Timing.Lease/64))
	}
}

// revoke takes a bundle back from its site, in the way of how.
func (bo *bagOrigin) revoke(now job.Time, o *openBag, t *store.TaskBundle, how store.RevokeBundle) {
	how.Bundle, how.Site, how.Time = job.AttemptID{Job: o.rec.ID, Number: t.Number}, t.Site, now
	all := job.TaskRange(0, o.rec.Tasks())
	others := lateWith(o.rec, &all)
	if how.MayRun && !t.Late { // it is one of them then, or its tasks were lost too often
		others = append(others, otherHolder{t, t.Tasks.Clone()})
	}
	record(bo.st, how)
	bo.counters.BundlesRevoked++
	bo.forgetBundle(o, t.Number)
	bo.changed(o)
	bo.stopBeaten(now, o, others)
	bo.close(now, o)
}

// forgetBundle lets go of what was kept in mind of a bundle.
func (bo *bagOrigin) forgetBundle(o *openBag, number uint32) {
	delete(o.leases, number)
	delete(o.recalled, number)
	delete(o.beaten, number)
}

// recall asks for tasks back that have not begun, for hosts that got none.
func (bo *bagOrigin) recall(now job.Time) {
	if now < bo.nextRecall {
		return
	}
	bo.nextRecall = job.Never
	for _, shape := range bo.unserved.Shapes() {
		if bo.waiting(shape) {
			continue // they will ask again
		}
		seats, holdings := bo.holdings(now, shape)
		if len(seats) == 0 {
			bo.unserved.ForgetShape(shape)
			continue
		}
		for {
			from, tasks := bo.unserved.Recall(shape, holdings)
			if from < 0 {
				break
			}
			bo.recallFrom(now, seats[from], tasks)
			holdings[from].Unstarted -= tasks
		}
	}
	if len(bo.unserved.Shapes()) > 0 {
		bo.nextRecall = now.Add(recallPause)
	}
}

// waiting reports whether tasks of a shape could be given out.
func (bo *bagOrigin) waiting(shape bags.Shape) bool {
	return slices.ContainsFunc(bo.works, func(w bags.Work) bool { return w.Shape == shape && w.Tasks() > 0 })
}

// holdings is what hosts have of the tasks of a shape.
func (bo *bagOrigin) holdings(now job.Time, shape bags.Shape) ([]stockAt, []bags.Holding) {
	at := make(map[stockAt]int)
	var seats []stockAt
	var holdings []bags.Holding
	for i, o := range bo.open {
		if bo.works[i].Shape != shape || !o.rec.State.Gives() {
			continue
		}
		for t := range o.rec.Bundles {
			if t.Late || o.rec.Leaving(t) {
				continue
			}
			s := stockAt{t.Site, seat{t.Node, shape}}
			i, known := at[s]
			if !known {
				i = len(seats)
				at[s] = i
				seats = append(seats, s)
				holdings = append(holdings, bags.Holding{Site: s.site, Node: s.node})
			}
			holdings[i].Unstarted += t.Tasks.Count()
			if r := o.recalled[t.Number]; now < r.until {
				holdings[i].Unstarted -= r.tasks
			}
		}
	}
	for i, s := range seats {
		if k := bo.seats[s.site][s.seat]; k != nil {
			h := &holdings[i]
			h.Places, h.Unstarted, h.Mean = k.places, h.Unstarted-k.places, k.mean.Run()
			if h.Mean > 0 { // what runs there now has run at least since the latest word
				h.Mean = max(h.Mean, now.Sub(k.heard))
			}
		}
	}
	return seats, holdings
}

// recallFrom asks a stock for tasks back, of its latest bundles first.
func (bo *bagOrigin) recallFrom(now job.Time, s stockAt, tasks int) {
	if k := bo.seats[s.site][s.seat]; k != nil {
		k.spared = now.Add(recallKept)
	}
	for _, o := range slices.Backward(bo.open) {
		if bo.works[o.at].Shape != s.shape || !o.rec.State.Gives() {
			continue
		}
		bundles := slices.Collect(o.rec.Bundles)
		for _, t := range slices.Backward(bundles) {
			if t.Site == s.site && t.Node == s.node && tasks > 0 {
				tasks -= bo.askBack(now, o, t, min(tasks, t.Tasks.Count()))
			}
		}
	}
}

// askBack asks for so many tasks of a bundle back, unless some were and have yet to come. It
// returns for how many it asked.
func (bo *bagOrigin) askBack(now job.Time, o *openBag, t *store.TaskBundle, n int) int {
	if t.Late || now < o.recalled[t.Number].until {
		return 0
	}
	o.recalled[t.Number] = recalled{n, now.Add(recallWait)}
	m := Recall{Bundle: job.AttemptID{Job: o.rec.ID, Number: t.Number}, Most: n}
	if t.Site == bo.self {
		bo.host.onRecall(now, bo.self, m)
	} else {
		bo.peers.send(t.Site, m)
	}
	return n
}
