package apart

import (
	"errors"
	"time"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// whileDriven reports whether an attempt runs under a lease of the driver's own: what would be run again
// while the machine is out of reach, and has no lease of another origin.
func (d *Driver) whileDriven(a job.AttemptID, r *job.Request) bool {
	return a.Job.Origin == d.cfg.Site && r.OnSiteLost == job.Rerun
}

// Launch carries out a [meta.Launch].
func (d *Driver) Launch(f meta.Launch) {
	d.mu.Lock()
	if old := d.attempts[f.Attempt]; old != nil && !old.told {
		d.mu.Unlock()
		return
	}
	if old := d.attempts[f.Attempt]; old != nil && old.hold != nil {
		old.hold.Close()
	}
	e := &driven{launch: f, whileDriven: d.whileDriven(f.Attempt, &f.Request), lease: f.Lease}
	d.attempts[f.Attempt] = e
	delete(d.bringing, f.Attempt)
	d.mu.Unlock()
	read := func() (err error) {
		if f.Task == nil && f.Payload == nil && f.Attempt.Job.Origin == d.cfg.Site {
			e.launch.Payload, err = d.cfg.Files.PayloadOf(f.Attempt.Job, f.Resume)
		}
		return err
	}
	err := read()
	if err == nil || errors.Is(err, store.ErrUnknown) {
		d.read(e, err)
		return
	}
	d.cfg.Log.Error("attempt waits: what it runs cannot be read from the store; tried again until it can", "attempt_id", f.Attempt.String(), "error", err.Error())
	d.wg.Go(func() {
		for err != nil && !errors.Is(err, store.ErrUnknown) && pause.For(d.ctx, time.Second) {
			err = read()
		}
		d.read(e, err)
	})
}

// read goes on with an attempt when what it runs was read.
func (d *Driver) read(e *driven, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.attempts[e.launch.Attempt] != e || e.told || d.ctx.Err() != nil:
	case err != nil:
		d.end(e, job.Outcome{Kind: job.Failure, ExitCode: 127, End: job.Instant(time.Now()), Reason: "not started: " + err.Error()})
	default:
		e.ready = true
		if d.up() {
			d.send(e)
		}
	}
}

// up reports whether attempts can be started. The caller holds the mutex.
func (d *Driver) up() bool { return d.session != nil && d.session.up }

// order says something to the machine. The caller holds the mutex.
func (d *Driver) order(o *kithv1.DriveRequest) {
	if d.session != nil {
		d.session.out.put(o)
	}
}

// send has the machine start an attempt. The caller holds the mutex.
func (d *Driver) send(e *driven) {
	o := &kithv1.LaunchOrder{
		Attempt: wire.AttemptName(e.launch.Attempt), Request: wire.RequestMessage(&e.launch.Request), Payload: e.launch.Payload, WhileDriven: e.whileDriven,
		GoesOn: e.launch.GoesOn, Last: e.launch.Last, Estimate: estimateOrder(e.launch.Estimate),
	}
	o.Bundle, o.Task = bundleOf(e.launch.Task)
	for len(o.Payload) > wire.Payload {
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Launch{Launch: &kithv1.LaunchOrder{Attempt: o.Attempt, Payload: o.Payload[:wire.Payload], More: true}}})
		o.Payload = o.Payload[wire.Payload:]
	}
	switch {
	case e.whileDriven:
		o.LeaseNs = int64(d.session.until)
	case e.lease != 0:
		o.LeaseNs = int64(d.session.clock(d.cfg.SinceBoot(e.lease)))
		e.may = e.lease
	}
	e.sent, e.boot, e.leased = true, d.boot, o.LeaseNs != 0
	e.launch.Payload = nil // the machine has it, or the engine launches it again
	d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Launch{Launch: o}})
}

// Adopt carries out a [meta.Adopt].
func (d *Driver) Adopt(f meta.Adopt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attempts[f.Attempt] != nil {
		return
	}
	e := &driven{
		launch: meta.Launch{Attempt: f.Attempt, Request: f.Request, Task: f.Task, Ending: f.Ending, Estimate: f.Estimate}, whileDriven: d.whileDriven(f.Attempt, &f.Request),
		ready: true, sent: true, boot: f.BootID, leased: f.Leased,
	}
	e.leased = e.leased || e.whileDriven
	d.attempts[f.Attempt] = e
	if d.session != nil {
		d.ask(e)
	}
}

// ask asks the machine about an attempt that it may have. The caller holds the mutex.
func (d *Driver) ask(e *driven) {
	o := &kithv1.AdoptOrder{
		Attempt: wire.AttemptName(e.launch.Attempt), Request: wire.RequestMessage(&e.launch.Request), Boot: e.boot, Leased: e.leased, WhileDriven: e.whileDriven,
		GoesOn: e.launch.GoesOn, Last: e.launch.Last, Estimate: estimateOrder(e.launch.Estimate),
	}
	o.Bundle, o.Task = bundleOf(e.launch.Task)
	switch {
	case e.lost: // what was given up is stopped, and gone before anything else is started
		d.orderClear(e.launch.Attempt)
	case e.told:
	default:
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Adopt{Adopt: o}})
		if e.asked != nil {
			d.orderAsk(e)
		}
		if e.killed != nil {
			d.orderKill(e)
		}
	}
}

