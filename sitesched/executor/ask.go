package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// Ask has an attempt save what it has done and end: its shim signals the job, waits for the
// answer or the end of the grace, and stops it then as [Executor.Stop] does. It does nothing for
// an attempt that does not run or is being stopped, and only the first ask counts. The ask is
// noted in the attempt's folder, where the shim of an earlier daemon finds it, too, within a
// second.
func (x *Executor) Ask(id job.AttemptID, ask work.Ask) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[id]
	if x.closed || a == nil || a.ask != nil || a.stopping || a.phase == ended || a.phase == announced || a.spec.Light {
		return
	}
	a.ask = &ask
	x.errands.post(func() { x.carryOutAsk(a, ask) })
}

// carryOutAsk notes the ask, and tells the shim if it is one of this daemon's.
func (x *Executor) carryOutAsk(a *attempt, ask work.Ask) {
	if first := x.folders.readAsk(a.folder); first != nil { // by an earlier daemon
		ask = *first
		x.mu.Lock()
		a.ask = first
		x.mu.Unlock()
	}
	m := shim.Ask{
		Cause: int(ask.Cause), Signal: ask.Signal, All: ask.All, GraceNanos: int64(ask.Grace), Before: ask.Before,
	}
	if ask.Done != "" {
		m.Done = workName + "/" + ask.Done
	}
	if err := x.folders.writeAsk(a.folder, m.File()); err != nil {
		x.log.Warn("cannot note that an attempt was asked to save", "attempt_id", a.id.String(), "error", err)
	}
	x.mu.Lock()
	w := a.worker
	tell := a.sent && (a.phase == starting || a.phase == running)
	m.Sequence = a.sequence
	if a.stopBy == 0 && (tell || a.phase == watched) {
		a.stopBy = clock.SinceBoot() + max(0, ask.Grace) + max(0, x.config.Grace) + x.stopPatience
		x.watcher.alarmAt(a.stopBy)
	}
	x.mu.Unlock()
	if tell {
		// If the socket is broken the worker notices too.
		_ = w.process.write(shim.Append(nil, &m))
		w.process.resume()
	}
}

// askOf returns how an attempt was asked to save, by this executor or one before it; nil if it was not.
func (x *Executor) askOf(a *attempt) *work.Ask {
	x.mu.Lock()
	ask := a.ask
	x.mu.Unlock()
	if ask == nil {
		ask = x.folders.readAsk(a.folder)
	}
	return ask
}

// explainAsk says how an attempt ended that was asked to save.
func (x *Executor) explainAsk(a *attempt, cause shim.Cause, o *job.Outcome) {
	asked := &work.Asked{InTime: cause != shim.CauseUnanswered}
	if ask := x.askOf(a); ask != nil {
		asked.Ask = *ask
	}
	signal := int32(asked.Signal)
	const ofShell = 128 // and the signal that ended a command: what shells exit with
	switch {
	case o.Start == 0: // its estimator ran
		o.Kind, o.Reason = job.Demoted, "its command had not begun"
		o.ExitCode, o.Signal = 0, 0
	case cause == shim.CauseAnswered:
		o.Kind, o.Reason = job.Demoted, ""
		o.ExitCode, o.Signal = 0, 0
	case cause == shim.CauseUnanswered && signal == 0:
		o.Kind, o.Reason = job.Demoted, ""
		o.ExitCode, o.Signal = 0, 0
	case cause == shim.CauseUnanswered:
		o.Kind, o.Reason = job.Demoted, "it had not saved anything "+asked.Grace.Round(time.Millisecond).String()+" after it was asked to"
	case signal != 0 && (o.Signal == signal || o.Signal == 0 && o.ExitCode == ofShell+signal):
		o.Kind, o.Reason = job.Demoted, "it ended by the signal that asked it to save ("+unix.SignalName(syscall.Signal(signal))+")"
	}
	if o.Kind != job.Success {
		o.Cause = asked.Cause
	}
	x.mu.Lock()
	a.asked = asked
	x.mu.Unlock()
}

// writeAsk notes in the attempt's folder that it is asked to save, unless it was before.
func (f *folders) writeAsk(name string, content []byte) error {
	path := filepath.Join(f.path(name), shim.AskName)
	made := path + ".new"
	file, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Link(made, path) // whole, or not there
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(made))
}

// readAsk returns what is noted in the attempt's folder, nil if nothing is.
func (f *folders) readAsk(name string) *work.Ask {
	b, err := jobfile.Read(f.dir, name+"/"+shim.AskName, shim.AskSize)
	if err != nil {
		return nil
	}
	m, ok := shim.ParseAsk(b)
	if !ok || m.Cause < 0 || m.Cause > 255 {
		return nil
	}
	return &work.Ask{
		Cause: job.DemotionCause(m.Cause), Signal: m.Signal, All: m.All, Grace: time.Duration(m.GraceNanos),
		Done: strings.TrimPrefix(m.Done, workName+"/"), Before: m.Before,
	}
}
