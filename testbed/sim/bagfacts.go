package sim

import (
	"slices"

	"kith/internal/job"
	"kith/store"
	"kith/store/memstore"
)

// bagFacts is what a batch says of a bag.
type bagFacts struct {
	s                       *Site
	id                      job.ID
	done, failed, cancelled job.TaskSet
	tail                    job.Time
	state                   job.BagState
	level                   store.BagLevel
	facts                   *memstore.Store // where its results are read; nil for those of the site's daemon
	life                    int             // of the daemon that says it
}

func factsOf(s *Site, b *store.Bag) *bagFacts {
	for t := range b.Bundles {
		id := job.AttemptID{Job: b.ID, Number: t.Number}
		s.w.watch.tasks.granted[id] = t.Granted
		if t.Replica {
			s.w.watch.tasks.replicas[id] = true
		}
	}
	level := b.BagLevel
	level.Demotions = slices.Clone(level.Demotions)
	return &bagFacts{s: s, life: s.life, id: b.ID, done: b.Done.Clone(), failed: b.Failed.Clone(), cancelled: b.Cancelled.Clone(), tail: b.TailSince, state: b.State, level: level}
}

// resultsOf reads results of a bag, block by block.
type resultsOf struct {
	s    *Site
	from interface {
		TaskResults(bag job.ID, block uint32) ([]store.TaskRecord, error)
	}
	bag    job.ID
	block  uint32
	loaded bool
	list   []store.TaskRecord
}

func (r *resultsOf) of(task uint32) (store.TaskRecord, bool) {
	if block := task / store.ResultBlock; !r.loaded || block != r.block {
		list, err := r.from.TaskResults(r.bag, block)
		if err != nil {
			r.s.w.watch.violate("S5: results of bag %v: %v", r.bag, err)
		}
		r.list, r.block, r.loaded = list, block, true
	}
	for _, rec := range r.list {
		if rec.Result.Ordinal == task {
			return rec, true
		}
	}
	return store.TaskRecord{}, false
}
