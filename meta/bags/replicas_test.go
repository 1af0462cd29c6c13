package bags

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

// A task for which the bag has no other site is not drawn.
func TestAnother(t *testing.T) {
	runs := TaskRuns{At: []RunAt{{Site: "beta"}, {Site: "gamma"}}}
	for _, c := range []struct {
		sites []job.SiteID
		want  bool
	}{{nil, false}, {[]job.SiteID{"beta"}, false}, {[]job.SiteID{"gamma", "beta"}, false}, {[]job.SiteID{"alpha", "beta"}, true}} {
		if got := runs.Another(c.sites); got != c.want {
			t.Errorf("%v: %v, want %v", c.sites, got, c.want)
		}
	}
}

// What users read as failures of a task counts its losses, too.
func TestReplicableCountsLosses(t *testing.T) {
	s := store.NewState("alpha", 1)
	id := s.NextID()
	grant := func(number, stamp uint64, site job.SiteID) job.AttemptID {
		a := job.AttemptID{Job: id, Number: uint32(number)}
		apply(t, s, store.GrantBundle{Bundle: a, Site: site, Stamp: stamp, Generation: 1, Tasks: job.TaskRange(0, 1)})
		return a
	}
	apply(t, s, store.SubmitBag{
		ID: id, Request: job.Request{Processors: 1, Walltime: 1e9, OnSiteLost: job.Rerun}, Indices: job.FirstIndices(1), MaxReplicas: 1, Retries: 9,
	})
	first := grant(1, 1, "beta")
	apply(t, s, store.RevokeBundle{Bundle: first, Site: "beta"})
	second := grant(2, 2, "beta")
	apply(t, s, store.RecordResults{Bundle: second, Site: "beta", Batch: 1, Results: []job.TaskResult{{Kind: job.Failure, ExitCode: 1}}})
	grant(3, 3, "beta")
	apply(t, s, store.BeginTail{Bag: id, Time: 1})
	if list := Replicable(s.Bag(id)); len(list) != 1 || list[0].Failures != 2 {
		t.Errorf("one failed and one was lost: %+v", list)
	}
}

func apply(t *testing.T, s *store.State, c store.Command) {
	t.Helper()
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
}
