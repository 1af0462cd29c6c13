package choice

import (
	"errors"
	"math"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// The whole is equally loaded with any number of sites, and none is overloaded
// by its own jobs.
func TestSites(t *testing.T) {
	for _, load := range []int{70, 85, 95} {
		for _, n := range siteCounts {
			c := setting{sites: n, load: load}
			offered, processors := 0.0, 0.0
			for i := range n {
				s := member{c, i}
				if s.offered() >= 1 || i > 0 && s.offered() <= (member{c, i - 1}).offered() {
					t.Errorf("%v: %s offers %v", c, s.id(), s.offered())
				}
				p := float64(s.processors(338))
				offered, processors = offered+p*s.offered(), processors+p
			}
			if mean := offered / processors; math.Abs(mean-float64(load)/100) > 0.015 {
				t.Errorf("%v: %.3f of the processors are asked for", c, mean)
			}
		}
	}
	if n := busySites.able(200, 338); n != 3 {
		t.Errorf("%d sites are wide enough for 200 processors, want the 3 large ones", n)
	}
}

// sources are generated jobs and a log.
func sources(t *testing.T, jobs int) map[string]*source {
	t.Helper()
	sources := make(map[string]*source)
	for name, env := range labtest.Envs(t, jobs) {
		src, err := newSource(env)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = src
	}
	return sources
}

// Every site gets the load it should have, over the same time, from jobs of its
// own that fit; and the same for the same seed.
func TestWorkloads(t *testing.T) {
	for name, src := range sources(t, 100) {
		hashes := make(map[string]bool)
		for seed := range uint64(2) {
			ws, err := src.workloads(busySites, seed)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range ws {
				s := member{busySites, i}
				p := s.processors(src.Large)
				if got := w.OfferedLoad(p); math.Abs(got-s.offered()) > 0.01*s.offered() {
					t.Errorf("%s, seed %d, %s: offers %.3f, want %.3f", name, seed, s.id(), got, s.offered())
				}
				// The last job may be a large one.
				if got, want := w.Span().Hours(), src.span(busySites).Hours(); got < want*0.99 || got > want*1.5 {
					t.Errorf("%s, seed %d, %s: %.1f h, want %.1f", name, seed, s.id(), got, want)
				}
				if slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Procs > p || j.Run > j.Estimate }) {
					t.Errorf("%s, seed %d, %s: a job does not fit", name, seed, s.id())
				}
				hashes[workload.Hash(w)] = true
			}
			again, err := src.workloads(busySites, seed)
			if err != nil || workload.Hash(again...) != workload.Hash(ws...) {
				t.Errorf("%s: seed %d has other jobs the second time (%v)", name, seed, err)
			}
		}
		if len(hashes) != 2*busySites.sites {
			t.Errorf("%s: %d different workloads for 2 seeds of %d sites", name, len(hashes), busySites.sites)
		}
	}
	src := sources(t, 5000)["log"]
	if _, err := src.workloads(busySites, 0); !errors.Is(err, lab.ErrEnv) {
		t.Errorf("a log that is too short: %v", err)
	}
}

