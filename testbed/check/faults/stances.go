package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/meta/bags"
	"kith/store"
	"kith/testbed/sim"
)

// stances are what owners state in the policies of their bags, by number; 0 is nothing. Bags
// may have another one while they run. Those that may match no host for ever hold until the end
// of the faults: then their owners state nothing any more, so that L1 is to hold.
var stances = []struct {
	texts map[bags.Text]string
	mends bool // it may keep tasks from running
}{
	{},
	{texts: map[bags.Text]string{bags.Requirements: sim.NowhereText}, mends: true},
	{texts: map[bags.Text]string{bags.Concurrency: sim.OneText}},
	{texts: map[bags.Text]string{bags.Sites: sim.AwayText}, mends: true},
	{texts: map[bags.Text]string{bags.Requirements: "bag.age > 120", bags.Rank: "bag.unsent"}}, // nowhere for a while
	{texts: map[bags.Text]string{bags.Requirements: "host.error_rate < 0.5", bags.Rank: "host.recent_done - bag.failed", bags.Concurrency: "2 * host.places"}, mends: true},
	{texts: map[bags.Text]string{bags.Requirements: "host.turnaround < 60 || bag.unsent > 3", bags.Concurrency: "max(1, floor(host.places / 2))"}, mends: true},
	{texts: map[bags.Text]string{bags.Replicate: "task.replicas < 3 && replicas.exists(r, r.age > 20)", bags.Rank: "mod(hour, 2)"}},
	{texts: map[bags.Text]string{bags.Replicate: "false", bags.Requirements: "!bag.tail || site.free > 0 || host.running < 1", bags.Sites: "!site.draining"}},
	{texts: map[bags.Text]string{bags.Replicate: "true", bags.Concurrency: "1 / (host.recent_failed - host.recent_failed)"}}, // UNDEFINED sets no bound
}

// PolicyBag replaces the policies of a bag.
const PolicyBag ActKind = "policy-bag"

// someStances has bags of every third schedule state more than a deadline, and other policies
// while they run: half of them once or twice, every fourth time with a version that is not
// theirs. The draws are its own, so that all else is as it was.
func (s *Schedule) someStances() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x706f6c69)), s: s}
	if !d.one(3) {
		return
	}
	for i := range s.Bags {
		b := &s.Bags[i]
		if d.one(2) {
			b.Stance = 1 + d.IntN(len(stances)-1)
		}
		if !d.one(2) {
			continue
		}
		for range 1 + d.IntN(2) {
			s.Acts = append(s.Acts, Act{
				Kind: PolicyBag, Bag: b.Number, At: max(d.span(s.End), b.At+d.upTo(2*time.Minute)), Stance: d.IntN(len(stances)), Stale: d.one(4),
			})
		}
	}
}

// texts are those of a stance, and of a deadline in seconds if that is not 0.
func texts(stance int, deadline uint32) (texts [store.PolicyCount]string) {
	for t, text := range stances[stance].texts {
		texts[t] = text
	}
	if deadline > 0 {
		texts[bags.Deadline] = fmt.Sprint(deadline)
	}
	return texts
}

// states reports whether any bag of the schedule states policies, at any time.
func (s *Schedule) states() bool {
	return slices.ContainsFunc(s.Bags, func(b Bag) bool { return b.Deadline > 0 || b.Stance > 0 }) ||
		slices.ContainsFunc(s.Acts, func(a Act) bool { return a.Kind == PolicyBag })
}

// mends reports whether policies may keep the tasks of a bag from running.
func mends(p *store.BagPolicies) bool {
	return slices.ContainsFunc(stances, func(s struct {
		texts map[bags.Text]string
		mends bool
	}) bool {
		for t, text := range s.texts {
			if p.Texts[t] != text {
				return false
			}
		}
		return s.mends
	})
}