// Ask carries out a [meta.AskCheckpoint].
func (d *Driver) Ask(f meta.AskCheckpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.attempts[f.Attempt]; e != nil && e.sent && !e.told && e.asked == nil && e.killed == nil {
		e.asked = &f
		d.orderAsk(e)
	}
}

// estimateOrder says how an estimator is run, nil if it is not.
func estimateOrder(e meta.Estimate) *kithv1.EstimateOrder {
	if e.Limit <= 0 {
		return nil
	}
	return &kithv1.EstimateOrder{LimitNs: int64(e.Limit), Known: e.Known, Done: e.Done, Most: e.Most}
}

// estimateOf is the reverse of estimateOrder.
func estimateOf(o *kithv1.EstimateOrder) meta.Estimate {
	return meta.Estimate{Limit: time.Duration(o.GetLimitNs()), Known: o.GetKnown(), Done: o.GetDone(), Most: o.GetMost()}
}

// CopySaved carries out a [meta.CopySaved]: the machine makes no copies.
func (d *Driver) CopySaved(a job.AttemptID) {
	d.cfg.Tell(meta.SavedCopied{Attempt: a, Reason: "site " + string(d.cfg.Site) + " has its processors at another machine, from which nothing is copied while a job runs"})
}

func (d *Driver) orderAsk(e *driven) {
	d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Ask{Ask: &kithv1.AskOrder{
		Attempt: wire.AttemptName(e.launch.Attempt), Cause: uint32(e.asked.Cause), GraceNs: int64(e.asked.Grace),
	}}})
}

func (d *Driver) orderKill(e *driven) {
	d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Kill{Kill: &kithv1.KillOrder{
		Attempt: wire.AttemptName(e.launch.Attempt), Lease: e.killed.Lease, Stale: e.killed.Stale,
	}}})
}

func (d *Driver) orderClear(a job.AttemptID) {
	d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Clear{Clear: wire.AttemptName(a)}})
}

// Launched reports whether an attempt was launched or adopted and has not ended.
func (d *Driver) Launched(a job.AttemptID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.attempts[a]
	return e != nil && !e.told
}

// Kill carries out a [meta.Kill].
func (d *Driver) Kill(f meta.Kill) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.attempts[f.Attempt]
	if e == nil || e.told {
		return
	}
	if old := e.killed; old != nil {
		f.Stale = f.Stale || old.Stale
	}
	e.killed = &f
	switch {
	case !e.sent:
		d.end(e, f.Unstarted(job.Instant(time.Now())))
	case f.Stale && e.outcome != nil:
		d.endWithout(e, "its output was not brought to the site: the attempt is stale")
	default:
		d.orderKill(e)
	}
}

// Extend carries out a [meta.Extend].
func (d *Driver) Extend(f meta.Extend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.attempts[f.Attempt]; e != nil && f.Until > e.lease {
		e.lease = f.Until
		if e.sent {
			if e.may == 0 {
				e.may = f.Until
			}
			d.orderExtend(e)
		}
	}
}

func (d *Driver) orderExtend(e *driven) {
	if d.session != nil && d.session.beaten && e.lease != 0 && !e.told {
		e.may = max(e.may, e.lease)
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Extend{Extend: &kithv1.ExtendOrder{
			Attempt: wire.AttemptName(e.launch.Attempt), UntilNs: int64(d.session.clock(d.cfg.SinceBoot(e.lease))),
		}}})
	}
}

// Unstage carries out a [meta.Unstage].
func (d *Driver) Unstage(a job.AttemptID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.attempts[a]
	switch {
	case e == nil || e.told:
	case e.sent:
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Unstage{Unstage: wire.AttemptName(a)}})
	default:
		delete(d.attempts, a)
		d.cfg.Tell(meta.AttemptMissing{Attempt: a})
	}
}

// Clear carries out a [meta.Clear].
func (d *Driver) Clear(a job.AttemptID) {
	d.mu.Lock()
	e := d.attempts[a]
	delete(d.attempts, a)
	delete(d.bringing, a)
	d.orderClear(a)
	if e != nil && e.taking != nil {
		e.taking()
	}
	d.mu.Unlock()
	if e != nil && e.hold != nil {
		e.hold.Close()
		if a.Job.Origin != d.cfg.Site { // which has them, or does not want them
			d.cfg.Files.Drop(e.set)
		}
	}
}

// RemoveStrays is done by each session.
func (d *Driver) RemoveStrays(func(job.AttemptID) bool) {}

// AdoptedShims are not of this machine.
func (d *Driver) AdoptedShims() []int { return nil }

// end tells the engine how an attempt ended. The caller holds the mutex.
func (d *Driver) end(e *driven, o job.Outcome) {
	e.told, e.outcome = true, nil
	d.cfg.Tell(meta.AttemptEnded{Attempt: e.launch.Attempt, Outcome: o})
}

// endWithout ends an attempt whose files do not come. The caller holds the mutex.
func (d *Driver) endWithout(e *driven, note string) {
	o := *e.outcome
	o.Files, o.FilesRemain, o.FilesLost, o.Checkpoint = nil, false, true, 0
	if o.Reason != "" {
		o.Reason += "; "
	}
	o.Reason += note
	if e.taking != nil {
		e.taking()
	}
	d.end(e, o)
}
