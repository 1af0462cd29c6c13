package meta

import (
	"time"

	"kith/internal/job"
	"kith/store"
)

// Runs of tasks at their host: what the driver says of them.

// begin has a pilot begin the next task of its stock.
func (th *taskHost) begin(now job.Time, p *pilot, left time.Duration) {
	id, task, ok := p.line.stock.Next(left)
	if !ok {
		return
	}
	b := th.bundles[id]
	r := &taskRun{id: b.rec.RunID(task), bundle: b, task: task, pilot: p, begun: now, run: TaskRun{Bundle: id, Ordinal: task}}
	th.addRun(r)
	p.run = r
	p.tasks++
	th.counters.TasksStarted++
	th.emit(Launch{
		Attempt: r.id, Request: th.limited(&b.rec.Request), Task: &r.run, Lease: b.lease.until,
	})
}

// limited is what a task asks for as it is run here: one of a hierarchy for no longer than this
// level lets any job run.
func (th *taskHost) limited(r *job.Request) job.Request {
	l := *r
	if most := th.host.level.limits.Run; l.Level > 0 && l.Level == th.host.ownLevel() && most > 0 {
		l.Walltime = min(l.Walltime, most)
	}
	return l
}

func (th *taskHost) addRun(r *taskRun) { th.runs[r.id], r.bundle.runs[r.task] = r, r }

// kill has the driver stop a run, in the way of k.
func (th *taskHost) kill(r *taskRun, k Kill) {
	r.killed = true
	k.Attempt = r.id
	th.emit(k)
}

// answered notes that the driver has said what became of a run that was begun before a
// restart.
func (th *taskHost) answered(r *taskRun) {
	if r.asked {
		r.asked = false
		if th.adopting--; th.adopting == 0 {
			th.host.passing = true
		}
	}
}

// started takes up that the command of a task runs.
func (th *taskHost) started(now job.Time, ev AttemptStarted) {
	r := th.runs[ev.Attempt]
	if r == nil || r.started {
		return
	}
	r.started = true
	th.answered(r)
	if r.adopted {
		th.adopt(now, r, ev.At)
		return
	}
	if r.pilot != nil {
		r.pilot.proved = true
	}
	th.host.startsAgain(r.begun)
}

// adopt gives a run that outlived the daemon the processors that it holds: a pilot of its
// own.
func (th *taskHost) adopt(now job.Time, r *taskRun, at job.Time) {
	l := r.bundle.line
	p := th.newPilot(l)
	p.began, p.run, p.tasks, p.proved = min(max(at, 1), now), r, 1, true
	r.pilot = p
	th.count(p, 1)
	l.running = append(l.running, p)
	th.host.site.Adopt(now, th.copy(now, p), p.began)
	th.host.site.Confirm(now, p.id, p.began)
	th.look(l)
}

// over frees the processors of a task whose processes are gone, while what it left is being
// collected; unless so many are that the disk must be in trouble.
func (th *taskHost) over(now job.Time, run job.AttemptID) {
	r := th.runs[run]
	if r == nil {
		return
	}
	th.answered(r)
	l := r.bundle.line
	if collecting := len(th.runs) - th.busy(); r.pilot != nil && collecting < mostCollecting {
		th.vacate(now, r)
	}
	th.look(l)
}

// mostCollecting is how many tasks may wait for what they left to be collected while their
// pilots go on.
const mostCollecting = 1024

// busy is how many pilots run a task.
func (th *taskHost) busy() int {
	n := 0
	for _, l := range th.lines {
		n += l.level().Running
	}
	return n
}

// vacate has the pilot of a run go on without it.
func (th *taskHost) vacate(_ job.Time, r *taskRun) {
	if r.pilot != nil {
		p := r.pilot
		p.run, p.stopped, r.pilot = nil, false, nil
		p.line.idle = append(p.line.idle, p)
	}
}

// removeRun forgets a run that has ended.
func (th *taskHost) removeRun(now job.Time, r *taskRun) {
	th.answered(r)
	th.vacate(now, r)
	delete(th.runs, r.id)
	delete(r.bundle.runs, r.task)
	th.look(r.bundle.line)
}

// ended takes up how a task ended.
func (th *taskHost) ended(now job.Time, ev AttemptEnded) {
	r := th.runs[ev.Attempt]
	if r == nil {
		return
	}
	if ev.Outcome.Start != 0 && !r.started && !r.adopted { // what ended meanwhile holds no processors
		th.started(now, AttemptStarted{Attempt: ev.Attempt, At: ev.Outcome.Start})
	}
	th.end(now, r, &ev.Outcome)
}

// end puts how a task ended into the next batch.
func (th *taskHost) end(now job.Time, r *taskRun, o *job.Outcome) {
	b := r.bundle
	th.removeRun(now, r)
	if b.unwanted {
		th.emit(Clear{Attempt: r.id})
		th.forgetUnwanted(now, b)
		return
	}
	result := resultOf(r.task, o)
	if result.Run > 0 && o.Kind != job.Cancel {
		b.line.mean.Add(result.Run)
	}
	switch n := len(o.Files); {
	case n > store.MaxTaskFiles: // the driver keeps to the bound
		result.FilesLost = true
	case n > 0:
		b.files[r.task] = o.Files
	}
	b.batch.Add(result, now)
	th.flushAt(b)
}

