package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"kith/internal/draw"
)

// Lublin makes workloads by the model of Lublin and Feitelson for rigid jobs
// on parallel machines, with the parameters fitted to all jobs of four logs,
// batch and interactive alike.
//
//   - Widths: a share is serial; of the others the logarithm comes from a
//     two-stage uniform distribution, rounded for the share that are powers of two.
//   - Run times: the logarithm comes from a mixture of two gamma distributions,
//     in which wide jobs belong to the long ones more often.
//   - Submissions: the logarithm of gaps comes from a gamma distribution; the
//     gaps pass fast or slowly by the hour as a daily cycle says.
//
// The model has no estimates: they are the run times. It says nothing about
// users either.
//
// Source: U. Lublin and D. G. Feitelson, The workload on parallel
// supercomputers: modeling the characteristics of rigid jobs, Journal of
// Parallel and Distributed Computing 63 (2003) 1105-1122.
type Lublin struct {
	// Jobs is how many; zero means 5000.
	Jobs int
	// Processors is the size of the machine; zero means 256. No job is wider.
	Processors int32
	// Load is the offered load that [Workload.OfferedLoad] will return. Zero
	// leaves the gaps as the model has them, whatever the load.
	Load float64
}

// Name describes m with its defaults filled in.
func (m Lublin) Name() string {
	m = m.withDefaults()
	name := fmt.Sprintf("lublin, %d jobs, %d processors", m.Jobs, m.Processors)
	if m.Load != 0 {
		name += fmt.Sprintf(", load %.4g", m.Load)
	}
	return name
}

func (m Lublin) withDefaults() Lublin {
	if m.Jobs == 0 {
		m.Jobs = 5000
	}
	if m.Processors == 0 {
		m.Processors = 256
	}
	return m
}

// The parameters of the model.
const (
	lublinSerial = 0.244 // share of serial jobs
	lublinPower2 = 0.576 // share of jobs whose width is made a power of two

	// log2 of the width: uniform in [low, medium) with the probability of the
	// first stage, else in [medium, high]; high is log2 of the processors.
	lublinLow        = 0.8
	lublinMediumBack = 2.5 // high − medium
	lublinFirstStage = 0.86

	// ln of the run time in seconds: gamma(a1, b1) with probability pa·width+pb,
	// else gamma(a2, b2). Above the limit (two days) it is drawn again.
	lublinA1, lublinB1 = 4.2, 0.94
	lublinA2, lublinB2 = 312.0, 0.03
	lublinPA, lublinPB = -0.0054, 0.78
	lublinLongestRun   = 12.0

	// ln of a gap in seconds: gamma(aArr × ratio, bArr); the ratio turns gaps of
	// rush hours into gaps of all hours. Above the limit it is drawn again.
	lublinArrA, lublinArrB = 10.2303, 0.4871
	lublinArrRatio         = 1.0225
	lublinLongestGap       = 13.0

	// The share of the submissions in each half-hour of a day follows gamma(aNum,
	// bNum) over the half-hours from dayStart on, counted from 1 after midnight.
	lublinNumA, lublinNumB = 8.1737, 3.9631
	lublinDayStart         = 11
	lublinBuckets          = 48
)

// Generate returns a workload drawn from rng, or an error that wraps [ErrArgument].
func (m Lublin) Generate(rng *rand.Rand) (*Workload, error) {
	m = m.withDefaults()
	err := validSize(m.Jobs, m.Processors)
	if m.Load != 0 {
		err = errors.Join(err, validLoad(m.Load))
	}
	if err != nil {
		return nil, err
	}
	w := &Workload{Name: m.Name(), Processors: m.Processors, Tick: time.Second, Jobs: make([]Job, m.Jobs)}
	at := make([]float64, m.Jobs)
	for i := range w.Jobs {
		procs := m.width(rng)
		run := max(time.Duration(math.Exp(lublinLogRun(rng, procs))), 1) * time.Second
		w.Jobs[i] = Job{ID: int64(i) + 1, Procs: procs, Run: run, Estimate: run}
		if i > 0 {
			at[i] = at[i-1] + math.Exp(belowLimit(lublinLongestGap, func() float64 {
				return draw.Gamma(rng, lublinArrA*lublinArrRatio, lublinArrB)
			}))
		}
	}
	if m.Load == 0 {
		err = lublinDay().submit(w, at)
	} else {
		err = lublinDay().submitWithin(w, at, w.Work()/(float64(m.Processors)*m.Load))
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// width draws the width of a job.
func (m Lublin) width(rng *rand.Rand) int32 {
	high := math.Log2(float64(m.Processors))
	u := rng.Float64()
	if u < lublinSerial || high < lublinLow {
		return 1
	}
	medium := max(high-lublinMediumBack, lublinLow)
	for {
		x := medium + (high-medium)*rng.Float64()
		if rng.Float64() < lublinFirstStage {
			x = lublinLow + (medium-lublinLow)*rng.Float64()
		}
		if u < lublinSerial+lublinPower2 {
			x = math.Floor(x + 0.5)
		}
		// Rounding may lead beyond a machine whose size is no power of two.
		if p := math.Floor(math.Exp2(x) + 0.5); p <= float64(m.Processors) {
			return int32(p)
		}
	}
}

// lublinLogRun draws the natural logarithm of a run time in seconds.
func lublinLogRun(rng *rand.Rand, procs int32) float64 {
	p := lublinPA*float64(procs) + lublinPB
	return belowLimit(lublinLongestRun, func() float64 {
		if rng.Float64() < p {
			return draw.Gamma(rng, lublinA1, lublinB1)
		}
		return draw.Gamma(rng, lublinA2, lublinB2)
	})
}

// belowLimit draws until the number is at most limit.
func belowLimit(limit float64, draw func() float64) float64 {
	for {
		if x := draw(); x <= limit {
			return x
		}
	}
}

// lublinDay is the daily cycle of the model.
var lublinDay = sync.OnceValue(func() *cycle {
	rates := make([]float64, lublinBuckets)
	for i := lublinDayStart; i < lublinDayStart+lublinBuckets; i++ {
		// Simpson's rule over the bucket: the density is smooth there.
		const parts = 8
		sum := 0.0
		for k := range 2*parts + 1 {
			weight := 2.0 + 2*float64(k%2)
			if k == 0 || k == 2*parts {
				weight = 1
			}
			sum += weight * gammaDensity(float64(i)-0.5+float64(k)/(2*parts), lublinNumA, lublinNumB)
		}
		rates[(i-1)%lublinBuckets] = sum
	}
	return newCycle(24*time.Hour/lublinBuckets, rates)
})

// gammaDensity returns the density of the gamma distribution with shape a and
// scale b at x > 0.
func gammaDensity(x, a, b float64) float64 {
	lg, _ := math.Lgamma(a) // a > 0, so that it is positive
	return math.Exp((a-1)*math.Log(x/b)-x/b-lg) / b
}
