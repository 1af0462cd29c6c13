package kdistributed

import (
	"encoding/json"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// small returns an environment with few jobs.
func small(t *testing.T, seeds, jobs int) *lab.Env {
	t.Helper()
	if raceEnabled {
		jobs /= 2
	}
	env := &lab.Env{Seeds: seeds, Jobs: jobs}
	if err := env.Settle(1); err != nil {
		t.Fatal(err)
	}
	return env
}

// records runs a trial with one small stream.
func records(t *testing.T, env *lab.Env, x trial, change func(*federation.Config)) federation.Result {
	t.Helper()
	streams, err := generated(env)
	if err != nil {
		t.Fatal(err)
	}
	workloads, err := streams[0].workloads(&x)
	if err != nil {
		t.Fatal(err)
	}
	cfg := federationOf(env, &x)
	if change != nil {
		change(&cfg)
	}
	run := federation.Run
	switch x.scheme {
	case unified:
		run = runUnified
	case centralised:
		run = runCentralized
	}
	r, err := run(t.Context(), cfg, workloads)
	if err != nil {
		t.Fatalf("%v: %v", x, err)
	}
	return r
}

// everyScheme has each scheme, with several K.
func everyScheme() []trial {
	return []trial{ind, uni, cen, hier, dist, at(kDist, 2), kd4, at(kDual, 2), dual, dualHead, dist.aged(3 * time.Hour), kd4.moving(), cen.moving(), dual.in(perfectMix), kd4.in(distinctMix)}
}

// Spec 001 section 5, check 4: no site runs more than it has, every job runs
// exactly once, and all schemes do the same work.
func TestEveryJobRunsOnce(t *testing.T) {
	env := small(t, 1, 250)
	work := make(map[mix]float64)
	for _, x := range everyScheme() {
		r := records(t, env, x, func(cfg *federation.Config) { cfg.Invariants = true })
		type key struct {
			origin job.SiteID
			number int64
		}
		seen := make(map[key]bool)
		done := 0.0
		for i := range r.Records {
			j := &r.Records[i]
			k := key{j.Origin, j.Job}
			if seen[k] {
				t.Fatalf("%v: job %d of %s ran twice", x, j.Job, j.Origin)
			}
			seen[k] = true
			done += float64(j.Procs) * j.Run.Seconds()
			if j.Start < j.Submit || j.End.Sub(j.Start) < j.Run {
				t.Fatalf("%v: job %d of %s was submitted at %v, ran from %v to %v for %v", x, j.Job, j.Origin, j.Submit, j.Start, j.End, j.Run)
			}
		}
		if len(seen) != paperSites*env.Jobs {
			t.Errorf("%v: %d of %d jobs ran", x, len(seen), paperSites*env.Jobs)
		}
		checkAllocation(t, x, r.Records)
		if work[x.mix] == 0 {
			work[x.mix] = done
		}
		if same := sharedMix; x.mix == perfectMix && math.Abs(done-work[same]) > 1e-6*done {
			t.Errorf("%v: %v processor-seconds, with users' estimates %v", x, done, work[same])
		}
		if math.Abs(done-work[x.mix]) > 1e-6*done {
			t.Errorf("%v: %v processor-seconds, under Independent %v", x, done, work[x.mix])
		}
	}
}

// checkAllocation looks at what runs at each site at each start.
func checkAllocation(t *testing.T, x trial, list []metrics.Record) {
	t.Helper()
	type change struct {
		at    job.Time
		procs int64
	}
	changes := make(map[job.SiteID][]change)
	for i := range list {
		site := list[i].Site
		if x.scheme == unified {
			site = "unified"
		}
		changes[site] = append(changes[site], change{list[i].Start, int64(list[i].Procs)}, change{list[i].End, -int64(list[i].Procs)})
	}
	for site, all := range changes {
		size := int64(paperProcessors)
		if x.scheme == unified {
			size *= paperSites
		}
		slices.SortFunc(all, func(a, b change) int { // ends before starts
			if a.at != b.at {
				return int(a.at.Sub(b.at))
			}
			return int(a.procs - b.procs)
		})
		used := int64(0)
		for _, c := range all {
			if used += c.procs; used > size {
				t.Fatalf("%v: site %s runs %d on %d processors at %v", x, site, used, size, c.at)
			}
		}
	}
}

// Check 5: with one copy K-Distributed is Distributed and K-Dual is
// Independent, to the byte of the event log.
func TestOneCopy(t *testing.T) {
	env := small(t, 1, 600)
	logged := func(cfg *federation.Config) { cfg.Hash = true }
	for _, pair := range [][2]trial{{at(kDist, 1), dist}, {at(kDist, 1).aged(time.Hour), dist.aged(time.Hour)}, {at(kDual, 1), ind}} {
		a, b := records(t, env, pair[0], logged), records(t, env, pair[1], logged)
		if a.Hash == "" || a.Hash != b.Hash || !slices.Equal(a.Records, b.Records) {
			t.Errorf("%v and %v differ", pair[0], pair[1])
		}
	}
	if a, b := records(t, env, at(kDist, 2), logged), records(t, env, dist, logged); a.Hash == b.Hash {
		t.Error("two copies make no difference: the test shows nothing")
	}
}

// Check 6: with jobs of equal width, perfect estimates and rank start, the
// start instants do not depend on K.
func TestEqualWidthIdentity(t *testing.T) {
	env := small(t, 3, 1200)
	one, four := at(kDist, 1).in(equalMix).ranked(meta.RankStart), at(kDist, 4).in(equalMix).ranked(meta.RankStart)
	byLoad := at(kDist, 1).in(equalMix)
	a, err := answer(t.Context(), env, []trial{one, four, byLoad})
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.streams {
		if a.Outcomes[one][i].starts != a.Outcomes[four][i].starts {
			t.Errorf("seed %d: start instants depend on K", i)
		}
		if a.Outcomes[one][i].starts == a.Outcomes[byLoad][i].starts {
			t.Errorf("seed %d: ranking by load starts at the same instants: the test shows nothing", i)
		}
		if a.Outcomes[one][i].slowdown.Max < 2 {
			t.Errorf("seed %d: no job waits: the test shows nothing", i)
		}
	}
}

// Checks 7, 10, 11, 12: every statement is measured and printed with its numbers,
// and messages are exactly K.
func TestReport(t *testing.T) {
	r := report001(t, lab.Env{Seeds: 2, Jobs: 200})
	if len(r.Findings) != 19 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	number := regexp.MustCompile(`[0-9]`)
	for _, f := range r.Findings {
		if !number.MatchString(f.Measured) || len(f.Values) == 0 && f.ID != "C18" {
			t.Errorf("%s: measured %q, values %v", f.ID, f.Measured, f.Values)
		}
		for _, v := range f.Values {
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
				t.Errorf("%s: %s is %v", f.ID, v.Name, v.Value)
			}
		}
		switch f.ID {
		case "C16", "C18":
			if f.ID == "C16" && !strings.Contains(f.Measured, "identical in 2 of 2") || f.ID == "C18" && f.Result != lab.Holds {
				t.Errorf("%s %s at any size of workload, but %s", f.ID, f.Result, f.Measured)
			}
		case "C19":
			if f.Result != lab.Informational {
				t.Errorf("C19 %s", f.Result)
			}
		}
	}
	if len(r.Plots) != 9 || len(r.Tables) != 1 {
		t.Errorf("%d plots, %d tables", len(r.Plots), len(r.Tables))
	}
	for i := range r.Plots {
		if err := r.Plots[i].Validate(); err != nil {
			t.Error(err)
		}
	}
}