// resultOf is an outcome as that of a task, within its bounds.
func resultOf(task uint32, o *job.Outcome) job.TaskResult {
	r := job.TaskResult{
		Ordinal: task, Kind: o.Kind, ExitCode: min(max(0, o.ExitCode), 255), Signal: min(max(0, o.Signal), job.MaxSignal),
		Start: max(0, o.Start), CPUTime: max(0, o.CPUTime), MaxRSSBytes: min(max(0, o.MaxRSSBytes), job.MaxMemoryBytes),
		FilesLost: o.FilesLost,
	}
	if r.Start != 0 {
		r.Run = min(max(0, o.End.Sub(o.Start)), job.MaxWalltime)
	}
	switch {
	case r.Kind < job.Success || r.Kind > job.Loss:
		r.Kind = job.Failure
	case r.Kind == job.Success:
		r.ExitCode, r.Signal = 0, 0
	}
	if r.Kind == job.Failure || r.Kind == job.Timeout {
		if r.ErrorLine = o.ErrorLine; r.ErrorLine == "" && o.Start == 0 {
			r.ErrorLine = job.ErrorLineOf([]byte(o.Reason))
		}
	}
	return r
}

// missing takes up that a task was begun and never started: the daemon was restarted
// before, or its inputs cannot be had for now. After a restart of the daemon it waits
// again; one of a machine leaves nothing that says which tasks had begun. Else it goes back:
// another site may have what it needs.
func (th *taskHost) missing(now job.Time, a job.AttemptID) {
	r := th.runs[a]
	if r == nil {
		return
	}
	b := r.bundle
	switch {
	case b.unwanted:
		th.removeRun(now, r)
		th.emit(Clear{Attempt: r.id})
		th.forgetUnwanted(now, b)
	case r.killed:
		th.end(now, r, new(Kill{Lease: b.lapsed}.Unstarted(now)))
	case r.adopted && b.rec.BootID != th.cfg.BootID:
		th.end(now, r, &job.Outcome{Kind: job.Loss, End: now})
	case r.adopted:
		th.removeRun(now, r)
		th.putBack(now, b, r.task)
	default:
		th.removeRun(now, r)
		th.drop(now, b, job.TaskRange(r.task, r.task+1))
		th.emit(Clear{Attempt: r.id}) // what was prepared for it
	}
}

// putBack puts a task that has not begun into the stock, unless there it could not stay.
func (th *taskHost) putBack(now job.Time, b *heldTasks, task uint32) {
	one := job.TaskRange(task, task+1)
	if b.lapsed || th.st.Site().Draining {
		th.drop(now, b, one)
		return
	}
	if leased(&b.rec.Request) && b.line.origin != th.self && b.lease.until == 0 {
		b.waiting.AddAll(&one) // for the lease
		return
	}
	b.line.stock.Add(b.rec.ID, b.rec.Request.Walltime, one)
	th.look(b.line)
}

// startFailed takes a task back that could not be started, and reports whether it is one.
// It goes back to its origin with all that is in stock, and the host pauses.
func (th *taskHost) startFailed(now job.Time, ev StartFailed) bool {
	r := th.runs[ev.Attempt]
	if r == nil {
		return false
	}
	if r.started {
		return true
	}
	th.host.pauseStarts(now, ev.Reason)
	if r.killed {
		th.end(now, r, new(Kill{Lease: r.bundle.lapsed}.Unstarted(now)))
		return true
	}
	b := r.bundle
	th.removeRun(now, r)
	th.emit(Clear{Attempt: r.id}) // what was prepared for it
	if b.unwanted {
		th.forgetUnwanted(now, b)
	} else {
		th.drop(now, b, job.TaskRange(r.task, r.task+1))
	}
	// What is in stock would wait for this host's trouble to pass: other sites may have it.
	for _, l := range th.lines {
		th.giveBack(now, l)
	}
	th.lookAll()
	return true
}

// lookAll has all lines looked at.
func (th *taskHost) lookAll() {
	for _, l := range th.lines {
		th.look(l)
	}
}

// drop gives tasks back to their origin that have not begun.
func (th *taskHost) drop(now job.Time, b *heldTasks, tasks job.TaskSet) {
	if tasks.Empty() {
		return
	}
	record(th.st, store.DropTasks{Bundle: b.rec.ID, Tasks: tasks})
	th.report(now, b)
	th.flushAt(b) // perhaps nothing is left that results wait for
}

// giveBack gives back all that is in stock.
func (th *taskHost) giveBack(now job.Time, l *line) {
	for _, lot := range l.stock.Clear() {
		th.drop(now, th.bundles[lot.Bundle], lot.Tasks)
	}
}

// flushAt notes when results of a bundle are to be told.
func (th *taskHost) flushAt(b *heldTasks) {
	due := b.nextFlush()
	if due == job.Never {
		return
	}
	if !b.due {
		b.due = true
		th.flushing = append(th.flushing, b)
	}
	th.nextFlush = min(th.nextFlush, due)
}

