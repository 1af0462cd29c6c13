package sim

import (
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// What bags state in their policies, held against what their origins grant. Policies are not
// evaluated here: these few texts say by themselves what they forbid.
//
//	policy  while NowhereText are the requirements no bundle is granted, and while AwayText are
//	        the sites none to the bag's own site; of tasks that were granted while OneText was the
//	        concurrency, no two of a bag run at one site; a user has no more replicas than the
//	        owner's tenth of the places that there are
//	S5      policies that a client was told of survive
const (
	NowhereText = "false"
	AwayText    = "!site.home"
	OneText     = "1"
)

// policySeen is what earlier batches have told of the policies of a bag.
type policySeen struct {
	told    uint32 // the version that a client was told of
	known   bool   // the rest is of this life of its origin
	version uint32
	number  uint32 // of the latest bundle
}

// ruled checks the bundles that a batch has granted, if the policies are those of the batch
// before: within one it is not seen what came first.
func (x *taskWatch) ruled(s *Site, b *store.Bag) {
	seen := &x.bag(b.ID).policies
	was := *seen
	seen.known, seen.version, seen.number = true, b.Policies.Version, b.Number
	if x.x.liars[s.cfg.ID] || !was.known || was.version != b.Policies.Version {
		return
	}
	p, twins := &b.Policies, false
	for t := range b.Bundles {
		if t.Number <= was.number || t.Late {
			continue
		}
		id := job.AttemptID{Job: b.ID, Number: t.Number}
		twins = twins || t.Replica
		switch {
		case bags.Requirements.Of(p) == NowhereText:
			x.x.violate("policy: bundle %v is granted to %s, and its bag may run nowhere", id, t.Site)
		case bags.Sites.Of(p) == AwayText && t.Site == b.ID.Origin:
			x.x.violate("policy: bundle %v is granted to %s, and its bag may not run there", id, t.Site)
		case bags.Concurrency.Of(p) == OneText:
			x.alone[id] = true
		}
	}
	if twins {
		x.tenth(s, b.Request.User)
	}
}

// tenth checks that the replicas of a user are no more than the owner's tenth of the places
// that sites have at most.
func (x *taskWatch) tenth(s *Site, user string) {
	if len(x.x.liars) > 0 { // they have as many as they say
		return
	}
	replicas, places := 0, 0
	shapes := make(map[bags.Shape]bool)
	for b := range s.state.Bags {
		if b.State.Terminal() || b.Request.User != user {
			continue
		}
		replicas += b.Runs() - b.Given()
		if shape := bags.ShapeOf(&b.Request); !shapes[shape] {
			shapes[shape] = true
			for _, host := range s.w.sites {
				places += int(host.cfg.Scheduler.Processors / shape.Processors)
			}
		}
	}
	if most := bags.MostReplicas(places); replicas > most {
		x.x.violate("policy: %s has %d replicas at once with %d places, and may have %d", user, replicas, places, most)
	}
}

// beside checks that a task which starts may run beside others of its bag.
func (x *taskWatch) beside(p *process, id job.TaskID) {
	if !x.alone[p.task.Bundle] {
		return
	}
	for other, t := range x.tasks {
		if other.Bag != id.Bag || other == id {
			continue
		}
		for _, run := range t.running {
			if run.s == p.s && !run.orphan && x.alone[run.task.Bundle] {
				x.x.violate("policy: task %v starts at %s beside %v, and there may be one", id, p.s.cfg.ID, other)
				return
			}
		}
	}
}

// PoliciesReplaced notes that a client was told that a bag has other policies, of a version.
func (w *World) PoliciesReplaced(id job.ID, version uint32) {
	seen := &w.watch.tasks.bag(id).policies
	seen.told = max(seen.told, version)
}
