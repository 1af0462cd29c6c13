package meta

import (
	"math"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// An attempt that gave its processors back, as its input was long on its way, holds its claim
// while it waits here for its next turn: no other site may start the job. When its input is
// here and others have taken the processors, it may wait for long beside a site that is idle.
// Such an attempt goes back to its origin, which gives the job to that one.

const (
	// holdPause is for how long an attempt keeps its claim at least, as what runs here
	// may end soon.
	holdPause = 5 * time.Second
	// mostReturned is of how many jobs it is remembered that they went back.
	mostReturned = 1024
)

// holding are the attempts that wait here with their claims, and what was given up of such.
type holding struct {
	copies []*hostCopy
	next   job.Time // when one may go back, job.Never for none
	// offered is what went back since each idle site last told of its load.
	offered map[job.SiteID]offered
	// went are jobs that have gone back: one that comes here again may have met no other
	// site that takes it, and stays longer each time.
	went map[job.ID]went
}

type offered struct {
	incarnation, sequence uint64
	processors            int32
}

type went struct {
	until job.Time
	times int
}

// holds notes that a copy waits with its claim from now on, and nothing keeps it from starting
// but others.
func (h *host) holds(now job.Time, c *hostCopy) {
	if !h.cfg.Placement.Conserve {
		return
	}
	c.holds = now
	if !slices.Contains(h.holding.copies, c) {
		h.holding.copies = append(h.holding.copies, c)
	}
	h.holding.next = min(h.holding.next, now.Add(holdPause))
}

// keepsClaim reports whether a copy waits with its claim.
func (h *host) keepsClaim(c *hostCopy) bool {
	return h.copies.Get(c.rec.ID) == c && c.returned && !c.bringing && c.rec.Phase == store.CopyQueued && c.outgrown == job.NoReason
}

// returnHeld gives attempts back that have waited here with their claims for long enough, if
// there is another site that is idle.
func (h *host) returnHeld(now job.Time) {
	g := &h.holding
	if len(g.copies) == 0 {
		return
	}
	g.next = job.Never
	g.copies = slices.DeleteFunc(g.copies, func(c *hostCopy) bool { return !h.keepsClaim(c) })
	for _, c := range g.copies {
		w, a := g.went[c.rec.ID.Job], c.rec.ID
		switch due := max(c.holds.Add(holdPause), w.until); {
		case c.status != waiting || !h.peers.reachable(a.Job.Origin):
		case due > now:
			g.next = min(g.next, due)
		case h.idleFor(now, a.Job.Origin, c.rec.Request) && g.note(now, a.Job, h.cfg.Timing.Retry):
			h.giveBack(now, c, job.IdleElsewhere)
		}
	}
}

// note remembers that a job goes back; false if too many are remembered.
func (g *holding) note(now job.Time, id job.ID, pause time.Duration) bool {
	w, known := g.went[id]
	if !known && len(g.went) >= mostReturned {
		for id, w := range g.went {
			if w.until <= now {
				delete(g.went, id)
			}
		}
		if len(g.went) >= mostReturned {
			return false
		}
	}
	if g.went == nil {
		g.went = make(map[job.ID]went)
	}
	g.went[id] = went{until: now.Add(pause << w.times), times: min(w.times+1, mostDoublings)}
	return true
}

// idleFor reports whether a site that has told of its load lately has processors for a job that
// may start there before what waits, and counts these as taken. At the job's own origin what
// keeps guests waiting does not count, where its own jobs go first.
func (h *host) idleFor(now job.Time, origin job.SiteID, r *job.Request) bool {
	for _, p := range h.peers.view.PeersAt(now) {
		d := &p.Digest
		open := !d.Draining && !d.NotStarting && (!d.Load.Blocked || p.Site == origin && d.HomeJobs == cluster.HomeJobsFirst)
		if !p.Known || !open || p.Age(now) > h.cfg.Placement.MaxLoadAge || place.Fits(r, d.Processors, d.MemoryBytes) != job.NoReason || p.Site != origin && d.Bars(r) != job.NoReason {
			continue
		}
		o := h.holding.offered[p.Site]
		if o.incarnation != d.Incarnation || o.sequence != d.Sequence {
			o = offered{incarnation: d.Incarnation, sequence: d.Sequence}
		}
		if free := int64(d.Load.Free) - int64(o.processors) - int64(min(max(0, p.Sent.Procs), math.MaxInt32)); int64(r.Processors) > free {
			continue
		}
		o.processors += r.Processors
		if h.holding.offered == nil {
			h.holding.offered = make(map[job.SiteID]offered)
		}
		h.holding.offered[p.Site] = o
		return true
	}
	return false
}

// heldSeen learns from a digest that a site may be idle.
func (h *host) heldSeen(now job.Time, d *cluster.Digest) {
	if d.Load.Free > 0 {
		h.returnHeld(now)
	}
}
