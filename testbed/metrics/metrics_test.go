package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

func at(seconds float64) job.Time { return job.Time(seconds * float64(time.Second)) }

// record is a job that ran from start for run seconds.
func record(submit, start, run float64, procs int32) Record {
	return Record{
		Submit: at(submit), Start: at(start), End: at(start + run), Run: time.Duration(at(run)), Procs: procs,
		Origin: "a", Site: "b", User: "ann", Group: "phys",
	}
}

func TestRecord(t *testing.T) {
	r := record(100, 130, 20, 4)
	if r.Wait() != 30*time.Second || r.Turnaround() != 50*time.Second || r.Slowdown() != 2.5 || r.Work() != 80 {
		t.Errorf("wait %v, turnaround %v, slowdown %v, work %v", r.Wait(), r.Turnaround(), r.Slowdown(), r.Work())
	}
	for _, m := range []struct {
		submit, start, run, slowdown, bounded float64
	}{
		{0, 0, 1, 1, 1},         // at once, but below the floor
		{0, 9, 1, 10, 1},        // ten seconds in all are none above the floor
		{0, 19, 1, 20, 2},       // 20 ÷ 10
		{0, 50, 50, 2, 2},       // above the floor both are one
		{0, 0.5, 0.5, 2, 1},     // fractions
		{0, 5, 0, 5, 1},         // no run counts as a second
		{0, 3600, 10, 361, 361}, // at the floor
	} {
		r := record(m.submit, m.start, m.run, 1)
		if r.Slowdown() != m.slowdown || r.BoundedSlowdown(Floor) != m.bounded {
			t.Errorf("%+v: slowdown %v, bounded %v", m, r.Slowdown(), r.BoundedSlowdown(Floor))
		}
	}
	// A transfer holds processors and delays the end, but is no run (spec 001 section 2.6).
	r = record(0, 10, 100, 2)
	r.End = r.End.Add(40 * time.Second)
	if r.Slowdown() != 1.5 || r.Work() != 280 {
		t.Errorf("with a transfer: slowdown %v, work %v", r.Slowdown(), r.Work())
	}
}

// A job is what it is at its origin, wherever it ran: twice as fast elsewhere it
// stays long, and is slowed down by the half of what it would have taken alone.
func TestReference(t *testing.T) {
	here := record(0, 0, 1000, 1)
	there := record(0, 0, 500, 1)
	there.Reference = 1000 * time.Second
	if here.Slowdown() != 1 || there.Slowdown() != 0.5 || there.BoundedSlowdown(Floor) != 1 {
		t.Errorf("slowdown %v at home, %v elsewhere, bounded %v", here.Slowdown(), there.Slowdown(), there.BoundedSlowdown(Floor))
	}
	there.Start, there.End = at(500), at(1000)
	if here.BoundedSlowdown(Floor) != there.BoundedSlowdown(Floor) {
		t.Errorf("done after the same time: bounded slowdown %v and %v", here.BoundedSlowdown(Floor), there.BoundedSlowdown(Floor))
	}
	if a, b := (Options{}).ClassOf(&here), (Options{}).ClassOf(&there); a != LongNarrow || b != LongNarrow {
		t.Errorf("classes %v and %v", a, b)
	}
}

