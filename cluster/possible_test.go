package cluster_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// A site bars guests that are too long or too wide for it. How long a job of a hierarchy runs is its
// level's business.
func TestBars(t *testing.T) {
	for name, c := range map[string]struct {
		d    cluster.Digest
		r    job.Request
		want job.Reason
	}{
		"no bounds":          {cluster.Digest{Processors: 4}, job.Request{Processors: 4, Walltime: time.Hour}, job.NoReason},
		"as long as may be":  {cluster.Digest{Processors: 4, GuestWalltime: time.Hour}, job.Request{Processors: 4, Walltime: time.Hour}, job.NoReason},
		"longer":             {cluster.Digest{Processors: 4, GuestWalltime: time.Hour}, job.Request{Processors: 4, Walltime: time.Hour + 1}, job.GuestWalltime},
		"of a hierarchy":     {cluster.Digest{Processors: 4, GuestWalltime: time.Hour}, job.Request{Processors: 4, Walltime: 2 * time.Hour, Level: 1}, job.NoReason},
		"as wide as may be":  {cluster.Digest{Processors: 4, KeptFree: 1}, job.Request{Processors: 3, Walltime: time.Hour}, job.NoReason},
		"wider":              {cluster.Digest{Processors: 4, KeptFree: 1}, job.Request{Processors: 4, Walltime: time.Hour}, job.KeptFree},
		"nothing for guests": {cluster.Digest{Processors: 4, KeptFree: 8}, job.Request{Processors: 1, Walltime: time.Hour}, job.KeptFree},
	} {
		if got := c.d.Bars(&c.r); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A load that no site can have is told from one that a site has.
func TestImpossibleLoads(t *testing.T) {
	good := cluster.Digest{Site: "beta", Processors: 8, MemoryBytes: 1 << 30, Speed: 1, Load: job.Load{Work: 3, Procs: 0.5, Free: 2, Queued: 4, Running: 5}}
	for name, c := range map[string]struct {
		change func(*cluster.Digest)
		ok     bool
	}{
		"as it is":                  {func(*cluster.Digest) {}, true},
		"an idle site":              {func(d *cluster.Digest) { d.Load = job.Load{Free: 8, Work: -1e-12} }, true},
		"an older site":             {func(d *cluster.Digest) { d.Speed, d.MemoryBytes = 0, 0 }, true},
		"fewer than none free":      {func(d *cluster.Digest) { d.Load.Free = -4 }, true},
		"the fastest":               {func(d *cluster.Digest) { d.Speed = 1e3 }, true},
		"a millionfold speed":       {func(d *cluster.Digest) { d.Speed = 1e6 }, false},
		"a hugely negative work":    {func(d *cluster.Digest) { d.Load.Work = -1e300 }, false},
		"endless work":              {func(d *cluster.Digest) { d.Load.Work = math.Inf(1) }, false},
		"work is no number":         {func(d *cluster.Digest) { d.Load.Work = math.NaN() }, false},
		"a negative ratio":          {func(d *cluster.Digest) { d.Load.Procs = -1 }, false},
		"a huge ratio":              {func(d *cluster.Digest) { d.Load.Procs = 1e300 }, false},
		"a huge speed":              {func(d *cluster.Digest) { d.Speed = 1e300 }, false},
		"a negative speed":          {func(d *cluster.Digest) { d.Speed = -1 }, false},
		"speed is no number":        {func(d *cluster.Digest) { d.Speed = math.NaN() }, false},
		"2^30 processors":           {func(d *cluster.Digest) { d.Processors = 1 << 30 }, false},
		"2^30 free processors":      {func(d *cluster.Digest) { d.Load.Free = 1 << 30 }, false},
		"negative processors":       {func(d *cluster.Digest) { d.Processors = -1 }, false},
		"guests of a negative time": {func(d *cluster.Digest) { d.GuestWalltime = -1 }, false},
		"guests of an hour":         {func(d *cluster.Digest) { d.GuestWalltime = time.Hour }, true},
		"guests of 11 years":        {func(d *cluster.Digest) { d.GuestWalltime = 11 * 366 * 24 * time.Hour }, false},
		"negative processors kept":  {func(d *cluster.Digest) { d.KeptFree = -1 }, false},
		"all processors kept":       {func(d *cluster.Digest) { d.KeptFree = 8 }, true},
		"2^30 processors kept":      {func(d *cluster.Digest) { d.KeptFree = 1 << 30 }, false},
		"an exabyte of memory":      {func(d *cluster.Digest) { d.MemoryBytes = 1 << 60 }, false},
	} {
		d := good
		c.change(&d)
		if err := d.Possible(); (err == nil) != c.ok || err != nil && !errors.Is(err, cluster.ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
