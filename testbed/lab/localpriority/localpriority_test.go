package localpriority

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// execute carries out statements of spec 004.
func execute(t *testing.T, env lab.Env, ids ...string) map[string]lab.Finding {
	t.Helper()
	r, err := lab.Execute(t.Context(), lab.Selection{Experiment: Experiment(), Statements: ids}, env)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]lab.Finding)
	for _, f := range r.Findings {
		found[f.ID] = f
	}
	return found
}

// Spec 004 section 5 nos. 2, 4, 5 and 12 hold for any number of jobs.
func TestChecksHold(t *testing.T) {
	for id, f := range execute(t, lab.Env{Seeds: 2, Jobs: 60}, "A2", "A4", "A5", "A12") {
		if f.Result != lab.Holds {
			t.Errorf("%s: %s; %s", id, f.Measured, f.Note)
		}
	}
}

// Spec 004 section 5 nos. 6 to 10 with a few seeds: the bands of what varies
// little, and of the rest the direction. The bands with all seeds are those of
// TestVerdicts.
func TestClaimsWithFewSeeds(t *testing.T) {
	if os.Getenv("KITH_THOROUGH") != "1" || testing.Short() {
		t.Skip("runs 50 times 4400 jobs, which takes minutes: set KITH_THOROUGH=1, and not -short")
	}
	found := execute(t, lab.Env{Seeds: 4}, "P1", "P2", "P3", "P4", "P13", "P17", "A10")
	for _, id := range []string{"P1", "P2", "P3", "P4", "P13", "A10"} {
		if f := found[id]; f.Result != lab.Holds {
			t.Errorf("%s: %s; %s", id, f.Measured, f.Note)
		}
	}
	value := func(id, name string) float64 {
		for _, v := range found[id].Values {
			if v.Name == name {
				return v.Value
			}
		}
		t.Fatalf("%s has no value %q: %+v", id, name, found[id].Values)
		return 0
	}
	if g1, g2, l1, l2 := value("P17", "gain, MCT"), value("P17", "gain, a = 1.3"), value("P17", "loss, MCT"), value("P17", "loss, a = 1.3"); g2 > g1 || l2 > 0.6*l1 {
		t.Errorf("P17: gain %v to %v, loss %v to %v", g1, g2, l1, l2)
	}
	env := &lab.Env{Seeds: 3}
	if err := env.Settle(env.Seeds); err != nil {
		t.Fatal(err)
	}
	var ends []trial
	for _, x := range sweepTrials() {
		if !x.beside() {
			ends = append(ends, x)
		}
	}
	a, err := answer(t.Context(), env, ends)
	if err != nil {
		t.Fatal(err)
	}
	if r := judgeSweep(a); !r.met() {
		t.Errorf("A9: %s", r.missing(nil))
	}
}

// knownFails are the statements that do not hold with the default seeds.
// docs/reproduction.md tells why we think so.
var knownFails = []string{"P6", "P7", "P9", "P10", "P11", "P12"}

// Spec 004 section 5 nos. 6 to 10 with all 40 seeds: the results are the known ones.
func TestVerdicts(t *testing.T) {
	if os.Getenv("KITH_THOROUGH") != "1" {
		t.Skip("runs 3000 times 4400 jobs: left out unless KITH_THOROUGH=1")
	}
	var fails []string
	for _, f := range execute(t, lab.Env{}) {
		if f.Result == lab.Fails {
			fails = append(fails, f.ID)
			if f.Note == "" {
				t.Errorf("%s fails without a word why", f.ID)
			}
		}
	}
	slices.Sort(fails)
	if want := slices.Sorted(slices.Values(knownFails)); !slices.Equal(fails, want) {
		t.Errorf("%v fail, known are %v", fails, want)
	}
}

// Each statement runs all that it needs, and only that.
func TestClaimsAlone(t *testing.T) {
	for _, c := range Experiment().Statements {
		if c.ID == "A2" {
			continue // needs no runs
		}
		f := execute(t, lab.Env{Seeds: 1, Jobs: 6}, c.ID)[c.ID]
		if f.Measured == "" || len(f.Values) == 0 && c.ID != "A4" && c.ID != "A5" {
			t.Errorf("%s: nothing was measured: %+v", c.ID, f)
		}
		for _, v := range f.Values {
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
				t.Errorf("%s: %s is %v", c.ID, v.Name, v.Value)
			}
		}
		if strings.Contains(f.Measured+f.Note, "NaN") || strings.Contains(f.Measured+f.Note, "%!") {
			t.Errorf("%s: %s; %s", c.ID, f.Measured, f.Note)
		}
	}
}

