package faults

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// submitBag has a client submit a bag, again and again until there is an answer.
func (x *run) submitBag(b *Bag) {
	if _, known := x.bags[b.Number]; known || x.since() > x.s.End+time.Hour || x.w.Site(b.From).Gone() {
		return
	}
	after, known := x.after(&b.Waits)
	if !known {
		x.at(x.since()+retry, func() { x.submitBag(b) })
		return
	}
	name := fmt.Sprint("bag-", b.Number)
	request := job.Request{
		Name: b.named(name), User: "ada", Processors: b.Processors, Copies: b.Copies, Walltime: b.Walltime, OnSiteLost: b.OnSiteLost,
	}
	b.asks(&request)
	x.w.SubmitBag(x.w.Now(), b.From, sim.BagSubmission{
		Request: request,
		Indices: job.FirstIndices(b.Tasks), MaxRunning: b.MaxRunning, Budget: uint64(b.Budget), Retries: b.Retries, MaxReplicas: b.Replicas, TailAt: b.Tail, RunTime: b.runTime, Fails: b.fails,
		Policies: b.policies(), RequestID: name, Tag: -b.Number, After: after,
		Done: func(id job.ID, err error) {
			if err == nil {
				x.bags[b.Number] = id
			} else if id.IsZero() && x.w.Site(b.From).Up() {
				x.bags[b.Number] = id // refused for good
				x.r.Refused++
			}
		},
	})
	x.at(x.since()+patience, func() { x.submitBag(b) })
}

// actOnBag has a user ask something of a bag.
func (x *run) actOnBag(act *Act) {
	id := x.bags[act.Bag]
	if id.IsZero() {
		return
	}
	site := x.w.Site(id.Origin)
	if !site.Up() || site.Frozen() {
		return
	}
	var retried job.TaskSet
	if act.Kind == RetryBag {
		if retried = x.retriable(act, id); retried.Empty() {
			return
		}
		x.w.Retries(id, &retried, false)
	}
	var version uint32
	if b := site.State().Bag(id); b != nil {
		version = b.Policies.Version
	}
	if act.Stale {
		version += 7
	}
	x.w.Ask(id.Origin, func(token uint64) meta.Event {
		switch act.Kind {
		case CancelBag:
			cancel := meta.CancelBag{Token: token, Bag: id, Actor: "ada"}
			if !act.Tasks.Empty() {
				tasks := act.Tasks.Clone()
				cancel.Tasks = &tasks
			}
			return cancel
		case HoldBag:
			return meta.HoldBag{Token: token, Bag: id, Actor: "ada"}
		case BudgetBag:
			return meta.SetBudget{Token: token, Bag: id, Budget: uint64(act.Budget), Actor: "ada"}
		case PolicyBag:
			return meta.SetPolicies{Token: token, Bag: id, Texts: texts(act.Stance, x.s.bag(act.Bag).Deadline), Version: version, Actor: "ada"}
		case RetryBag:
			return meta.RetryTasks{Token: token, Bag: id, Tasks: retried.Clone(), Actor: "ada"}
		default:
			return meta.ReleaseBag{Token: token, Bag: id, Actor: "ada"}
		}
	}, func(r meta.Reply) {
		switch {
		case act.Kind == CancelBag && r.Err == nil:
			x.w.BagCancelled(id)
		case act.Kind == RetryBag && r.Err != nil:
			x.w.Retries(id, &retried, true)
		case act.Kind == PolicyBag && act.Stale && r.Err == nil:
			x.w.Violate("policy: bag %v has version %d of its policies replaced, which it does not have", id, version)
		case act.Kind == PolicyBag && r.Err == nil:
			x.w.PoliciesReplaced(id, version+1)
		}
	})
}

// retriable returns the tasks that an act has run again.
func (x *run) retriable(act *Act, id job.ID) job.TaskSet {
	b := x.w.Site(id.Origin).State().Bag(id)
	if b == nil {
		return job.TaskSet{}
	}
	tasks := b.Failed.Clone()
	tasks.AddAll(&b.Cancelled)
	if !act.Tasks.Empty() {
		tasks.AddAll(&b.Done)
		tasks.RetainAll(&act.Tasks)
	}
	return tasks
}

// releaseBags lets held bags go, again and again: one that only fails is held by its site.
// Those whose budget is used up go on without one, those whose policies may match no host for
// ever with others.
func (x *run) releaseBags() {
	open := false
	for i := range x.s.Bags {
		id := x.bags[x.s.Bags[i].Number]
		if id.IsZero() || x.w.Site(id.Origin).Gone() || !x.w.Site(id.Origin).Up() {
			continue
		}
		b := x.w.Site(id.Origin).State().Bag(id)
		open = open || b != nil && !b.State.Terminal()
		if b != nil && b.State == job.BagOnHold {
			x.actOnBag(&Act{Kind: ReleaseBag, Bag: x.s.Bags[i].Number})
		}
		if b != nil && b.Budget > 0 && b.Waiting() > 0 && b.Affords() == 0 {
			x.actOnBag(&Act{Kind: BudgetBag, Bag: x.s.Bags[i].Number})
		}
		if b != nil && !b.State.Terminal() && mends(&b.Policies) {
			x.actOnBag(&Act{Kind: PolicyBag, Bag: x.s.Bags[i].Number})
		}
	}
	if open || x.since() <= x.s.End+2*time.Minute {
		x.at(x.since()+time.Minute, x.releaseBags)
	}
}

// strayBundles compares the bundles that all sites hold with what the origins think.
func (x *run) strayBundles() []holding {
	var list []holding
	for i := range x.s.Sites {
		s := x.w.Site(x.s.Sites[i].Name)
		if !s.Up() {
			continue
		}
		for _, h := range s.State().HeldBundles() {
			origin := x.w.Site(h.ID.Job.Origin)
			if origin != nil && origin.Gone() {
				continue // it runs to its end, and is forgotten after it
			}
			if origin == nil || !origin.Up() {
				list = append(list, holding{s.ID(), h.ID, false})
			} else if t := origin.State().TaskBundle(h.ID); t == nil || t.Site != s.ID() {
				list = append(list, holding{s.ID(), h.ID, false})
			}
		}
		for b := range s.State().Bags {
			for t := range b.Bundles {
				host := x.w.Site(t.Site)
				if t.Late || host == nil || !host.Up() || x.w.Distrusted(t.Site) {
					continue
				}
				id := job.AttemptID{Job: b.ID, Number: t.Number}
				// What a site held that has lost its folder may run on there until its lease ends.
				wasOther := t.Lease != 0 && (host.State().Site().Generation != t.Generation || x.outlaws[[2]job.SiteID{t.Site, b.ID.Origin}])
				if !wasOther && host.State().Held(id) == nil {
					list = append(list, holding{t.Site, id, true})
				}
			}
		}
	}
	return list
}
