package meta

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"kith/cluster"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// The policies of bags at their origin: what they are asked about, and how they are
// replaced. What they mean is behind [bags.Policies].

// bagPolicies is what the policies of all bags share.
type bagPolicies struct {
	hosts map[job.SiteID]map[string]*bags.Standing // by node
	sites map[job.SiteID]*siteScope
	queue *bags.Scope

	unsent int // tasks of all open bags
	steps  int // that the policies of all open bags may take, see [mostPolicySteps]
	unread int // open bags whose policies were not compiled yet
}

const (
	// mostPolicySteps bounds what the policies of all open bags may take together, which is
	// what one ask may take: 3 to 10 ms. It bounds the room of their programs as well.
	mostPolicySteps = 500_000
	// mostPassSteps is after how many steps a look at many bags goes on later: some 40 ms.
	mostPassSteps = 2_000_000
	// textSteps and byteSteps are what compiling a text counts in such a look, as such and for
	// each byte: some 3 us at most, so a look compiles for at most 20 ms. Beyond mostReadBytes
	// nothing counts: what makes compiling slow is how many parts a text has, which are bounded.
	textSteps, byteSteps, mostReadBytes = 2_000, 300, 500
)

// siteScope is what policies read of a site.
type siteScope struct {
	scope    *bags.Scope
	standing bags.Standing
}

func newBagPolicies() bagPolicies {
	return bagPolicies{
		hosts: make(map[job.SiteID]map[string]*bags.Standing), sites: make(map[job.SiteID]*siteScope), queue: bags.NewScope(bags.RootQueue),
	}
}

// openPolicies is what there is to ask of one bag; judge is nil if it states no policy.
type openPolicies struct {
	judge  bags.Judge
	scope  *bags.Scope // of the bag
	unread bool        // they are compiled when sites are looked for, before which none has the bag
}

// errNoPolicies stands for [Config.Policies] that is not set.
var errNoPolicies = errors.New("policies: this program evaluates none; leave them out, or submit the bag at a site with kithd")

// compile checks texts.
func (bo *bagOrigin) compile(p *store.BagPolicies) (bags.Judge, error) {
	if !p.Stated() {
		return nil, nil
	}
	if bo.cfg.Policies == nil {
		return nil, errNoPolicies
	}
	return bo.cfg.Policies.Compile(p)
}

// roomFor refuses policies that would make asks take too long, together with those of the
// other open bags. They are those of a new bag, or replace what old has.
func (bo *bagOrigin) roomFor(judge bags.Judge, old *openPolicies) error {
	steps, others := bags.CostOf(judge), bo.policies.steps-bags.CostOf(old.judge)
	switch {
	case steps == 0:
		return nil
	case bo.policies.unread > 0:
		return &PolicyStepsError{Unread: bo.policies.unread}
	case others+steps > mostPolicySteps:
		return &PolicyStepsError{Steps: steps, Others: others}
	}
	return nil
}

// leavePolicies has the policies of a bag read when sites are looked for: after a start that
// may be many.
func (bo *bagOrigin) leavePolicies(o *openBag) {
	if o.rec.Policies.Stated() {
		o.unread = true
		bo.policies.unread++
	}
}

// readPolicies takes up the policies of a bag from its facts, if that was left, and reports
// whether it was. Texts that this version of the program refuses match nothing.
func (bo *bagOrigin) readPolicies(o *openBag) bool {
	if !o.unread {
		return false
	}
	bo.forgetPolicies(o)
	judge, err := bo.compile(&o.rec.Policies)
	switch {
	case err != nil:
		o.judge, o.scope = refused{err}, bags.NewScope(bags.RootBag)
	case judge != nil:
		o.judge, o.scope = judge, bags.NewScope(bags.RootBag)
	}
	bo.policies.steps += bags.CostOf(o.judge)
	bo.lookAt(o)
	return true
}

func (bo *bagOrigin) forgetPolicies(o *openBag) {
	if o.unread {
		bo.policies.unread--
	}
	bo.policies.steps -= bags.CostOf(o.judge)
	if o.judge != nil {
		o.judge.Forget()
	}
	o.openPolicies = openPolicies{}
}

// lookAt takes anew what dispatch reads of a bag.
func (bo *bagOrigin) lookAt(o *openBag) {
	w := bags.WorkOf(o.rec, o.limit, o.sites)
	w.Twice = bo.replicas.Count(o.rec)
	if o.judge != nil {
		w.Judge, w.Scope = o.judge, o.scope
		fillBag(o)
	}
	bo.policies.unsent += w.Waiting - bo.works[o.at].Waiting
	bo.works[o.at] = w
}