// The whole experiment has the figures of the source, and all of them can be drawn.
func TestFigures(t *testing.T) {
	r, err := lab.Execute(t.Context(), lab.Selection{Experiment: Experiment()}, lab.Env{Seeds: 2, Jobs: 6})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Plots) != 9+9+3+3+9+2 || len(r.Tables) != 3 {
		t.Errorf("%d plots and %d tables", len(r.Plots), len(r.Tables))
	}
	names := make(map[string]bool)
	for i := range r.Plots {
		if err := r.Plots[i].Validate(); err != nil || names[r.Plots[i].Name] {
			t.Errorf("plot %s, twice %v: %v", r.Plots[i].Name, names[r.Plots[i].Name], err)
		}
		names[r.Plots[i].Name] = true
	}
	if n := len(r.Tables[0].Rows); n != 54+18 {
		t.Errorf("%d rows of completion times", n)
	}
}

// same makes answers in which every run of a trial had these means.
func same(means map[trial][siteCount]float64) *answers {
	a := &answers{env: &lab.Env{Seeds: 3}, until: 3, without: -1, Outcomes: make(lab.Outcomes[trial, *outcome])}
	for t, m := range means {
		for range a.env.Seeds {
			a.Outcomes[t] = append(a.Outcomes[t], &outcome{sites: m, all: metrics.Mean(m[:])})
		}
	}
	return a
}

// The source's own numbers are within the bands, and others are not.
func TestBands(t *testing.T) {
	h := func(k int) trial { return mct(1, heavy, k) }
	source := func() map[trial][siteCount]float64 {
		return map[trial][siteCount]float64{
			h(0):                       {23_000, 23_000, 23_000, 23_000, 23_000},
			h(2):                       {14_308, 15_027, 27_572, 27_989, 27_187},
			h(3):                       {14_283, 15_196, 14_718, 33_775, 33_371},
			h(4):                       {14_490, 15_000, 15_100, 16_000, 52_899},
			h(3).weighted(paperWeight): {21_657, 21_652, 23_038, 26_203, 26_119},
			h(4).weighted(paperWeight): {20_240, 21_000, 21_000, 22_000, 31_280},
		}
	}
	spoil := map[string]func(map[trial][siteCount]float64){
		"P1": func(m map[trial][siteCount]float64) {
			m[h(2)] = [siteCount]float64{20_000, 20_000, 27_572, 27_989, 27_187}
		},
		"P2": func(m map[trial][siteCount]float64) {
			m[h(3)] = [siteCount]float64{14_283, 15_196, 14_718, 50_000, 50_000}
		},
		"P3": func(m map[trial][siteCount]float64) {
			m[h(3)] = [siteCount]float64{14_283, 15_196, 20_000, 33_775, 33_371}
		},
		"P4": func(m map[trial][siteCount]float64) {
			m[h(4)] = [siteCount]float64{30_000, 30_000, 30_000, 30_000, 52_899}
		},
		"P13": func(m map[trial][siteCount]float64) { m[h(3).weighted(paperWeight)] = m[h(3)] },
		"P17": func(m map[trial][siteCount]float64) { m[h(4).weighted(paperWeight)] = m[h(4)] },
	}
	checked := 0
	for _, q := range questions() {
		if spoil[q.ID] == nil {
			continue
		}
		checked++
		if f := q.Judge(same(source())); f.Result != lab.Holds {
			t.Errorf("%s: the source's own numbers are outside of its band: %s", q.ID, f.Note)
		}
		bad := source()
		spoil[q.ID](bad)
		if f := q.Judge(same(bad)); f.Result != lab.Fails || f.Note == "" {
			t.Errorf("%s: result %s, %q", q.ID, f.Result, f.Note)
		}
	}
	if checked != len(spoil) {
		t.Errorf("%d claims were checked of %d", checked, len(spoil))
	}
}

