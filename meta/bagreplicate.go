package meta

import (
	"kith/internal/job"
	"kith/meta/bags"
)

// replicating is what a bag states of its replicas; it implements [bags.TaskPolicy] for one
// draw.
type replicating struct {
	bo    *bagOrigin
	bag   *openBag
	scene bags.Scene
}

// replicateOf returns the policy of a bag for its replicas: the usual one if it states none.
func (bo *bagOrigin) replicateOf(now job.Time, o *openBag) bags.TaskPolicy {
	if bags.Replicate.Of(&o.rec.Policies) == "" {
		return bo.tasks
	}
	return &replicating{bo, o, bags.Scene{Bag: o.scope, Queue: bo.queueScope(), Task: bags.NewScope(bags.RootTask), Submitted: o.rec.Submitted, Now: now}}
}

// Replicate implements [bags.TaskPolicy].
func (r *replicating) Replicate(_ *bags.Work, t *bags.TaskRuns, now job.Time) bool {
	s := &r.scene
	s.Task.Number(bags.TaskIndex, float64(r.bag.rec.Indices.Index(t.Task)))
	s.Task.Number(bags.TaskFailures, float64(t.Failures))
	s.Task.Number(bags.TaskReplicas, float64(len(t.At)))
	s.Replicas = s.Replicas[:0]
	for i := range t.At {
		at := &t.At[i]
		host := r.bo.policies.host(at.Site, at.Node)
		s.Replicas = append(s.Replicas, bags.Replica{
			Site: string(at.Site), Node: at.Node, Age: now.Sub(at.Granted).Seconds(), ErrorRate: host.ErrorRate(), Turnaround: host.Turnaround(),
		})
	}
	return r.bag.judge.Replicate(s)
}
