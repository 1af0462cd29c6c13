package sim

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// This file holds what wide runs promise of copies beyond L4 as it is defined
// ([Conserve]): that none stays where it can never run, that sites keep their
// limits whatever others send, and that copies of sites that are away are no load.

// unfitting watches that no copy stays at a site that can never run it, as when it
// came back smaller. The host says so as soon as it has a stream.
func (k *keeper) unfitting(x *waiting, o, s *Site, j *store.Job) {
	since := max(k.sites[o.index].since, k.sites[s.index].since)
	calm := k.sites[o.index].since != 0 && k.sites[s.index].since != 0
	if p := k.stream(o, s); o != s {
		since, calm = max(since, p.since), calm && p.since != 0
	}
	if j.State != job.Queued || !calm || !slices.Contains(j.Sites, s.cfg.ID) || s.scheduler.Refuse(&j.Request) == job.NoReason {
		x.unfit[s.index] = 0
		return
	}
	if x.unfit[s.index] == 0 {
		x.unfit[s.index] = k.w.now
	}
	if stays := k.w.now.Sub(max(since, x.unfit[s.index])); stays > k.cfg.Bound {
		k.w.watch.violate("L4: for %v job %v has had a copy at site %s, which can never run it", stays, j.ID, s.cfg.ID)
	}
}

// lookInto watches what a site has taken of others, and what it says of that.
func (k *keeper) lookInto(s *Site) {
	if !s.Up() || s.frozen || k.w.watch.liars[s.cfg.ID] {
		return
	}
	restarted := k.lives[s.index] != s.life+s.reloads // perhaps with other limits
	k.lives[s.index] = s.life + s.reloads
	t := &k.tenants[s.index]
	if says := s.scheduler.Load(s.now()).Queued; says > t.load {
		load := t.load
		for q := range s.scheduler.Queued {
			if isPilot(q.Copy.ID) {
				load++
			}
		}
		if says > load {
			k.w.watch.violate("L4: site %s says that %d copies wait there, and %d do whose origin is in reach", s.cfg.ID, says, load)
		}
	}
	l := &s.cfg.Meta.Limits
	for i, o := range k.w.sites {
		if o != s {
			k.limit(s, o.cfg.ID, i, t.its[i], l.CopiesPerOrigin, restarted)
		}
	}
	k.limit(s, "", len(k.w.sites), t.all, l.Copies, restarted)
}

// away reports whether a host knows that it has no stream to an origin.
func (k *keeper) away(o, s *Site) bool {
	if o == s {
		return false
	}
	p, i := k.w.net.pair(s, o)
	return !p.known[i]
}

// limit watches that a site takes no more copies of an origin, or of all if that is
// "", than its limit says; at is its place among those. One that was lowered sends none back.
func (k *keeper) limit(s *Site, from job.SiteID, at, n, most int, restarted bool) {
	held := &k.held[s.index][at]
	if n > most && n > *held && !restarted {
		k.w.watch.violate("limits: site %s has %d copies of origin %q, at most %d are allowed", s.cfg.ID, n, from, most)
	}
	*held = n
}
