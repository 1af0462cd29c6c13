package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// Wide makes a wide schedule of a seed: jobs come without an end, sites have
// bounds near 5, restart with other configurations and other wall clocks, cannot
// start processes, hang at their disks and leave. Each has one or two themes,
// which are things that happen together; a third of all have faults of [Random]
// besides.
// Every eighth has bags of tasks beside the jobs; three of twenty have a site or several
// whose facts are kept by members, three of twenty sites that have guests leave, one of nine
// sites that take up another configuration without a restart, and one of nine sites that run
// low on disk.
func Wide(seed uint64, size Size) *Schedule {
	s := wideAlone(seed, size)
	if membered(seed) {
		s.someMembers(3)
	}
	if evicting(seed) {
		s.evictGuests()
	}
	if reloads(seed) {
		s.reloadSites()
	}
	if runsLow(seed) {
		s.fillDisks()
	}
	return s
}

// wideAlone is [Wide] without members and without guests that leave: what came later has draws and
// seeds of its own, so that seeds that are named somewhere are what they were.
func wideAlone(seed uint64, size Size) *Schedule {
	s := wide(seed, size, themes)
	s.someBags()
	s.savePieces()
	return s
}

func wide(seed uint64, size Size, themes []func(*draw)) *Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x77696465)), s: &Schedule{Seed: seed}}
	d.federation(size.Sites)
	d.s.Scheme, d.s.Rank = meta.KDual, meta.RankWork
	if d.one(4) {
		d.s.Scheme = meta.KDistributed
		d.s.Rank = 0
	} else if d.one(5) {
		d.s.Rank = meta.RankStart
	}
	d.mayForecast()
	for i := range d.s.Sites {
		if d.s.Scheme == meta.KDistributed {
			d.s.Sites[i].Queues = sitesched.Single
		}
	}
	d.s.End = time.Duration(2+d.IntN(5)) * time.Minute
	d.s.Watch = time.Duration(2+d.IntN(3)) * time.Minute
	for range 1 + d.IntN(2) {
		themes[d.IntN(len(themes))](d)
	}
	n := size.Jobs
	if n == 0 {
		n = d.IntN(12)
	}
	for len(d.s.Jobs) < n {
		d.job(len(d.s.Jobs) + 1)
	}
	if d.one(3) {
		d.stream(d.site(), 1+d.Int32N(2))
	}
	if d.one(4) && len(d.s.Jobs) > 0 {
		for range 1 + d.IntN(4) {
			d.act()
		}
	}
	if d.one(3) {
		for range 1 + d.IntN(4) {
			d.fault()
		}
	}
	d.files()
	// It has draws of its own, so that the other schedules stay what they were.
	if late := (&draw{Rand: rand.New(rand.NewPCG(seed, 0x6c617465)), s: d.s}); late.one(8) {
		late.themeLate()
	}
	if trust := (&draw{Rand: rand.New(rand.NewPCG(seed, 0x7472757374)), s: d.s}); trust.one(8) || d.s.trusts() && trust.one(2) {
		trust.themeRevoke()
	}
	return d.s
}

// files gives every fourth schedule files that take long at hosts: output to collect when
// the processes are gone, and input for which processors are not held. Its draws are its
// own, so that the other schedules are as they were.
func (d *draw) files() {
	if !d.s.files() {
		return
	}
	own := &draw{Rand: rand.New(rand.NewPCG(d.s.Seed, 0x66696c65)), s: d.s}
	for i := range d.s.Jobs {
		j := &d.s.Jobs[i]
		if own.one(2) {
			j.Collecting = own.upTo(2 * time.Minute)
		}
		if own.one(3) {
			j.Staging = own.upTo(time.Minute)
		}
	}
}

// themes are what wide schedules are made of. Each is called with a federation.
var themes = []func(*draw){
	(*draw).themeBurst, (*draw).themeDrain, (*draw).themeLimits, (*draw).themeNarrow, (*draw).themeHung, (*draw).themeNoStart, (*draw).themeChange,
	(*draw).themeClock, (*draw).themeLeave, (*draw).themeFrozen, (*draw).themeOutput, (*draw).themeFiller, (*draw).themeHostile, (*draw).themeRestart,
}

// short draws the run time of a job of a stream or a burst.
func (d *draw) short() time.Duration { return time.Second + d.span(12*time.Second) }

