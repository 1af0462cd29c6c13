package workload

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"kith/internal/draw"
	"kith/internal/job"
)

// near demands that an observed mean lies within so many standard errors of
// what it should be. The seeds are fixed, so that this never changes by itself.
func near(t *testing.T, what string, got, want, standardError, errs float64) {
	t.Helper()
	if math.Abs(got-want) > errs*standardError {
		t.Errorf("%s is %.5g, want %.5g ± %.2g", what, got, want, errs*standardError)
	}
}

// meanAndError returns the mean of n numbers and its standard error.
func meanAndError(n int, x func(int) float64) (mean, standardError float64) {
	sum, squares := 0.0, 0.0
	for i := range n {
		sum += x(i)
		squares += x(i) * x(i)
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(squares/float64(n)-mean*mean, 0) / float64(n))
}

func generate(t *testing.T, m interface {
	Generate(*rand.Rand) (*Workload, error)
}, seed uint64,
) *Workload {
	t.Helper()
	w, err := m.Generate(NewRand(seed, 0))
	if err != nil {
		t.Fatal(err)
	}
	checkJobs(t, w)
	return w
}

// One seed stands for one workload, and zero is a seed like any other.
func TestSeeds(t *testing.T) {
	for _, m := range []interface {
		Generate(*rand.Rand) (*Workload, error)
	}{CTCLike{Jobs: 300}, Lublin{Jobs: 300}, Lublin{Jobs: 300, Load: 0.7}} {
		seen := map[string]uint64{}
		for seed := range uint64(5) {
			a, b := generate(t, m, seed), generate(t, m, seed)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%T: seed %d gives two workloads", m, seed)
			}
			if other, ok := seen[Hash(a)]; ok {
				t.Errorf("%T: seeds %d and %d give one workload", m, seed, other)
			}
			seen[Hash(a)] = seed
		}
	}
	if NewRand(0, 0).Uint64() == NewRand(0, 1).Uint64() {
		t.Error("two streams are one")
	}
}

// The CTC-like model is what spec 001 section 3.0 says.
func TestCTCLike(t *testing.T) {
	const n = 60000
	w := generate(t, CTCLike{Jobs: n}, 7)
	if w.Processors != 430 || !w.Start.Equal(monday) || w.Report != (Report{}) {
		t.Errorf("%d processors, from %v", w.Processors, w.Start)
	}
	near(t, "the offered load", w.OfferedLoad(430), 0.6, 1e-6, 1)
	share := func(what string, want float64, is func(*Job) bool) {
		got, e := meanAndError(n, func(i int) float64 {
			if is(&w.Jobs[i]) {
				return 1
			}
			return 0
		})
		near(t, what, got, want, e, 4)
	}
	share("the share of serial jobs", 0.42, func(j *Job) bool { return j.Procs == 1 })
	share("the share of limits of 18 h", 0.28, func(j *Job) bool { return j.Estimate == 18*time.Hour })
	share("the share of limits of 5 min", 0.09, func(j *Job) bool { return j.Estimate == 5*time.Minute })
	// The shares of the log, which hardly has a job below half a minute.
	for _, x := range []struct {
		below time.Duration
		share float64
	}{{30 * time.Second, 0.005}, {time.Minute, 0.099}, {2 * time.Minute, 0.261}, {5 * time.Minute, 0.379}, {time.Hour, 0.601}, {4 * time.Hour, 0.752}} {
		got := 0.0
		for i := range w.Jobs {
			if w.Jobs[i].Run < x.below {
				got += 1.0 / n
			}
		}
		if math.Abs(got-x.share) > 0.05 {
			t.Errorf("%.3f of the jobs run for less than %v, in the log %.3f", got, x.below, x.share)
		}
	}
	parallel, power, wide, users := 0, 0, int32(0), map[string]int{}
	ratio := 0.0
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if j.Procs > 1 {
			parallel++
			if bits.OnesCount32(uint32(j.Procs)) == 1 {
				power++
			}
		}
		wide = max(wide, j.Procs)
		ratio += j.Run.Seconds() / j.Estimate.Seconds() / n
		users[j.User]++
		if j.Run > j.Estimate || j.Estimate < 5*time.Minute || j.Estimate > 18*time.Hour {
			t.Fatalf("%+v", j)
		}
	}
	if p := float64(power) / float64(parallel); wide != 256 || p < 0.7 || p > 0.9 {
		t.Errorf("the widest job has %d processors, %.2f of the parallel ones a power of two", wide, p)
	}
	if ratio < 0.3 || ratio > 0.45 {
		t.Errorf("jobs run for %.2f of their estimates", ratio)
	}
	if len(users) < 50 || users["1"] < 5*users["20"] {
		t.Errorf("%d users, of whom the first submits %d jobs and the 20th %d", len(users), users["1"], users["20"])
	}
	// A busy afternoon, a quiet night, quieter weekends.
	hours, weekend := [24]float64{}, 0.0
	for i := range w.Jobs {
		at := w.Start.Add(time.Duration(w.Jobs[i].Submit))
		hours[at.Hour()]++
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			weekend++
		}
	}
	if r := hours[14] / hours[2]; r < 7 || r > 11 { // (1+0.8)/(1−0.8) = 9
		t.Errorf("%.1f times as many submissions after 14 h as after 2 h", r)
	}
	near(t, "the weekend's share", weekend/n, 2*0.6/(5+2*0.6), math.Sqrt(0.16/n), 5)
}

