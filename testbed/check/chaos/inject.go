package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/sitesched/executor"
	"kith/testbed/check/wan"
	"kith/testbed/local"
)

// injector does what is planned to the sites, and takes down what it did.
type injector struct {
	*bed
	planner *planner
	began   time.Time

	mu    sync.Mutex
	done  []Injected
	shims map[int]bool // killed, by number
	full  []window     // when the small disk was full
	// frozen is when shims of attempts were, by the attempt, and idle when no
	// daemon was at work, by the site.
	frozen map[string][]spell
	idle   map[string][]window
	// severed is when sites did not trust each other.
	severed []severed
}

// spell is a time during which something was done to an attempt at a site.
type spell struct {
	window
	site string
}

func newInjector(b *bed, p *planner) *injector {
	return &injector{
		bed: b, planner: p, shims: make(map[int]bool), frozen: make(map[string][]spell), idle: make(map[string][]window),
	}
}

// Injected is a fault that came about.
type Injected struct {
	Kind   Kind   `json:"kind"`
	Target string `json:"target"`
	// At and For are in seconds, At since the beginning of the run.
	At  float64 `json:"at_s"`
	For float64 `json:"for_s"`
	// Missed says why there was nothing to do it to.
	Missed string `json:"missed,omitempty"`
}

// window is a time between two others.
type window struct{ from, to time.Time }

// meets reports whether the window and another time span have a moment in common.
func (w window) meets(from, to time.Time) bool {
	return !w.to.Before(from) && !to.Before(w.from)
}

// round carries out the faults of a round, and returns when all are undone.
func (in *injector) round(ctx context.Context, faults []Fault) {
	began := time.Now()
	var wg sync.WaitGroup
	for _, f := range faults {
		if !pause.For(ctx, time.Until(began.Add(f.At))) {
			break
		}
		wg.Go(func() { in.inject(ctx, f) })
	}
	wg.Wait()
}

// inject carries out one fault from beginning to end.
func (in *injector) inject(ctx context.Context, f Fault) {
	unlock := in.locks.take(f.needs(len(in.sites)))
	defer unlock()
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	target, missed := in.carryOut(ctx, &f)
	took := time.Since(began)
	in.mu.Lock()
	in.done = append(in.done, Injected{
		Kind: f.Kind, Target: target, At: began.Sub(in.began).Seconds(), For: took.Seconds(), Missed: missed,
	})
	in.mu.Unlock()
	if missed == "" {
		in.opt.note("%6.1f s  %-14s %s, %.1f s", began.Sub(in.began).Seconds(), f.Kind, target, took.Seconds())
	}
}