func TestSummariseByHand(t *testing.T) {
	records := []Record{
		record(0, 0, 100, 4),      // short, narrow
		record(0, 100, 1000, 8),   // long, wide
		record(50, 100, 899.5, 8), // short, wide
		record(100, 400, 900, 7),  // long, narrow
	}
	s := Summarise(records, Options{Processors: 16})
	if s.Jobs != 4 || s.Wait.Mean != (0+100+50+300)/4.0 || s.Wait.Max != 300 || s.Wait.Min != 0 || s.Wait.P50 != 50 || s.Wait.P95 != 300 {
		t.Errorf("wait: %+v", s.Wait)
	}
	if want := math.Sqrt((0.0+100*100+50*50+300*300)/4 - 112.5*112.5); math.Abs(s.Wait.SD-want) > 1e-9 {
		t.Errorf("sd %v, want %v", s.Wait.SD, want)
	}
	if s.Turnaround.Mean != (100+1100+949.5+1200)/4.0 {
		t.Errorf("turnaround: %+v", s.Turnaround)
	}
	work := 400 + 8000 + 8*899.5 + 6300
	if s.WorkSeconds != work || s.MakespanSeconds != 1300 || s.Utilisation != work/(16*1300) || s.FirstSubmit != 0 || s.LastEnd != at(1300) {
		t.Errorf("work %v, makespan %v, utilisation %v", s.WorkSeconds, s.MakespanSeconds, s.Utilisation)
	}
	for c, wait := range map[Class]float64{ShortNarrow: 0, ShortWide: 50, LongNarrow: 300, LongWide: 100} {
		if k := s.Classes[c]; k.Class != c || k.Name != c.String() || k.Jobs != 1 || k.Wait.Mean != wait || k.Wait.P99 != wait {
			t.Errorf("%v: %+v", c, k)
		}
	}
	other := Options{ShortBelow: 2000 * time.Second, NarrowBelow: 100, Floor: 1e6 * time.Second}
	if s := Summarise(records, other); s.Classes[ShortNarrow].Jobs != 4 || s.BoundedSlowdown.Max != 1 || s.Utilisation != 0 {
		t.Errorf("other thresholds: %+v", s)
	}
	if s := Summarise(nil, Options{Processors: 1}); s.Jobs != 0 || s.Wait != (Distribution{}) || s.Utilisation != 0 || s.Classes[LongWide].Name != "long-wide" {
		t.Errorf("of nothing: %+v", s)
	}
	if Class(9).String() != "unknown" {
		t.Error(Class(9))
	}
}

// random returns records with many equal values among them.
func random(rng *rand.Rand, n int) []Record {
	records := make([]Record, n)
	for i := range records {
		submit := float64(rng.IntN(100000))
		wait := float64(rng.IntN(5)) * math.Exp(float64(rng.IntN(12)))
		records[i] = record(submit, submit+wait, math.Exp(12*rng.Float64()), 1+rng.Int32N(20))
		records[i].Origin = job.SiteID([]string{"a", "b", "c"}[rng.IntN(3)])
	}
	return records
}

// Figures equal those of a slow reference that sorts, and do not depend on the
// order of the records; these are not changed.
func TestSummariseAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		records := random(rng, 1+rng.IntN(400))
		before := slices.Clone(records)
		s := Summarise(records, Options{Processors: 7})
		if !slices.Equal(records, before) {
			t.Fatal("the records have changed")
		}
		for _, m := range []struct {
			got Distribution
			of  func(*Record) float64
		}{
			{s.Wait, func(r *Record) float64 { return r.Wait().Seconds() }},
			{s.Turnaround, func(r *Record) float64 { return r.Turnaround().Seconds() }},
			{s.Slowdown, (*Record).Slowdown},
			{s.BoundedSlowdown, func(r *Record) float64 { return r.BoundedSlowdown(10 * time.Second) }},
		} {
			var v []float64
			for i := range records {
				v = append(v, m.of(&records[i]))
			}
			same(t, m.got, reference(v))
			same(t, m.got, Describe(v))
		}
		jobs := 0
		for c := range Class(Classes) {
			var v []float64
			for i := range records {
				if (Options{}).ClassOf(&records[i]) == c {
					v = append(v, records[i].Slowdown())
				}
			}
			jobs += s.Classes[c].Jobs
			same(t, s.Classes[c].Slowdown, reference(v))
		}
		if jobs != len(records) {
			t.Fatalf("%d jobs in classes, of %d", jobs, len(records))
		}
	}
}

