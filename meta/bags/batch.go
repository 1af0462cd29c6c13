package bags

import (
	"time"

	"kith/internal/job"
)

const (
	// BatchResults is how many results of a bundle go to its origin together, at most.
	BatchResults = 256
	// BatchWait is how long a result waits for others.
	BatchWait = 100 * time.Millisecond
)

// Batch gathers the results of a bundle at its host. The zero value is empty.
type Batch struct {
	results []job.TaskResult
	first   job.Time
}

// Add adds a result.
func (b *Batch) Add(r job.TaskResult, now job.Time) {
	if len(b.results) == 0 {
		b.first = now
	}
	b.results = append(b.results, r)
}

// Due returns when the next batch is due, now or earlier for at once and [job.Never] for
// an empty one: with [BatchResults], after [BatchWait], or at once if the bundle has no
// more tasks here that others could wait for.
func (b *Batch) Due(more bool) job.Time {
	switch {
	case len(b.results) == 0:
		return job.Never
	case !more || len(b.results) >= BatchResults:
		return b.first
	}
	return b.first.Add(BatchWait)
}

// TakeWhile is [Batch.Take] that stops at the first result that does not fit. It takes one
// at least.
func (b *Batch) TakeWhile(fits func(*job.TaskResult) bool) []job.TaskResult {
	n := 0
	for n < min(len(b.results), BatchResults) && (fits(&b.results[n]) || n == 0) {
		n++
	}
	taken := b.results[:n:n]
	b.results = b.results[n:]
	return taken
}

// Take removes the results of the next batch, the oldest. The caller owns them. Those that
// stay have waited as long.
func (b *Batch) Take() []job.TaskResult {
	return b.TakeWhile(func(*job.TaskResult) bool { return true })
}
