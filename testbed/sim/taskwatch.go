package sim

import (
	"maps"
	"slices"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// taskWatch checks the invariants for bags and their tasks, from the outside like watch: by
// what runs on machines and what is on disks. A task is named by its bag, whatever bundle
// or run it is in.
//
//	S1 a bundle is granted to one site, and its tasks start there; a claim that is repeated
//	   gets no other bundles
//	S2 no two runs of a task overlap, unless the bag says race, or one of them is a replica
//	   and the other is at another site; under wait it runs again only after it has failed,
//	   with retries left, or its host stopped it, or its user wants it, or an operator has
//	   said of its host, which is gone, that what that had is to run again
//	S3 a task that has ended is not given out again, and its end and result stay what they
//	   are, unless its user has it run again; a host that was given it before, and is out of
//	   reach when the late result of another one ends it, may start it
//	S5 bags that were acknowledged, ends that are on disk and cancellations survive; a task
//	   is done only with a result, after a run that succeeded, and with what that left
//	L1 every bag ends; L2 no site holds a bundle or a pilot in the end
type taskWatch struct {
	x     *watch
	bags  map[job.ID]*bagSeen
	order []job.ID // of bags that were acknowledged
	tasks map[job.TaskID]*taskSeen
	// grants are the sites that bundles were granted to.
	grants map[job.AttemptID]job.SiteID
	// answers is the first answer to each claim for tasks: a repeated one gets no more.
	answers map[claimSeen][]job.AttemptID
	// met is the life of a peer that a site met last.
	met map[[2]job.SiteID]metLife
	// granted is when bundles were granted, by the clocks of origins.
	granted map[job.AttemptID]job.Time
	// replicas are the bundles of replicas.
	replicas map[job.AttemptID]bool
	// requeued are origins, and sites that are gone of which their operators have said that
	// what they had is to run again.
	requeued map[[2]job.SiteID]bool
	// lost are batches whose files could not be fetched.
	lost map[job.AttemptID]bool
	// alone are bundles whose tasks may run at a site with no other one of their bag.
	alone map[job.AttemptID]bool
}

// bagSeen is what is durable of a bag.
type bagSeen struct {
	done, failed, cancelled job.TaskSet
	// wanted are tasks that their user may have had run again since.
	wanted job.TaskSet
	// records are the results of tasks that have ended.
	records map[uint32]store.TaskRecord
	// cancels says that a client was told that it will be cancelled.
	cancels bool
	life    int // of the daemon that said the latest of it
	// tail is when its tail began, 0 before.
	tail     job.Time
	policies policySeen
}

// taskSeen is what has run of a task.
type taskSeen struct {
	running []*process
	last    job.OutcomeKind // how its latest run ended, 0 before, and where
	lastAt  job.SiteID
	// failures counts the runs that failed by themselves since its user wanted it run.
	failures int
	// again says that its user had it run again, the latest time at againAt; wanted that this
	// is not known to be durable yet. It has ended, as is durable, at ended, by the clock of its
	// origin.
	again   bool
	wanted  bool
	againAt job.Time
	ended   job.Time
	// ends are the runs that ended, by site and kind; left is what they left.
	ends map[endedAt]bool
	left map[string]bool
}

type endedAt struct {
	site job.SiteID
	kind job.OutcomeKind
}

func (x *taskWatch) init(w *watch) {
	x.x = w
	x.bags, x.tasks = make(map[job.ID]*bagSeen), make(map[job.TaskID]*taskSeen)
	x.answers, x.met = make(map[claimSeen][]job.AttemptID), make(map[[2]job.SiteID]metLife)
	x.replicas, x.requeued = make(map[job.AttemptID]bool), make(map[[2]job.SiteID]bool)
	x.grants, x.granted, x.lost = make(map[job.AttemptID]job.SiteID), make(map[job.AttemptID]job.Time), make(map[job.AttemptID]bool)
	x.alone = make(map[job.AttemptID]bool)
}

func (x *taskWatch) bag(id job.ID) *bagSeen {
	if x.bags[id] == nil {
		x.bags[id] = &bagSeen{records: make(map[uint32]store.TaskRecord)}
	}
	return x.bags[id]
}

func (x *taskWatch) task(id job.TaskID) *taskSeen {
	if x.tasks[id] == nil {
		x.tasks[id] = &taskSeen{ends: make(map[endedAt]bool), left: make(map[string]bool)}
	}
	return x.tasks[id]
}

// runsAgain notes that its user has it run again.
func (t *taskSeen) runsAgain(now job.Time) {
	if !t.wanted {
		t.againAt = now
	}
	t.again, t.failures, t.last = true, 0, 0
}

// has reports whether a task has ended.
func (b *bagSeen) has(task uint32) bool {
	return b.done.Has(task) || b.failed.Has(task) || b.cancelled.Has(task)
}

func (x *taskWatch) acknowledged(id job.ID) {
	if x.x.w.cfg.Check && !slices.Contains(x.order, id) {
		x.order = append(x.order, id)
	}
}

// leaves watches the bundles that leave a site.
func (x *taskWatch) leaves(s *Site, f *meta.GrantTasks) {
	if !x.x.w.cfg.Check || x.x.liars[s.cfg.ID] {
		return
	}
	for i := range f.Verdict.Bundles {
		id := f.Verdict.Bundles[i].Bundle
		x.grantedTo(id, f.To)
		if s.w.cfg.Disk.Keep && s.state.Bag(id.Job) != nil {
			if _, err := s.backend.Payload(id.Job); err != nil {
				x.x.violate("S5: bundle %v is granted to %s, and what it runs is not on disk: %v", id, f.To, err)
			}
		}
	}
}

// claimSeen is a claim for tasks, in one life of the daemons at both ends: a restarted
// origin may take an old claim for a new one, and stamps may count on with a new life. The
// life of a host is the one that the origin had met when it answered: it may have been frozen
// since the claim came, and its answer waits for its disk.
type claimSeen struct {
	origin, host job.SiteID
	originLife   int
	hostLife     metLife
	stamp        uint64
}

// metLife is a life of a site's daemon as it tells its peers.
type metLife struct {
	generation  uint32
	incarnation uint64
}

// meets notes which life of a peer's daemon a site has met.
func (x *taskWatch) meets(s *Site, up meta.PeerUp) {
	x.met[[2]job.SiteID{s.cfg.ID, up.Site}] = metLife{up.Generation, up.Incarnation}
}

func (x *taskWatch) claim(s *Site, host job.SiteID, stamp uint64) claimSeen {
	return claimSeen{s.cfg.ID, host, s.life, x.met[[2]job.SiteID{s.cfg.ID, host}], stamp}
}

// decided checks what an origin has decided to answer to claims, before it leaves.
func (x *taskWatch) decided(s *Site, effects []meta.Effect) {
	if x.x.liars[s.cfg.ID] {
		return
	}
	for _, f := range effects {
		switch f := f.(type) {
		case meta.GrantTasks:
			x.answered(s, &f)
		case meta.Send:
			if v, ok := f.Message.(meta.TaskVerdict); ok {
				x.answeredNothing(s, f.To, v.Stamp)
			}
		}
	}
}

// answered checks that a repeated claim gets bundles that it got before.
func (x *taskWatch) answered(s *Site, f *meta.GrantTasks) {
	claim := x.claim(s, f.To, f.Verdict.Stamp)
	got, again := x.answers[claim]
	for i := range f.Verdict.Bundles {
		id := f.Verdict.Bundles[i].Bundle
		if again && !slices.Contains(got, id) {
			x.x.violate("S1: claim %d of %s got %v, and bundle %v when it was repeated", claim.stamp, f.To, got, id)
		}
		if !again {
			x.answers[claim] = append(x.answers[claim], id)
		}
	}
}

// answeredNothing notes that a claim gets no tasks: repeated, it gets none either.
func (x *taskWatch) answeredNothing(s *Site, to job.SiteID, stamp uint64) {
	claim := x.claim(s, to, stamp)
	if _, again := x.answers[claim]; !again {
		x.answers[claim] = nil
	}
}

// revoked forgets what the claims of a site were answered, as its origin does: admitted again, its
// claims are new ones.
func (x *taskWatch) revoked(s *Site, host job.SiteID) {
	maps.DeleteFunc(x.answers, func(c claimSeen, _ []job.AttemptID) bool { return c.origin == s.cfg.ID && c.host == host })
}

func (x *taskWatch) grantedTo(bundle job.AttemptID, site job.SiteID) {
	if holder, again := x.grants[bundle]; again && holder != site {
		x.x.violate("S1: bundle %v was granted to %s and to %s", bundle, holder, site)
	}
	x.grants[bundle] = site
}

// started watches the runs of tasks that begin.
func (x *taskWatch) started(p *process) {
	s, id := p.s, job.TaskID{Bag: p.task.Bundle.Job, Ordinal: p.task.Ordinal}
	x.grantedTo(p.task.Bundle, s.cfg.ID)
	if s.w.cfg.Disk.Keep {
		if _, err := s.backend.HeldPayload(p.task.Bundle); err != nil {
			x.x.violate("S5: task %v starts at %s, and its bundle is not on the disk there: %v", id, s.cfg.ID, err)
		}
	}
	b, t := x.bag(id.Bag), x.task(id)
	if b.wanted.Has(id.Ordinal) {
		t.runsAgain(x.x.w.now)
		t.wanted = true
	}
	for _, other := range t.running {
		replicas := x.replicas[p.task.Bundle] || x.replicas[other.task.Bundle]
		// What had ended elsewhere before its user had it run again, or was lost with a site that
		// its origin had revoked, may run on until its host hears of it.
		before := t.again && other.began <= t.againAt
		beaten := before && (x.x.w.bagOf(id.Bag).MaxReplicas > 0 || x.letGo(other, id))
		switch {
		case p.race || beaten || other.orphan && (t.again || x.givenUp(other, id)):
		case replicas && other.s == s:
			x.x.violate("S2: task %v starts at %s beside itself", id, s.cfg.ID)
		case !replicas:
			x.x.violate("S2: task %v starts at %s while it runs at %s", id, s.cfg.ID, other.s.cfg.ID)
		}
	}
	if b.has(id.Ordinal) && !b.wanted.Has(id.Ordinal) && !p.race && x.granted[p.task.Bundle] >= t.ended {
		x.x.violate("S3: task %v has ended and starts at %s", id, s.cfg.ID)
	}
	x.checkAgain(p, id, t)
	x.beside(p, id)
	t.running = append(t.running, p)
}

// checkAgain checks that a task of a bag that waits for lost sites may run again.
func (x *taskWatch) checkAgain(p *process, id job.TaskID, t *taskSeen) {
	o := x.x.w.byID[id.Bag.Origin]
	if !o.Up() || o.state.Bag(id.Bag) == nil {
		return // it has lost its disk, or has yet to come back
	}
	rec := o.state.Bag(id.Bag)
	if rec.Request.OnSiteLost != job.Wait || rec.MaxReplicas > 0 {
		return // others may go on with it
	}
	requeued := x.requeued[[2]job.SiteID{id.Bag.Origin, t.lastAt}]
	if requeued && (t.last == job.Failure || t.last == job.Timeout) { // that it failed, too
		t.failures, t.last = t.failures-1, job.Loss
	}
	switch {
	case requeued && (t.last == job.Success || t.last == job.Loss): // how it ended is lost with its host
	case t.last == job.Success:
		x.x.violate("S2: task %v has succeeded and starts again at %s", id, p.s.cfg.ID)
	case t.last == job.Loss:
		x.x.violate("S2: task %v was lost, its bag waits for lost sites, and it starts again at %s", id, p.s.cfg.ID)
	case t.failures > int(rec.Retries):
		x.x.violate("S3: task %v has failed %d times with %d retries and starts again at %s", id, t.failures, rec.Retries, p.s.cfg.ID)
	}
}

// ended watches the runs of tasks that end.
func (x *taskWatch) ended(p *process) {
	t := x.task(job.TaskID{Bag: p.task.Bundle.Job, Ordinal: p.task.Ordinal})
	at := slices.Index(t.running, p)
	if at < 0 {
		return // of a liar
	}
	t.running = slices.Delete(t.running, at, at+1)
	t.ends[endedAt{p.s.cfg.ID, p.outcome.Kind}] = true
	if !t.again || p.began > t.againAt { // else its user has it run again, whatever comes of this run
		t.last, t.lastAt = p.outcome.Kind, p.s.cfg.ID
		if t.last == job.Failure || t.last == job.Timeout {
			t.failures++
		}
	}
	if len(p.outcome.Files) > 0 {
		t.left[string(p.outcome.Files)] = true
	}
}

// filesLost notes that an origin was told that what tasks left is gone.
func (x *taskWatch) filesLost(f *meta.FetchTasks) { x.lost[f.Bundle] = true }

// BagCancelled notes that a client was told that a bag will be cancelled.
func (w *World) BagCancelled(id job.ID) {
	if s := w.byID[id.Origin]; s.Up() && s.state.Bag(id) != nil && s.state.Bag(id).CancelRequested {
		w.watch.tasks.bag(id).cancels = true
	}
}

// Requeued notes that an operator of a site says of one that has left that what it had of
// this one's jobs and bags is to run again.
func (w *World) Requeued(at, gone job.SiteID) {
	if w.byID[gone].gone {
		w.watch.tasks.requeued[[2]job.SiteID{at, gone}] = true
	}
}

// Retries notes that a client asks to have tasks of a bag run again, or with refused that it
// was told that they will not be.
func (w *World) Retries(id job.ID, tasks *job.TaskSet, refused bool) {
	b := w.watch.tasks.bag(id)
	if refused {
		b.wanted.RemoveAll(tasks)
		w.watch.depends.retries[id]--
		return
	}
	w.watch.depends.retries[id]++
	b.wanted.AddAll(tasks)
	b.cancels = false
}

// durable takes up what is on disk of a bag.
func (x *taskWatch) durable(f *bagFacts) {
	if x.x.liars[f.s.cfg.ID] {
		return
	}
	b := x.bag(f.id)
	if f.life < b.life {
		return // a daemon that was stopped has carried it out late: a later one has said more
	}
	b.life = f.life
	x.x.levels.durableBag(f.id, &f.level)
	x.stays(b, f)
	x.news(b, f, &b.done, &f.done, "done", job.Success)
	x.news(b, f, &b.failed, &f.failed, "failed", job.Failure, job.Timeout, job.Loss)
	b.done, b.failed, b.cancelled, b.tail = f.done, f.failed, f.cancelled, f.tail
}

// stays checks that what had ended has ended in the same way, unless its user had it run
// again.
func (x *taskWatch) stays(b *bagSeen, f *bagFacts) {
	spent := job.TaskSet{}
	for _, set := range []struct {
		what     string
		was, are *job.TaskSet
	}{{"done", &b.done, &f.done}, {"failed", &b.failed, &f.failed}, {"cancelled", &b.cancelled, &f.cancelled}} {
		gone := set.was.Clone()
		gone.RemoveAll(set.are)
		again := gone.Clone()
		again.RetainAll(&b.wanted)
		spent.AddAll(&again)
		gone.RemoveAll(&again)
		for task := range gone.All {
			x.x.violate("S3: task %v was %s and is so no more", job.TaskID{Bag: f.id, Ordinal: task}, set.what)
		}
	}
	b.wanted.RemoveAll(&spent)
	for task := range spent.All {
		t := x.task(job.TaskID{Bag: f.id, Ordinal: task})
		t.runsAgain(x.x.w.now)
		t.wanted = false
		delete(b.records, task)
	}
}

// news checks the results of tasks that have ended since.
func (x *taskWatch) news(b *bagSeen, f *bagFacts, was, are *job.TaskSet, what string, kinds ...job.OutcomeKind) {
	fresh := are.Clone()
	fresh.RemoveAll(was)
	if fresh.Empty() || !f.s.w.cfg.Disk.Keep {
		return
	}
	results := resultsOf{s: f.s, from: f.s.backend, bag: f.id}
	if f.facts != nil {
		results.from = f.facts
	}
	for task := range fresh.All {
		id := job.TaskID{Bag: f.id, Ordinal: task}
		x.task(id).ended = f.s.now()
		r, ok := results.of(task)
		switch {
		case !ok || !slices.Contains(kinds, r.Result.Kind):
			x.x.violate("S5: task %v is %s, and its result on disk is of kind %d", id, what, r.Result.Kind)
		case x.x.liars[r.Site]:
		case r.Result.Kind != job.Loss && !x.task(id).ends[endedAt{r.Site, r.Result.Kind}]:
			x.x.violate("S5: task %v is %s with a result of %s, where no run of it has ended so", id, what, r.Site)
		}
		b.records[task] = r
	}
}

// booted checks that what is durable of bags is still there.
func (x *taskWatch) booted(s *Site) {
	for _, id := range x.order {
		if id.Origin != s.cfg.ID || x.x.liars[s.cfg.ID] {
			continue
		}
		rec, b := s.state.Bag(id), x.bag(id)
		if rec == nil {
			x.x.violate("S5: acknowledged bag %v is lost in a restart of site %s", id, s.cfg.ID)
			continue
		}
		if b.cancels && !rec.CancelRequested {
			x.x.violate("S5: the cancellation of bag %v was acknowledged and is lost in a restart of site %s", id, s.cfg.ID)
		}
		if b.tail != 0 && rec.TailSince != b.tail && b.wanted.Empty() {
			x.x.violate("S5: the tail of bag %v, which began at %v, is lost in a restart of site %s", id, b.tail, s.cfg.ID)
		}
		if rec.Policies.Version < b.policies.told {
			x.x.violate("S5: policies %d of bag %v were acknowledged, and a restart of site %s leaves version %d", b.policies.told, id, s.cfg.ID, rec.Policies.Version)
		}
		b.policies.known = false
		x.stays(b, factsOf(s, rec))
	}
}

// purged notes that a site no longer remembers a bag.
func (x *taskWatch) purged(id job.ID) {
	x.order = slices.DeleteFunc(x.order, func(other job.ID) bool { return other == id })
}

// wiped forgets the bags whose only record was on a disk that is gone.
func (x *taskWatch) wiped(s *Site) {
	n := len(x.order)
	x.order = slices.DeleteFunc(x.order, func(id job.ID) bool { return id.Origin == s.cfg.ID })
	maps.DeleteFunc(x.bags, func(id job.ID, _ *bagSeen) bool { return id.Origin == s.cfg.ID })
	x.x.gone += n - len(x.order)
}

// Bags returns the bags that clients were told of, in that order.
func (w *World) Bags() []job.ID { return w.watch.tasks.order }
