package hierarchy

import (
	"math"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// submitted is a task as its user sends it: when, and how much work it is, in operations.
type submitted struct {
	at   job.Time
	work float64
}

// The trace of the source: 2,300 tasks in seven months.
const (
	traceTasks = 2300
	traceTime  = 214 * 24 * time.Hour
)

// The tail of the long class, fitted once to H5 and H16 together before anything else was looked at, and left since: see Remark.
const (
	tailMedian = 150.0 // processor-hours
	tailSigma  = 2.6
)

// classes of tasks by their time on one processor: "a few minutes or less" 60 %, "under 3 h" 28 %, longer 12 %.
var classes = []struct {
	part              float64
	median, sigma     float64 // of a lognormal, s
	shortest, longest float64 // s
}{
	{0.60, 45, 1, 1, 360},
	{0.28, 2000, 1, 60, 3 * 3600},
	{0.12, tailMedian * 3600, tailSigma, 3 * 3600, math.Inf(1)},
}

// hourly is the speed by which the source counts processor-hours: that of Q3 and Q4.
const hourly = 649505e3

// generate makes the tasks of seven months, in bursts of four in the mean whose gaps are gamma distributed; load multiplies the number of long ones.
func generate(tasks int, long float64, rng *rand.Rand) []submitted {
	// Two streams, so that more long tasks change nothing about the short ones.
	lengths := rand.New(rand.NewPCG(rng.Uint64(), 1))
	extra := rand.New(rand.NewPCG(rng.Uint64(), 2))
	span := traceTime.Seconds() * float64(tasks) / traceTasks
	var list []submitted
	const burst, shape = 4, 0.5
	mean := span / float64(tasks) * burst
	at := 0.0
	for len(list) < tasks {
		at += gamma(shape, rng) * mean / shape
		for here := at; len(list) < tasks; here += rng.ExpFloat64() * 60 {
			list = append(list, submitted{at: seconds(here), work: draw(lengths)})
			if rng.Float64() < 1.0/burst {
				break
			}
		}
	}
	n := len(list)
	for i := range n {
		if list[i].work > hourly*3*3600 && extra.Float64() < long-1 {
			more := list[i]
			more.at = seconds(extra.Float64() * at)
			list = append(list, more)
		}
	}
	return list
}

func draw(rng *rand.Rand) float64 {
	u := rng.Float64()
	for _, c := range classes {
		if u -= c.part; u > 0 && c.part > 0.12 {
			continue
		}
		x := c.median * math.Exp(c.sigma*rng.NormFloat64())
		return hourly * min(max(x, c.shortest), c.longest)
	}
	return hourly
}

// gamma draws a gamma of that shape below 1 and scale 1 (Ahrens and Dieter).
func gamma(shape float64, rng *rand.Rand) float64 {
	for e := 1 + shape/math.E; ; {
		p := e * rng.Float64()
		if p <= 1 {
			if x := math.Pow(p, 1/shape); rng.Float64() <= math.Exp(-x) {
				return x
			}
			continue
		}
		if x := -math.Log((e - p) / shape); rng.Float64() <= math.Pow(x, shape-1) {
			return x
		}
	}
}

func seconds(s float64) job.Time { return job.Time(s * float64(time.Second)) }
