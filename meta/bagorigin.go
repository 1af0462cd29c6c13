package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/fifo"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// bagOrigin keeps the bags submitted to this site: it offers their tasks, grants bundles,
// and records how tasks ended. The rules are those of package bags, the facts those of the
// store; here is who is told what when.
type bagOrigin struct {
	*core
	peers *peers
	jobs  *origin // places
	host  ownTasks
	deps  *dependencies

	open   []*openBag // that have not ended, in the order of ids
	byID   map[job.ID]*openBag
	works  []bags.Work // of open, in its order
	closed fifo.Queue[closedBag]

	board     bags.Board
	desk      bags.Desk
	usage     bags.Usage
	elsewhere bags.Elsewhere
	answers   bags.Answers
	unserved  bags.Unserved
	replicas  bags.Replicas
	tasks     bags.TaskPolicy
	policies  bagPolicies
	deadlines deadlines
	spoilers  []spoiler                       // hosts that are held back
	had       []hadTask                       // scratch, see hadOf
	seats     map[job.SiteID]map[seat]*seated // what is known of stocks
	places    map[bags.Shape]int              // of them all
	lives     map[job.SiteID]uint64           // the incarnation of each site when it came up

	lastChanged  job.ID   // the bag that this step last said to have changed
	offering     bool     // offers leave with the next pass
	stale        bool     // what is offered may have changed since they were told
	nextOffer    job.Time // no offers leave before
	nextRefresh  job.Time // when all offers are told again
	nextLease    job.Time // no lease that it gave ends before
	nextPlace    job.Time // when sites are looked for
	nextStop     job.Time // when tasks that are to be stopped are looked at
	nextRecall   job.Time
	nextTakeBack job.Time // when hosts that are held back are looked at
	nextReplica  job.Time // when tasks are drawn for one more site
	placeCursor  int
	drawCursor   int
	nextLevel    job.Time // when the levels of bags are looked at
}

// ownTasks is the host of tasks at the origin's own site. Each call stands for a message.
type ownTasks interface {
	onOffer(now job.Time, from job.SiteID, m Offer)
	onTaskResultsAck(now job.Time, from job.SiteID, m TaskResultsAck)
	onRecall(now job.Time, from job.SiteID, m Recall)
	onStopTasks(now job.Time, from job.SiteID, m StopTasks)
	// takesTasks reports whether this site runs tasks at all.
	takesTasks() bool
}

// openBag is the volatile state of a bag that has not ended; the facts are in rec.
type openBag struct {
	rec *store.Bag
	at  int // its place among the open ones
	openPolicies
	// sites are those that it is offered to.
	sites []job.SiteID
	// refused are sites that gave bundles back, and until when they get no more.
	refused map[job.SiteID]job.Time
	// leases is when the lease of a bundle has ended for sure.
	leases map[uint32]job.Time
	// fetching are batches whose files are on their way, by bundle.
	fetching map[uint32]*TaskResults
	// recalled is how many tasks of a bundle were asked back, and have not come.
	recalled map[uint32]recalled
	// beaten are tasks that sites are to stop, as others have ended them.
	beaten beaten
	cpu    float64 // processor-seconds of its sums that count as used
	// places is how many served it when its tail began, or later.
	places int
	missed int // deadlines, by runs, since this engine began
	// blame is what hosts have made of it.
	blame bags.Blame
	// limit is how long a task may run at the level of the bag, of which the limits were level when
	// they were last looked at, see [bagOrigin.lookAtLevel]. outgrown are
	// sites that gave a bundle back as the bag has outgrown the level.
	limit    time.Duration
	level    bagLimits
	outgrown map[job.SiteID]bool
}

type recalled struct {
	tasks int
	until job.Time // it is not waited for longer
}

// seat names a stock at a host, and stockAt at any.
type (
	seat struct {
		node  string
		shape bags.Shape
	}
	stockAt struct {
		site job.SiteID
		seat
	}
)

// seated is what an origin knows of a stock from asks and results.
type seated struct {
	places int
	scope  *bags.Scope // that policies read, nil before any asked
	mean   bags.Mean   // of the results
	heard  job.Time    // when the latest ask or result came
	// spared is until when it gets no tasks beside those that it has: some were recalled.
	spared job.Time
}

type closedBag struct {
	id job.ID
	at job.Time
}

