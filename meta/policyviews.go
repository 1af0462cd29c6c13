package meta

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// Bounds on what is explained at once: hosts of a site, hosts in all, and the steps that
// this may take, fewer than elsewhere, as an evaluation that tells what came between takes
// some ten times as long. One host is explained in any case.
const (
	mostHostsOfSite    = 4
	mostHostsExplained = 256
	mostExplainSteps   = 200_000
)

func compareSeats(a, b seat) int {
	return cmp.Or(strings.Compare(a.node, b.node), a.shape.Compare(b.shape))
}

// PolicyView is what the policies of a bag give for a host.
type PolicyView struct {
	Site job.SiteID
	// Node is that of the host, Asked whether any has asked: what is not known before is
	// UNDEFINED.
	Node  string
	Asked bool
	// Offered says that the site is offered tasks by the policies.
	Offered bool
	Given   []bags.Given
}

// CheckTexts returns what is wrong with texts, as a [bags.TextsError].
func (v Views) CheckTexts(texts *store.BagPolicies) error {
	_, err := v.origin.bags.compile(texts)
	return err
}

// CheckPolicies returns what texts would give for each known site, by name: for those of a
// bag, or for any bag if id is zero. Without texts they are those of the bag. The error is
// a [bags.TextsError], or as those of [Views.BagView]. Hosts beyond a bound are only counted.
func (v Views) CheckPolicies(now job.Time, id job.ID, texts *store.BagPolicies) (views []PolicyView, leftOut int, err error) {
	bo := v.origin.bags
	scene := bags.Scene{Bag: bagThatBegins(), Queue: bo.queueScope(), Submitted: now, Now: now}
	var shape *bags.Shape
	split := &bagSplit{bo: bo, work: &bags.Work{Shape: bags.Shape{Processors: 1}, Walltime: bags.FirstGuess}, left: 1, now: now}
	if id != (job.ID{}) {
		b, err := v.bag(id)
		if err != nil {
			return nil, 0, err
		}
		if texts == nil {
			texts = &b.Policies
		}
		w := bags.WorkOf(b, bo.limitOf(b), nil)
		split.work, split.left = &w, max(1, left(b))
		shape, scene.Submitted, scene.Bag = &w.Shape, b.Submitted, bags.NewScope(bags.RootBag)
		fillBag(&openBag{rec: b, openPolicies: openPolicies{scope: scene.Bag}})
	}
	if texts == nil {
		texts = &store.BagPolicies{}
	}
	judge, err := bo.compile(texts)
	if err != nil || judge == nil {
		return nil, 0, err
	}
	defer judge.Forget()
	most := min(mostHostsExplained, max(1, mostExplainSteps/bags.CostOf(judge)))
	for _, site := range bo.knownSites() {
		scene.Site, scene.Split = bo.siteScope(now, site), split.at(site)
		one := func(node string, k *seated) {
			if len(views) == most {
				leftOut++
				return
			}
			scene.Host = bags.NewScope(bags.RootHost)
			if k != nil && k.scope != nil {
				scene.Host = k.scope
			}
			bo.fillHost(now, scene.Host, site, node)
			if k != nil {
				scene.Host.Number(bags.HostPlaces, float64(k.places))
			}
			views = append(views, PolicyView{Site: site, Node: node, Asked: k != nil, Offered: judge.Offer(&scene), Given: judge.Explain(&scene)})
		}
		shown := 0
		for _, s := range slices.SortedFunc(maps.Keys(bo.seats[site]), compareSeats) {
			if shown < mostHostsOfSite && (shape == nil || s.shape == *shape) {
				one(s.node, bo.seats[site][s])
				shown++
			}
		}
		if shown == 0 {
			one("", nil)
		}
	}
	return views, leftOut, nil
}

// bagThatBegins is what policies read of a bag that is not submitted: what every bag has at
// first. Of its tasks nothing is known.
func bagThatBegins() *bags.Scope {
	s := bags.NewScope(bags.RootBag)
	s.Truth(bags.BagTail, false)
	for _, v := range []bags.Var{bags.BagDone, bags.BagFailed, bags.BagRunning, bags.BagCPUHours} {
		s.Number(v, 0)
	}
	return s
}
