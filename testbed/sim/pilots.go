package sim

import (
	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// isPilot reports whether a copy is a pilot: no fact tells of it.
func isPilot(a job.AttemptID) bool { return a.Job.Generation == 0 }

// serves reports whether tasks of an origin wait that a pilot at a site could run: then it
// has its place in the queue as the copy of a job that waits has. They wait at the origin, or
// with the site.
func (k *keeper) serves(o, s *Site, pilot *job.Request) bool {
	for b := range o.state.Bags {
		if b.State == job.BagOpen && runs(pilot, &b.Request) && (givesOut(b) || b.TailSince != 0 && b.MaxReplicas > 0) {
			return true
		}
	}
	for _, h := range s.state.HeldBundles() {
		if h.ID.Job.Origin == o.cfg.ID && runs(pilot, &h.Request) && s.keepsTasks(h) {
			return true
		}
	}
	return false
}

// runs reports whether a pilot may run tasks of a request.
func runs(pilot, task *job.Request) bool {
	shape := bags.ShapeOf(task)
	return shape.Processors == pilot.Processors && shape.MemoryBytes == pilot.MemoryBytes && shape.Walltime <= pilot.Walltime
}

// givesOut reports whether a bag has tasks to give to a site.
func givesOut(b *store.Bag) bool {
	return b.Waiting() > 0 && b.Room() > 0
}

// keepsTasks reports whether a site has tasks of a bundle that have not begun.
func (s *Site) keepsTasks(h *store.HeldBundle) bool {
	for task := range h.Tasks.All {
		if run := h.RunID(task); s.procs[run] == nil && s.staged[run] == nil {
			return true
		}
	}
	return false
}