// burst has many jobs come at once.
func (d *draw) burst(at time.Duration, from job.SiteID, n int) {
	run := d.short()
	d.s.Streams = append(d.s.Streams, Stream{
		At: at, Every: time.Duration(1+d.IntN(40)) * time.Millisecond, Count: n, From: from, Processors: 1,
		Copies: int32(d.IntN(4)), Run: run, Walltime: run + d.upTo(10*time.Second),
	})
}

// stream has jobs come to a site to the end, so many that some processors of the
// federation are busy with them.
func (d *draw) stream(from job.SiteID, processors int32) {
	run := d.short()
	d.s.Streams = append(d.s.Streams, Stream{
		At: d.span(d.s.End / 2), Every: max(time.Second, run/time.Duration(1+d.IntN(3))), From: from, Processors: min(processors, d.s.site(from).Processors),
		Copies: int32(d.IntN(4)), Run: run, Walltime: run + d.upTo(5*time.Second),
	})
}

// other draws a site that is not one.
func (d *draw) other(than job.SiteID) job.SiteID {
	for {
		if s := d.site(); s != than {
			return s
		}
	}
}

// anyTime draws when a fault begins, and for how long.
func (d *draw) anyTime() (at, span time.Duration) {
	return d.span(d.s.End * 3 / 4), time.Second + d.upTo(d.s.End/2)
}

func (d *draw) add(f Fault) { d.s.Faults = append(d.s.Faults, f) }

// themeBurst is more jobs at once than a few sites can run, beside idle ones.
func (d *draw) themeBurst() {
	for len(d.s.Sites) < 6 && d.one(2) {
		d.s.Sites = append(d.s.Sites, Site{
			Name: job.SiteID(fmt.Sprint("s", len(d.s.Sites))), Processors: 1 + d.Int32N(2),
			Backfill: sitesched.EASY, Queues: d.s.Sites[0].Queues, Scope: sitesched.ScopeAll,
		})
	}
	d.burst(d.span(d.s.End/2), d.site(), 20+d.IntN(60))
}

// themeDrain is sites that are drained and resumed while jobs wait.
func (d *draw) themeDrain() {
	from, at := d.site(), d.span(d.s.End/2)
	d.burst(at, from, 20+d.IntN(40))
	for i := range d.s.Sites {
		if x := d.s.Sites[i].Name; x != from {
			off := at + d.upTo(20*time.Second)
			d.s.Acts = append(d.s.Acts, Act{At: off, Kind: Drain, Site: x}, Act{At: off + d.upTo(20*time.Second), Kind: Resume, Site: x})
		}
	}
}

// themeLimits is sites that take a handful of copies only.
func (d *draw) themeLimits() {
	for i := range d.s.Sites {
		d.limits(&d.s.Sites[i].Settings)
	}
	d.burst(d.span(d.s.End/2), d.site(), 20+d.IntN(40))
}

func (d *draw) limits(c *Settings) {
	c.PerOrigin = 2 + d.IntN(6)
	if d.one(2) {
		c.Copies = c.PerOrigin + d.IntN(6)
	}
	if d.one(4) {
		c.Jobs = 5 + d.IntN(20)
	}
	if d.one(2) {
		c.K = int32(1 + d.IntN(4))
	}
}

// themeNarrow is a job wider than its origin beside an endless stream of narrow
// ones, all of which fit only at a third site.
func (d *draw) themeNarrow() {
	for len(d.s.Sites) < 3 {
		d.s.Sites = append(d.s.Sites, Site{Name: job.SiteID(fmt.Sprint("s", len(d.s.Sites))), Backfill: sitesched.EASY, Queues: d.s.Sites[0].Queues, Scope: sitesched.ScopeAll})
	}
	first := d.IntN(3)
	origin, wide, busy := &d.s.Sites[first], &d.s.Sites[(first+1)%3], &d.s.Sites[(first+2)%3]
	for i := range d.s.Sites {
		d.s.Sites[i].Processors = 1
	}
	wide.Processors = 2 + d.Int32N(3)
	run := 2*time.Second + d.span(3*time.Second)
	d.s.Streams = append(d.s.Streams, Stream{
		At: d.span(10 * time.Second), Every: run * 9 / 10 / time.Duration(wide.Processors+1), From: busy.Name, Processors: 1, Copies: 2, Run: run, Walltime: run + d.span(2*time.Second),
	})
	d.s.Jobs = append(d.s.Jobs, Job{
		Number: len(d.s.Jobs) + 1, At: 15*time.Second + d.span(20*time.Second), From: origin.Name, Processors: wide.Processors, Copies: 3, Run: 2 * time.Second, Walltime: 5 * time.Second,
	})
}