// The statements about orders see a single pair that is the wrong way round.
func TestOrders(t *testing.T) {
	good := func() map[trial][siteCount]float64 {
		means := make(map[trial][siteCount]float64)
		for _, c := range settings() {
			base := []float64{24_000, 4000, 2300}[c.load]
			for k := range siteCount + 1 {
				var m [siteCount]float64
				for i := range m {
					switch {
					case k == siteCount:
						switch c.number {
						case 1:
							m[i] = base * 0.97
						case 2:
							m[i] = base * (0.97 + 0.03*float64(i))
						case 3:
							m[i] = base * (1.9 - 0.25*float64(i)) // above Q4 under light load
						}
						if c.load == heavy {
							m[i] *= 0.5
						}
					case i < k:
						m[i] = base * (0.9 + 0.001*float64(k))
					default:
						m[i] = base * (1 + 0.1*float64(k)*float64(3-c.load))
					}
				}
				means[mct(c.number, c.load, k)] = m
			}
		}
		return means
	}
	for id, spoil := range map[string]struct {
		trial trial
		by    [siteCount]float64
	}{
		"P7": {mct(1, medium, 3), [siteCount]float64{1, 1, 1, 0.8, 0.8}}, "P8": {mct(2, light, 1), [siteCount]float64{1, 1, 1, 1, 0.9}},
		"P9": {mct(3, medium, 5), [siteCount]float64{1, 1, 1, 0.5, 1}}, "P10": {mct(2, heavy, 2), [siteCount]float64{1, 1, 0.8, 0.8, 0.8}},
		"P11": {mct(3, light, 4), [siteCount]float64{1, 1, 1, 1, 0.7}},
	} {
		i := slices.IndexFunc(questions(), func(q question) bool { return q.ID == id })
		q := questions()[i]
		if f := q.Judge(same(good())); f.Result != lab.Holds {
			t.Errorf("%s: %s", id, f.Note)
		}
		bad := good()
		m := bad[spoil.trial]
		for i := range m {
			m[i] *= spoil.by[i]
		}
		bad[spoil.trial] = m
		if q.Judge(same(bad)).Result == lab.Holds {
			t.Errorf("%s does not see that %v is wrong", id, spoil.trial)
		}
	}
}

// The standard error of a mean by leaving out one seed after the other is the
// usual one.
func TestStandardErrors(t *testing.T) {
	x := mct(1, light, 0)
	a := &answers{env: &lab.Env{Seeds: 5}, until: 5, without: -1, Outcomes: make(lab.Outcomes[trial, *outcome])}
	var all []float64
	for _, v := range []float64{3, 1, 4, 1, 5} {
		a.Outcomes[x] = append(a.Outcomes[x], &outcome{all: v})
		all = append(all, v)
	}
	errors := a.standardErrors(func(a *answers) *reading {
		r := &reading{}
		r.need(a.of(x).all-7, "the mean is %v", a.of(x).all)
		r.must(true, "nothing")
		return r
	})
	if want := metrics.SampleSD(all) / math.Sqrt(5); math.Abs(errors[0]-want) > 1e-12 || errors[1] != 0 {
		t.Errorf("standard errors %v, want %v and 0", errors, want)
	}
	r := &reading{}
	r.need(-errors[0], "a is too small")
	if text := r.missing(errors); text != "a is too small (1.00 standard errors). That may be chance." {
		t.Errorf("says %q", text)
	}
	r.must(false, "b is not there")
	if text := r.missing(errors); strings.Contains(text, "chance") {
		t.Errorf("says %q", text)
	}
	if r = (&reading{}); r.met() != true {
		t.Error("nothing is asked for and something is missing")
	}
	r.above(1, 1, "one is not above one")
	if r.met() {
		t.Error("1 is above 1")
	}
	r = &reading{}
	r.in("x", 2, 2, 3, "s")
	if !r.met() {
		t.Error("the edge is outside of the band")
	}
	if r.in("y", 3.5, 2, 3, "s"); r.met() || r.missing(nil) != "y is 3.50 s, not 2.00 s to 3.00 s." {
		t.Errorf("says %q", r.missing(nil))
	}
}

// Any number of workers gives the same findings, and the seeds matter.
func TestSeeds(t *testing.T) {
	measured := func(env lab.Env) string {
		f := execute(t, env, "P1", "P4", "A12")
		return fmt.Sprint(f["P1"].Values, f["P4"].Values, f["A12"].Measured)
	}
	one := measured(lab.Env{Seeds: 3, Jobs: 30, Workers: 1})
	if many := measured(lab.Env{Seeds: 3, Jobs: 30, Workers: 4}); many != one {
		t.Errorf("4 workers find\n%s\none\n%s", many, one)
	}
	if other := measured(lab.Env{Seeds: 3, FirstSeed: 3, Jobs: 30}); other == one {
		t.Error("other seeds give the same numbers")
	}
}
