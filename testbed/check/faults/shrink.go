package faults

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// shrinkRuns bounds how often Shrink plays a schedule.
const shrinkRuns = 800

// Shrink returns a smaller schedule that breaks the same invariant as s: it
// leaves out faults, acts, jobs and sites, and makes the rest simpler, as
// long as the failure stays.
func Shrink(s *Schedule) *Schedule {
	r := Run(s, nil)
	if r.Violation == nil {
		return s
	}
	k := &shrinker{best: s, invariant: r.Violation.Invariant, runs: shrinkRuns}
	k.cutOff(r.Violation.At)
	for before := -1; before != k.size() && k.runs > 0; {
		before = k.size()
		k.leaveOut()
		k.simplify()
	}
	return k.best
}

// shrinker looks for a smaller schedule.
type shrinker struct {
	best      *Schedule
	invariant string
	runs      int
}

func (k *shrinker) size() int {
	s := k.best
	return len(s.Sites) + len(s.Jobs) + len(s.Bags) + len(s.Streams) + len(s.Acts) + len(s.Faults)
}

// try takes a schedule if it fails in the same way. What was left out changes
// what chance does with the rest, so other seeds get a try, too.
func (k *shrinker) try(change func(s *Schedule)) bool {
	for extra := range uint64(3) {
		if k.runs--; k.runs < 0 {
			return false
		}
		s := k.best.clone()
		s.Seed += extra * 1_000_003
		change(s)
		if s.check() != nil {
			return false
		}
		if r := Run(s, nil); r.Violation != nil && r.Violation.Invariant == k.invariant {
			k.best = s
			return true
		}
	}
	return false
}

func (s *Schedule) clone() *Schedule {
	c := *s
	c.Sites, c.Jobs, c.Acts, c.Faults = slices.Clone(s.Sites), slices.Clone(s.Jobs), slices.Clone(s.Acts), slices.Clone(s.Faults)
	c.Streams, c.Bags = slices.Clone(s.Streams), slices.Clone(s.Bags)
	return &c
}

// cutOff ends the faults soon after the violation, where there was one before
// they ended.
func (k *shrinker) cutOff(at time.Duration) {
	if at < k.best.End {
		k.try(func(s *Schedule) { s.End = at + time.Second })
	}
	if w := k.best.Watch; w > time.Second {
		k.try(func(s *Schedule) { s.Watch = time.Second })
	}
}

// leaveOut leaves out faults, acts, jobs and sites: many at a time first.
func (k *shrinker) leaveOut() {
	k.thin(func(s *Schedule) int { return len(s.Faults) }, func(s *Schedule, i, n int) { s.Faults = slices.Delete(s.Faults, i, i+n) })
	k.thin(func(s *Schedule) int { return len(s.Acts) }, func(s *Schedule, i, n int) { s.Acts = slices.Delete(s.Acts, i, i+n) })
	k.thin(func(s *Schedule) int { return len(s.Jobs) }, func(s *Schedule, i, n int) {
		s.Jobs = slices.Delete(s.Jobs, i, i+n)
		s.forgetMissing()
	})
	k.thin(func(s *Schedule) int { return len(s.Bags) }, func(s *Schedule, i, n int) {
		s.Bags = slices.Delete(s.Bags, i, i+n)
		s.forgetMissing()
	})
	k.thin(func(s *Schedule) int { return len(s.Streams) }, func(s *Schedule, i, n int) { s.Streams = slices.Delete(s.Streams, i, i+n) })
	k.thin(func(s *Schedule) int { return len(s.Sites) }, func(s *Schedule, i, n int) {
		s.Sites = slices.Delete(s.Sites, i, i+n)
		s.forgetMissing()
	})
}