// The load stretches time and nothing else, and is met at any size.
func TestCTCLikeLoad(t *testing.T) {
	base := generate(t, CTCLike{Jobs: 500}, 1)
	for _, load := range []float64{0.05, 0.7, 3} {
		w := generate(t, CTCLike{Jobs: 500, Load: load}, 1)
		near(t, "the offered load", w.OfferedLoad(430), load, load*1e-4, 1)
		for i := range w.Jobs {
			w.Jobs[i].Submit = base.Jobs[i].Submit
		}
		if Hash(w) != Hash(base) {
			t.Errorf("load %v changes the jobs", load)
		}
	}
	for _, p := range []int32{1, 2, 3, 100} {
		for i, j := range generate(t, CTCLike{Jobs: 300, Processors: p}, 2).Jobs {
			if j.Procs > p {
				t.Fatalf("job %d of %d processors on %d", i, j.Procs, p)
			}
		}
	}
	if w := generate(t, CTCLike{Jobs: 1}, 0); len(w.Jobs) != 1 {
		t.Error("not one job")
	}
	for _, m := range []CTCLike{{Jobs: -1}, {Jobs: MaxJobs + 1}, {Processors: -1}, {Processors: job.MaxProcessors + 1}, {Load: -1}, {Load: math.NaN()}, {Load: 1e-12}} {
		if _, err := m.Generate(NewRand(0, 0)); !errors.Is(err, ErrArgument) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// The moments of the Lublin-Feitelson model follow from its parameters: those
// of a gamma distribution with shape a and scale b are a·b and a·b².
func TestLublinMoments(t *testing.T) {
	const n = 200000
	rng := NewRand(11, 0)
	for _, m := range []struct{ a, b float64 }{{lublinA1, lublinB1}, {lublinA2, lublinB2}, {lublinArrA, lublinArrB}, {1, 3}} {
		x := make([]float64, n)
		for i := range x {
			x[i] = draw.Gamma(rng, m.a, m.b)
		}
		mean, e := meanAndError(n, func(i int) float64 { return x[i] })
		near(t, "the mean of a gamma variable", mean, m.a*m.b, e, 4)
		variance, e := meanAndError(n, func(i int) float64 { return (x[i] - mean) * (x[i] - mean) })
		near(t, "its variance", variance, m.a*m.b*m.b, e, 4)
	}
	w := generate(t, Lublin{Jobs: n}, 12)
	serial, e := meanAndError(n, func(i int) float64 {
		if w.Jobs[i].Procs == 1 {
			return 1
		}
		return 0
	})
	near(t, "the share of serial jobs", serial, lublinSerial, e, 4)
	// The logarithm of the widths of jobs that are neither serial nor rounded is
	// two-stage uniform; rounded ones have the same mean but for the ends.
	parallel := make([]float64, 0, n)
	for i := range w.Jobs {
		if p := w.Jobs[i].Procs; p > 1 {
			parallel = append(parallel, math.Log2(float64(p)))
		}
	}
	const high = 8.0
	want := lublinFirstStage*(lublinLow+high-lublinMediumBack)/2 + (1-lublinFirstStage)*(2*high-lublinMediumBack)/2
	mean, e := meanAndError(len(parallel), func(i int) float64 { return parallel[i] })
	near(t, "the mean logarithm of parallel widths", mean, want, e+0.02, 4)
	// Run times by width: the mixture of both gammas, cut off at the limit.
	for _, procs := range []int32{1, 16, 128} {
		x := make([]float64, n/4)
		for i := range x {
			x[i] = lublinLogRun(rng, procs)
		}
		mean, e := meanAndError(len(x), func(i int) float64 { return x[i] })
		near(t, "the mean logarithm of run times", mean, lublinMeanLogRun(procs), e, 4)
	}
}

// lublinMeanLogRun integrates the density of the mixture up to the limit.
func lublinMeanLogRun(procs int32) float64 {
	p := min(max(lublinPA*float64(procs)+lublinPB, 0), 1)
	const step = 1e-4
	mass, sum := 0.0, 0.0
	for x := step / 2; x < lublinLongestRun; x += step {
		d := p*gammaDensity(x, lublinA1, lublinB1) + (1-p)*gammaDensity(x, lublinA2, lublinB2)
		mass += d * step
		sum += d * x * step
	}
	return sum / mass
}

// The published sample of the model, made by its authors' program on 256
// processors, is like our samples: each of its figures lies within four
// standard deviations of theirs.
func TestLublinPublishedSample(t *testing.T) {
	published := openTrace(t, "lublin_256.swf.gz")
	n := len(published.Jobs)
	if n != 10000 || published.Processors != 256 {
		t.Fatalf("%d jobs on %d processors", n, published.Processors)
	}
	published.Start = monday.Add(5094 * time.Second) // its first submission, counted from midnight
	logRun := func(w *Workload, i int) float64 { return math.Log(w.Jobs[i].Run.Seconds()) }
	logWidth := func(w *Workload, i int) float64 { return math.Log2(float64(w.Jobs[i].Procs)) }
	gap := func(w *Workload, i int) float64 { return w.Jobs[i].Submit.Sub(w.Jobs[max(i-1, 0)].Submit).Seconds() }
	angle := func(w *Workload, i int) float64 {
		return 2 * math.Pi * (w.Start.Sub(monday) + time.Duration(w.Jobs[i].Submit)).Seconds() / 86400
	}
	const seeds = 20
	samples := make([]*Workload, seeds)
	for s := range samples {
		samples[s] = generate(t, Lublin{Jobs: n}, uint64(s))
	}
	for _, m := range []struct {
		what string
		of   func(*Workload, int) float64
	}{
		{"logarithm of the run time", logRun},
		{"square of that", func(w *Workload, i int) float64 { return math.Pow(logRun(w, i), 2) }},
		{"share of serial jobs", func(w *Workload, i int) float64 { return b2f(w.Jobs[i].Procs == 1) }},
		{"share of powers of two", func(w *Workload, i int) float64 { return b2f(bits.OnesCount32(uint32(w.Jobs[i].Procs)) == 1) }},
		{"logarithm of the width", logWidth},
		{"product of both", func(w *Workload, i int) float64 { return logRun(w, i) * logWidth(w, i) }},
		{"work", func(w *Workload, i int) float64 { return w.Jobs[i].Work() }},
		{"gap", gap},
		{"fourth root of the gap", func(w *Workload, i int) float64 { return math.Pow(gap(w, i), 0.25) }},
		{"first harmonic of the day, sine", func(w *Workload, i int) float64 { return math.Sin(angle(w, i)) }},
		{"first harmonic of the day, cosine", func(w *Workload, i int) float64 { return math.Cos(angle(w, i)) }},
		{"second harmonic of the day, sine", func(w *Workload, i int) float64 { return math.Sin(2 * angle(w, i)) }},
		{"second harmonic of the day, cosine", func(w *Workload, i int) float64 { return math.Cos(2 * angle(w, i)) }},
	} {
		ours := make([]float64, seeds)
		for s, w := range samples {
			ours[s], _ = meanAndError(n, func(i int) float64 { return m.of(w, i) })
		}
		mean, e := meanAndError(seeds, func(s int) float64 { return ours[s] })
		theirs, _ := meanAndError(n, func(i int) float64 { return m.of(published, i) })
		sd := e * math.Sqrt(seeds)
		t.Logf("%s: theirs %.5g, ours %.5g ± %.2g", m.what, theirs, mean, sd)
		near(t, m.what, theirs, mean, sd, 4)
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func TestLublinSizes(t *testing.T) {
	for _, p := range []int32{1, 2, 3, 5, 100, 430, 1 << 20} {
		w := generate(t, Lublin{Jobs: 2000, Processors: p}, 3)
		for i, j := range w.Jobs {
			if j.Procs > p || j.Estimate != j.Run || j.Run.Seconds() > math.Exp(lublinLongestRun) {
				t.Fatalf("job %d on %d: %+v", i, p, j)
			}
		}
	}
	w := generate(t, Lublin{Jobs: 2000, Load: 0.8}, 3)
	near(t, "the offered load", w.OfferedLoad(256), 0.8, 1e-4, 1)
	for _, m := range []Lublin{{Jobs: -1}, {Processors: -1}, {Load: -0.1}, {Load: math.NaN()}, {Load: 101}} {
		if _, err := m.Generate(NewRand(0, 0)); !errors.Is(err, ErrArgument) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// Spec 004 section 3.1, and acceptance check 12 of it.
func TestPriority(t *testing.T) {
	// Gaps of the whole grid by load, and the load that is offered by 4400 jobs.
	gaps := map[PriorityLoad]float64{Heavy: 90, Medium: 105, Light: 120}
	for number := 1; number <= 3; number++ {
		for load, gap := range gaps {
			m, err := Priority(number, load)
			if err != nil {
				t.Fatal(err)
			}
			jobs, rate, power := 0, 0.0, 0.0
			for _, s := range m.Streams {
				jobs += s.Jobs
				rate += 1 / s.MeanGap.Seconds()
				power += s.MIPS * PriorityNodes
			}
			if jobs != 4400 || math.Abs(1/rate-gap) > 0.5 || power != 10000 {
				t.Errorf("case %d, %v: %d jobs, one every %.1f s, %.0f MIPS", number, load, jobs, 1/rate, power)
			}
			f, err := m.Generate(NewRand(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			counted := 0
			for _, w := range f.Sites {
				for i := range w.Jobs {
					if s := w.Jobs[i].Submit; s >= f.From && s < f.Until {
						counted++
					}
					if w.Jobs[i].Estimate != w.Jobs[i].Run || w.Jobs[i].Procs != 1 {
						t.Fatalf("%+v", w.Jobs[i])
					}
				}
			}
			if counted != 4000 {
				t.Errorf("case %d, %v: %d jobs count", number, load, counted)
			}
			again, err := m.Generate(NewRand(0, 0))
			if err != nil || Hash(again.Sites...) != Hash(f.Sites...) {
				t.Errorf("case %d, %v: another hash, %v", number, load, err)
			}
			if other, err := m.Generate(NewRand(1, 0)); err != nil || Hash(other.Sites...) == Hash(f.Sites...) {
				t.Errorf("case %d, %v: two seeds, one hash, %v", number, load, err)
			}
		}
	}
	for _, number := range []int{0, 4} {
		if _, err := Priority(number, Heavy); !errors.Is(err, ErrArgument) {
			t.Errorf("case %d: %v", number, err)
		}
	}
	if _, err := Priority(1, Light+1); !errors.Is(err, ErrArgument) {
		t.Errorf("an unknown load: %v", err)
	}
}

// Sizes and gaps are exponential with the means that were asked for, and one
// seed has the same sizes at any load.
func TestExponential(t *testing.T) {
	const n = 50000
	m := Exponential{Streams: []Stream{{Site: "a", MIPS: 500, Jobs: n, MeanGap: 450 * time.Second}, {Site: "b", MIPS: 250, Jobs: n, MeanGap: time.Second}}}
	f, err := m.Generate(NewRand(21, 0))
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range f.Sites {
		run := func(i int) float64 { return w.Jobs[i].Run.Seconds() }
		mean, e := meanAndError(n, run)
		near(t, "the mean run time at 500 MIPS", mean, 2000, e, 4)
		square, e := meanAndError(n, func(i int) float64 { return run(i) * run(i) })
		near(t, "its mean square", square, 2*2000*2000, e, 4)
		gap := func(i int) float64 {
			if i == 0 {
				return time.Duration(w.Jobs[0].Submit).Seconds()
			}
			return w.Jobs[i].Submit.Sub(w.Jobs[i-1].Submit).Seconds()
		}
		mean, e = meanAndError(n, gap)
		near(t, "the mean gap", mean, m.Streams[k].MeanGap.Seconds(), e, 4)
		product, e := meanAndError(n, func(i int) float64 { return gap(i) * run(i) })
		near(t, "the mean product", product, 2000*m.Streams[k].MeanGap.Seconds(), e, 4)
	}
	m.Streams[0].MeanGap /= 2
	other, err := m.Generate(NewRand(21, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Sites[0].Jobs {
		a, b := f.Sites[0].Jobs[i], other.Sites[0].Jobs[i]
		if a.Run != b.Run || math.Abs(float64(a.Submit)/2-float64(b.Submit)) > 1 {
			t.Fatalf("job %d: %+v at one load, %+v at another", i, a, b)
		}
	}
	if Hash(f.Sites[1]) != Hash(other.Sites[1]) {
		t.Error("the gaps of one site change the jobs of another")
	}
	good := Stream{Site: "a", MIPS: 1, Jobs: 10, MeanGap: time.Second}
	for name, bad := range map[string]Exponential{
		"no streams": {}, "no jobs": {Streams: []Stream{{MIPS: 1, MeanGap: 1}}}, "no speed": {Streams: []Stream{{Jobs: 1, MeanGap: 1}}},
		"no gap": {Streams: []Stream{{Jobs: 1, MIPS: 1}}}, "all dropped": {Streams: []Stream{good}, Drop: 5}, "drop": {Streams: []Stream{good}, Drop: -1},
		"size": {Streams: []Stream{good}, MeanSizeMI: -1}, "long": {Streams: []Stream{good}, MeanSizeMI: 1e12}, "gaps": {Streams: []Stream{{Jobs: 10, MIPS: 1, MeanGap: MaxSpan}}},
	} {
		if _, err := bad.Generate(NewRand(0, 0)); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