// themeHung is an origin whose disk hangs, beside others that want to run jobs
// where its copies wait.
func (d *draw) themeHung() {
	bad := d.site()
	at := 5*time.Second + d.span(30*time.Second)
	d.burst(d.span(at), bad, 20+d.IntN(40))
	d.stream(d.other(bad), 1)
	span := d.s.End
	if d.one(3) {
		_, span = d.anyTime()
	}
	d.add(Fault{Kind: HungDisk, Site: bad, At: at, For: span})
}

// themeNoStart is a site that cannot start processes, or whose shims die.
func (d *draw) themeNoStart() {
	at, span := d.anyTime()
	d.stream(d.site(), 1)
	kind := NoStart
	if d.one(4) {
		kind = NoShims
	}
	d.add(Fault{Kind: kind, Site: d.site(), At: at, For: span})
}

// themeChange is restarts with other configurations. One of the widest sites is
// left as it is, so that every job can run somewhere.
func (d *draw) themeChange() {
	keep := d.kept()
	d.burst(d.span(d.s.End/2), d.site(), 5+d.IntN(20))
	for range 1 + d.IntN(3) {
		at, span := d.anyTime()
		f := Fault{Kind: Change, Site: d.other(keep), At: at, For: min(span, 20*time.Second)}
		f.To.Processors = 1 + d.Int32N(6)
		if d.one(2) {
			d.limits(&f.To)
		}
		if d.one(3) {
			f.To.Queues = []string{"single", "dual-strict", "dual-backfill"}[d.IntN(3)]
		}
		if d.one(3) {
			f.To.Without = d.other(f.Site)
		}
		if d.one(3) {
			f.To.Memory = int64(1+d.IntN(4)) << 30
		}
		d.add(f)
	}
	for i := range d.s.Jobs {
		if d.one(2) {
			d.s.Jobs[i].Memory = int64(d.IntN(3)) << 29
		}
	}
	for range d.IntN(4) { // wide ones, which may fit no more
		d.job(len(d.s.Jobs) + 1)
		x := &d.s.Jobs[len(d.s.Jobs)-1]
		x.Processors, x.Memory = 1+d.Int32N(d.widest()), int64(d.IntN(3))<<29
	}
}

// kept is one of the widest sites.
func (d *draw) kept() job.SiteID {
	keep := d.s.Sites[0].Name
	for _, x := range d.s.Sites {
		if x.Processors == d.widest() {
			keep = x.Name
		}
	}
	return keep
}

// themeClock is a wall clock that is set, and mended later or not.
func (d *draw) themeClock() {
	x := d.site()
	d.stream(d.site(), 1)
	d.stream(d.other(x), 1)
	by := []time.Duration{2 * time.Second, time.Minute, time.Hour, 26 * time.Hour, 5 * 24 * time.Hour, 365 * 24 * time.Hour}[d.IntN(6)]
	at := d.span(d.s.End / 2)
	kinds := []Kind{Clock, ClockBack}
	if d.one(3) {
		kinds[0], kinds[1] = ClockBack, Clock
	}
	d.add(Fault{Kind: kinds[0], Site: x, At: at, For: 100*time.Millisecond + d.upTo(10*time.Second), By: by})
	if !d.one(4) {
		d.add(Fault{Kind: kinds[1], Site: x, At: at + 20*time.Second + d.span(d.s.End/4), For: 100*time.Millisecond + d.upTo(10*time.Second), By: by})
	}
	if d.one(2) {
		off := at + d.span(time.Minute)
		d.s.Acts = append(d.s.Acts, Act{At: off, Kind: Drain, Site: x}, Act{At: off + d.span(time.Minute), Kind: Resume, Site: x})
	}
}

// themeLeave is a site that leaves for good, and may be taken out of the
// configuration of others.
func (d *draw) themeLeave() {
	x := d.site()
	at := d.span(d.s.End / 2)
	d.burst(d.span(at+time.Second), x, 5+d.IntN(20))
	d.stream(d.other(x), 1)
	d.add(Fault{Kind: Leave, Site: x, At: at})
	for _, s := range d.s.Sites {
		if s.Name != x && d.one(2) {
			f := Fault{Kind: Change, Site: s.Name, At: at + d.span(d.s.End/4), For: d.upTo(10 * time.Second)}
			f.To = s.Settings
			f.To.Processors, f.To.Without = s.Processors, x
			d.add(f)
		}
	}
	if d.one(2) {
		d.s.Acts = append(d.s.Acts, Act{At: at + 30*time.Second + d.span(d.s.End/4), Kind: Forget, Site: x})
	}
}

