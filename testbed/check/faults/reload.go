package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"kith/testbed/sim"
)

// reloads reports whether a wide schedule of a seed has sites that take up another configuration
// without a restart.
func reloads(seed uint64) bool { return isOneOf(seed, 5, 16, 17, 34) }

// isOneOf reports whether a seed is among those of some kinds out of 36, each as often as any other. Few seeds
// that a test or a mutant names are of the kinds that were added last.
func isOneOf(seed uint64, kinds ...uint64) bool { return slices.Contains(kinds, seed%36) }

// reloadSites has sites of a schedule take up limits and a longest time limit for guests while jobs
// wait, and often others later. One of the widest sites takes guests of any length, so that all can run
// somewhere. It has draws of its own, so that the schedule is else what it was.
func (s *Schedule) reloadSites() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x72656c6f6164)), s: s}
	if d.one(2) {
		d.burst(d.span(s.End/2), d.site(), 10+d.IntN(30))
	}
	for range 1 + d.IntN(3) {
		at, site := d.span(s.End*3/4), d.site()
		d.reload(Fault{Kind: Reload, Site: site, At: at})
		for range d.IntN(3) {
			at += d.upTo(time.Minute)
			d.reload(Fault{Kind: Reload, Site: site, At: at})
		}
	}
}

func (d *draw) reload(f Fault) {
	if d.one(2) {
		d.limits(&f.To)
	} else if d.one(2) {
		f.To.PerOrigin, f.To.Copies, f.To.Jobs = 100, 200, 1000
	}
	if d.one(2) && f.Site != d.kept() {
		f.To.GuestWalltime = time.Duration(5+d.IntN(120)) * time.Second
	}
	d.add(f)
}

// reload makes a site's configuration say what a reload can change of it.
func (c *Settings) reload(x *sim.SiteConfig) {
	if c.PerOrigin != 0 {
		x.Meta.Limits.CopiesPerOrigin = c.PerOrigin
	}
	if c.Copies != 0 {
		x.Meta.Limits.Copies = c.Copies
	}
	if c.Jobs != 0 {
		x.Meta.Limits.Jobs = c.Jobs
	}
	if c.K != 0 {
		x.Meta.Placement.Copies = c.K
	}
	x.Meta.NoHarm.GuestWalltime = c.GuestWalltime
}

// needsRestart reports whether the settings name what no reload changes.
func (c *Settings) needsRestart() bool {
	return c.Processors != 0 || c.Memory != 0 || c.Queues != "" || c.Without != ""
}