// Between two rounds of offers, of looks for sites, of stops and of recalls.
const (
	offerPause = 20 * time.Millisecond
	// offerPausePerBag keeps what offers cost a small part of the time.
	offerPausePerBag = 50 * time.Microsecond
	recallPause      = 500 * time.Millisecond
	// recallKept is for how long tasks that a stock gave back are kept for others. Its host, to
	// which the next ones may seem short, asks for them in the same instant, and whom they were
	// recalled for hears of them later than that.
	recallKept = time.Second
	// mostPlaced is for how many bags one look for sites is.
	mostPlaced = 256
	placePause = 250 * time.Millisecond
	// recallWait is how long tasks count as recalled that do not come.
	recallWait = 10 * time.Second
)

func newBagOrigin(c *core, p *peers, jobs *origin) *bagOrigin {
	bo := &bagOrigin{
		core: c, peers: p, jobs: jobs, byID: make(map[job.ID]*openBag), lives: make(map[job.SiteID]uint64), seats: make(map[job.SiteID]map[seat]*seated),
		places: make(map[bags.Shape]int), policies: newBagPolicies(), tasks: bags.Usual{Cycle: c.cfg.Timing.ReplicaCycle}, nextReplica: job.Never,
		nextLease: job.Never, nextPlace: job.Never, nextStop: job.Never, nextRecall: job.Never, nextTakeBack: job.Never, nextOffer: job.Never, nextLevel: job.Never,
	}
	bo.desk = bags.Desk{Usage: &bo.usage, Elsewhere: &bo.elsewhere, Replicas: &bo.replicas}
	return bo
}

// addOpen takes up a bag that has not ended.
func (bo *bagOrigin) addOpen(b *store.Bag) *openBag {
	o := &openBag{
		rec: b, leases: make(map[uint32]job.Time), fetching: make(map[uint32]*TaskResults), recalled: make(map[uint32]recalled),
		beaten: make(beaten), refused: make(map[job.SiteID]job.Time), outgrown: make(map[job.SiteID]bool),
	}
	bo.byID[b.ID] = o
	at, _ := slices.BinarySearchFunc(bo.open, b.ID, func(o *openBag, id job.ID) int { return o.rec.ID.Compare(id) })
	bo.open = slices.Insert(bo.open, at, o)
	bo.works = slices.Insert(bo.works, at, bags.Work{})
	bo.number(at)
	bo.leavePolicies(o)
	bo.lookAt(o)
	return o
}

// number says the places of the open bags from one on anew.
func (bo *bagOrigin) number(from int) {
	for i := from; i < len(bo.open); i++ {
		bo.open[i].at = i
	}
}

// removeOpen forgets what was kept in mind of a bag that has ended.
func (bo *bagOrigin) removeOpen(o *openBag) {
	delete(bo.byID, o.rec.ID)
	bo.forgetPolicies(o)
	bo.policies.unsent -= bo.works[o.at].Waiting
	bo.open = slices.Delete(bo.open, o.at, o.at+1)
	bo.works = slices.Delete(bo.works, o.at, o.at+1)
	bo.number(o.at)
	if len(bo.open) == 0 { // whoever has places for the next one says so
		clear(bo.seats)
		clear(bo.places)
	}
	bo.elsewhere.Forget(o.rec.ID)
	bo.replicas.Forget(o.rec.ID)
	bo.closed.Push(closedBag{o.rec.ID, o.rec.Closed})
	bo.deps.ended(o.rec.ID, &o.rec.Request)
	bo.offerSoon()
}

// changed takes up that the facts of a bag have changed, and says so, at most once a step
// for consecutive changes of one bag.
func (bo *bagOrigin) changed(o *openBag) {
	bo.lookAt(o)
	bo.offerSoon()
	bo.say(o.rec.ID)
}

func (bo *bagOrigin) say(id job.ID) {
	if bo.lastChanged != id {
		bo.lastChanged = id
		bo.emit(BagChanged{Bag: id})
	}
}

// offerSoon has offers leave with the next pass, or a little later.
func (bo *bagOrigin) offerSoon() { bo.stale, bo.offering = true, true }

