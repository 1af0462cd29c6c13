package federation

import (
	"time"

	"kith/testbed/workload"
)

// transferStream keeps the random numbers of transfers apart from all others.
const transferStream = 0x7472616e73 << 16

// Times returns a function that yields the transfer times of the jobs of a
// site's workload, one a call: a sequence of its own for each seed and site,
// the same under every scheme.
func (t *Transfer) Times(seed uint64, site int) func() time.Duration {
	rng := workload.NewRand(seed, transferStream+uint64(site))
	return func() time.Duration {
		bytes := t.MinBytes + rng.Int64N(t.MaxBytes-t.MinBytes+1)
		return time.Duration(float64(bytes) * 8 / t.BitsPerSecond * float64(time.Second))
	}
}
