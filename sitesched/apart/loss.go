package apart

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
)

// drift is how much faster one clock may be than another, as a part: after Lost and this part of it
// more, what ran under a lease of Lost is gone.
const drift = 20

// watch looks how long nothing was heard of the machine. Time counts only while this process runs: after
// a pause, what the machine has said meanwhile is heard first.
func (d *Driver) watch() {
	for last := time.Now(); pause.For(d.ctx, watchEvery); {
		now := time.Now()
		d.passed(min(now.Sub(last), 2*watchEvery))
		last = now
	}
}

// passed says that so much time has passed.
func (d *Driver) passed(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent += t
	if s := d.session; s != nil {
		if s.heard += t; s.heard > silentFor {
			s.cancel()
		}
	}
	if !d.up() {
		if d.gone += t; d.gone >= awayAfter {
			d.goAway()
		}
	}
	if d.silent >= d.lost+d.lost/drift {
		d.lose()
	}
}

// goAway tells the engine that nothing can be started. What was never sent goes back.
func (d *Driver) goAway() {
	why := fmt.Sprintf("machine %s, which has them, cannot be reached", d.cfg.Machine)
	if d.why != nil {
		why += ": " + d.why.Error()
	}
	if why != d.away {
		d.away = why
		d.cfg.Tell(meta.MachineSeen{Away: why})
	}
	for a, e := range d.attempts {
		if !e.sent && !e.told && e.ready {
			delete(d.attempts, a)
			d.cfg.Tell(meta.StartFailed{Attempt: a, Reason: why})
		}
	}
}

// lose gives up what runs there, but for what may still run under a lease of another origin.
func (d *Driver) lose() {
	for a, e := range d.attempts {
		switch {
		case !e.sent || e.told, e.may > d.cfg.Now():
			continue
		case e.leased && !e.whileDriven && e.may == 0 && e.killed == nil:
			continue // an earlier lead knew until when it runs; its origin will say something
		case e.outcome != nil:
			d.endWithout(e, "its output is lost with machine "+d.cfg.Machine)
		default:
			d.end(e, job.Outcome{
				Kind: job.Loss, End: job.Instant(time.Now()),
				Reason: fmt.Sprintf("node lost: nothing was heard of machine %s for %v", d.cfg.Machine, d.lost),
			})
		}
		e.lost = true
		d.cfg.Log.Warn("attempt lost with the machine that has the processors", "attempt_id", a.String(), "machine", d.cfg.Machine)
	}
}
