package meta

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// counted counts what the engine has a scheduler do.
type counted struct {
	*sitesched.Scheduler
	passes, proposed, postponed int
}

func (c *counted) Pass(now job.Time) []job.AttemptID {
	starts := c.Scheduler.Pass(now)
	c.passes++
	c.proposed += len(starts)
	return starts
}

func (c *counted) Postpone(now job.Time, id job.AttemptID, until job.Time) {
	c.postponed++
	c.Scheduler.Postpone(now, id, until)
}

// silentHost is a host of two processors with copies of alpha, to which a stream
// is up.
type silentHost struct {
	*Engine
	site *counted
	now  job.Time
}

func newSilentHost(t *testing.T, copies int) *silentHost {
	t.Helper()
	return newSilentHostOf(t, sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}, copies)
}

// newSilentHostOf is newSilentHost with another scheduler.
func newSilentHostOf(t *testing.T, scheduler sitesched.Config, copies int) *silentHost {
	t.Helper()
	sched, err := sitesched.New(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	cfg.Self = Self{Processors: 2, Speed: 1}
	cfg.Limits.CopiesPerOrigin = copies
	h := &silentHost{site: &counted{Scheduler: sched}, now: job.Time(time.Hour)}
	if h.Engine, err = New(cfg, store.NewState("beta", 1), h.site); err != nil {
		t.Fatal(err)
	}
	h.Restore(h.now, nil)
	h.Step(h.now, SetDrain{On: true}) // nothing claims yet
	h.Step(h.now, PeerUp{Site: "alpha", Generation: 1})
	h.Step(h.now, SetDrain{})
	h.site.Drain(h.now, true)
	for n := range copies {
		h.Step(h.now, Receive{From: "alpha", Message: PlaceCopy{
			Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: uint64(n + 1)}, Number: 1},
			Request: job.Request{Processors: 1, Walltime: time.Minute},
		}})
	}
	h.site.Drain(h.now, false)
	return h
}

// pause lets time pass and returns for how long processors were held, summed over
// processors.
func (h *silentHost) pause(d time.Duration) (held time.Duration) {
	for end := h.now.Add(d); ; {
		at := min(max(h.NextWake(h.now), h.now+1), end)
		held += at.Sub(h.now) * time.Duration(2-h.site.Load(h.now).Free)
		if h.now = at; at == end {
			return held
		}
		h.Step(h.now, Tick{})
		h.Step(h.now, Pass{})
	}
}

// An origin whose disk hangs, while its stream stays up, holds the processors of
// a host for a twentieth of the time at most.
func TestHungOriginHoldsNoProcessors(t *testing.T) {
	h := newSilentHost(t, 30)
	h.Step(h.now, Pass{})
	const looked = 10 * time.Minute
	held := h.pause(looked)
	if share := held.Seconds() / (2 * looked.Seconds()); share > 0.05 {
		t.Errorf("processors were held for %.1f %% of %v, expected 5 %% at most", 100*share, looked)
	}
	// Nothing of it is load while it does not answer.
	if l := h.site.Load(h.now); l.Queued > 1 {
		t.Errorf("%d copies of it count as load, expected the one that is tried at most", l.Queued)
	}
	// Once the answers come, late, the copies are tried at once and all are back.
	h.Step(h.now, Receive{From: "alpha", Message: Verdict{Attempt: h.host.copiesOf("alpha")[0].rec.ID, Reason: job.HeldByOther}})
	h.pause(time.Second)
	for _, c := range h.host.copiesOf("alpha") {
		if c.status == claiming {
			h.Step(h.now, Receive{From: "alpha", Message: Verdict{Attempt: c.rec.ID, Granted: true, Sent: h.now}})
			h.Step(h.now, Pass{})
			break
		}
	}
	if l := h.site.Load(h.now); l.Queued != 27 || l.Free != 0 {
		t.Errorf("after an answer in time %d copies wait and %d processors are free, expected 27 and 0", l.Queued, l.Free)
	}
}

// Ten thousand copies of an origin that is gone cost a host next to nothing: what
// its scheduler is asked to do in an hour does not hang on their number.
func TestDeadOriginCostsNoSteps(t *testing.T) {
	const copies = 10_000
	h := newSilentHost(t, copies)
	h.Step(h.now, PeerDown{Site: "alpha"})
	h.Step(h.now, Pass{})
	h.pause(time.Hour)
	if h.site.proposed+h.site.postponed > 10 {
		t.Errorf("%d proposed, %d postponed in an hour, expected none", h.site.proposed, h.site.postponed)
	}
	if l := h.site.Load(h.now); l.Queued != 0 || l.Work != 0 {
		t.Errorf("the load counts %d copies with %v s of work, expected none", l.Queued, l.Work)
	}
	// Nor do they after a restart.
	again := restarted(t, h)
	again.pause(time.Hour)
	if again.site.proposed+again.site.postponed > 10 {
		t.Errorf("after a restart %d proposed, %d postponed in an hour, expected none", again.site.proposed, again.site.postponed)
	}
	again.Step(again.now, PeerUp{Site: "alpha", Generation: 1})
	again.Step(again.now, Pass{})
	if l := again.site.Load(again.now); l.Queued != copies-2 || l.Free != 0 {
		t.Errorf("with the origin back %d copies wait and %d processors are free, expected %d and 0", l.Queued, l.Free, copies-2)
	}
}

// restarted returns the host as its next daemon begins.
func restarted(t *testing.T, h *silentHost) *silentHost {
	t.Helper()
	sched, err := sitesched.New(sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll})
	if err != nil {
		t.Fatal(err)
	}
	next := &silentHost{site: &counted{Scheduler: sched}, now: h.now}
	if next.Engine, err = New(h.cfg, h.st, next.site); err != nil {
		t.Fatal(err)
	}
	next.Restore(next.now, nil)
	next.Step(next.now, Pass{})
	return next
}
