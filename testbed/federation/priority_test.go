package federation_test

import (
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// priority returns case 2 of spec 004 section 3.1 with few jobs: five sites of
// four nodes, the first k with dual queues.
func priority(t *testing.T, k int) ([]federation.Site, []*workload.Workload) {
	t.Helper()
	m, err := workload.Priority(2, workload.Heavy)
	if err != nil {
		t.Fatal(err)
	}
	m.Drop = 0
	for i := range m.Streams {
		m.Streams[i].Jobs /= 10
	}
	f, err := m.Generate(workload.NewRand(5, 0))
	if err != nil {
		t.Fatal(err)
	}
	list := sites(5, workload.PriorityNodes, sitesched.Single)
	for i := range list {
		list[i].Backfill, list[i].Speed = sitesched.NoBackfill, m.Streams[i].MIPS/m.ReferenceMIPS
		if i < k {
			list[i].Queues = sitesched.DualStrict
		}
	}
	return list, f.Sites
}

// Spec 004 section 5 no. 5: with a = 1, and where all sites have one policy,
// weighted selection is MCT. Elsewhere it is not.
func TestWeightedSelectionWithoutWeightsIsMCT(t *testing.T) {
	for k := range 6 {
		list, ws := priority(t, k)
		with := func(p meta.Placement) federation.Result {
			p.Scheme = meta.MCT
			return run(t, federation.Config{Sites: list, Placement: p, Hash: true}, ws)
		}
		mct, one, a := with(meta.Placement{}), with(meta.Placement{Weight: 1}), with(meta.Placement{Weight: 1.3})
		equalRecords(t, mct.Records, one.Records, "MCT and a = 1")
		if mct.Hash != one.Hash {
			t.Errorf("Q%d: the event logs of MCT and a = 1 differ", k)
		}
		if acts := k >= 2 && k <= 4; acts == (mct.Hash == a.Hash) {
			t.Errorf("Q%d: weights act: %v, but the event logs are equal: %v", k, acts, mct.Hash == a.Hash)
		}
	}
}

// Spec 004 section 5 no. 3: a strict dual queue starts no remote job while a
// local one waits, over a whole run.
func TestStrictQueuesStartLocalJobsFirst(t *testing.T) {
	list, ws := priority(t, 3)
	strict := map[job.SiteID]bool{list[0].ID: true, list[1].ID: true, list[2].ID: true}
	for _, p := range []meta.Placement{{Scheme: meta.MCT}, {Scheme: meta.KDual, Copies: 3}} {
		res := run(t, federation.Config{Sites: list, Placement: p, Invariants: true}, ws)
		// A local job waits where it ran, and with K-Dual at its origin wherever it ran.
		waits := func(r *metrics.Record, at job.SiteID) bool {
			return r.Origin == at && (r.Site == at || p.Scheme == meta.KDual)
		}
		remote, elsewhere := 0, 0
		for i := range res.Records {
			r := &res.Records[i]
			if r.Site == r.Origin {
				continue
			}
			remote++
			for k := range res.Records {
				l := &res.Records[k]
				if !waits(l, r.Site) || l.Submit > r.Start || l.Start <= r.Start {
					continue
				}
				if strict[r.Site] {
					t.Fatalf("%s: a job of %s started at %s at %v while job %d of that site waited from %v to %v",
						p.Scheme, r.Origin, r.Site, r.Start, l.Job, l.Submit, l.Start)
				}
				elsewhere++
			}
		}
		if remote == 0 || elsewhere == 0 {
			t.Errorf("%s: %d remote starts, %d of them before a local job of a single queue: nothing was tested", p.Scheme, remote, elsewhere)
		}
	}
}

// A faster site plans and runs in less time, and the limit shrinks with it.
func TestSpeedScalesRunsAndEstimates(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{
		{ID: 1, Run: 100 * time.Second, Estimate: 200 * time.Second, Procs: 4},
		{ID: 2, Run: 100 * time.Second, Estimate: 100 * time.Second, Procs: 4},
		{ID: 3, Run: 300 * time.Second, Estimate: 100 * time.Second, Procs: 4},
	}}
	list := sites(1, 4, sitesched.Single)
	list[0].Speed = 4
	res := run(t, federation.Config{Sites: list, Placement: meta.Placement{Scheme: meta.Independent}, Invariants: true}, []*workload.Workload{w})
	var ends []job.Time
	for _, r := range res.Records {
		ends = append(ends, r.End/job.Time(time.Second))
	}
	// The last one is stopped at 100 s of the reference.
	if want := []job.Time{25, 50, 75}; !slices.Equal(ends, want) {
		t.Errorf("ends %v s, want %v", ends, want)
	}
}

// A job that moved to a faster site is the same job: its class and the run time
// that slowdowns divide by are those of its origin, under every scheme.
func TestReferenceIsTheRunTimeAtTheOrigin(t *testing.T) {
	ws := loads(t, 11, 2, 300, 64, 0.8)
	list := sites(2, 64, sitesched.DualBackfill)
	list[0].Speed, list[1].Speed = 0.5, 3
	classes := func(records []metrics.Record) (n [2][metrics.Classes]int) {
		for i := range records {
			site := 0
			if records[i].Origin == list[1].ID {
				site = 1
			}
			n[site][(metrics.Options{}).ClassOf(&records[i])]++
		}
		return n
	}
	under := func(s meta.Scheme) federation.Result {
		return run(t, federation.Config{Sites: list, Placement: meta.Placement{Scheme: s}, Transfer: federation.PaperTransfer()}, ws)
	}
	alone := under(meta.Independent).Records
	for _, s := range meta.Schemes() {
		res := under(s)
		if got, want := classes(res.Records), classes(alone); got != want {
			t.Errorf("%s: classes %v, alone %v", s, got, want)
		}
		moved := 0
		for i := range res.Records {
			r := &res.Records[i]
			if r.Site != r.Origin {
				moved++
			}
			if alone[i].Reference != 0 || r.Site != r.Origin && r.Reference != alone[i].Run || r.Site == r.Origin && (r.Reference != 0 || r.Run != alone[i].Run) {
				t.Fatalf("%s: %+v, alone %+v", s, r, alone[i])
			}
		}
		if (moved == 0) != (s == meta.Independent) {
			t.Errorf("%s: %d jobs moved", s, moved)
		}
	}
}
