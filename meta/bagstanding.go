package meta

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// How hosts stand with their origin, which keeps those back that spoil its tasks. All of it
// is what this origin has seen by its own clock, and none of it survives a restart.

// host returns the standing of a host. Those of a site that names more nodes than it can
// have stand together.
func (p *bagPolicies) host(site job.SiteID, node string) *bags.Standing {
	nodes := p.hosts[site]
	if nodes == nil {
		nodes = make(map[string]*bags.Standing)
		p.hosts[site] = nodes
	}
	s := nodes[node]
	if s == nil && len(nodes) >= mostSeats {
		node = ""
		s = nodes[node]
	}
	if s == nil {
		s = &bags.Standing{}
		nodes[node] = s
	}
	return s
}

// hadTask is what a task was when the result of a run of it came: one of its bundle, and one
// that had failed before.
type hadTask struct{ has, failed bool }

// hadOf returns what the tasks were of which a batch has results. It is valid until the next
// call.
func (bo *bagOrigin) hadOf(b *store.Bag, t *store.TaskBundle, m *TaskResults) []hadTask {
	bo.had = bo.had[:0]
	for i := range m.Results {
		task := m.Results[i].Ordinal
		bo.had = append(bo.had, hadTask{t.Tasks.Has(task), b.Tries[task].Failures > 0})
	}
	return bo.had
}

// noteStanding takes up how a task of a bundle ended at its host, if the bundle had it. What
// has failed before and fails again tells of the task, not of its host: hosts are compared by
// the first failure of each.
func (bo *bagOrigin) noteStanding(now job.Time, o *openBag, t *store.TaskBundle, r *job.TaskResult, had hadTask) {
	if !had.has || r.Kind == job.Cancel || r.Kind == job.Loss {
		return
	}
	failed := r.Kind != job.Success
	bo.blame(now, o, t, failed, r.Run, failed && had.failed)
}

// blame takes up that a run of a task of a bundle was done well or not. Alone says that this
// is not to be compared with runs elsewhere.
func (bo *bagOrigin) blame(now job.Time, o *openBag, t *store.TaskBundle, failed bool, run time.Duration, alone bool) {
	alone = alone || len(o.sites) < 2 && !bo.severalNodes(t.Site)
	at := bags.Host{Site: t.Site, Node: t.Node}
	blamed := o.blame.Result(at, failed, run, now.Sub(t.Granted), alone)
	s := bo.policies.host(t.Site, t.Node)
	s.Result(blamed, now)
	bo.policies.site(t.Site).standing.Result(blamed, now)
	if blamed.Failed && s.Held(now) && !slices.ContainsFunc(bo.spoilers, func(sp spoiler) bool { return sp.host == at }) {
		bo.spoilers = append(bo.spoilers, spoiler{at, now, now})
		bo.nextTakeBack = now
	}
}

// severalNodes reports whether more than one node of a site asks for tasks, of whatever shape.
func (bo *bagOrigin) severalNodes(site job.SiteID) bool {
	first, known := "", false
	for at := range bo.seats[site] {
		if known && at.node != first {
			return true
		}
		first, known = at.node, true
	}
	return false
}

// spoiler is a host that is held back since a time. What it has of bundles that were granted
// until then is asked back: they are of a time when it stood well, and may be many.
type spoiler struct {
	host       bags.Host
	since, due job.Time
}

// takeBack asks hosts that are held back for the tasks that they have not begun. Later grants
// are probes, and stay.
func (bo *bagOrigin) takeBack(now job.Time) {
	if now < bo.nextTakeBack {
		return
	}
	bo.nextTakeBack = job.Never
	bo.spoilers = slices.DeleteFunc(bo.spoilers, func(sp spoiler) bool { return !bo.policies.host(sp.host.Site, sp.host.Node).Held(now) })
	for i := range bo.spoilers {
		sp := &bo.spoilers[i]
		if now >= sp.due {
			sp.due = now.Add(recallWait)
			for _, o := range bo.open {
				for _, t := range slices.Collect(o.rec.Bundles) { // the own site's host answers at once
					if t.Site == sp.host.Site && t.Node == sp.host.Node && t.Granted <= sp.since && o.rec.State.Gives() {
						bo.askBack(now, o, t, t.Tasks.Count())
					}
				}
			}
		}
		bo.nextTakeBack = min(bo.nextTakeBack, sp.due)
	}
}

