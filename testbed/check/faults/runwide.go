package faults

import (
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// What L4 means in wide schedules, see [sim.Conserve].
const (
	// bound is how long a site may be idle beside work that it could run, but
	// for the messages and commits that it takes to begin.
	bound = 10 * time.Second
	// messages is how many messages and commits follow each other until a copy
	// that was moved has begun: a load is told, a copy is placed, answered,
	// claimed, granted and begun; twice, as the first one may come too late.
	messages = 12
	// handover is how many follow each other between two jobs on a processor: it is told that
	// it is free, which a site does once a second at most, and a copy is placed, claimed and granted.
	handover = 4
	// settle is how long after a fault the sites that it hit are held to nothing:
	// a site counts as vanished after a minute, and claims are put off for half of one.
	settle = 90 * time.Second
	// elder is how long a copy may be overtaken by younger ones.
	elder = 2 * time.Minute
)

// widen configures what wide schedules have beside others.
func (x *run) widen(cfg *sim.Config) {
	if x.s.Watch == 0 {
		return
	}
	slowest := x.s.Latency + x.s.Jitter + x.s.Sync + x.s.SyncJitter + x.s.membersRound()
	cfg.Conserve = &sim.Conserve{Bound: bound + 2*time.Second + messages*slowest, Settle: settle, Patience: elder, Lack: bound + 2*time.Second + messages*slowest, Handover: time.Second + handover*slowest}
	for i := range cfg.Sites {
		m := &cfg.Sites[i].Meta
		m.Placement.Conserve, cfg.Sites[i].Scheduler.Patience = true, elder
		m.Timing.Load, m.Placement.MaxLoadAge = meta.Default().Timing.Load, meta.Default().Placement.MaxLoadAge
	}
}

// list lists the jobs.
func (x *run) list() {
	x.jobs = x.s.all()
	x.numbers = make(map[int]int, len(x.jobs))
	for i := range x.jobs {
		x.numbers[x.jobs[i].Number] = i
	}
}

// job returns the job of a number, nil if there is none.
func (x *run) job(number int) *Job {
	if i, ok := x.numbers[number]; ok {
		return &x.jobs[i]
	}
	return nil
}

// startWide makes something go wrong that only wide schedules have.
func (x *run) startWide(f *Fault, site *sim.Site) bool {
	if site.Gone() {
		return false
	}
	switch f.Kind {
	case Change:
		site.Crash()
		site.Reconfigure(f.To.apply)
		x.in(f.For, func() { x.restart(f.Site) })
	case Reload:
		site.Reload(f.To.reload)
	case Clock, ClockBack:
		by := f.By
		if f.Kind == ClockBack {
			by = -by
		}
		site.Crash()
		site.StepClock(by)
		x.in(f.For, func() { x.restart(f.Site) })
	case NoStart:
		site.Unstartable(true)
		x.in(f.For, func() { site.Unstartable(false) })
	case NoShims:
		site.KillShims(true)
		x.in(f.For, func() { site.KillShims(false) })
	case LowDisk:
		site.LowDisk(true, f.By)
		x.in(f.For, func() { site.LowDisk(false, 0) })
	case HungDisk:
		site.SlowDisk(never)
		x.in(f.For, func() { site.SlowDisk(0) })
	case Leave:
		site.Leave()
	case Hostile:
		x.attack(f, x.since()+f.For)
	case Revoke:
		return x.revoke(f)
	default:
		return false
	}
	return true
}

// filling reports whether a job still fills the disk of a site.
func (x *run) filling(id job.SiteID) bool {
	s := x.w.Site(id)
	return s != nil && s.Filling()
}

// never is longer than any run.
const never = 100 * 365 * 24 * time.Hour

// forget has all sites give up one that has left.
func (x *run) forget(lost job.SiteID) {
	for i := range x.s.Sites {
		if at := x.s.Sites[i].Name; at != lost && !x.w.Site(at).Gone() {
			x.w.Requeued(at, lost)
			x.w.Ask(at, func(token uint64) meta.Event {
				return meta.ForgetSite{Token: token, Site: lost, Requeue: true}
			}, func(meta.Reply) {})
		}
	}
}

// forgetGone has all sites give up those that have left, again and again: what
// runs for a lost site is forgotten only once it has ended.
func (x *run) forgetGone() {
	any := false
	for i := range x.s.Sites {
		if lost := x.s.Sites[i].Name; x.w.Site(lost).Gone() {
			x.forget(lost)
			any = true
		}
	}
	if any {
		x.at(x.since()+forgetAgain, x.forgetGone)
	}
}
