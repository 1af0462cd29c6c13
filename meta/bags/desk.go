package bags

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// Desk decides which tasks an ask gets. Usage, Elsewhere and Replicas must be set; all fields
// and the desk belong to one goroutine.
type Desk struct {
	// Scene has the asker, its site and the queue as policies read them. It may stay empty
	// where no bag states any.
	Scene Scene
	Usage *Usage
	// Elsewhere has the tasks that should first be tried at other sites.
	Elsewhere *Elsewhere
	// Replicas are the tasks that should be with one more site.
	Replicas *Replicas

	ask  Ask
	want int           // of the ask that is left
	room time.Duration // likewise
	left int           // bundles that it may have yet
	has  int           // tasks of this origin that the asker has

	bags    []entry
	users   map[string]int32
	stands  []float64 // by user, in processor-seconds
	oldest  []int32   // by user: of his bags that may give tasks, the one submitted first
	allowed []float64 // by user: how many tasks of this origin the asker may have for his bags
	open    []bool    // by user: whether his policies are yet to be asked
	asked   int       // for how many users policies were asked in this answer
	shares  []Share
}

// entry is a bag that may give the ask tasks.
type entry struct {
	work  int32 // its place among the works
	user  int32
	rank  float64
	most  float64 // tasks that the asker may have of this origin, see [Verdict]
	tasks int     // that the ask could have
	open  bool    // its policies were not asked yet: it may be none, and has no rank
}

// Share is a bundle that an ask should get: so many tasks of the bag at a place among the
// works that were looked at.
type Share struct{ Work, Tasks int }

// Answer returns the bundles that an ask should get, in this order. Works are all bags
// that may give tasks, also those of other shapes: what their users have with sites
// counts. It changes nothing but its own memory; the list is good until the next call.
//
// It is Algorithm 1 of GridBot (spec 002 section 2.2) in the form of section 2.6, with one
// look at each bag. Each bundle is of the bag that comes first: by priority, then by what
// its user has used lately and has with sites, what this ask has got included, then by rank,
// then in order of submission. So users of equal priority take turns, and the bags of one
// user come one after the other.
//
// Where bags state policies, requirements say which of them the ask gets tasks of, rank orders
// the bags of a user, and concurrency bounds what the asker has of this origin: at each bundle
// the least that a bag of this user had which came before or gets it counts, so that a bag of
// low rank brings no more to a host than one of high rank allows. What a user states binds
// his own bags only: the source (section 2.2) has one owner for all.
//
// The policies of a user are asked when it may be his turn, those of all his bags: what users
// state does not bear on who is before them. So an ask for one task needs few of them.
//
// An ask gets no more than it wants, its places use up ([Ahead]), [MaxAsk] and
// [MaxBundles]; a bundle no more than [store.MaxBundleTasks]; a bag's user no more than
// [Work.Room].
func (d *Desk) Answer(ask Ask, works []Work, now job.Time) []Share {
	d.ask, d.shares = ask.Bounded(), d.shares[:0]
	d.want, d.room, d.left = d.ask.Want, d.ask.room(), MaxBundles
	d.has = d.ask.Running + d.ask.Stock
	d.forgetUsers()
	return d.share(works, now, d.waiting)
}

// Twice returns bundles of tasks that should be with one more site, as [Desk.Answer] does for
// those that wait: for what that has left of its ask. So replicas come after everything else.
func (d *Desk) Twice(works []Work, now job.Time) []Share {
	if !d.Replicas.Any() {
		return nil
	}
	d.shares = d.shares[:0]
	return d.share(works, now, func(w *Work, _ job.Time) int { return d.Replicas.countAt(w, d.ask.Site) })
}

// waiting is how many tasks of a bag that wait an ask could have.
func (d *Desk) waiting(w *Work, now job.Time) int {
	if w.Tasks() == 0 {
		return 0
	}
	return min(w.Room, w.Waiting-d.Elsewhere.Count(w, d.ask.Site, now))
}

// share lists bundles for the ask, of the tasks that count says each bag has.
func (d *Desk) share(works []Work, now job.Time, count func(*Work, job.Time) int) []Share {
	if d.want == 0 || d.room == 0 {
		return nil
	}
	d.gather(works, now, count)
	return d.deal(works, now)
}

// deal lists bundles of the bags that were gathered.
func (d *Desk) deal(works []Work, now job.Time) []Share {
	for d.want > 0 && d.room > 0 && d.left > 0 {
		at := d.next(works, now)
		if at < 0 {
			break
		}
		e := &d.bags[at]
		w := &works[e.work]
		each := cost(d.mean(w))
		n := min(e.tasks, d.want, fit(d.room, each), store.MaxBundleTasks)
		allowed := &d.allowed[e.user]
		if *allowed = min(*allowed, e.most); *allowed < float64(d.has+n) {
			if n = int(max(0, *allowed)) - d.has; n <= 0 {
				d.drop(at)
				continue
			}
		}
		d.has += n
		d.shares = append(d.shares, Share{int(e.work), n})
		d.left--
		d.want -= n
		d.room -= time.Duration(n) * each
		d.stands[e.user] += w.expected(n)
		if e.tasks -= n; e.tasks == 0 {
			d.drop(at)
		}
	}
	return d.shares
}