func (in *injector) carryOut(ctx context.Context, f *Fault) (target, missed string) {
	s, other := in.sites[f.Site], in.sites[f.Other]
	switch f.Kind {
	case KillDaemon:
		if f.Pick%2 == 0 {
			afterAcknowledgement(ctx, s, time.Duration(f.Pick%101)*time.Millisecond/2)
		}
		return s.Name, in.restart(ctx, f, []*site{s}, (*local.Node).Kill)
	case RestartDaemon:
		return s.Name, in.restart(ctx, f, []*site{s}, (*local.Node).Stop)
	case KillAll:
		return "all sites", in.restart(ctx, f, in.sites, (*local.Node).Kill)
	case Upgrade:
		return s.Name, in.restart(ctx, f, []*site{s}, func(n *local.Node) {
			n.Stop()
			if err := n.Use(""); err != nil {
				in.logs.problem("upgrade: %v", err)
			}
		})
	case FreezeDaemon:
		return s.Name, in.freezeDaemon(ctx, f, s)
	case KillShim, FreezeShim:
		return in.meetShim(ctx, f, s)
	case FullDisk:
		return s.Name, in.fillDisk(ctx, f, s)
	case HungDisk:
		return s.Name, in.hangDisk(ctx, f, s)
	case DrainSite:
		return s.Name, in.drainSite(ctx, f, s)
	case HoldJobs:
		return in.holdJobs(ctx, f, s)
	case Reconfigure:
		return in.reconfigure(ctx, f, s)
	case FewFiles:
		return s.Name, in.takeFiles(ctx, f, s)
	case HideShim:
		if in.shimBeside == "" {
			return "all sites", "their shims are the program that started them"
		}
		return in.hideShim(ctx, f)
	case HogDisk:
		return s.Name, in.hog(ctx, f, s)
	case RotateLeaf, RotateCA:
		return s.Name, in.rotate(ctx, f, s)
	case RevokeSite:
		return in.revoke(ctx, f, s, other)
	case ForgetSite:
		return in.forget(ctx, f, s, other)
	case UseToken:
		return s.Name, in.useToken(ctx, f, s)
	case CutLink:
		return in.cut(ctx, f, wan.Between(s.Name, other.Name), wan.Blackhole)
	case ResetLink:
		return in.cut(ctx, f, wan.Between(s.Name, other.Name), wan.Reset)
	case CutOneWay:
		return in.cut(ctx, f, wan.OnlyFrom(s.Name, other.Name), wan.Blackhole)
	case CutSite:
		return in.cut(ctx, f, wan.Around(s.Name), wan.Mode(f.Pick%2))
	case CutAll:
		return in.cut(ctx, f, wan.Everything(), wan.Mode(f.Pick%2))
	case FlapLink:
		return in.flap(ctx, f, wan.Between(s.Name, other.Name))
	case SlowLink:
		return in.slow(ctx, f, wan.Between(s.Name, other.Name))
	}
	return "", "unknown kind"
}

// afterAcknowledgement waits until the site acknowledges a job, and a moment more.
func afterAcknowledgement(ctx context.Context, s *site, moment time.Duration) {
	select {
	case <-s.acked: // an old one
	default:
	}
	select {
	case <-s.acked:
		pause.For(ctx, moment)
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
}

// restart ends daemons and starts them again after the fault's time.
func (in *injector) restart(ctx context.Context, f *Fault, sites []*site, end func(*local.Node)) string {
	each := func(do func(*site)) {
		var wg sync.WaitGroup
		for _, s := range sites {
			wg.Go(func() { do(s) })
		}
		wg.Wait()
	}
	from := time.Now()
	each(func(s *site) { end(s.Node) })
	pause.For(ctx, f.For)
	each(func(s *site) {
		in.up(context.WithoutCancel(ctx), s)
		in.idled(s, from)
	})
	return ""
}

// idled notes that a site's daemon was not at work until now.
func (in *injector) idled(s *site, from time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.idle[s.Name] = append(in.idle[s.Name], window{from, time.Now()})
}

// unguarded are the jobs of which an attempt's shim was frozen while its site's
// daemon was not at work.
func (in *injector) unguarded() map[job.ID]bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	found := make(map[job.ID]bool)
	for folder, spells := range in.frozen {
		id, ok := executor.ParseFolder(folder)
		for _, f := range spells {
			for _, d := range in.idle[f.site] {
				if ok && d.meets(f.from, f.to) {
					found[id.Job] = true
				}
			}
		}
	}
	return found
}

func (in *injector) freezeDaemon(ctx context.Context, f *Fault, s *site) string {
	from := time.Now()
	if err := s.Signal(sigstop); err != nil {
		return err.Error()
	}
	pause.For(ctx, f.For)
	if err := s.Signal(sigcont); err != nil && !errors.Is(err, os.ErrProcessDone) { // it may have been killed meanwhile
		return err.Error()
	}
	in.idled(s, from)
	return ""
}