// K = 1 is staying alone, and so is K = 3 where all ask for one copy; the order
// of who asks for one copy is that of the records.
func TestOneCopyIsAlone(t *testing.T) {
	src := sources(t, 300)["generated"]
	c := setting{sites: 3, load: 85}
	run := func(x trial) *outcome {
		t.Helper()
		o, err := x.run(t.Context(), src, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o.logical != o.expected || o.wire > o.logical {
			t.Errorf("%v: %d logical messages, %d on the wire, want %d and no more", x, o.logical, o.wire, o.expected)
		}
		return o
	}
	alone, three := run(c.alone()), run(c.copies(3))
	for _, x := range []trial{c.copies(1), c.copies(3).onesAsked(100)} {
		if o := run(x); !slices.Equal(o.waits, alone.waits) || o.copies != 0 {
			t.Errorf("%v: the waits differ from those alone, %v copies sent a job", x, o.copies)
		}
	}
	if slices.Equal(three.waits, alone.waits) || three.wait.Mean >= alone.wait.Mean || three.copies == 0 {
		t.Errorf("three copies: mean wait %v s, alone %v s", three.wait.Mean, alone.wait.Mean)
	}
	if n := alone.jobs; len(alone.waits) != n || alone.ends[2] != n || len(alone.sites()) != 3 {
		t.Errorf("%d jobs, %d waits, sites end at %v", n, len(alone.waits), alone.ends)
	}
	marked := oneCopy(1, 30, alone.jobs)
	ones, others, n := alone.of(marked, true), alone.of(marked, false), 0
	for _, m := range marked {
		if m {
			n++
		}
	}
	all := float64(alone.jobs)
	if mean := (ones*float64(n) + others*(all-float64(n))) / all; math.Abs(mean-alone.wait.Mean) > 0.01 {
		t.Errorf("the two parts have a mean wait of %v s, all of them %v s", mean, alone.wait.Mean)
	}
}

// The rules that let K differ.
func TestRules(t *testing.T) {
	ws := []*workload.Workload{{Jobs: []workload.Job{{Estimate: shortEstimate}, {Estimate: 2 * shortEstimate}}}, {Jobs: make([]workload.Job, 1)}}
	o := &outcome{jobs: 3, ends: []int{2, 3}}
	hours := []float64{0, 3.9}
	load := func(site int) job.Load { return job.Load{Work: hours[site] * 3600} }
	c := busySites
	for name, want := range map[string][]int32{"plain": {5, 5, 5}, "drain": {1, 1, 2}, "length": {5, 2, 5}, "alone": {1, 1, 1}, "ones": {1, 1, 1}} {
		x := map[string]trial{
			"plain": c.copies(5), "drain": c.copies(5).ruled(byDrain), "length": c.copies(5).ruled(byLength), "alone": c.alone(), "ones": c.copies(5).onesAsked(100),
		}[name]
		asks := x.asking(ws, 0, o, load)
		if got := []int32{asks(0, 0), asks(0, 1), asks(1, 0)}; !slices.Equal(got, want) {
			t.Errorf("%s: K is %v, want %v", name, got, want)
		}
	}
	hours[1] = 1000
	if k := c.copies(5).ruled(byDrain).asking(ws, 0, o, load)(1, 0); k != 5 {
		t.Errorf("K is %d at a full site, want the most, 5", k)
	}
}

// A small run is whole, and every finding says what was measured.
func TestSmall(t *testing.T) {
	r := labtest.Small(t, Experiment(), 6, 11)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Measured == "" || len(f.Values) == 0 || f.Enforced && f.Result != lab.Holds {
			t.Errorf("%s %s: %q", f.ID, f.Result, f.Measured)
		}
	}
}

// One statement runs what it needs and no more, with jobs from a log, too.
func TestOneClaim(t *testing.T) {
	env := *labtest.Envs(t, 30)["log"]
	env.Seeds = 1
	runs := 0
	env.Progress = func(_, total int) { runs = total }
	r, err := lab.Execute(t.Context(), lab.Selection{Experiment: Experiment(), Statements: []string{"K3"}}, env)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || len(r.Findings[0].Values) != metrics.Classes || runs != 2 {
		t.Errorf("%d runs: %+v", runs, r.Findings)
	}
}

// Figures are over the trial alone, and over all seeds for sites.
func TestAnswers(t *testing.T) {
	c := setting{sites: 2, load: 85}
	x := c.place(meta.KDual, 2, meta.RankWork)
	came := func(waits ...float32) *outcome {
		return &outcome{jobs: 4, waits: waits, ends: []int{2, 4}, wait: metrics.Distribution{Mean: meanOf(waits)}}
	}
	a := &answers{env: &lab.Env{Seeds: 2}, Outcomes: lab.Outcomes[trial, *outcome]{
		c.alone(): {came(100, 100, 0, 0), came(100, 300, 0, 200)},
		x:         {came(50, 50, 0, 0), came(0, 50, 261, 261)},
	}}
	near := func(name string, got, want lab.Spread) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("what is left", a.left(x, meanWait), lab.Spread{0.5, 143.0 / 150})
	near("by site", a.sites(x), lab.Spread{75.0 / 300, 261.0 / 100})
	near("longer", a.longer(x), lab.Spread{0, 0.5})
	if a.Has(x, c.copies(3)) || !a.Has(x, c.alone()) {
		t.Error("it does not know which trials were run")
	}
	if n := len((&answers{env: &lab.Env{Seeds: 10}}).seeds(manySites(50))); n != 1 {
		t.Errorf("%d of 10 seeds for 50 sites", n)
	}
}
