package cluster

import (
	"errors"
	"math"
	"testing"

	"kith/internal/harvest"
)

func TestPossibleOwners(t *testing.T) {
	t.Parallel()
	good := harvest.Load{Lambda: 0.01, Rho: 0.3, Sigma: 20}
	for name, c := range map[string]struct {
		loads []harvest.Load
		ok    bool
	}{
		"as measured":    {[]harvest.Load{good, good, good}, true},
		"never there":    {make([]harvest.Load, harvest.Widths), true},
		"none":           {nil, false},
		"two":            {[]harvest.Load{good, good}, false},
		"four":           {[]harvest.Load{good, good, good, good}, false},
		"rho above 1":    {[]harvest.Load{good, good, {Lambda: 1, Rho: 1.1}}, false},
		"rho negative":   {[]harvest.Load{good, {Lambda: 1, Rho: -0.1}, good}, false},
		"rho NaN":        {[]harvest.Load{good, {Lambda: 1, Rho: math.NaN()}, good}, false},
		"lambda 0":       {[]harvest.Load{good, {Rho: 0.5}, good}, false},
		"lambda endless": {[]harvest.Load{{Lambda: math.Inf(1), Rho: 0.5}, good, good}, false},
		"sigma NaN":      {[]harvest.Load{{Lambda: 1, Rho: 0.5, Sigma: math.NaN()}, good, good}, false},
	} {
		o, err := NewOwner(c.loads)
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
		if d := (Digest{Processors: 4, Owner: o}); o != nil && (d.Possible() == nil) != c.ok {
			t.Errorf("%s: the digest is %v", name, d.Possible())
		}
	}
}

func TestOwnerByWidth(t *testing.T) {
	t.Parallel()
	var nobody *Owner
	if nobody.TooBusy(1, 4) || nobody.Left(1, 4) != 1 || nobody.possible() != nil {
		t.Error("nobody takes something")
	}
	o := &Owner{Loads: [harvest.Widths]harvest.Load{{Lambda: 1, Rho: 0.1}, {Lambda: 1, Rho: 0.5}, {Lambda: 1, Rho: 0.95}}}
	for taken, want := range map[int32]float64{1: 0.9, 2: 0.5, 3: 0.1, 4: 0.1} {
		if got := o.Left(taken, 4); math.Abs(got-want) > 1e-12 {
			t.Errorf("a job of %d has %v left, want %v", taken, got, want)
		}
	}
	if o.TooBusy(2, 4) || !o.TooBusy(4, 4) {
		t.Error("he is too busy for the wrong ones")
	}
}