func (d *Desk) drop(at int) {
	d.bags[at] = d.bags[len(d.bags)-1]
	d.bags = d.bags[:len(d.bags)-1]
}

// mean is how long a task of the bag is thought to run at the asker.
func (d *Desk) mean(w *Work) time.Duration {
	if w.Mean > 0 {
		return w.Mean
	}
	return d.ask.Mean
}

// gather lists the bags that may give the ask tasks, and how their users stand.
func (d *Desk) gather(works []Work, now job.Time, count func(*Work, job.Time) int) {
	d.bags, d.stands, d.oldest, d.open, d.asked = d.bags[:0], d.stands[:0], d.oldest[:0], d.open[:0], 0
	for i := range works {
		w := &works[i]
		user := d.user(w.User)
		if int(user) == len(d.stands) {
			d.stands, d.oldest, d.open = append(d.stands, d.Usage.Of(w.User, now)), append(d.oldest, -1), append(d.open, false)
		}
		d.stands[user] += w.expected(w.Given)
		if w.Shape != d.ask.Shape || w.Offered() == 0 || !slices.Contains(w.Sites, d.ask.Site) {
			continue
		}
		tasks := count(w, now)
		if tasks <= 0 {
			continue
		}
		v := Unbounded()
		e := entry{work: int32(i), user: user, rank: v.Rank, most: v.Most, tasks: tasks, open: w.Judge != nil}
		d.open[user] = d.open[user] || e.open
		d.bags = append(d.bags, e)
		d.listed(&e, works)
	}
}

// listed takes up when the earliest bag of a user was submitted that may give the ask tasks.
func (d *Desk) listed(e *entry, works []Work) {
	if first := d.oldest[e.user]; first < 0 || works[e.work].older(&works[first]) {
		d.oldest[e.user] = e.work
	}
}

// next returns where the bag is that comes first, -1 if there is none. As long as policies were
// not asked, a user may only seem to come earlier than he does: his earliest bag may give nothing.
// So whoever comes first when his were asked does so whatever others state.
func (d *Desk) next(works []Work, now job.Time) int {
	for len(d.bags) > 0 {
		at := d.first(works)
		user := d.bags[at].user
		if !d.open[user] {
			return at
		}
		d.judge(user, works, now)
	}
	return -1
}

// mostAsked is for how many users policies are asked one after the other before they are for
// all: each time all bags are looked at.
const mostAsked = 8

// judge asks the policies of a user's bags, or of all once it was done often, and drops those
// that do not match.
func (d *Desk) judge(user int32, works []Work, now job.Time) {
	d.asked++
	all, kept := d.asked > mostAsked, d.bags[:0]
	for i := range d.oldest {
		if d.open[i] && (all || int32(i) == user) {
			d.oldest[i] = -1
		}
	}
	for i := range d.bags {
		e := d.bags[i]
		if d.open[e.user] && (all || e.user == user) {
			if e.open {
				v := works[e.work].judge(&d.Scene, now)
				if !v.Yes {
					continue
				}
				e.rank, e.most, e.open = v.Rank, v.Most, false
			}
			d.listed(&e, works)
		}
		kept = append(kept, e)
	}
	d.bags = kept
	if d.open[user] = false; all {
		clear(d.open)
	}
}

// forgetUsers begins an answer: nothing bounds what users may have yet.
func (d *Desk) forgetUsers() {
	if d.users == nil {
		d.users = make(map[string]int32)
	}
	clear(d.users)
	d.allowed = d.allowed[:0]
}

// user returns the place of a user among those of this answer.
func (d *Desk) user(name string) int32 {
	at, known := d.users[name]
	if !known {
		at = int32(len(d.allowed))
		d.users[name] = at
		d.allowed = append(d.allowed, math.Inf(1))
	}
	return at
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
	v, w := &works[a.work], &works[b.work]
	if v.Priority != w.Priority {
		return v.Priority > w.Priority
	}
	if a.user != b.user {
		if x, y := d.stands[a.user], d.stands[b.user]; x != y {
			return x < y
		}
		return works[d.oldest[a.user]].older(&works[d.oldest[b.user]])
	}
	if a.rank != b.rank {
		return a.rank > b.rank
	}
	return v.older(w)
}

// Grant returns the tasks of a share: those that wait again before those that no site has
// had, without what should first be tried elsewhere. It may be fewer than tasks if the bag
// has changed since. Call [Elsewhere.Leave] with them once they are granted.
func (d *Desk) Grant(b *store.Bag, w *Work, site job.SiteID, tasks int, now job.Time) job.TaskSet {
	return b.NextTasksBut(tasks, d.Elsewhere.Tasks(w, site, now))
}
