package forecast

import (
	"math"
	"testing"
	"time"
)

// Each run time by itself is as its distribution says; those of one user go together, those
// of others a little.
func TestCast(t *testing.T) {
	var d Dist
	d.Reset()
	const steps = 1000
	for i := range steps {
		d.Add(time.Duration(i+1), 1)
	}
	var c Cast
	c.Reset(4)
	for i, user := range []string{"ada", "ada", "bob"} {
		c.Set(int32(i), &d, steps, user)
	}
	rng := newRand(5)
	const n = 40_000
	var mean [3]float64
	var within [steps + 1]int
	var product [3]float64 // of 0 and 1, 0 and 2, 0 and 0
	for range n {
		c.Begin(rng)
		var z [3]float64
		for i := range z {
			run := c.Run(int32(i), 0)
			within[run]++
			z[i] = math.Sqrt2 * math.Erfinv(2*(float64(run)-0.5)/steps-1)
			mean[i] += z[i] / n
		}
		product[0] += z[0] * z[1] / n
		product[1] += z[0] * z[2] / n
		product[2] += z[0] * z[0] / n
	}
	for i, want := range []float64{commonShare + userShare, commonShare, 1} {
		if math.Abs(product[i]-want) > 0.03 {
			t.Errorf("correlation %.3f, want %.3f", product[i], want)
		}
	}
	sum := 0
	for i, k := range within {
		if sum += k; i%100 == 0 && math.Abs(float64(sum)/(3*n)-float64(i)/steps) > 0.01 {
			t.Errorf("%d of %d run for %d at most", sum, 3*n, i)
		}
	}
	if got := c.Run(3, 7); got != 7 {
		t.Errorf("a number without a job runs for %v", got)
	}
}

// The same seed gives the same scenario, whatever was played before.
func TestCastIsRepeatable(t *testing.T) {
	var d Dist
	NewHistory().Runs(&Question{Limit: time.Hour}, &d)
	var c Cast
	play := func() (list [4]time.Duration) {
		c.Reset(4)
		for i := range int32(4) {
			c.Set(i, &d, time.Hour, string('a'+i/2))
		}
		c.Begin(newRand(6))
		for i := range int32(4) {
			list[i] = c.Run(i, time.Duration(i)*time.Minute)
		}
		return list
	}
	first := play()
	c.Begin(newRand(7))
	c.Run(2, 0)
	c.scenario = math.MaxUint32 // the next one is after all numbers were used
	if second := play(); second != first {
		t.Errorf("%v, then %v", first, second)
	}
}
