package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// Executor runs attempts as processes of this machine. Its methods may be
// called by any goroutine and do not wait for processes or disks, except Open,
// Prepare, Folders and Close.
type Executor struct {
	config       Config
	sink         func(work.Event)
	log          *slog.Logger
	boot         string
	env          environment
	folders      *folders
	launcher     launcher
	capabilities []work.Capability
	gate         int // most attempts that start at the same time
	stopPatience time.Duration
	accounts     bool // jobs can run as other users

	mu         sync.Mutex
	closed     bool
	attempts   map[job.AttemptID]*attempt
	pending    []*attempt // told to start, in order
	starting   int        // handed to a shim, not yet started
	shims      int        // workers, each with one shim
	idle       []*worker  // the last one was used last
	processors processorSet

	errands  *mailbox // what touches the disk: stops, adoptions
	removals *mailbox // what may take long
	watcher  *watcher
	owned    sync.WaitGroup
}

// phase is where an attempt stands.
type phase uint8

const (
	announced phase = iota // stopped before anybody said start
	adopting               // a goroutine looks for what became of it
	queued                 // waits for a shim
	starting               // a shim has been told
	running                // one of our shims runs it
	watched                // a shim of an earlier daemon runs it
	ended
)

// attempt is what the executor knows of an attempt, from Start or Adopt to
// Forget. Executor.mu guards it.
type attempt struct {
	id     job.AttemptID
	folder string
	spec   work.Spec
	boot   string // when it was begun; empty for this boot
	phase  phase

	ask      *work.Ask   // nil until it is asked to save and end
	asked    *work.Asked // what came of that
	stopping bool
	stop     work.StopReason
	started  bool // Started was reported
	gated    bool // counts in Executor.starting
	tries    int
	cpus     []int

	guarded bool          // its lease is known, see [attempt.mustEnd]
	stopBy  time.Duration // when its shim must have stopped it, by the clock of leases; 0 if not told to
	killed  bool          // its shim was, since it did not

	worker   *worker // of ours
	sequence uint64
	sent     bool // the shim has been told
	pidfd    int  // of the shim of an earlier daemon; owned by the watcher

	kept bool // its folder is its worker's, for the next one
}

// Open makes an executor that reports to sink. The sink is called by several
// goroutines, never by one that calls a method of the executor; it may wait, but
// the events behind it wait too.
//
// Open starts one shim to find out what this machine allows; see
// [Executor.Capabilities]. It does not look for attempts of an earlier daemon:
// that is what [Executor.Adopt] is for.
func Open(c Config, sink func(work.Event)) (*Executor, error) {
	if calledAsShim(os.Args) {
		return nil, errNoShimMain
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	boot, err := readBootID()
	if err != nil {
		return nil, err
	}
	folders, err := openFolders(c.Dir)
	if err != nil {
		return nil, err
	}
	x := &Executor{
		config: c, sink: sink, log: c.Logger, boot: boot, env: newEnvironment(), folders: folders,
		gate: startGate(), stopPatience: stopPatience,
		attempts: make(map[job.AttemptID]*attempt),
		errands:  newMailbox(), removals: newMailbox(),
		launcher: launcher{
			dir: c.Dir, boot: boot, maxOutput: c.MaxOutputBytes, background: c.Background, log: filepath.Join(c.Dir, logName),
		},
	}
	first, err := x.probe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("no way to run jobs: %w", err), folders.lock.Close())
	}
	if x.watcher, err = openWatcher(x); err != nil {
		return nil, errors.Join(err, first.end(), folders.lock.Close())
	}
	x.owned.Go(x.errands.run)
	x.owned.Go(x.removals.run)
	x.owned.Go(x.watcher.run)
	x.mu.Lock()
	x.idle = append(x.idle, x.newWorker(first))
	x.mu.Unlock()
	x.removals.post(func() {
		if err := x.folders.empty(); err != nil {
			x.log.Warn("cannot remove leftovers", "error", err)
		}
	})
	return x, nil
}

// BootID returns a text that changes when the machine is restarted, or Config.Dir is emptied or
// replaced. The caller keeps it with the fact that an attempt was begun and hands it to Adopt.
func (x *Executor) BootID() string {
	if x.folders.id == "" {
		return x.boot
	}
	return x.boot + "/" + x.folders.id
}