// reference describes v by sorting it.
func reference(v []float64) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	s := slices.Sorted(slices.Values(v))
	// The least number at or below which p percent lie, by counting.
	percentile := func(p float64) float64 {
		for i, x := range s {
			if float64(i+1)*100 >= p*float64(len(s)) {
				return x
			}
		}
		return s[len(s)-1]
	}
	sum, squares := 0.0, 0.0
	for _, x := range s {
		sum += x
	}
	mean := sum / float64(len(s))
	for _, x := range s {
		squares += (x - mean) * (x - mean)
	}
	return Distribution{
		Mean: mean, SD: math.Sqrt(squares / float64(len(s))), Min: s[0], P50: percentile(50), P95: percentile(95), P99: percentile(99), Max: s[len(s)-1],
	}
}

// same demands equal percentiles, and sums that differ by rounding at most.
func same(t *testing.T, got, want Distribution) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }
	if got.Min != want.Min || got.P50 != want.P50 || got.P95 != want.P95 || got.P99 != want.P99 || got.Max != want.Max ||
		!near(got.Mean, want.Mean) || !near(got.SD, want.SD) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestPercentile(t *testing.T) {
	v := make([]float64, 100)
	for i := range v {
		v[i] = float64(i + 1)
	}
	for p, want := range map[float64]float64{0: 1, 1: 1, 50: 50, 50.1: 51, 95: 95, 99: 99, 99.5: 100, 100: 100, 200: 100} {
		if got := v[rank(len(v), p)]; got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	if rank(1, 99) != 0 || rank(2, 50) != 0 {
		t.Error("of few")
	}
}

// Selection finds what sorting finds, whatever the order.
func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	shapes := []func(n int) []float64{
		func(n int) []float64 { return fill(n, func(int) float64 { return rng.Float64() }) },
		func(n int) []float64 { return fill(n, func(int) float64 { return float64(rng.IntN(3)) }) },
		func(n int) []float64 { return fill(n, func(i int) float64 { return float64(i) }) },
		func(n int) []float64 { return fill(n, func(i int) float64 { return float64(-i) }) },
		func(n int) []float64 { return fill(n, func(i int) float64 { return float64(i & 1 * i) }) },
		func(n int) []float64 { return fill(n, func(i int) float64 { return math.Abs(float64(i - n/2)) }) },
		func(n int) []float64 { return fill(n, func(int) float64 { return 0 }) },
		func(n int) []float64 { return fill(n, func(i int) float64 { return math.Inf(i%3 - 1) }) },
	}
	for _, n := range []int{1, 2, 16, 17, 100, 3000} {
		for _, shape := range shapes {
			v := shape(n)
			sorted := slices.Sorted(slices.Values(v))
			for range 10 {
				k := rng.IntN(n)
				w := slices.Clone(v)
				if got := nth(w, k); got != sorted[k] {
					t.Fatalf("place %d of %d is %v, want %v", k, n, got, sorted[k])
				}
				for i, x := range w {
					if i < k && x > sorted[k] || i > k && x < sorted[k] {
						t.Fatalf("place %d holds %v, place %d should hold %v", i, x, k, sorted[k])
					}
				}
				if slices.Sort(w); !slices.Equal(w, sorted) {
					t.Fatal("numbers were lost")
				}
			}
		}
	}
}

func fill(n int, f func(int) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

func TestGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	records := random(rng, 500)
	groups := GroupBy(records, ByOrigin)
	if len(groups) != 3 || groups[0].Key != "a" || groups[2].Key != "c" {
		t.Fatalf("%d groups", len(groups))
	}
	total := 0
	for _, g := range groups {
		total += len(g.Records)
		var want []Record
		for _, r := range records {
			if string(r.Origin) == g.Key {
				want = append(want, r)
			}
		}
		if !slices.Equal(g.Records, want) {
			t.Errorf("group %s is not what it should be", g.Key)
		}
	}
	if total != len(records) {
		t.Errorf("%d records in groups", total)
	}
	r := Record{Origin: "o", Site: "s"}
	if ByOrigin(&r) != "o" || BySite(&r) != "s" {
		t.Error("keys are mixed up")
	}
	if len(GroupBy(nil, ByOrigin)) != 0 {
		t.Error("groups of nothing")
	}
}