// nextFlush is when the next batch of a bundle is to be made, [job.Never] for none.
func (b *heldTasks) nextFlush() job.Time {
	if b.rec.Full() {
		return job.Never // the next one is made when one is acknowledged
	}
	return b.batch.Due(len(b.runs) > 0 || b.line.stock.Has(b.rec.ID))
}

// flush makes batches of the results that have waited long enough.
func (th *taskHost) flush(now job.Time) {
	if now < th.nextFlush {
		return
	}
	th.nextFlush = job.Never
	waiting := th.flushing
	th.flushing = nil
	for _, b := range waiting {
		b.due = false
		if b.unwanted {
			continue
		}
		for b.nextFlush() <= now {
			th.makeBatch(now, b)
		}
		th.flushAt(b)
	}
}

// makeBatch records the oldest results of a bundle as its next batch.
func (th *taskHost) makeBatch(now job.Time, b *heldTasks) {
	var files []store.TaskFiles
	size := 0
	results := b.batch.TakeWhile(func(r *job.TaskResult) bool {
		set := b.files[r.Ordinal]
		if size += len(set); size > store.MaxBatchFiles {
			return false
		}
		if len(set) > 0 {
			files = append(files, store.TaskFiles{Ordinal: r.Ordinal, Set: set})
		}
		return true
	})
	for i := range results {
		delete(b.files, results[i].Ordinal)
	}
	record(th.st, store.EndTasks{Bundle: b.rec.ID, Results: results, Files: files})
	th.unacked[b.line.origin] += len(results)
	th.report(now, b)
}

// report tells the origin of the oldest batch that it has not acknowledged, and repeats it
// until it has.
func (th *taskHost) report(now job.Time, b *heldTasks) {
	if origin := b.line.origin; origin != th.self {
		if key := (outKey{taskResults, b.rec.ID}); !th.peers.link(origin).waits(key) {
			th.peers.request(now, origin, key)
		}
		return
	}
	th.own, th.dirty = append(th.own, b), true
}

// resultsOf makes the message of the oldest batch of a bundle that is not acknowledged, and
// false if there is none.
func (th *taskHost) resultsOf(id job.AttemptID) (TaskResults, bool) {
	b := th.bundles[id]
	if b == nil || b.unwanted || len(b.rec.Unacked) == 0 {
		return TaskResults{}, false
	}
	batch := &b.rec.Unacked[0]
	return TaskResults{
		Bundle: id, Batch: batch.Number, Run: b.rec.Run, Results: batch.Results, Files: batch.Files, Returned: batch.Returned.Clone(),
	}, true
}

// message is resultsOf for [peers.messageOf].
func (th *taskHost) message(id job.AttemptID) (Message, bool) {
	m, ok := th.resultsOf(id)
	return m, ok
}

// tellOwn hands a batch to this site's own bags.
func (th *taskHost) tellOwn(now job.Time, b *heldTasks) {
	if m, ok := th.resultsOf(b.rec.ID); ok {
		th.origin.onTaskResults(now, th.self, m)
	}
}

// onTaskResultsAck forgets batches that the origin has, or a bundle that it does not want.
func (th *taskHost) onTaskResultsAck(now job.Time, from job.SiteID, m TaskResultsAck) {
	b := th.bundles[m.Bundle]
	if b == nil || b.line.origin != from {
		return
	}
	if m.Unknown {
		th.disown(now, b, true, Kill{Stale: true})
		return
	}
	if m.Batch <= b.rec.Batch {
		th.forget(now, b, store.ForgetTasks{Bundle: m.Bundle, Batch: m.Batch})
	}
}

// forget forgets batches of a bundle, or all of it, and what their tasks left here.
func (th *taskHost) forget(now job.Time, b *heldTasks, cmd store.ForgetTasks) {
	origin := b.line.origin
	var clear []uint32
	acknowledged := false
	for i := range b.rec.Unacked {
		batch := &b.rec.Unacked[i]
		if !cmd.All && batch.Number > cmd.Batch {
			break
		}
		acknowledged = true
		th.unacked[origin] -= len(batch.Results)
		for j := range batch.Results {
			clear = append(clear, batch.Results[j].Ordinal)
		}
	}
	if !cmd.All && !acknowledged {
		return // repeated
	}
	if cmd.All {
		for results := b.batch.Take(); len(results) > 0; results = b.batch.Take() {
			for j := range results {
				clear = append(clear, results[j].Ordinal)
			}
		}
	}
	record(th.st, cmd)
	for _, task := range clear {
		delete(b.files, task)
		th.emit(Clear{Attempt: b.rec.RunID(task)})
	}
	th.peers.link(origin).settle(outKey{taskResults, b.rec.ID})
	b.line.interest.Recorded()
	th.look(b.line)
	switch {
	case th.st.Held(b.rec.ID) == nil:
		th.removeBundle(b)
	case len(b.rec.Unacked) > 0:
		th.report(now, b)
	default:
		th.flushAt(b)
	}
	if th.unacked[origin] <= 0 {
		delete(th.unacked, origin)
	}
}
