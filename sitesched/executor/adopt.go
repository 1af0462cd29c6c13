package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/internal/scarce"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// finding is what the disk and the process table tell of an attempt.
type finding uint8

const (
	foundNothing finding = iota // no shim has taken it, none is about to
	foundEnd                    // its end is written down
	foundShim                   // its shim lives
	foundLock                   // an unknown process holds the record; look again
	foundDeath                  // it was taken, and is not held any more
)

// evidence is a finding and what belongs to it.
type evidence struct {
	finding finding
	record  shim.Record
	pidfd   int // with foundShim; the receiver closes it
	reason  string
}

// settleLater has a goroutine look what became of an attempt whose shim was lost
// or that another shim has. A worker that is free comes back to the pool; the
// result says whether it did.
func (x *Executor) settleLater(a *attempt, free *worker) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	a.phase, a.worker = adopting, nil
	kept := x.takeBack(free)
	x.ungate(a)
	x.dispatch()
	x.errands.post(func() { x.settle(a) })
	return kept
}

// settle finds out how far an attempt came and goes on from there.
func (x *Executor) settle(a *attempt) {
	x.mu.Lock()
	boot := a.boot
	current := a.phase == adopting
	x.mu.Unlock()
	if !current {
		return
	}
	rebooted, emptied := x.since(boot)
	if emptied {
		x.reportEmptied(a)
		return
	}
	e := x.examine(a.folder, rebooted)
	if e.finding == foundNothing && !rebooted && len(x.marked(a.folder)) > 0 {
		// A shim may have taken it since. It writes the record before it starts
		// anything, so a second look finds that, whatever files the job has changed.
		if e = x.examine(a.folder, rebooted); e.finding == foundNothing {
			e.reason = "it runs, and its record or its folder was removed"
			x.reportLost(a, e, rebooted)
			return
		}
	}
	switch e.finding {
	case foundEnd:
		if e.record.Exit.Cause == shim.CauseNotStarted {
			x.report(a, work.StartFailed{Attempt: a.id, Reason: e.record.Exit.Reason}, nil)
			return
		}
		outcome := x.outcomeOf(a, e.record.Exit)
		_, light := x.folders.ledgers.find(a.folder)
		// A folder goes to the next attempt only if nothing was left in it.
		blank := light && outcome.Start != 0 && !isFolder(x.folders.path(a.folder))
		x.report(a, work.Finished{Attempt: a.id, Outcome: outcome, Blank: blank}, nil)
	case foundShim:
		x.watch(a, e)
	case foundLock:
		x.watcher.recheck(a)
	case foundDeath:
		x.reportLost(a, e, rebooted)
	case foundNothing:
		if rebooted {
			x.reportLost(a, e, rebooted)
			return
		}
		x.startUnstarted(a)
	}
}

// examine looks at an attempt's record, and for the process that wrote it.
func (x *Executor) examine(name string, rebooted bool) evidence {
	file, err := x.folders.openRecord(name)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrNotExist):
		return evidence{finding: foundNothing, reason: "it has no folder"}
	case scarce.OfHost(err):
		return evidence{finding: foundLock, reason: err.Error()} // it passes; look again
	default:
		return evidence{finding: foundDeath, reason: err.Error()}
	}
	defer func() { _ = file.Close() }()
	record, err := readRecord(file, name)
	e, light := x.folders.ledgers.find(name)
	if light && errors.Is(err, shim.ErrNoRecord) {
		// It may be about to begin, as long as the ledger is not sealed.
		switch blank, err := x.folders.ledgers.seal(e); {
		case err != nil && scarce.OfHost(err):
			return evidence{finding: foundLock, reason: err.Error()}
		case err != nil:
			return evidence{finding: foundDeath, reason: errNoLedger.Error()}
		case blank:
			return evidence{finding: foundNothing, reason: "its entry is blank"}
		}
		record, err = readRecord(file, name)
	}
	over := err == nil && record.Exit != nil
	switch {
	case over && (light || rebooted): // a shim goes on with the ledger of an attempt that is over
		return evidence{finding: foundEnd, record: record}
	case rebooted:
		return evidence{finding: foundDeath, record: record}
	}
	// An end beside a shim at work is none: a job can write one, and run on.
	// What may still be at work holds the lock. It is let go with the file.
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return x.conclude(file, name)
	}
	if fd, ok := x.findShim(&record); ok {
		return evidence{finding: foundShim, record: record, pidfd: fd}
	}
	// A shim between taking and writing, or one that this daemon cannot see.
	return evidence{finding: foundLock, record: record}
}