// meetShim kills or freezes the shim of a job that runs at the site, or, if
// there is none, one that waits for a job.
func (in *injector) meetShim(ctx context.Context, f *Fault, s *site) (target, missed string) {
	list := runningAt(s.Config.Data)
	for _, p := range childrenOf(s.PID()) {
		if len(list) == 0 || f.Pick%4 == 0 {
			list = append(list, running{attempt: "idle", shim: p})
		}
	}
	if len(list) == 0 {
		return s.Name, "nothing runs there"
	}
	r := list[f.Pick%uint64(len(list))]
	target = fmt.Sprintf("%s, %s", s.Name, r.attempt)
	if f.Kind == KillShim {
		in.mu.Lock()
		in.shims[r.shim.pid] = true
		in.mu.Unlock()
		if !r.shim.signal(sigkill) {
			return target, "it had ended"
		}
		return target, ""
	}
	if !r.shim.signal(sigstop) {
		return target, "it had ended"
	}
	from := time.Now()
	pause.For(ctx, f.For)
	r.shim.signal(sigcont)
	in.mu.Lock()
	in.frozen[r.attempt] = append(in.frozen[r.attempt], spell{window{from, time.Now()}, s.Name})
	in.mu.Unlock()
	return target, ""
}

// fillDisk takes the last room from a site's disk, and may kill its daemon meanwhile.
func (in *injector) fillDisk(ctx context.Context, f *Fault, s *site) string {
	if s.disk == nil {
		return "it has no disk of its own"
	}
	from := time.Now()
	err := s.disk.fill()
	if err == nil && f.killsToo() {
		pause.For(ctx, f.For/2)
		down := time.Now()
		s.Kill()
		starting := make(chan struct{})
		go func() {
			defer close(starting)
			in.up(context.WithoutCancel(ctx), s)
		}()
		pause.For(ctx, f.For/2)
		err = s.disk.free()
		<-starting
		in.idled(s, down)
	} else if err == nil {
		pause.For(ctx, f.For)
	}
	if e := s.disk.free(); e != nil {
		err = e
	}
	in.mu.Lock()
	in.full = append(in.full, window{from, time.Now()})
	in.mu.Unlock()
	if err != nil {
		return err.Error()
	}
	return ""
}

func (in *injector) cut(ctx context.Context, f *Fault, scope wan.Scope, mode wan.Mode) (target, missed string) {
	target = scope.String()
	if mode == wan.Reset {
		target += " reset"
	}
	if err := in.net.Cut(scope, mode); err != nil {
		return target, err.Error()
	}
	pause.For(ctx, f.For)
	return target, in.heal(scope)
}

// heal heals also what a reset cut beyond its scope.
func (in *injector) heal(scope wan.Scope) (missed string) {
	if err := in.net.Heal(scope); err != nil {
		return err.Error()
	}
	return ""
}

// flap cuts and heals over and over.
func (in *injector) flap(ctx context.Context, f *Fault, scope wan.Scope) (target, missed string) {
	rng := rand.New(rand.NewPCG(f.Pick, 2))
	for left := f.For; left > 0; {
		d := min(left, time.Duration(50+rng.IntN(1200))*time.Millisecond)
		if _, missed = in.cut(ctx, &Fault{For: d}, scope, wan.Mode(rng.IntN(2))); missed != "" {
			break
		}
		quiet := time.Duration(20+rng.IntN(1500)) * time.Millisecond
		pause.For(ctx, quiet)
		left -= d + quiet
	}
	return scope.String(), missed
}

// slow makes a link as slow as a bad line.
func (in *injector) slow(ctx context.Context, f *Fault, scope wan.Scope) (target, missed string) {
	rng := rand.New(rand.NewPCG(f.Pick, 3))
	delay := time.Duration(50+rng.IntN(800)) * time.Millisecond
	set := func(delay, jitter time.Duration, rate int64) {
		for _, err := range []error{in.net.SetDelay(scope, delay), in.net.SetJitter(scope, jitter), in.net.SetRate(scope, rate)} {
			if err != nil {
				missed = err.Error()
			}
		}
	}
	set(delay, delay/2, int64(5_000+rng.IntN(100_000)))
	pause.For(ctx, f.For)
	set(time.Millisecond, 0, 0)
	return fmt.Sprintf("%s by %v", scope, delay), missed
}

// healEverything undoes what may be left of faults, and starts what is down.
func (in *injector) healEverything(ctx context.Context) {
	in.heal(wan.Everything())
	for _, s := range in.sites {
		in.up(ctx, s)
	}
}