// offer tells sites of what there is to do, where that has changed.
func (bo *bagOrigin) offer(now job.Time) {
	bo.offering = false
	if !bo.stale {
		return
	}
	if bo.nextOffer != job.Never && now < bo.nextOffer {
		return // the tick of then has them leave
	}
	bo.stale = false
	here := func(site job.SiteID) bool { return site == bo.self || bo.peers.knowsTasks(site) }
	due := bo.board.Due(bo.works, here)
	if len(due) > 0 || len(bo.works) > 0 {
		bo.nextOffer = now.Add(offerPause + time.Duration(len(bo.works))*offerPausePerBag)
	}
	for _, f := range due {
		m := Offer{Shape: f.Shape, Tasks: f.Tasks}
		if f.Site == bo.self {
			bo.host.onOffer(now, bo.self, m)
		} else {
			bo.peers.send(f.Site, m)
		}
	}
}

// up begins to deal with a site anew whose stream is up.
func (bo *bagOrigin) up(now job.Time, site job.SiteID, incarnation uint64) {
	if bo.lives[site] != incarnation { // its stamps are above those of earlier lives, whatever was said in its name
		bo.lives[site] = incarnation
		bo.answers.Forget(site)
	}
	bo.askAgain(now, site)
	generation := bo.peers.generationOf(site)
	for _, o := range slices.Clone(bo.open) {
		for t := range o.rec.Bundles {
			if t.Site != site {
				continue
			}
			if t.Generation != generation && !t.Late {
				bo.lost(now, o, t)
			}
		}
		bo.stopAt(now, o, site)
		bo.stopEnded(now, o, site)
	}
}

// askAgain has a site offered what is to be done once more, as it may take what it did not.
func (bo *bagOrigin) askAgain(now job.Time, site job.SiteID) {
	bo.board.Forget(site)
	bo.placeSoon(now)
	bo.offerSoon()
	for _, o := range bo.open {
		delete(o.refused, site)
	}
}

// down takes up that the stream to a site is gone.
func (bo *bagOrigin) down(site job.SiteID) {
	bo.board.Forget(site)
	bo.unserved.Forget(site)
	for k, s := range bo.seats[site] {
		if bo.places[k.shape] -= s.places; bo.places[k.shape] <= 0 {
			delete(bo.places, k.shape)
		}
	}
	delete(bo.seats, site)
	bo.offerSoon()
}

// placeSoon has sites looked for for all bags.
func (bo *bagOrigin) placeSoon(now job.Time) {
	if len(bo.open) > 0 {
		bo.nextPlace, bo.placeCursor = min(bo.nextPlace, now), 0
		bo.levelSoon(now)
	}
}

// place looks for sites for some of the bags, one after another.
func (bo *bagOrigin) placeSome(now job.Time) {
	if now < bo.nextPlace {
		return
	}
	p := &pass{}
	for n := 0; n < mostPlaced && bo.placeCursor < len(bo.open) && !p.full(bo.open[bo.placeCursor]); n++ {
		bo.placeIn(now, bo.open[bo.placeCursor], p)
		bo.placeCursor++
	}
	switch {
	case len(bo.open) == 0:
		bo.nextPlace = job.Never
	case bo.placeCursor < len(bo.open):
		bo.nextPlace = now.Add(placePause)
	default:
		bo.placeCursor, bo.nextPlace = 0, now.Add(bo.cfg.Timing.Retry)
	}
}

// place looks for the sites that a bag is offered to: all that could run it, or as many of
// the best as its request says. Of these it keeps those that it has.
func (bo *bagOrigin) place(now job.Time, o *openBag) { bo.placeIn(now, o, &pass{}) }

func (bo *bagOrigin) placeIn(now job.Time, o *openBag, p *pass) {
	limit := bo.lookAtLevel(now, o)
	asked := o.rec.Asked(limit)
	r := &asked
	var tried []job.SiteID
	if !bo.host.takesTasks() {
		tried = append(tried, bo.self)
	}
	for _, l := range bo.peers.linked {
		if l.up && l.noTasks {
			tried = append(tried, l.site)
		}
	}
	for site, until := range o.refused {
		if now < until {
			tried = append(tried, site)
		}
	}
	tried = append(tried, bo.mismatched(now, o, p, tried)...)
	bo.jobs.beginRoundFor(now, o.rec.ID, r, nil, tried)
	var able []job.SiteID
	for i := range bo.jobs.round.Sites {
		if c := &bo.jobs.round.Sites[i]; c.Eligible {
			able = append(able, c.Site)
		}
	}
	if r.Copies > 0 && len(able) > int(r.Copies) {
		best := chosen(bo.jobs.round.Decide())
		kept := slices.DeleteFunc(slices.Clone(o.sites), func(s job.SiteID) bool { return !slices.Contains(able, s) })
		for _, s := range best {
			if len(kept) < int(r.Copies) && !slices.Contains(kept, s) {
				kept = append(kept, s)
			}
		}
		able = kept
	}
	if o.rec.Level > 0 {
		bo.levelSoon(now)
		if o.level.run == 0 {
			able = nil
		}
	}
	if !slices.Equal(able, o.sites) || limit != o.limit {
		o.sites, o.limit = able, limit
		bo.lookAt(o)
		bo.offerSoon()
	}
}

