package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

func TestBatchesAreDue(t *testing.T) {
	const ms = job.Time(time.Millisecond)
	var b Batch
	due := func(what string, more bool, want job.Time) {
		t.Helper()
		if got := b.Due(more); got != want {
			t.Errorf("%s: due at %v, want %v", what, got, want)
		}
	}
	due("empty", true, job.Never)
	due("empty, and no more", false, job.Never)
	b.Add(job.TaskResult{}, 5*ms)
	b.Add(job.TaskResult{Ordinal: 1}, 90*ms)
	due("two", true, 105*ms)
	due("the last two", false, 5*ms)
	for i := range uint32(BatchResults - 3) {
		b.Add(job.TaskResult{Ordinal: 2 + i}, 91*ms)
	}
	due("one less than full", true, 105*ms)
	b.Add(job.TaskResult{Ordinal: BatchResults - 1}, 92*ms)
	due("full", true, 5*ms)
	if got := b.Take(); len(got) != BatchResults {
		t.Errorf("a batch of %d", len(got))
	}
	due("taken", true, job.Never)
	b.Add(job.TaskResult{}, 200*ms)
	due("the next", true, 300*ms)
}

// Every result is in one batch, in order; no batch is too long, and none waits longer than
// it may for who takes what is due.
func TestBatchesLoseNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	var b Batch
	added, taken, now := uint32(0), uint32(0), job.Time(0)
	at := map[uint32]job.Time{}
	for range 2000 {
		next := now.Add(time.Duration(rng.Int64N(int64(30 * time.Millisecond))))
		for due := b.Due(true); due <= next; due = b.Due(true) {
			now = max(now, due)
			batch := b.Take()
			if len(batch) == 0 || len(batch) > BatchResults {
				t.Fatalf("a batch of %d", len(batch))
			}
			for i := range batch {
				if batch[i].Ordinal != taken || now.Sub(at[taken]) > BatchWait {
					t.Fatalf("result %d after %v, %d is the next", batch[i].Ordinal, now.Sub(at[taken]), taken)
				}
				taken++
			}
			_ = append(batch, job.TaskResult{Ordinal: 1 << 23}) // the caller's
		}
		now = max(now, next)
		for range rng.IntN(300) * rng.IntN(2) * rng.IntN(2) {
			b.Add(job.TaskResult{Ordinal: added}, now)
			at[added] = now
			added++
		}
	}
	for b.Due(false) != job.Never {
		taken += uint32(len(b.Take()))
	}
	if taken != added || added < 10_000 {
		t.Errorf("%d results of %d", taken, added)
	}
}
