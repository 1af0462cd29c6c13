package sim

import (
	"slices"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// This file watches L5, that a job which waits has its K copies, see [Conserve].

// copies is what the keeper keeps in mind for it.
type copies struct {
	// parted is since when each site knows that it has no stream to another one, 0 if it
	// believes that it has one; by the places of both.
	parted []job.Time
	// of is which of their streams that was: one may have come and gone between two looks.
	of []int
	// met says that a site had no room for a copy of another one that came since the
	// latest look.
	met []bool
}

func (c *copies) init(w *World) {
	n := len(w.sites)
	c.parted, c.of, c.met = make([]job.Time, n*n), make([]int, n*n), make([]bool, n*n)
}

// at is the place of what one site has of another one.
func (k *keeper) at(a, b *Site) int { return a.index*len(k.w.sites) + b.index }

// lookAtStreams notes who has known for how long that a site is out of reach.
func (k *keeper) lookAtStreams() {
	k.w.net.each(func(p *pair) {
		for i, s := range p.ends {
			at := k.at(s, p.ends[1-i])
			switch {
			case p.known[i]:
				k.parted[at] = 0
			case k.parted[at] == 0 || k.of[at] != p.epoch:
				k.parted[at], k.of[at] = k.w.now, p.epoch
			}
		}
	})
}

// offered notes that a copy comes to a site, which may be full at this moment only.
func (k *keeper) offered(s, o *Site) {
	if k.cfg != nil && s.state != nil && !k.hasRoom(s, o) {
		k.met[k.at(s, o)] = true
	}
}

// lacking watches one job at all sites.
func (k *keeper) lacking(x *waiting, o *Site, j *store.Job) {
	short := k.short(x, o, j)
	for i, s := range k.w.sites {
		if !short || !k.reaches(o, s) || !k.wouldTake(x, s, o, j) {
			x.lacks[i] = 0
			continue
		}
		if x.lacks[i] == 0 {
			x.lacks[i] = k.w.now
		}
		if lacks := k.w.now.Sub(x.lacks[i]); lacks > k.cfg.Lack {
			k.w.watch.violate("L5: for %v job %v, which is %v, has had %d of %d copies (sites %v), and site %s could have taken one",
				lacks, j.ID, j.State, k.live(x, o, j), o.cfg.Meta.CopiesOf(&j.Request), j.Sites, s.cfg.ID)
		}
	}
}

// short reports whether a job waits and has fewer live copies than it should.
func (k *keeper) short(x *waiting, o *Site, j *store.Job) bool {
	p := &o.cfg.Meta.Placement
	return p.Conserve && p.Scheme != meta.Independent && (j.State == job.Pending || j.State == job.Queued) && !j.CancelRequested && !x.begun &&
		k.settled(&k.sites[o.index]) && k.live(x, o, j) < o.cfg.Meta.CopiesOf(&j.Request)
}

// live counts the copies of a job that waits. Those at sites in trouble count until these
// have been out of reach for so long that they count as vanished.
func (k *keeper) live(x *waiting, o *Site, j *store.Job) (n int) {
	if j.State != job.Queued {
		return 0
	}
	for _, at := range j.Sites {
		s := k.w.site(at)
		if s == nil {
			continue
		}
		if k.reaches(o, s) {
			if x.here[s.index] {
				n++
			}
		} else if since := k.parted[k.at(o, s)]; since == 0 || k.w.now.Sub(since) < o.cfg.Meta.Timing.Vanish {
			n++
		}
	}
	return n
}

// wouldTake reports whether a site at peace, which has no copy of a job, would take one.
func (k *keeper) wouldTake(x *waiting, s, o *Site, j *store.Job) bool {
	if j.State == job.Queued && x.here[s.index] {
		return false
	}
	if s.state.Site().Draining || s.refuses(j) {
		return false
	}
	if s != o && (k.met[k.at(s, o)] || !k.takes(s, o)) {
		return false
	}
	return !k.avoided(x, o) && !gaveBack(s, o, j)
}

// gaveBack reports whether a job keeps away from a site that gave it back: the site's own jobs may come
// without an end, or it may be unable to start any for long.
func gaveBack(s, o *Site, j *store.Job) bool {
	for _, e := range slices.Backward(j.Events) {
		if e.Site == s.cfg.ID && (e.Reason == job.MadeWay || e.Reason == job.CannotStart) {
			return o.now().Sub(e.Time) < o.cfg.Meta.Timing.Retry
		}
	}
	return false
}

// avoided reports whether a job keeps away from sites, as it was lost: for longer with
// each further time.
func (k *keeper) avoided(x *waiting, o *Site) bool {
	return x.losses > 0 && o.now().Sub(x.lost) < o.cfg.Meta.Timing.Retry<<min(x.losses, mostDoublings)
}

// heldBack reports whether a job is placed nowhere, as attempts of it were lost again.
func (k *keeper) heldBack(x *waiting, o *Site) bool {
	return x.losses > 1 && o.now().Sub(x.lost) < o.cfg.Meta.Timing.Retry<<min(x.losses-2, mostDoublings-1)
}

// noteLosses counts the attempts of a job that were lost. Its history is bounded: what an
// enemy has denied drives them out of it.
func (x *waiting) noteLosses(j *store.Job) {
	for _, e := range j.Events {
		if e.Reason == job.AttemptLost && e.Attempt > x.lostLast {
			x.losses, x.lost, x.lostLast = x.losses+1, e.Time, e.Attempt
		}
	}
}

// mostDoublings is how often the pause of a job that was lost doubles.
const mostDoublings = 7
