package boltstore

import (
	"testing"
	"time"
)

// Whatever the clock says, no folder has generation 0: names of runs of tasks have it.
func TestNoFolderHasGenerationZero(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wraps := time.Duration(1<<32) * (time.Minute / 64) // so many later it would be 0 again
	for _, now := range []time.Time{first, first.Add(time.Millisecond), first.Add(-time.Millisecond), first.Add(wraps), time.Unix(0, 0)} {
		if NewGeneration(now) == 0 {
			t.Errorf("a folder made at %v has generation 0", now)
		}
	}
	if a, b := NewGeneration(first.Add(time.Hour)), NewGeneration(first.Add(time.Hour+time.Second)); a == b || a != 3840 {
		t.Errorf("folders made a second apart have generations %d and %d", a, b)
	}
}
