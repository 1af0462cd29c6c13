package sim

import (
	"math/rand/v2"
	"testing"

	"kith/internal/job"
)

// TestAgendaOrder looks at the whole heap after each take: nothing may stand
// below what comes later. The order was once lost in one of fifty thousand
// takes of a simulation, as the bound among siblings moved with the least of
// them, and a job arrived 14 s late. Additions that come ever earlier show that
// sooner.
func TestAgendaOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A test.
	var a agenda
	now := job.Time(0)
	for n := range 20_000 {
		for len(a.heap) < 400+n%200 {
			a.add(now+job.Time(100_000_000+rng.IntN(1_000_000)-1_000_000*(n%50)), completion, 0, call(func() {}))
		}
		now = a.heap[0].at
		a.take()
		for i := 1; i < len(a.heap); i++ {
			if up := (i - 1) / 4; a.heap[i].before(&a.heap[up]) {
				t.Fatalf("take %d: place %d of %d comes before place %d above it", n, i, len(a.heap), up)
			}
		}
	}
}
