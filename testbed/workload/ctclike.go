package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// CTCLike makes workloads that look like the log of the SP2 at the Cornell
// Theory Center, for experiments without the log at hand (spec 001 section
// 3.0): 42 % of the jobs are serial, the others mostly powers of two up to 256;
// limits go from 5 minutes to 18 hours, and long ones are asked for by narrow
// jobs; run times are mostly far below their limits; submissions follow a
// sinusoidal day, with weekends at 0.6 of it.
//
// The load stretches time only: one seed gives the same jobs at any load.
type CTCLike struct {
	// Jobs is how many; zero means 5000.
	Jobs int
	// Processors is the size of the machine; zero means 430. No job is wider.
	Processors int32
	// Load is the offered load that [Workload.OfferedLoad] will return; zero means 0.6.
	Load float64
}

// Name describes m with its defaults filled in.
func (m CTCLike) Name() string {
	m = m.withDefaults()
	return fmt.Sprintf("ctc-like, %d jobs, %d processors, load %.4g", m.Jobs, m.Processors, m.Load)
}

func (m CTCLike) withDefaults() CTCLike {
	if m.Jobs == 0 {
		m.Jobs = 5000
	}
	if m.Processors == 0 {
		m.Processors = 430
	}
	if m.Load == 0 {
		m.Load = 0.6
	}
	return m
}

// ctcLimits are the limits that users of the log ask for, with their shares and
// with the share of serial jobs among them. The shares are those of the log,
// rounded; with them 42 % of all jobs are serial.
var ctcLimits = []struct {
	limit         time.Duration
	share, serial float64
}{
	{5 * time.Minute, 0.09, 0.22}, {10 * time.Minute, 0.07, 0.22}, {15 * time.Minute, 0.12, 0.22},
	{30 * time.Minute, 0.06, 0.22}, {time.Hour, 0.06, 0.22},
	{2 * time.Hour, 0.07, 0.45}, {3 * time.Hour, 0.06, 0.45}, {4 * time.Hour, 0.03, 0.45}, {6 * time.Hour, 0.08, 0.45},
	{8 * time.Hour, 0.03, 0.62}, {12 * time.Hour, 0.05, 0.62}, {18 * time.Hour, 0.28, 0.62},
}

// ctcWidths are the shares of 2, 4, 8, … 256 among the parallel jobs whose
// width is a power of two, which three quarters are.
var ctcWidths = []float64{0.16, 0.24, 0.20, 0.18, 0.12, 0.065, 0.025, 0.01}

// Generate returns a workload drawn from rng, or an error that wraps [ErrArgument].
func (m CTCLike) Generate(rng *rand.Rand) (*Workload, error) {
	m = m.withDefaults()
	if err := errors.Join(validSize(m.Jobs, m.Processors), validLoad(m.Load)); err != nil {
		return nil, err
	}
	w := &Workload{Name: m.Name(), Processors: m.Processors, Tick: time.Second, Jobs: make([]Job, m.Jobs)}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.ID = int64(i) + 1
		m.shape(rng, j)
		user := zipf(rng, 60)
		j.User, j.Group = strconv.Itoa(user), strconv.Itoa(user%8)
	}
	at := make([]float64, m.Jobs) // a Poisson process, in the time of the cycle
	for i := 1; i < len(at); i++ {
		at[i] = at[i-1] + rng.ExpFloat64()
	}
	if err := ctcWeek().submitWithin(w, at, w.Work()/(float64(m.Processors)*m.Load)); err != nil {
		return nil, err
	}
	return w, nil
}

// Hardly a job of the log ends within half a minute of its start, but a quarter
// within two minutes, whatever their limit. The mean slowdown hangs on that: it
// divides by the run time.
const (
	ctcLeast = 40.0  // s, no job runs for less
	ctcEarly = 130.0 // s, what fails early has ended by then
)

// shape draws width, estimate and run time.
func (m CTCLike) shape(rng *rand.Rand, j *Job) {
	limit := ctcLimits[pick(rng, len(ctcLimits), func(i int) float64 { return ctcLimits[i].share })]
	j.Estimate = limit.limit
	j.Procs = 1
	if rng.Float64() >= limit.serial {
		j.Procs = m.width(rng)
	}
	e := limit.limit.Seconds()
	var run float64
	switch u := rng.Float64(); {
	case u < 0.10: // ran into its limit
		run = e
	case u < 0.30: // failed early
		run = ctcLeast * math.Pow(ctcEarly/ctcLeast, rng.Float64())
	default:
		run = ctcLeast + (e-ctcLeast)*math.Pow(rng.Float64(), 1.5)
	}
	j.Run = min(max(time.Duration(run)*time.Second, time.Second), j.Estimate)
}

// width draws the width of a parallel job that fits.
func (m CTCLike) width(rng *rand.Rand) int32 {
	if m.Processors < 2 {
		return 1
	}
	for {
		p := int32(2) << pick(rng, len(ctcWidths), func(i int) float64 { return ctcWidths[i] })
		if rng.Float64() >= 0.75 {
			p = int32(math.Round(3 * math.Pow(64.0/3, rng.Float64()))) // 3 to 64
		}
		if p <= m.Processors {
			return p
		}
	}
}

// pick draws an index below n with the given shares, whose sum need not be 1.
func pick(rng *rand.Rand, n int, share func(int) float64) int {
	sum := 0.0
	for i := range n {
		sum += share(i)
	}
	u := rng.Float64() * sum
	for i := range n {
		if u -= share(i); u < 0 {
			return i
		}
	}
	return n - 1
}

// zipf draws a number from 1 to n with probability proportional to its inverse:
// few users submit most jobs.
func zipf(rng *rand.Rand, n int) int {
	return 1 + pick(rng, n, func(i int) float64 { return 1 / float64(i+1) })
}

// ctcWeek is a sine with its peak in the early afternoon, as in the log, and
// quieter weekends.
var ctcWeek = sync.OnceValue(func() *cycle {
	rates := make([]float64, 7*24)
	for h := range rates {
		rates[h] = 1 + 0.8*math.Cos(2*math.Pi*(float64(h%24)+0.5-14.5)/24)
		if h >= 5*24 {
			rates[h] *= 0.6
		}
	}
	return newCycle(time.Hour, rates)
})
