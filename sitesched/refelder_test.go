package sitesched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// besideElders is the remote queue's turn where patience ends: in queue order,
// each starts that fits beside what is promised to local jobs and to the first
// elder that did not fit.
func (r *reference) besideElders(now int, started *[]job.AttemptID) {
	r.moveWindow()
	var elder *refJob
	hole := noSlot
	for _, j := range r.waiting(now, true) {
		f := r.promised(now)
		if elder != nil {
			if !fitsAt(f, hole, elder.p, elder.wall) {
				panic(fmt.Sprintf("%v no longer has its hole at %d", elder.id, now+hole))
			}
			add(f, hole, elder.wall, -elder.p)
		}
		switch {
		case j.p <= min(r.free(), r.room(j)) && fitsAt(f, 0, j.p, j.wall):
			r.start(now, j, started)
		case elder == nil && (j.elder || now-j.arrival >= int(r.cfg.Patience/time.Second)):
			if r.free() < 0 {
				return // nothing starts, and no surface is right
			}
			elder, hole = j, earliest(f, 0, j.p, j.wall)
		}
	}
}

// promised is what runs and what local jobs are promised leave free.
func (r *reference) promised(now int) []int {
	if r.cfg.Backfill >= Conservative || r.cfg.Scope == ScopeAll {
		_, f := r.localPlan(now)
		return f
	}
	f := r.surface(now)
	if q := r.waiting(now, false); len(q) > 0 {
		at := slices.IndexFunc(f, func(free int) bool { return free >= q[0].p })
		add(f, at, q[0].wall, -q[0].p)
	}
	return f
}

// TestReferenceElders plays random stories against the slow reference with a
// patience that is soon used up, and copies that are elders at once.
func TestReferenceElders(t *testing.T) {
	everyDiscipline(t, func(t *testing.T, c Config) {
		if c.Queues != DualBackfill {
			t.Skipf("with queues %v the first remote copy blocks those behind it anyway, so patience changes nothing", c.Queues)
		}
		for _, patience := range []time.Duration{1, 4, 15} {
			c.Patience = patience * time.Second
			with := everything
			with.elders = true
			stories(t, 500, c, with, nil)
			stories(t, 500, c, spice{elders: true, crowd: 6}, nil)
			if c.GuaranteeDepth = 2; c.depth() < 10 {
				stories(t, 200, c, with, nil)
			}
			c.GuaranteeDepth = 0
		}
	})
}