// holdBack returns the standing of an asker that is held back, nil for others, and leaves of
// the ask what it may get.
func (bo *bagOrigin) holdBack(now job.Time, a *bags.Ask) *bags.Standing {
	s := bo.policies.host(a.Site, a.Node)
	s.Places(a.Bounded().Places)
	if !s.Held(now) {
		return nil
	}
	for _, o := range bo.open {
		s.Charge(o.blame.Settle(bags.Host{Site: a.Site, Node: a.Node}), now)
	}
	if !s.Held(now) {
		return nil
	}
	more, _ := s.May(bo.tasksOf(a.Site, a.Node), now)
	a.Want = min(a.Want, more)
	return s
}

// tasksOf returns how many tasks of open bags a host has. It is not asked.
func (bo *bagOrigin) tasksOf(site job.SiteID, node string) (n int) {
	for _, o := range bo.open {
		for _, t := range o.rec.Live {
			if t.Site == site && t.Node == node && !t.Late {
				n += t.Tasks.Count()
			}
		}
	}
	return n
}

// forgive takes back what hosts were charged for a bag that fails everywhere.
func (bo *bagOrigin) forgive(now job.Time, o *openBag) {
	for at, charged := range o.blame.Forgive() {
		bo.policies.host(at.Site, at.Node).Charge(-charged, now)
	}
}

// HostView is how a host stands with this origin.
type HostView struct {
	Site job.SiteID
	Node string
	// Held says that it is held back: it gets Quota tasks at once and, with less than one, one
	// after Until.
	Held                                       bool
	ErrorRate, Turnaround, Done, Failed, Quota float64
	Until                                      job.Time
}

// Standings returns how hosts stand that have had tasks of this site's bags, by names: of
// each site those that are held back first, and no more than most.
func (v Views) Standings(now job.Time, most int) map[job.SiteID][]HostView {
	bo := v.origin.bags
	all := make(map[job.SiteID][]HostView)
	for site, nodes := range bo.policies.hosts {
		var views []HostView
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			s := *nodes[node] // a view changes nothing
			h := HostView{Site: site, Node: node, Held: s.Held(now), ErrorRate: s.ErrorRate(), Turnaround: s.Turnaround(), Quota: s.Quota(), Until: max(now, s.Until())}
			h.Done, h.Failed = s.Recent(now)
			views = append(views, h)
		}
		slices.SortStableFunc(views, func(a, b HostView) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), strings.Compare(a.Node, b.Node))
		})
		all[site] = views[:min(most, len(views))]
	}
	return all
}

func (h *HostView) rank() int {
	if h.Held {
		return 1
	}
	return 0
}

// HeldBack returns how many hosts are held back.
func (v Views) HeldBack(now job.Time) (n int) {
	for _, nodes := range v.origin.bags.policies.hosts {
		for _, s := range nodes {
			if s := *s; s.Held(now) {
				n++
			}
		}
	}
	return n
}

// TrustHost forgets what was seen of a host, or of all hosts of a site if Node is empty: it
// gets tasks again like one that is new.
type TrustHost struct {
	Token uint64
	Site  job.SiteID
	Node  string
	Actor identity.Actor
}

func (TrustHost) event() {}

func (bo *bagOrigin) trustHost(ev TrustHost) {
	nodes := bo.policies.hosts[ev.Site]
	switch {
	case nodes == nil && ev.Site != bo.self && bo.peers.view.Get(ev.Site) == nil:
		bo.reply(ev.Token, job.ID{}, 0, fmt.Errorf("site %q: %w", ev.Site, ErrUnknownSite))
		return
	case ev.Node != "" && nodes[ev.Node] == nil:
		bo.reply(ev.Token, job.ID{}, 0, fmt.Errorf("node %q of site %s: %w: it has had no task of this site's bags", ev.Node, ev.Site, ErrUnknownSite))
		return
	}
	for node := range nodes {
		if ev.Node == "" || node == ev.Node {
			delete(nodes, node)
			for _, o := range bo.open {
				o.blame.Trust(bags.Host{Site: ev.Site, Node: node})
			}
		}
	}
	if s := bo.policies.sites[ev.Site]; s != nil && ev.Node == "" {
		s.standing = bags.Standing{}
	}
	bo.offerSoon()
	bo.reply(ev.Token, job.ID{}, 0, nil)
}
