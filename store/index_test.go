package store_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"kith/internal/hashed"
	"kith/internal/job"
	"kith/store"
)

// An index is a map, whatever it remembers.
func TestIndexIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 0))
	type record struct{ name hashed.Text }
	x, want := store.NewIndex(func(r *record) hashed.Text { return r.name }), make(map[hashed.Text]*record)
	for step := range 100_000 {
		name := hashed.Text(strconv.Itoa(rng.IntN(20)))
		switch rng.IntN(4) {
		case 0:
			r := &record{name}
			x.Put(r)
			want[name] = r
		case 1:
			x.Delete(name)
			delete(want, name)
		default:
			if x.Get(name) != want[name] {
				t.Fatalf("step %d: Get(%s) = %v, want %v", step, name, x.Get(name), want[name])
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("step %d: %d records, want %d", step, x.Len(), len(want))
		}
	}
	got := make(map[hashed.Text]*record)
	for r := range x.All {
		got[r.name] = r
	}
	if !maps.Equal(got, want) {
		t.Errorf("all records are %v, want %v", got, want)
	}
}

// The open jobs are those of all jobs that have not ended, in their order, from any
// id on, whatever happens to them.
func TestOpenJobsAreTheJobsThatHaveNotEnded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := store.NewState("alpha", 1)
	record := func(c store.Command) {
		if err := s.Apply(c); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		s.DropChanges()
	}
	var open, ended []job.ID
	take := func(list *[]job.ID) job.ID {
		i := rng.IntN(len(*list))
		id := (*list)[i]
		*list = append((*list)[:i:i], (*list)[i+1:]...)
		return id
	}
	for step := range 20_000 {
		switch n := rng.IntN(10); {
		case n < 5:
			id := s.NextID()
			record(store.SubmitJob{ID: id, Actor: "ada", Time: 1, Request: job.Request{Processors: 1, Walltime: 1}})
			open = append(open, id)
		case n < 9 && len(open) > 0:
			id := take(&open)
			record(store.CancelJob{Job: id, Time: 2, Actor: "ada"})
			ended = append(ended, id)
		case len(ended) > 0:
			record(store.PurgeJob{Job: take(&ended)})
		}
		if step%500 != 0 {
			continue
		}
		after := job.ID{}
		if len(open) > 0 && rng.IntN(3) > 0 {
			after = open[rng.IntN(len(open))]
		}
		var want, got []job.ID
		for j := range s.Jobs(after) {
			if !j.State.Terminal() {
				want = append(want, j.ID)
			}
		}
		for j := range s.OpenJobs(after) {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d, after %v: %d open jobs, want %d", step, after, len(got), len(want))
		}
	}
}
