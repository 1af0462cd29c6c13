package sitesched

import (
	"maps"
	"testing"

	"kith/internal/job"
)

// Three copies wait for the one processor: they start when the limits of those
// ahead are used up, whatever the discipline, as WhatIf says, too.
func TestStartsByLimits(t *testing.T) {
	for _, c := range []Config{
		{Backfill: NoBackfill}, {Backfill: EASY}, {Backfill: Conservative}, {Backfill: ConservativeReplan},
		{Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll, GuaranteeDepth: 2}, {Backfill: Conservative, GuaranteeDepth: 2},
	} {
		t.Run(c.Policy(), func(t *testing.T) {
			c.Processors = 1
			s := mustNew(t, c)
			first := []entry{waiting(1, 1, 50, false), waiting(2, 1, 50, false), waiting(3, 1, 50, false), waiting(4, 1, 50, false)}
			enqueueAll(s, 4, first...)
			s.Pass(4)
			want := map[job.AttemptID]job.Time{first[1].id: 54 * second, first[2].id: 104 * second, first[3].id: 154 * second}
			for id := range want {
				want[id] += 4 - 4*second // it began at 4 ns
			}
			if c.GuaranteeDepth > 0 {
				delete(want, first[3].id)
			}
			for id, at := range want {
				if p, err := s.WhatIf(10, job.Copy{ID: id}); err != nil || p.Start != at {
					t.Errorf("WhatIf %v: %v %v, want %v", id, p.Start, err, at)
				}
			}
			if got := maps.Collect(s.Starts(10, 100)); !maps.Equal(got, want) {
				t.Errorf("starts %v, want %v", got, want)
			}
			if got := maps.Collect(s.Starts(10, 1)); len(got) != 1 || got[first[1].id] == 0 {
				t.Errorf("the first alone: %v", got)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			s.Drain(10, true)
			if got := maps.Collect(s.Starts(10, 100)); len(got) != 0 {
				t.Errorf("starts %v of a site that drains", got)
			}
		})
	}
}

// BenchmarkStarts asks a busy site for the first hundred starts.
func BenchmarkStarts(b *testing.B) {
	c := newCrowd(b, Config{Backfill: EASY}, 1000, 10_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		for range c.s.Starts(c.now, 100) {
		}
	}
}
