package conserve

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// The whole has the load that is asked for, and no site is overloaded by its own jobs.
func TestSites(t *testing.T) {
	for _, load := range loads {
		sum := 0.0
		for i := range siteCount {
			sum += offered(load, i)
			if offered(load, i) >= 1 || offered(load, i) <= 0 {
				t.Errorf("load %d: site %d offers %v", load, i, offered(load, i))
			}
		}
		if mean := sum / siteCount; math.Abs(mean-float64(load)/100) > 1e-9 {
			t.Errorf("load %d: the mean is %v", load, mean)
		}
	}
}

// Jobs are those of the seed, from a generator and from a log, and offer the load.
func TestWorkloads(t *testing.T) {
	for name, env := range labtest.Envs(t, 100) {
		src, err := newSource(env)
		if err != nil {
			t.Fatal(err)
		}
		ws, err := src.workloads(80, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range ws {
			if got, want := w.OfferedLoad(src.processors(i)), offered(80, i); math.Abs(got-want) > 0.01*want {
				t.Errorf("%s, site %d: offers %.3f, want %.3f", name, i, got, want)
			}
		}
		again, err := src.workloads(80, 1)
		if err != nil || workload.Hash(again...) != workload.Hash(ws...) {
			t.Errorf("%s: the same seed has other jobs (%v)", name, err)
		}
	}
}

// Processors count while a job waits and before the last submission; those too
// few for any waiting job are idle but not wasted.
func TestIdleWhileWaiting(t *testing.T) {
	at := func(s int) job.Time { return job.Time(time.Duration(s) * time.Second) }
	sites := []federation.Site{{ID: "a", Processors: 4}, {ID: "b", Processors: 2}}
	records := []metrics.Record{
		{Site: "a", Submit: at(0), Start: at(0), End: at(10), Procs: 3},  // a has 1 free, b 2
		{Site: "b", Submit: at(2), Start: at(6), End: at(20), Procs: 2},  // 4 s: 3 of 6 idle, 2 of them wasted
		{Site: "a", Submit: at(6), Start: at(10), End: at(20), Procs: 3}, // 4 s: 1 of 6 idle
		{Site: "a", Submit: at(12), Start: at(20), End: at(21), Procs: 1},
	}
	idle, wasted := idleWhileWaiting(records, sites)
	if want := (4*3.0 + 4*1) / (8 * 6); math.Abs(idle-want) > 1e-9 {
		t.Errorf("idle %v, want %v", idle, want)
	}
	if want := 4 * 2.0 / (8 * 6); math.Abs(wasted-want) > 1e-9 {
		t.Errorf("wasted %v, want %v", wasted, want)
	}
	if idle, wasted := idleWhileWaiting(nil, sites); idle != 0 || wasted != 0 {
		t.Errorf("without jobs: %v, %v", idle, wasted)
	}
}

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 1, 2) }

// Bands accept what meets them and refuse what is just outside.
func TestBands(t *testing.T) {
	a := &answers{Outcomes: make(lab.Outcomes[trial, *outcome])}
	for _, x := range allTrials() {
		a.Outcomes[x] = []*outcome{{wait: 100, worst: 500, wasted: 0.2, messages: 5, sites: [siteCount]float64{100, 100, 100, 100}}}
		if x.conserve {
			a.Outcomes[x] = []*outcome{{wait: 101, worst: 520, wasted: 0.09, messages: 14, sites: [siteCount]float64{150, 90, 100, 100}}}
		}
	}
	results := func() string {
		s := ""
		for _, q := range questions() {
			if q.Judge(a).Result == lab.Holds {
				s += q.ID + " "
			}
		}
		return s
	}
	if got, want := results(), "W1 W2 W3 W4 W5 W6 W7 "; got != want {
		t.Errorf("all within: %s hold", got)
	}
	a.Outcomes[dual(90, 1).conserved()][0] = &outcome{wait: 170, worst: 530, wasted: 0.11, messages: 16, sites: [siteCount]float64{161, 0, 0, 0}}
	if got := results(); got != "" {
		t.Errorf("all outside: %s hold", got)
	}
}