// forgetMissing drops what names sites that are gone.
func (s *Schedule) forgetMissing() {
	gone := func(id job.SiteID) bool { return id != "" && s.site(id) == nil }
	s.Jobs = slices.DeleteFunc(s.Jobs, func(j Job) bool { return gone(j.From) })
	s.Streams = slices.DeleteFunc(s.Streams, func(x Stream) bool { return gone(x.From) })
	s.Bags = slices.DeleteFunc(s.Bags, func(b Bag) bool { return gone(b.From) })
	s.Acts = slices.DeleteFunc(s.Acts, func(w Act) bool {
		return gone(w.Site) || w.Job > 0 && s.job(w.Job) == nil || w.Bag > 0 && s.bag(w.Bag) == nil
	})
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool {
		return gone(f.Site) || gone(f.Other) || gone(f.To.Without) || f.Before != nil && gone(f.Before.Site)
	})
	s.forgetDependencies()
}

// thin leaves out stretches of a list of n(s) things, ever shorter ones.
func (k *shrinker) thin(n func(*Schedule) int, drop func(s *Schedule, i, n int)) {
	for size := n(k.best); size > 0; size /= 2 {
		for i := 0; i < n(k.best); {
			width := min(size, n(k.best)-i)
			if !k.try(func(s *Schedule) { drop(s, i, width) }) {
				i += width
			}
		}
	}
}

// simplify makes what is left easier to read.
func (k *shrinker) simplify() {
	k.try(func(s *Schedule) { s.Jitter, s.SyncJitter = 0, 0 })
	k.try(func(s *Schedule) { s.Latency, s.Sync = 10*time.Millisecond, 2*time.Millisecond })
	for i := range k.best.Sites {
		k.try(func(s *Schedule) { s.Sites[i].Drift = 0 })
		k.try(func(s *Schedule) {
			x := &s.Sites[i]
			x.Backfill, x.Queues, x.Scope = sitesched.EASY, sitesched.DualBackfill, sitesched.ScopeAll
		})
		k.try(func(s *Schedule) { s.Sites[i].Bound = 0 })
	}
	for i := range k.best.Faults {
		if f := &k.best.Faults[i]; f.Before == nil {
			k.round(f.At, func(s *Schedule, d time.Duration) { s.Faults[i].At = d })
		}
		k.round(k.best.Faults[i].For, func(s *Schedule, d time.Duration) { s.Faults[i].For = d })
	}
	for i := range k.best.Jobs {
		k.round(k.best.Jobs[i].At, func(s *Schedule, d time.Duration) { s.Jobs[i].At = d })
		k.try(func(s *Schedule) { s.Jobs[i].Run, s.Jobs[i].Walltime = time.Minute, 2*time.Minute })
		if k.best.Jobs[i].Staging != 0 {
			k.try(func(s *Schedule) { s.Jobs[i].Staging = 0 })
		}
		if k.best.Jobs[i].Output != 0 {
			k.try(func(s *Schedule) { s.Jobs[i].Output = 0 })
		}
		if k.best.Jobs[i].Collecting != 0 {
			k.try(func(s *Schedule) { s.Jobs[i].Collecting = 0 })
		}
		if k.best.Jobs[i].Every != 0 {
			k.try(func(s *Schedule) { s.Jobs[i].Every = 0 })
		}
		if k.best.Jobs[i].Pieces > 2 {
			k.try(func(s *Schedule) { s.Jobs[i].Pieces = 2 })
		}
		if k.best.Jobs[i].Pieces != 0 {
			k.try(func(s *Schedule) { s.Jobs[i].Pieces = 0 })
		}
		if k.best.Jobs[i].OnSiteLost != job.Wait {
			k.try(func(s *Schedule) { s.Jobs[i].OnSiteLost = job.Wait })
		}
	}
	k.simplifyBags()
	k.simplifyWaits()
	for i := range k.best.Streams {
		k.round(k.best.Streams[i].At, func(s *Schedule, d time.Duration) { s.Streams[i].At = d })
	}
	k.round(k.best.End, func(s *Schedule, d time.Duration) { s.End = d })
}

// round tries a duration with fewer digits.
func (k *shrinker) round(d time.Duration, set func(*Schedule, time.Duration)) {
	for _, unit := range []time.Duration{10 * time.Minute, time.Minute, 10 * time.Second, time.Second} {
		if rounded := d.Round(unit); rounded == d || k.try(func(s *Schedule) { set(s, rounded) }) {
			return
		}
	}
}