// fillBag sets what policies read of a bag.
func fillBag(o *openBag) {
	b, s := o.rec, o.scope
	s.Text(bags.BagName, b.Request.Name)
	s.Text(bags.BagUser, b.Request.User)
	s.Number(bags.BagPriority, float64(b.Priority))
	s.Number(bags.BagTasks, float64(b.Tasks()))
	s.Number(bags.BagLeft, float64(int(b.Tasks())-b.EndedCount()))
	s.Number(bags.BagDone, float64(b.Done.Count()))
	s.Number(bags.BagFailed, float64(b.Failed.Count()))
	s.Number(bags.BagUnsent, float64(b.Waiting()))
	s.Number(bags.BagRunning, float64(b.Given()))
	s.Truth(bags.BagTail, b.TailSince != 0)
	mean, deviation := math.NaN(), math.NaN()
	if n := float64(b.Sums.Runs); n > 0 {
		mean = b.Sums.RunTime / n
		deviation = math.Sqrt(max(0, b.Sums.Squares/n-mean*mean))
	}
	s.Number(bags.BagMeanRun, mean)
	s.Number(bags.BagDeviation, deviation)
	s.Number(bags.BagCPUHours, b.Used()/3600)
}

// siteScope returns what policies read of a site, as it is now.
func (bo *bagOrigin) siteScope(now job.Time, site job.SiteID) *bags.Scope {
	p := bo.policies.site(site)
	var d *cluster.Digest
	if site == bo.self {
		own := bo.jobs.host.describe(now)
		d = &own
	} else if peer := bo.peers.view.Get(site); peer != nil && peer.Known {
		d = &peer.Digest
	}
	s := p.scope
	s.Text(bags.SiteName, string(site))
	s.Truth(bags.SiteHome, site == bo.self)
	s.Number(bags.SiteErrorRate, p.standing.ErrorRate())
	if d != nil {
		s.Number(bags.SiteProcessors, float64(d.Processors))
		s.Number(bags.SiteMemory, float64(d.MemoryBytes))
		s.Number(bags.SiteSpeed, speedOf(d))
		s.Number(bags.SiteFree, float64(d.Load.Free))
		s.Number(bags.SiteQueued, float64(d.Load.Queued))
		s.Number(bags.SiteLoad, d.Load.Procs)
		s.Number(bags.SiteWork, d.Load.Work)
		s.Truth(bags.SiteDraining, d.Draining)
	}
	return s
}

func speedOf(d *cluster.Digest) float64 {
	if d.Speed > 0 && !math.IsInf(d.Speed, 0) {
		return d.Speed
	}
	return 1
}

func (p *bagPolicies) site(site job.SiteID) *siteScope {
	s := p.sites[site]
	if s == nil {
		s = &siteScope{scope: bags.NewScope(bags.RootSite)}
		p.sites[site] = s
	}
	return s
}

// stated reports whether any open bag has policies.
func (bo *bagOrigin) stated() bool {
	return slices.ContainsFunc(bo.open, func(o *openBag) bool { return o.judge != nil })
}

// setScene shows an asker to policies; k is what is known of its stock, nil if nothing is kept.
func (bo *bagOrigin) setScene(now job.Time, a *bags.Ask, k *seated) {
	if !bo.stated() {
		return
	}
	var host *bags.Scope
	switch {
	case k == nil:
		host = bags.NewScope(bags.RootHost)
	case k.scope == nil:
		k.scope = bags.NewScope(bags.RootHost)
		fallthrough
	default:
		host = k.scope
	}
	b := a.Bounded()
	bo.fillHost(now, host, b.Site, b.Node)
	host.Number(bags.HostPlaces, float64(b.Places))
	host.Number(bags.HostRunning, float64(b.Running))
	host.Number(bags.HostStock, float64(b.Stock))
	bo.desk.Scene = bags.Scene{Host: host, Site: bo.siteScope(now, a.Site), Queue: bo.queueScope()}
}

func (bo *bagOrigin) fillHost(now job.Time, s *bags.Scope, site job.SiteID, node string) {
	s.Text(bags.HostSite, string(site))
	s.Text(bags.HostNode, node)
	bo.policies.host(site, node).Fill(s, now)
}

func (bo *bagOrigin) queueScope() *bags.Scope {
	bo.policies.queue.Number(bags.QueueBags, float64(len(bo.open)))
	bo.policies.queue.Number(bags.QueueUnsent, float64(bo.policies.unsent))
	return bo.policies.queue
}

// pass is one look at a bag or at several: for sites, or for tasks to be replicated.
type pass struct {
	sites []siteView // as policies read them, nil before any is asked
	steps int        // that it may have taken
	read  map[[store.PolicyCount]string]bool
}

type siteView struct {
	site  job.SiteID
	scope *bags.Scope
}