// conclude reads the record once more, now that it cannot be written any more.
func (x *Executor) conclude(file recordFile, name string) evidence {
	record, err := readRecord(file, name)
	switch {
	case errors.Is(err, errEmptied):
		return evidence{finding: foundDeath, reason: err.Error()}
	case errors.Is(err, shim.ErrNoRecord):
		return evidence{finding: foundNothing, reason: "its record is blank"}
	case err == nil && record.Exit != nil:
		return evidence{finding: foundEnd, record: record}
	}
	// A shim that is being killed lets go of its files before the kernel ends
	// the rest of its PID namespace. The job is over when the shim is.
	if fd, ok := x.findShim(&record); ok {
		return evidence{finding: foundShim, record: record, pidfd: fd}
	}
	switch {
	case err != nil:
		return evidence{finding: foundDeath, record: record, reason: err.Error()}
	default:
		return evidence{finding: foundDeath, record: record, reason: "its shim was killed"}
	}
}

// errEmptied is what is known of an attempt whose record has nothing in it: it comes
// into its place with a blank one in it.
var errEmptied = errors.New("its record was emptied")

var errForeignRecord = errors.New("the record belongs to another attempt")

func readRecord(file recordFile, name string) (shim.Record, error) {
	most := int64(shim.RecordSize) // the next entry is another attempt's
	if file.at == 0 {
		most++
	}
	b, err := io.ReadAll(io.NewSectionReader(file, file.at, most))
	if err != nil {
		return shim.Record{}, fmt.Errorf("read the record: %w", err)
	}
	if len(b) == 0 {
		return shim.Record{}, errEmptied
	}
	record, err := shim.ParseRecord(b)
	if !errors.Is(err, shim.ErrNoRecord) && !errors.Is(err, shim.ErrBadStart) && record.Start.Attempt != name {
		return shim.Record{}, errForeignRecord
	}
	return record, err
}

// findShim returns a handle on the shim that wrote the record if it lives.
func (x *Executor) findShim(r *shim.Record) (int, bool) {
	if r.Start.Shim.Boot != x.boot {
		return -1, false
	}
	return openProcess(r.Start.Shim.PID, r.Start.Shim.StartTicks)
}

// watch waits for the end of a shim that another daemon started.
func (x *Executor) watch(a *attempt, e evidence) {
	x.mu.Lock()
	if a.cpus == nil {
		a.cpus = x.processors.take(e.record.Start.CPUs)
	}
	x.mu.Unlock()
	x.begun(a, e.record.Start.At, watched)
	x.watcher.add(a, e.pidfd)
	x.mu.Lock()
	again := a.stopping
	x.mu.Unlock()
	if again {
		x.carryOutStop(a)
	}
}

// startUnstarted starts an attempt of which it is certain that no program ran.
// A late shim of an earlier daemon may still wake up and do the same; the record
// decides who does.
func (x *Executor) startUnstarted(a *attempt) {
	reason, stopped := x.folders.stopReason(a.folder)
	x.mu.Lock()
	if a.stopping {
		reason, stopped = a.stop, true
	}
	tired := a.tries >= mostTries
	if !stopped && !tired && !x.closed {
		x.enqueue(a)
		x.dispatch()
	}
	x.mu.Unlock()
	switch {
	case stopped:
		x.finish(a, stoppedBefore(reason), nil)
	case tired:
		x.finish(a, notStarted("several shims died before they could start it"), nil)
	}
}

// reportLost reports an attempt whose progress is unknown.
func (x *Executor) reportLost(a *attempt, e evidence, rebooted bool) {
	if !rebooted {
		x.sweep(a.folder)
	}
	if rebooted {
		e.reason = "the machine was restarted"
	}
	start := job.Time(e.record.Start.At)
	if reason, asked := x.stopAsked(a); asked && !rebooted {
		// It was to end, and it has: nothing of it lives without its shim.
		x.finish(a, job.Outcome{
			Kind: reason.Kind(), Signal: int32(unix.SIGKILL), Reason: "stopped: " + string(reason) + "; " + e.reason,
			Start: start, End: job.Instant(time.Now()),
		}, nil)
		return
	}
	if ask := x.askOf(a); ask != nil && !rebooted { // so was this one
		x.mu.Lock()
		a.asked = &work.Asked{Ask: *ask}
		x.mu.Unlock()
		x.finish(a, job.Outcome{
			Kind: job.Demoted, Cause: ask.Cause, Reason: "it was asked to save, and did not: " + e.reason, Start: start, End: job.Instant(time.Now()),
		}, nil)
		return
	}
	x.log.Warn("attempt lost", "attempt_id", a.id.String(), "reason", e.reason, "pid", e.record.Start.Shim.PID)
	x.finish(a, job.Outcome{
		Kind: job.Loss, Reason: "lost: " + e.reason, Start: start, End: job.Instant(time.Now()),
	}, nil)
}
