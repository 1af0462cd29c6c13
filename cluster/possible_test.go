package cluster_test

import (
	"errors"
	"math"
	"testing"

	"kith/cluster"
	"kith/internal/job"
)

// A load that no site can have is told from one that a site has.
func TestImpossibleLoads(t *testing.T) {
	good := cluster.Digest{Site: "beta", Processors: 8, MemoryBytes: 1 << 30, Speed: 1, Load: job.Load{Work: 3, Procs: 0.5, Free: 2, Queued: 4, Running: 5}}
	for name, c := range map[string]struct {
		change func(*cluster.Digest)
		ok     bool
	}{
		"as it is":               {func(*cluster.Digest) {}, true},
		"an idle site":           {func(d *cluster.Digest) { d.Load = job.Load{Free: 8, Work: -1e-12} }, true},
		"an older site":          {func(d *cluster.Digest) { d.Speed, d.MemoryBytes = 0, 0 }, true},
		"fewer than none free":   {func(d *cluster.Digest) { d.Load.Free = -4 }, true},
		"the fastest":            {func(d *cluster.Digest) { d.Speed = 1e3 }, true},
		"a millionfold speed":    {func(d *cluster.Digest) { d.Speed = 1e6 }, false},
		"a hugely negative work": {func(d *cluster.Digest) { d.Load.Work = -1e300 }, false},
		"endless work":           {func(d *cluster.Digest) { d.Load.Work = math.Inf(1) }, false},
		"work is no number":      {func(d *cluster.Digest) { d.Load.Work = math.NaN() }, false},
		"a negative ratio":       {func(d *cluster.Digest) { d.Load.Procs = -1 }, false},
		"a huge ratio":           {func(d *cluster.Digest) { d.Load.Procs = 1e300 }, false},
		"a huge speed":           {func(d *cluster.Digest) { d.Speed = 1e300 }, false},
		"a negative speed":       {func(d *cluster.Digest) { d.Speed = -1 }, false},
		"speed is no number":     {func(d *cluster.Digest) { d.Speed = math.NaN() }, false},
		"2^30 processors":        {func(d *cluster.Digest) { d.Processors = 1 << 30 }, false},
		"2^30 free processors":   {func(d *cluster.Digest) { d.Load.Free = 1 << 30 }, false},
		"negative processors":    {func(d *cluster.Digest) { d.Processors = -1 }, false},
		"an exabyte of memory":   {func(d *cluster.Digest) { d.MemoryBytes = 1 << 60 }, false},
	} {
		d := good
		c.change(&d)
		if err := d.Possible(); (err == nil) != c.ok || err != nil && !errors.Is(err, cluster.ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