// full reports whether a pass is to end before a bag, as too much was done in it or compiling
// the policies of the bag would be too much. The first bag always has its turn.
func (p *pass) full(o *openBag) bool {
	return p.steps >= mostPassSteps || p.steps > 0 && p.steps+p.toRead(o) > mostPassSteps
}

// toRead is what compiling the policies of a bag counts: nothing if they are, or others with
// the same texts in this pass.
func (p *pass) toRead(o *openBag) (steps int) {
	if !o.unread || p.read[o.rec.Policies.Texts] {
		return 0
	}
	for _, text := range o.rec.Policies.Texts {
		if text != "" {
			steps += textSteps + byteSteps*min(len(text), mostReadBytes)
		}
	}
	return steps
}

// readIn compiles the policies of a bag if they were not, and counts that.
func (bo *bagOrigin) readIn(o *openBag, p *pass) {
	p.steps += p.toRead(o)
	if bo.readPolicies(o) {
		if p.read == nil {
			p.read = make(map[[store.PolicyCount]string]bool)
		}
		p.read[o.rec.Policies.Texts] = true
	}
}

// mismatched returns the sites that are offered no tasks of a bag, by its policies; tried are
// those that are not in any case.
func (bo *bagOrigin) mismatched(now job.Time, o *openBag, p *pass, tried []job.SiteID) (none []job.SiteID) {
	bo.readIn(o, p)
	if o.judge == nil {
		return nil
	}
	if p.sites == nil {
		for _, site := range bo.knownSites() {
			p.sites = append(p.sites, siteView{site, bo.siteScope(now, site)})
		}
	}
	p.steps += len(p.sites) * (o.judge.Cost(bags.Sites) + o.judge.Cost(bags.Requirements))
	s := bags.Scene{Bag: o.scope, Queue: bo.queueScope(), Submitted: o.rec.Submitted, Now: now}
	split := &bagSplit{bo: bo, work: &bo.works[o.at], left: left(o.rec), without: tried, now: now}
	for _, v := range p.sites {
		s.Split = split.at(v.site)
		if s.Site = v.scope; !o.judge.Offer(&s) {
			none = append(none, v.site)
		}
	}
	p.steps += split.steps
	return none
}

// knownSites are this one and all others, by name.
func (bo *bagOrigin) knownSites() []job.SiteID {
	sites := []job.SiteID{bo.self}
	for _, p := range bo.peers.view.Peers() {
		sites = append(sites, p.Site)
	}
	slices.Sort(sites)
	return slices.Compact(sites)
}

// SetPolicies replaces the policies of a bag. It takes effect with the next ask; tasks that
// sites have stay there.
type SetPolicies struct {
	Token uint64
	Bag   job.ID
	Texts [store.PolicyCount]string
	// Version is that of the policies which it replaces.
	Version uint32
	Actor   identity.Actor
}

func (SetPolicies) event() {}

func (bo *bagOrigin) setPolicies(now job.Time, ev SetPolicies) {
	o := bo.findOpen(ev.Token, ev.Bag)
	if o == nil {
		return
	}
	p := store.BagPolicies{Texts: ev.Texts}
	judge, err := bo.compile(&p)
	full := bo.roomFor(judge, &o.openPolicies)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	case o.rec.CancelRequested:
		err = fmt.Errorf("bag %v: %w", ev.Bag, ErrBagCancelling)
	case ev.Version != o.rec.Policies.Version:
		err = fmt.Errorf("bag %v: %w: they are version %d, and version %d was to be replaced; look at them, and replace those", ev.Bag, ErrStalePolicies, o.rec.Policies.Version, ev.Version)
	case full != nil:
		err = full
	default:
		err = store.Record(bo.st, store.SetPolicies{Bag: ev.Bag, Texts: ev.Texts, Version: ev.Version, Actor: ev.Actor, Time: now})
	}
	if err == nil {
		bo.forgetPolicies(o)
		bo.leavePolicies(o)
		bo.indexDeadlines(now, o)
		bo.lookAt(o)
		bo.place(now, o)
		bo.changed(o)
	}
	bo.reply(ev.Token, ev.Bag, 0, err)
}

// refused are the policies of a bag that the program does not take any more.
type refused struct{ err error }

func (refused) Verdict(*bags.Scene) bags.Verdict     { return bags.Verdict{} }
func (refused) Offer(*bags.Scene) bool               { return false }
func (refused) Replicate(*bags.Scene) bool           { return false }
func (refused) Deadline(*bags.Scene) (float64, bool) { return 0, false }
func (refused) Cost(bags.Text) int                   { return 0 }
func (refused) Forget()                              {}

func (r refused) Explain(*bags.Scene) []bags.Given {
	return []bags.Given{{Text: bags.Requirements, Undefined: true, Value: "UNDEFINED: " + r.err.Error()}}
}
