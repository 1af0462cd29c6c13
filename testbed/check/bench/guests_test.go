package bench

import (
	"slices"
	"testing"
	"time"
)

func TestDelaysOfJobsBesideGuests(t *testing.T) {
	alone := map[int64]time.Duration{1: 0, 2: time.Hour, 3: 0, 4: time.Minute, 5: 0, 6: 0, 7: 0, 8: 0}
	with := map[int64]time.Duration{
		1: time.Minute, 2: time.Hour - time.Second, 3: 61 * time.Second, 4: time.Minute, 5: time.Second, 6: time.Second, 7: 2 * time.Second, 8: 125 * time.Second,
	}
	d := delaysOf(alone, with)
	if !slices.Equal(d.longer, []float64{1, 1, 2, 60, 61, 125}) || d.byATask != 4 || d.shorter != 1 {
		t.Errorf("%+v", d)
	}
	if want := 249.0 / 250; d.hardest < want-1e-9 || d.hardest > want+1e-9 {
		t.Errorf("the hardest hit have %v, want %v", d.hardest, want)
	}
	if none := delaysOf(alone, alone); len(none.longer) > 0 || none.shorter > 0 || none.hardest != 0 {
		t.Errorf("without guests %+v", none)
	}
}