// themeFrozen is an origin that freezes for some seconds, again and again, while
// its hosts are busy with jobs of their own.
func (d *draw) themeFrozen() {
	x := d.site()
	for at := d.span(20 * time.Second); at < d.s.End; at += 20*time.Second + d.span(30*time.Second) {
		d.add(Fault{Kind: Freeze, Site: x, At: at, For: 5*time.Second + d.span(6*time.Second)})
	}
	d.burst(d.span(20*time.Second), x, 10+d.IntN(20))
	other := d.other(x)
	d.stream(other, d.s.site(other).Processors)
}

// themeOutput is a host that goes away while what it ran has output to give.
func (d *draw) themeOutput() {
	x := d.site()
	for range 3 + d.IntN(5) {
		d.job(len(d.s.Jobs) + 1)
		j := &d.s.Jobs[len(d.s.Jobs)-1]
		j.At, j.Run = d.span(d.s.End/4), time.Second+d.span(10*time.Second)
		j.Walltime, j.Output, j.OnSiteLost, j.Copies = j.Run+5*time.Second, 10*time.Second+d.span(time.Minute), job.Rerun, 3
	}
	d.add(Fault{Kind: Reboot, Site: x, At: d.s.End/8 + d.span(d.s.End/4), For: d.s.End})
}

// themeFiller is a job that fills the disk of its host, and is cancelled or not.
func (d *draw) themeFiller() {
	d.stream(d.site(), 1)
	for range 1 + d.IntN(2) {
		d.job(len(d.s.Jobs) + 1)
		j := &d.s.Jobs[len(d.s.Jobs)-1]
		j.At, j.Run, j.Fills = d.span(d.s.End/3), 10*time.Second+d.span(2*time.Minute), true
		j.Walltime = j.Run + 5*time.Second
		if d.one(2) {
			d.s.Acts = append(d.s.Acts, Act{At: j.At + 5*time.Second + d.span(time.Minute), Kind: Cancel, Job: j.Number})
		}
	}
}

// themeHostile is an enemy among the sites.
func (d *draw) themeHostile() {
	d.burst(d.span(d.s.End/2), d.site(), 10+d.IntN(20))
	at, span := d.anyTime()
	d.add(Fault{Kind: Hostile, Site: d.site(), At: at, For: span, By: 50*time.Millisecond + d.upTo(2*time.Second)})
	if d.one(2) {
		for i := range d.s.Sites {
			d.limits(&d.s.Sites[i].Settings)
		}
	}
}

// themeRestart is jobs that come while daemons start.
func (d *draw) themeRestart() {
	x := d.site()
	at := 10*time.Second + d.span(d.s.End/2)
	d.add(Fault{Kind: Crash, Site: x, At: at, For: time.Second + d.upTo(10*time.Second)})
	f := &d.s.Faults[len(d.s.Faults)-1]
	d.burst(at+f.For+time.Duration(d.IntN(1500))*time.Millisecond, x, 10+d.IntN(30))
}

// themeLate is an origin that freezes before a grant leaves for longer than a claim
// waits, while its host begins with long jobs of its own: the grant finds no processors.
func (d *draw) themeLate() {
	x := d.site()
	host := d.other(x)
	at := 5*time.Second + d.span(20*time.Second)
	run := d.short()
	d.s.Streams = append(d.s.Streams, Stream{
		At: at, Every: 20 * time.Millisecond, Count: int(d.s.site(x).Processors) + 1 + d.IntN(5), From: x, Processors: 1,
		Copies: int32(len(d.s.Sites)), Run: run, Walltime: run + d.span(5*time.Second),
	})
	long := 3*time.Minute + d.span(time.Minute)
	d.s.Streams = append(d.s.Streams, Stream{
		At: at + time.Second + d.span(3*time.Second), Every: 10 * time.Millisecond, Count: int(d.s.site(host).Processors), From: host, Processors: 1,
		Copies: 1, Run: long, Walltime: long + d.span(time.Minute),
	})
	d.add(Fault{Kind: Freeze, Site: x, For: 5500*time.Millisecond + d.span(3*time.Second), Before: &Point{Site: x, Effect: "verdict", Nth: 1 + d.IntN(4)}})
}
