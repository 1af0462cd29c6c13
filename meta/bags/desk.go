package bags

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// Desk decides which tasks an ask gets. Its three fields must be set; they and the desk
// belong to one goroutine.
type Desk struct {
	Policy Policy
	Usage  *Usage
	// Elsewhere has the tasks that should first be tried at other sites.
	Elsewhere *Elsewhere

	ask    Ask
	bags   []entry
	users  map[string]int32
	stands []float64 // by user, in processor-seconds
	shares []Share
}

// entry is a bag that may give the ask tasks.
type entry struct {
	work  int32 // its place among the works
	user  int32
	score float64
	tasks int // that the ask could have
}

// Share is a bundle that an ask should get: so many tasks of the bag at a place among the
// works that were looked at.
type Share struct{ Work, Tasks int }

// priorityRank is what a step of priority counts in ranks (spec 002 section 2.9).
const priorityRank = 1e6

// Answer returns the bundles that an ask should get, in this order. Works are all bags
// that may give tasks, also those of other shapes: what their users have with sites
// counts. It changes nothing but its own memory; the list is good until the next call.
//
// It is Algorithm 1 of GridBot (spec 002 section 2.2) in the form of section 2.6, with one
// look at each bag. Each bundle is of the bag that comes first: by priority and rank, then
// by what its user has used lately and has with sites, what this ask has got included,
// then in order of submission. So users of equal priority take turns, and the bags of one
// user come one after the other.
//
// An ask gets no more than it wants, its places use up ([Ahead]), [MaxAsk] and
// [MaxBundles]; a bundle no more than [store.MaxBundleTasks]; a bag's user no more than
// [Work.Room].
func (d *Desk) Answer(ask Ask, works []Work, now job.Time) []Share {
	d.ask, d.shares = ask.Bounded(), d.shares[:0]
	want, room := d.ask.Want, d.ask.room()
	if want == 0 || room == 0 {
		return nil
	}
	d.gather(works, now)
	for len(d.bags) > 0 && want > 0 && room > 0 && len(d.shares) < MaxBundles {
		at := d.first(works)
		e := &d.bags[at]
		w := &works[e.work]
		each := cost(d.mean(w))
		n := min(e.tasks, want, fit(room, each), store.MaxBundleTasks)
		d.shares = append(d.shares, Share{int(e.work), n})
		want -= n
		room -= time.Duration(n) * each
		d.stands[e.user] += w.expected(n)
		if e.tasks -= n; e.tasks == 0 {
			d.bags[at] = d.bags[len(d.bags)-1]
			d.bags = d.bags[:len(d.bags)-1]
		}
	}
	return d.shares
}

// mean is how long a task of the bag is thought to run at the asker.
func (d *Desk) mean(w *Work) time.Duration {
	if w.Mean > 0 {
		return w.Mean
	}
	return d.ask.Mean
}

// gather lists the bags that may give the ask tasks, and how their users stand.
func (d *Desk) gather(works []Work, now job.Time) {
	if d.users == nil {
		d.users = make(map[string]int32)
	}
	clear(d.users)
	d.bags, d.stands = d.bags[:0], d.stands[:0]
	for i := range works {
		w := &works[i]
		user, known := d.users[w.User]
		if !known {
			user = int32(len(d.stands))
			d.users[w.User] = user
			d.stands = append(d.stands, d.Usage.Of(w.User, now))
		}
		d.stands[user] += w.expected(w.Given)
		if w.Shape != d.ask.Shape || w.Tasks() == 0 || !slices.Contains(w.Sites, d.ask.Site) {
			continue
		}
		tasks := min(w.Room, w.Waiting-d.Elsewhere.Count(w, d.ask.Site, now))
		if tasks <= 0 {
			continue
		}
		if rank, yes := d.Policy.Judge(w, &d.ask); yes {
			if math.IsNaN(rank) {
				rank = 0
			}
			d.bags = append(d.bags, entry{int32(i), user, rank + priorityRank*float64(w.Priority), tasks})
		}
	}
}

// first returns where the bag is that comes first.
func (d *Desk) first(works []Work) int {
	best := 0
	for i := 1; i < len(d.bags); i++ {
		if d.before(&d.bags[i], &d.bags[best], works) {
			best = i
		}
	}
	return best
}

func (d *Desk) before(a, b *entry, works []Work) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	if x, y := d.stands[a.user], d.stands[b.user]; x != y {
		return x < y
	}
	v, w := &works[a.work], &works[b.work]
	if v.Submitted != w.Submitted {
		return v.Submitted < w.Submitted
	}
	return v.Bag.Compare(w.Bag) < 0
}

// Grant returns the tasks of a share: those that wait again before those that no site has
// had, without what should first be tried elsewhere. It may be fewer than tasks if the bag
// has changed since. Call [Elsewhere.Leave] with them once they are granted.
func (d *Desk) Grant(b *store.Bag, w *Work, site job.SiteID, tasks int, now job.Time) job.TaskSet {
	return b.NextTasksBut(tasks, d.Elsewhere.Tasks(w, site, now))
}
