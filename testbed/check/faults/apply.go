package faults

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/sim"
)

// holds says whether the origin's record agrees that site holds an attempt.
func holds(j *store.Job, a job.AttemptID, site job.SiteID) bool {
	if j == nil {
		return false
	}
	if slices.Contains(j.Earlier, store.Holding{Attempt: a.Number, Site: site}) {
		return true
	}
	if j.Attempt != a.Number {
		return false
	}
	switch j.State.Claim() {
	case job.ClaimOpen:
		return slices.Contains(j.Sites, site)
	case job.ClaimTaken:
		return j.Holder == site
	}
	return false
}

// moment is a fault that begins right before an effect, and how many of that kind the
// site has carried out.
type moment struct {
	fault *Fault
	seen  int
}

// before begins the faults whose moment is right before an effect. It reports
// whether the site's daemon dies there.
func (x *run) before(w *sim.World, s *sim.Site, f meta.Effect) bool {
	if len(x.waits) == 0 {
		return false
	}
	life, id := s.Engine(), s.ID()
	for _, effect := range [...]string{"any", f.Word()} {
		for i := range x.waits {
			m := &x.waits[i]
			if p := m.fault.Before; p.Site != id || p.Effect != effect {
				continue
			}
			if m.seen++; m.seen == m.fault.Before.Nth {
				x.begin(m.fault)
			}
		}
	}
	return s.Engine() != life
}

// begin begins a fault and sees to its end.
func (x *run) begin(f *Fault) {
	if x.over {
		return
	}
	if x.start(f) {
		x.r.Injected[f.Kind]++
	}
}

// start makes something go wrong. It reports whether it did.
func (x *run) start(f *Fault) bool {
	site := x.w.Site(f.Site)
	switch f.Kind {
	case Crash, Reboot, Wipe, LoseFolder:
		return x.kill(f, f.Site)
	case CrashAll, RebootAll:
		for i := range x.s.Sites {
			x.kill(f, x.s.Sites[i].Name)
		}
	case Freeze, Suspend:
		if !site.Up() || site.Frozen() {
			return false
		}
		site.Freeze(f.Kind == Suspend)
		x.in(f.For, site.Thaw)
	case Cut:
		x.cut(f.Site, f.Other)
		x.in(f.For, func() { x.w.Heal(f.Site, f.Other) })
	case OneWay:
		x.w.Cut(f.Site, f.Other)
		x.in(f.For, func() { x.w.Heal(f.Site, f.Other) })
	case Isolate:
		for i := range x.s.Sites {
			if other := x.s.Sites[i].Name; other != f.Site {
				x.cut(f.Site, other)
				x.in(f.For, func() { x.w.Heal(f.Site, other) })
			}
		}
	case Flap:
		x.flap(f, x.since()+f.For)
	case Delay:
		x.w.SetLink(f.Site, f.Other, &sim.LinkConfig{Latency: x.s.Latency + f.By, Jitter: x.s.Jitter})
		x.in(f.For, func() {
			x.w.SetLink(f.Site, f.Other, nil)
			x.w.Break(f.Site, f.Other)
		})
	case Noise:
		share := f.By.Seconds()
		noisy := &sim.LinkConfig{Latency: x.s.Latency, Jitter: x.s.Jitter, Loss: share, Duplication: share, Reorder: share}
		x.everyLink(func(a, b job.SiteID) { x.w.SetLink(a, b, noisy) })
		x.in(f.For, func() { x.everyLink(func(a, b job.SiteID) { x.w.SetLink(a, b, nil) }) })
	case Ghosts:
		h := &haunting{fault: f, until: x.since() + f.For}
		x.ghosts = append(x.ghosts, h)
	case SlowDisk:
		site.SlowDisk(f.By)
		x.in(f.For, func() { site.SlowDisk(0) })
	case FullDisk:
		site.FillDisk(true)
		x.in(f.For, func() { site.FillDisk(false) })
	case Lie:
		x.lie(f, x.since()+f.For)
	default:
		if f.Kind.ofMembers() {
			return x.startMembers(f, site)
		}
		return x.startWide(f, site)
	}
	return true
}

// kill kills a daemon or its machine and starts it again later.
func (x *run) kill(f *Fault, id job.SiteID) bool {
	site := x.w.Site(id)
	if !site.Up() && f.Kind != Wipe && f.Kind != LoseFolder {
		return false
	}
	switch f.Kind {
	case Reboot, RebootAll:
		site.PowerLoss()
	case Wipe:
		site.WipeDisk()
	case LoseFolder:
		site.LoseFolder()
	default:
		site.Crash()
	}
	x.in(f.For, func() { x.restart(id) })
	return true
}

func (x *run) cut(a, b job.SiteID) {
	x.w.Cut(a, b)
	x.w.Cut(b, a)
}

func (x *run) flap(f *Fault, until time.Duration) {
	if x.over || x.since() >= until {
		x.w.Heal(f.Site, f.Other)
		return
	}
	if x.w.Cuts(f.Site, f.Other) {
		x.w.Heal(f.Site, f.Other)
	} else {
		x.cut(f.Site, f.Other)
	}
	x.in(max(f.By, time.Millisecond), func() {
		if !x.over {
			x.flap(f, until)
		}
	})
}

// haunting is a time during which messages come back later.
type haunting struct {
	fault *Fault
	until time.Duration
	seen  int
}

// maxGhosts bounds how many messages of one fault come back.
const maxGhosts = 40

// tap sees what is sent, and has some of it come back. What a data folder sent that is gone
// does not: a stream says of which folder it is, and carries nothing else.
func (x *run) tap(from, to job.SiteID, m meta.Message) {
	for _, h := range x.ghosts {
		if h.fault.Site != from || h.fault.Other != to || x.since() > h.until || h.seen >= maxGhosts {
			continue
		}
		if _, load := m.(meta.LoadDigest); load {
			continue
		}
		h.seen++
		folder := x.w.Site(from).Generation()
		x.in(time.Duration(x.rng.Int64N(int64(max(h.fault.By, 1)))), func() {
			if !x.over && x.w.Site(from).Generation() == folder {
				x.w.Inject(from, to, m)
			}
		})
	}
}