// AdoptedShims returns the process numbers of shims that an earlier daemon started and this one
// watches: unlike the others they are not its children.
func (x *Executor) AdoptedShims() []int { return x.watcher.pids() }

// Files says where an attempt's files are: its folder in Config.Dir holds them all.
func (x *Executor) Files(id job.AttemptID) work.Files {
	folder := x.folders.path(folderName(id)) + "/"
	return work.Files{
		Work: folder + workName, Stdout: folder + shim.StdoutName, Stderr: folder + shim.StderrName, Mark: folder + markName,
	}
}

// Prepare makes the attempt's folders, so that the caller may put files into
// them before Start. It may be repeated. It waits for the disk.
func (x *Executor) Prepare(id job.AttemptID) error { return x.folders.prepare(folderName(id)) }

// Folders returns the attempts that have a folder, so that the caller can
// forget those that are not known any more. It waits for the disk.
func (x *Executor) Folders() ([]job.AttemptID, error) { return x.folders.list() }

// Start runs an attempt whose beginning the caller has committed. It does
// nothing if the attempt was started or adopted before, whether or not it has
// finished.
func (x *Executor) Start(s work.Spec) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[s.Attempt]
	if x.closed || a != nil && a.phase != announced {
		return
	}
	if a == nil {
		a = x.addAttempt(s.Attempt)
	}
	a.spec = s
	if s.Leased {
		x.guardLease(a, s.Lease)
	}
	x.enqueue(a)
	if a.stopping {
		x.errands.post(func() { x.carryOutStop(a) })
	}
	x.dispatch()
}

// Adopt takes over an attempt that an earlier daemon has, or may have, started:
// one whose beginning is committed and whose end is not. boot is what BootID
// returned when it was begun. If no shim has started it, and neither the machine was
// restarted nor Config.Dir emptied since, it is started now, once: a shim that was told by the earlier
// daemon and one that is told now cannot both start it. Otherwise its end is
// reported, when it comes or at once.
func (x *Executor) Adopt(s work.Spec, boot string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[s.Attempt]
	if x.closed || a != nil && a.phase != announced {
		return
	}
	if a == nil {
		a = x.addAttempt(s.Attempt)
	}
	a.spec, a.boot, a.phase = s, boot, adopting
	a.spec.Lease = work.Lease{}
	x.errands.post(func() {
		if s.Leased {
			x.recallLease(a)
		}
		x.settle(a)
	})
}

// Forget removes the attempt's folder, in the background. An attempt that has
// not finished is left alone. A forgotten attempt must not come back: whatever
// is done with it next may meet the removal.
func (x *Executor) Forget(id job.AttemptID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.attempts[id]
	if a != nil && a.phase != ended && a.phase != announced {
		x.log.Warn("attempt not forgotten, it has not finished", "attempt_id", id.String())
		return
	}
	delete(x.attempts, id)
	if a != nil && a.kept {
		x.removals.post(func() { x.forgetEntry(a.folder) })
		return
	}
	known := a != nil && a.phase == ended
	x.removals.post(func() { x.removeFolder(id, known) })
}

func (x *Executor) removeFolder(id job.AttemptID, known bool) {
	name := folderName(id)
	if !known && x.folders.busy(name) {
		x.log.Warn("attempt not forgotten, a shim still runs it", "attempt_id", id.String())
		return
	}
	if err := x.folders.remove(name); err != nil {
		x.log.Warn("cannot remove the folder of an attempt", "attempt_id", id.String(), "error", err)
	}
}

// Close ends the executor and leaves running jobs to their shims. No event
// comes after it has returned.
func (x *Executor) Close() {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return
	}
	x.closed = true
	idle := x.idle
	x.idle, x.pending = nil, nil
	for _, a := range x.attempts {
		if a.worker != nil {
			a.worker.interrupt()
		}
	}
	x.mu.Unlock()
	for _, w := range idle {
		close(w.next)
	}
	x.errands.close()
	x.removals.close()
	x.watcher.close()
	x.owned.Wait()
	_ = unix.Close(x.watcher.wake)
	_ = x.folders.lock.Close()
}

func (x *Executor) addAttempt(id job.AttemptID) *attempt {
	a := &attempt{id: id, folder: folderName(id), pidfd: -1}
	x.attempts[id] = a
	return a
}
