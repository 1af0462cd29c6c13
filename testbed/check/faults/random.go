package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// Size bounds a random schedule; 0 leaves a number to the seed.
type Size struct {
	// Sites is how many sites there are, else 2 to 5.
	Sites int
	// Jobs is how many jobs are submitted, else 1 to 40.
	Jobs int
}

// MaxDrift is how far random clocks drift at most, in millionths: much more
// than real ones.
const MaxDrift = 50_000

// Random makes a schedule of a seed.
func Random(seed uint64, size Size) *Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x6661756c7473)), s: &Schedule{Seed: seed}}
	d.federation(size.Sites)
	d.s.End = time.Duration(5+d.IntN(35)) * time.Minute
	if d.one(10) {
		d.s.End += time.Duration(d.IntN(8)) * time.Hour
	}
	n := size.Jobs
	if n == 0 {
		n = 1 + d.IntN(40)
	}
	for i := range n {
		d.job(i + 1)
	}
	for range d.IntN(10) {
		d.act()
	}
	for range 1 + d.IntN(16) {
		d.fault()
	}
	d.s.savePieces()
	if seed%5 == 0 && seed%20 != 0 { // no seed that is named somewhere
		d.s.evictGuests()
	}
	d.s.copySaves()
	return d.s
}

// copySaves has most jobs of every tenth schedule copied home while they run, and their hosts lost. It has
// draws of its own, so that the other schedules are as they were.
func (s *Schedule) copySaves() {
	if s.Seed%10 != 9 {
		return
	}
	d := rand.New(rand.NewPCG(s.Seed, 0x636f70696573))
	for i := range s.Jobs {
		if j := &s.Jobs[i]; d.IntN(4) > 0 && j.OnSiteLost != job.Race && j.Pieces <= 1 {
			j.Pieces, j.OnSiteLost, j.Every = 1, job.Rerun, time.Duration(1+d.IntN(15))*time.Second
			j.Run = max(j.Run, 2*j.Every)
			j.Walltime = max(j.Walltime, 2*j.Run)
		}
	}
	kinds := []Kind{Isolate, Reboot, Wipe, LoseFolder, Cut, Crash}
	for range 1 + d.IntN(lostHosts) {
		f := Fault{Kind: kinds[d.IntN(len(kinds))], At: time.Duration(d.Int64N(int64(s.End))), For: time.Duration(60+d.IntN(180)) * time.Second, Site: s.Sites[d.IntN(len(s.Sites))].Name}
		if f.Kind.places() == 2 {
			for f.Other = f.Site; f.Other == f.Site; {
				f.Other = s.Sites[d.IntN(len(s.Sites))].Name
			}
		}
		s.Faults = append(s.Faults, f)
	}
}

// lostHosts is how often hosts are lost at most in such a schedule, beside its other faults.
const lostHosts = 4

// savePieces lets half of the jobs of every third schedule do their work in pieces, saving what
// was done. It has draws of its own, so that the other schedules are as they were.
func (s *Schedule) savePieces() {
	if s.Seed%3 != 1 {
		return
	}
	d := rand.New(rand.NewPCG(s.Seed, 0x706965636573))
	for i := range s.Jobs {
		if j := &s.Jobs[i]; d.IntN(2) == 0 && j.OnSiteLost != job.Race {
			j.Pieces = 2 + d.IntN(3)
			j.Run = max(time.Second, j.Run/time.Duration(j.Pieces))
		}
	}
}

// draw makes up a schedule.
type draw struct {
	*rand.Rand
	s *Schedule
}

// one is true once in n times.
func (d *draw) one(n int) bool { return d.IntN(n) == 0 }

// span draws a duration below most, in milliseconds so that people can read it.
func (d *draw) span(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(max(1, int64(most/time.Millisecond)))) * time.Millisecond
}

// upTo draws a duration below most, short ones as often as long ones.
func (d *draw) upTo(most time.Duration) time.Duration {
	for most > 100*time.Millisecond && d.one(2) {
		most /= 4
	}
	return d.span(most)
}

func (d *draw) site() job.SiteID { return d.s.Sites[d.IntN(len(d.s.Sites))].Name }

// widest returns the most processors of a site: a job that fits nowhere waits
// for ever, and a lie may let it in.
func (d *draw) widest() int32 {
	return slices.MaxFunc(d.s.Sites, func(a, b Site) int { return int(a.Processors) - int(b.Processors) }).Processors
}

func (d *draw) federation(sites int) {
	if sites == 0 {
		sites = 2 + d.IntN(4)
	}
	drifts := d.one(3)
	for i := range sites {
		x := Site{
			Name: job.SiteID(fmt.Sprint("s", i)), Processors: 1 + d.Int32N(6),
			Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll,
		}
		if d.one(3) {
			x.Backfill = sitesched.Backfill(d.IntN(4))
			x.Queues = sitesched.Queues(d.IntN(3))
			x.Scope = sitesched.Scope(d.IntN(2))
		}
		if drifts {
			x.Drift = d.Int64N(2*MaxDrift) - MaxDrift
		}
		d.s.Sites = append(d.s.Sites, x)
	}
	d.s.Scheme = meta.KDual
	switch d.IntN(10) {
	case 0, 1, 2:
		d.s.Scheme = meta.KDistributed
	case 3:
		schemes := meta.Schemes()
		d.s.Scheme = schemes[d.IntN(len(schemes))]
	}
	if rank, ok := d.s.Scheme.ImpliedRank(); ok {
		d.s.Rank = rank
	} else if d.one(6) {
		d.s.Rank = meta.RankCompletion
	}
	d.mayForecast()
	d.s.Latency, d.s.Jitter = d.upTo(200*time.Millisecond), d.upTo(300*time.Millisecond)
	d.s.Sync, d.s.SyncJitter = d.upTo(5*time.Millisecond), d.upTo(20*time.Millisecond)
}

