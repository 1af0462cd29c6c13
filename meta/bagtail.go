package meta

import (
	"math/rand/v2"
	"slices"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// The tail of a bag: few of its tasks wait, and those that take long may be with more than
// one site. When it began is a fact, the tasks that were drawn are not.

// beginTail takes up that the tail of a bag may have begun: fewer tasks wait, or more places
// serve it.
func (bo *bagOrigin) beginTail(now job.Time, o *openBag) {
	if places := bo.places[bo.works[o.at].Shape]; bags.TailBegins(o.rec, places) {
		record(bo.st, store.BeginTail{Bag: o.rec.ID, Time: now})
		o.places = places
		bo.drawSoon(now, o)
	}
}

// drawSoon has tasks of a bag drawn for one more site, if it is in its tail and may have
// replicas.
func (bo *bagOrigin) drawSoon(now job.Time, o *openBag) {
	if o.rec.TailSince != 0 && o.rec.MaxReplicas > 0 {
		bo.nextReplica = min(bo.nextReplica, now.Add(bo.cfg.Timing.replicaCycle()))
	}
}

// beginTails is beginTail for all bags that are offered to a site and have tasks of a shape.
func (bo *bagOrigin) beginTails(now job.Time, site job.SiteID, shape bags.Shape) {
	for i, o := range bo.open {
		if bo.works[i].Shape == shape && slices.Contains(o.sites, site) {
			bo.beginTail(now, o)
		}
	}
}

// replicate draws the tasks that should be with one more site. What was drawn before and no
// site has taken is drawn no more: else what none can take would stand for all others for
// ever.
func (bo *bagOrigin) replicate(now job.Time) {
	if now < bo.nextReplica {
		return
	}
	bo.nextReplica = job.Never
	for _, o := range bo.open {
		if bo.drawCursor == 0 && bo.replicas.Forget(o.rec.ID) {
			bo.lookAt(o)
			bo.offerSoon()
		}
	}
	for _, o := range bo.open {
		bo.drawSoon(now, o)
	}
	left := make(map[string]int) // of replicas, by user
	p := &pass{}
	for ; bo.drawCursor < len(bo.open); bo.drawCursor++ {
		o := bo.open[bo.drawCursor]
		if o.rec.TailSince == 0 || o.rec.MaxReplicas == 0 {
			continue
		}
		if p.full(o) { // the others when asks had their turn
			bo.nextReplica = now.Add(placePause)
			return
		}
		user := o.rec.Request.User
		if _, known := left[user]; !known {
			left[user] = bo.replicasLeft(user)
		}
		if left[user] <= 0 {
			continue
		}
		bo.readIn(o, p)
		drawn, took := bo.draw(now, o, left[user])
		left[user] -= drawn
		p.steps += took
	}
	bo.drawCursor = 0
}

// replicasLeft returns how many more replicas a user may have.
func (bo *bagOrigin) replicasLeft(user string) int {
	places, replicas := 0, 0
	shapes := make(map[bags.Shape]int)
	for i := range bo.works {
		w, o := &bo.works[i], bo.open[i]
		if w.User != user {
			continue
		}
		o.places = max(o.places, bo.places[w.Shape])
		shapes[w.Shape] = max(shapes[w.Shape], o.places)
		replicas += o.rec.Runs() - o.rec.Given() + w.Twice
	}
	for _, n := range shapes {
		places += n
	}
	return bags.MostReplicas(places) - replicas
}

// draw draws tasks of a bag and returns how many, and how many steps its policy may have
// taken. Of very many tasks a policy that takes long is asked for some, others each time.
func (bo *bagOrigin) draw(now job.Time, o *openBag, most int) (drawn, steps int) {
	w := &bo.works[o.at]
	list := bags.Replicable(o.rec)
	stated := bo.replicateOf(now, o)
	rng := rand.New(rand.NewPCG(seedOf(o.rec.ID), uint64(now)))
	if o.judge != nil {
		each := max(1, o.judge.Cost(bags.Replicate))
		if n := mostPassSteps / each; n < len(list) {
			at := rng.IntN(len(list))
			list = slices.Concat(list[at:], list[:at])[:n]
		}
		steps = each * len(list)
	}
	kept := list[:0]
	for i := range list {
		if t := &list[i]; t.Another(w.Sites) && stated.Replicate(w, t, now) {
			kept = append(kept, *t)
		}
	}
	for _, t := range bags.Draw(kept, most, rng) {
		bo.replicas.Want(o.rec, t.Task)
		drawn++
	}
	if drawn > 0 {
		bo.lookAt(o)
		bo.offerSoon()
	}
	return drawn, steps
}