// tooManyClosed reports whether more ended bags are remembered than allowed.
func (bo *bagOrigin) tooManyClosed() bool { return bo.closed.Len() > bo.cfg.Limits.ClosedJobs }

// purge forgets ended bags beyond the bounds.
func (bo *bagOrigin) purge(now job.Time) {
	for {
		c, ok := bo.closed.First()
		if !ok {
			return
		}
		b := bo.st.Bag(c.id)
		if b != nil && b.State.Terminal() && b.Closed == c.at {
			if !bo.tooManyClosed() && c.at.Add(bo.cfg.Limits.ClosedFor) > now {
				return
			}
			if bo.deps.holds(c.id) {
				return
			}
			record(bo.st, store.PurgeBag{Bag: c.id})
			bo.emit(BagChanged{Bag: c.id, Purged: true})
		}
		bo.closed.Pop()
	}
}

// tick does what has become due.
func (bo *bagOrigin) tick(now job.Time) {
	bo.levels(now)
	bo.placeSome(now)
	bo.expireLeases(now)
	bo.missDeadlines(now)
	bo.stopAgain(now)
	bo.recall(now)
	bo.takeBack(now)
	bo.replicate(now)
	bo.purge(now)
	if now >= bo.nextRefresh && len(bo.open) > 0 {
		bo.refresh(now)
	}
	if bo.stale && now >= bo.nextOffer {
		bo.offering = true
	}
}

// refresh has all offers told again, as a host forgets one that it does not hear for long, and
// forgets stocks that it does not hear of itself.
func (bo *bagOrigin) refresh(now job.Time) {
	bo.nextRefresh = now.Add(bo.cfg.Timing.AntiEntropy)
	bo.forgetSeats(now)
	bo.board.Repeat()
	bo.offerSoon()
}

// nextWake returns when the origin has to do something next for its bags.
func (bo *bagOrigin) nextWake() job.Time {
	wake := min(bo.nextLease, bo.nextPlace, bo.nextStop, bo.nextRecall, bo.nextTakeBack, bo.nextReplica, bo.nextLevel, bo.deadlines.next())
	if bo.stale {
		wake = min(wake, bo.nextOffer)
	}
	if len(bo.open) > 0 {
		wake = min(wake, bo.nextRefresh)
	}
	if c, ok := bo.closed.First(); ok {
		wake = min(wake, c.at.Add(bo.cfg.Limits.ClosedFor))
	}
	return wake
}

// restore goes on with the bags submitted here.
func (bo *bagOrigin) restore(now job.Time) {
	var closed []*store.Bag
	var open []*store.Bag
	for b := range bo.st.Bags {
		bo.usage.Add(b.Request.User, b.Used(), now)
		if b.State.Terminal() {
			closed = append(closed, b)
		} else {
			open = append(open, b)
		}
	}
	slices.SortStableFunc(closed, func(a, b *store.Bag) int { return cmp.Compare(a.Closed, b.Closed) })
	for _, b := range closed {
		bo.closed.Push(closedBag{b.ID, b.Closed})
	}
	for _, b := range open {
		o := bo.addOpen(b)
		o.cpu = b.Used()
		for t := range b.Bundles {
			if !t.Late {
				bo.answers.Restore(t.Site, t.Generation, t.Stamp)
				bo.grantLease(now, o, t)
			}
		}
		bo.indexDeadlines(now, o)
		bo.drawSoon(now, o)
		bo.stopEnded(now, o, bo.self) // others when they come up
		bo.close(now, o)
	}
	if len(bo.open) > 0 {
		bo.nextPlace, bo.nextStop, bo.nextLevel = now, now, now
	}
}