func TestWindows(t *testing.T) {
	var records []Record
	for _, s := range []float64{50, 10, 30, 20, 40, 0, 60, 70, 80, 90} {
		records = append(records, record(s, s, 1, 1))
	}
	submits := func(records []Record) (s []float64) {
		for _, r := range records {
			s = append(s, time.Duration(r.Submit).Seconds())
		}
		return s
	}
	if got := submits(Trim(records, 0.2)); !slices.Equal(got, []float64{20, 30, 40, 50, 60, 70}) {
		t.Errorf("trimmed: %v", got)
	}
	if len(Trim(records, 0)) != 10 || len(Trim(records, 0.5)) != 0 || len(Trim(records, 7)) != 0 || len(Trim(records, -1)) != 10 || len(Trim(nil, 0.1)) != 0 {
		t.Error("trimmed at the ends of what makes sense")
	}
	if records[0].Submit != at(50) {
		t.Error("the records have changed")
	}
}

func TestFairness(t *testing.T) {
	for _, m := range []struct {
		figures []float64
		want    Fairness
	}{
		{nil, Fairness{}},
		{[]float64{0, 0}, Fairness{Jain: 1}},
		{[]float64{3, 3, 3}, Fairness{Jain: 1, Min: 3, Max: 3, Mean: 3}},
		{[]float64{4, 0, 0, 0}, Fairness{Jain: 0.25, Max: 4, Mean: 1, SD: 2}},
		{[]float64{1, 3}, Fairness{Jain: 0.8, Min: 1, Max: 3, Mean: 2, SD: math.Sqrt2}},
	} {
		if got := FairnessOf(m.figures); got != m.want {
			t.Errorf("%v: %+v, want %+v", m.figures, got, m.want)
		}
	}
	if SampleSD([]float64{5}) != 0 || Mean(nil) != 0 || SD(nil) != 0 {
		t.Error("of few")
	}
}

func TestSeriesByHand(t *testing.T) {
	records := []Record{record(0, 5, 10, 4), record(5, 15, 20, 2)}
	for name, m := range map[string]struct {
		got  Series
		want []float64
	}{
		"busy":   {BusyOver(records, 10*time.Second), []float64{2, 3, 2, 1}},
		"demand": {DemandOver(records, 10*time.Second), []float64{5, 4, 2, 1}},
	} {
		if m.got.From != 0 || m.got.Step != 10*time.Second || !slices.Equal(m.got.Values, m.want) {
			t.Errorf("%s: %+v, want %v", name, m.got, m.want)
		}
	}
	if s := BusyOver(nil, time.Second); len(s.Values) != 0 {
		t.Errorf("of nothing: %+v", s)
	}
	if s := BusyOver(records, 0); len(s.Values) != 0 {
		t.Errorf("in no steps: %+v", s)
	}
	if s := BusyOver(records, 1); len(s.Values) > MaxSteps+1 || s.Step < 2 {
		t.Errorf("%d steps of %v", len(s.Values), s.Step)
	}
}

// The area below a series is the work, whatever the step.
func TestSeriesKeepsWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		records := random(rng, 1+rng.IntN(100))
		work := 0.0
		for i := range records {
			work += records[i].Work()
		}
		s := BusyOver(records, time.Duration(1+rng.Int64N(int64(time.Hour))))
		area := 0.0
		for _, v := range s.Values {
			area += v * s.Step.Seconds()
			if v < -1e-9 {
				t.Fatalf("%v busy", v)
			}
		}
		if math.Abs(area-work) > 1e-6*work {
			t.Fatalf("the area is %v, the work %v", area, work)
		}
		demand := DemandOver(records, s.Step)
		for i := range s.Values {
			if demand.Values[i] < s.Values[i]-1e-6*max(1, demand.Values[i]) {
				t.Fatalf("step %d: %v demanded, %v busy", i, demand.Values[i], s.Values[i])
			}
		}
	}
}
