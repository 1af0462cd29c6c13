package bags

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

var hour = ShapeOf(&job.Request{Processors: 1, Walltime: time.Hour})

// workOf is a bag of a user with tasks that wait; its number is its place in time, too.
func workOf(seq uint64, user string, waiting int) Work {
	return Work{
		Bag: job.ID{Origin: "alpha", Generation: 1, Seq: seq}, Submitted: job.Time(seq), User: user, Shape: hour,
		Waiting: waiting, Room: math.MaxInt, Walltime: time.Hour, Sites: []job.SiteID{"beta", "gamma"},
	}
}

func newDesk() *Desk { return &Desk{Usage: &Usage{}, Elsewhere: &Elsewhere{}, Replicas: &Replicas{}} }

func must(t *testing.T, s *store.State, c store.Command) {
	t.Helper()
	if err := s.Apply(c); err != nil {
		t.Fatalf("%T: %v", c, err)
	}
}

// submit adds a bag to s.
func submit(t *testing.T, s *store.State, tasks uint32, change func(*store.SubmitBag)) *store.Bag {
	t.Helper()
	c := store.SubmitBag{ID: s.NextID(), Indices: job.FirstIndices(tasks), Request: job.Request{User: "ann", Processors: 1, Walltime: time.Hour, OnSiteLost: job.Rerun}, Time: job.Time(s.BagCount())}
	if change != nil {
		change(&c)
	}
	must(t, s, c)
	return s.Bag(c.ID)
}

// give grants n tasks of a bag to a site and returns the bundle.
func give(t *testing.T, s *store.State, b *store.Bag, site job.SiteID, n int) job.AttemptID {
	t.Helper()
	id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
	must(t, s, store.GrantBundle{Bundle: id, Site: site, Stamp: uint64(id.Number), Generation: 1, Tasks: b.NextTasks(n)})
	return id
}

// end records that all tasks of a bundle ended alike.
func end(t *testing.T, s *store.State, id job.AttemptID, kind job.OutcomeKind) {
	t.Helper()
	bundle := s.TaskBundle(id)
	c := store.RecordResults{Bundle: id, Site: bundle.Site, Batch: bundle.Batch + 1}
	for task := range bundle.Tasks.All {
		r := job.TaskResult{Ordinal: task, Kind: kind, Run: 3 * time.Second}
		if kind == job.Failure {
			r.ExitCode = 7
		}
		c.Results = append(c.Results, r)
	}
	must(t, s, c)
}