// mayForecast has half of the schedules with forecasts rank by them. It draws nothing.
func (d *draw) mayForecast() {
	if _, implied := d.s.Scheme.ImpliedRank(); !implied && d.s.forecasts() && d.s.Seed%20 == 7 {
		d.s.Rank = meta.RankForecast
	}
}

func (d *draw) job(number int) {
	x := Job{
		Number: number, At: d.span(d.s.End * 9 / 10), From: d.site(), Processors: 1 + d.Int32N(min(3, d.widest())),
		Copies: int32(1 + d.IntN(len(d.s.Sites))), Run: time.Second + d.upTo(5*time.Minute),
	}
	x.Walltime = x.Run + d.upTo(2*time.Minute)
	if d.one(10) {
		x.Walltime = max(time.Second, x.Run/2) // it will be stopped
	}
	if d.one(3) {
		x.Output = d.upTo(time.Minute)
	}
	if d.one(3) {
		x.Staging = d.upTo(time.Minute)
	}
	switch d.IntN(6) {
	case 0, 1:
		x.OnSiteLost = job.Rerun
	case 2:
		x.OnSiteLost = job.Race
	}
	d.s.Jobs = append(d.s.Jobs, x)
}

func (d *draw) act() {
	x := Act{At: d.span(d.s.End), Kind: []ActKind{Cancel, Cancel, Hold, Release, Drain, Resume}[d.IntN(6)]}
	if x.Kind == Drain || x.Kind == Resume {
		x.Site = d.site()
	} else {
		x.Job = 1 + d.IntN(len(d.s.Jobs))
		// An act that comes before its job says nothing.
		x.At = max(x.At, d.s.job(x.Job).At+d.upTo(time.Minute))
	}
	d.s.Acts = append(d.s.Acts, x)
}

// weights say how often each fault is drawn.
var weights = []struct {
	kind   Kind
	weight int
}{
	{Crash, 20}, {CrashAll, 3}, {Reboot, 8}, {RebootAll, 2}, {Wipe, 2}, {LoseFolder, 2}, {Freeze, 8}, {Suspend, 4}, {Cut, 10}, {OneWay, 8},
	{Isolate, 6}, {Flap, 4}, {Delay, 6}, {Noise, 6}, {Ghosts, 4}, {SlowDisk, 4}, {FullDisk, 4}, {Lie, 2},
}

func (d *draw) kind() Kind {
	sum := 0
	for _, w := range weights {
		sum += w.weight
	}
	n := d.IntN(sum)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			return w.kind
		}
	}
	return Crash
}

// effects are those that are worth a fault right before them.
var effects = []string{
	"any", "any", "any", "any", "launch", "reply", "kill", "adopt", "clear", "place-copy", "copy-answer", "claim", "verdict", "verdict", "withdraw",
	"withdraw-ack", "started", "result", "result-ack", "give-back", "stop", "copy-digest", "renewed",
}

func (d *draw) fault() {
	f := Fault{Kind: d.kind(), At: d.span(d.s.End), For: d.upTo(d.s.End / 2)}
	if f.Kind.places() > 0 {
		f.Site = d.site()
	}
	for f.Kind.places() > 1 && (f.Other == "" || f.Other == f.Site) {
		f.Other = d.site()
	}
	switch f.Kind {
	case Crash, CrashAll, Reboot, RebootAll, Freeze, Suspend, Cut, OneWay, Isolate:
		if d.one(2) {
			f.Before = &Point{Site: f.Site, Effect: effects[d.IntN(len(effects))], Nth: 1 + d.IntN(30)}
			if f.Site == "" {
				f.Before.Site = d.site()
			}
			if f.Before.Effect == "any" {
				f.Before.Nth = 1 + d.IntN(600)
			}
			f.At = 0
		}
		if d.one(4) {
			f.For = d.upTo(time.Second)
		}
	case Flap:
		f.By = 100*time.Millisecond + d.upTo(time.Minute)
	case Delay:
		f.By = d.upTo(3 * time.Hour)
	case Noise:
		f.By = d.upTo(300 * time.Millisecond)
	case Ghosts:
		f.By = d.upTo(2 * time.Hour)
	case SlowDisk:
		f.By = d.upTo(time.Minute)
	case Lie:
		f.By = 50*time.Millisecond + d.upTo(10*time.Second)
		f.For = d.upTo(10 * time.Minute)
	}
	d.s.Faults = append(d.s.Faults, f)
}