func report001(t *testing.T, env lab.Env, ids ...string) *lab.Report {
	t.Helper()
	r, err := lab.Execute(t.Context(), lab.Selection{Experiment: Experiment(), Statements: ids}, env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A statement alone runs only what it needs, and comes out the same as among all.
func TestOneClaimAlone(t *testing.T) {
	runs := 0
	env := lab.Env{Seeds: 1, Jobs: 150, Progress: func(_, total int) { runs = total }}
	one := report001(t, env, "C6")
	if runs != 2 || len(one.Findings) != 1 {
		t.Errorf("%d runs for %d findings", runs, len(one.Findings))
	}
	all := report001(t, env)
	if runs < 50 {
		t.Errorf("only %d runs for all claims", runs)
	}
	i := slices.IndexFunc(all.Findings, func(f lab.Finding) bool { return f.ID == "C6" })
	if all.Findings[i].Measured != one.Findings[0].Measured {
		t.Errorf("C6 alone: %s, among all: %s", one.Findings[0].Measured, all.Findings[i].Measured)
	}
}

// Check 13: the same seeds give the same report on any number of processors.
func TestDeterminism(t *testing.T) {
	text := func(processors int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		b, err := json.Marshal(report001(t, lab.Env{Seeds: 2, Jobs: 120}, "C2", "C3", "C8", "C12", "C17", "C18"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if text(1) != text(8) {
		t.Error("a report depends on the number of processors")
	}
}

// Check 15: the mean transfer of jobs that move is 440 s, and only they pay.
func TestTransfers(t *testing.T) {
	env := small(t, 1, 1500)
	for _, x := range []trial{kd4.moving(), cen.moving()} {
		o := measure(env, new(records(t, env, x, nil)))
		if math.Abs(o.transfer-440) > 15 || o.remote < 0.2 {
			t.Errorf("%v: transfers of %.0f s, %.2f of the jobs remote", x, o.transfer, o.remote)
		}
	}
	for _, x := range []trial{ind.moving(), uni.moving()} {
		for _, j := range records(t, env, x, nil).Records {
			if j.End.Sub(j.Start) != j.Run {
				t.Fatalf("%v: a job of %v ran for %v", x, j.Run, j.End.Sub(j.Start))
			}
		}
	}
}

// A log yields its windows, those nearest to the source's levels first, and
// the statements are judged on them.
func TestSegments(t *testing.T) {
	w, err := workload.CTCLike{Jobs: 1700, Load: 0.6}.Generate(workload.NewRand(3, 3))
	if err != nil {
		t.Fatal(err)
	}
	r := report001(t, lab.Env{Seeds: 2, Jobs: 300, Trace: w}, "C6", "C19")
	if !strings.Contains(r.Workload, w.Name) || len(regexp.MustCompile(`jobs [0-9]+ to [0-9]+`).FindAllString(r.Workload, -1)) != 2 {
		t.Errorf("workload %q", r.Workload)
	}
	for _, env := range []lab.Env{{Seeds: 6, Jobs: 300, Trace: w}, {Seeds: 1, Trace: w}, {Seeds: 1, FirstSeed: 5, Jobs: 300, Trace: w}, {Seeds: 1, FirstSeed: math.MaxUint64, Jobs: 300, Trace: w}} {
		if _, err := lab.Execute(t.Context(), lab.Selection{Experiment: Experiment(), Statements: []string{"C6"}}, env); err == nil || !strings.Contains(err.Error(), "windows") {
			t.Errorf("%d seeds from %d, %d jobs: %v", env.Seeds, env.FirstSeed, env.Jobs, err)
		}
	}
}

// The day of a site is that of its own clock.
func TestDemandByHour(t *testing.T) {
	at := func(h float64) job.Time { return job.Time(h * float64(time.Hour)) }
	day := demandByHour([]metrics.Record{
		{Origin: paperNames[0], Submit: at(0), Start: at(1), End: at(2), Procs: 10},
		{Origin: paperNames[0], Submit: at(23.5), Start: at(23.5), End: at(24), Procs: 20},
		{Origin: paperNames[1], Submit: at(0), Start: at(0), End: at(24), Procs: 100},
	}, 6*time.Hour)
	if day[6] != 10 || day[7] != 10 || day[8] != 0 || math.Abs(day[5]-10) > 1e-9 {
		t.Errorf("%v", day)
	}
}

func TestTrend(t *testing.T) {
	if got := trend([]time.Duration{0, time.Hour, 2 * time.Hour}, []float64{1, 3, 5}); math.Abs(got-2) > 1e-12 {
		t.Errorf("slope %v of a line that rises by 2 an hour", got)
	}
}
