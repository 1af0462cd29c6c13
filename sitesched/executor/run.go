package executor

import (
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// prepareRun makes the attempt's folder and the message that starts it, or
// says why it ends here: an outcome if that lies with the job, an error if with this
// host.
func (x *Executor) prepareRun(a *attempt, w *worker) (*shim.Run, *job.Outcome, error) {
	x.mu.Lock()
	spec, cpus := a.spec, a.cpus
	x.mu.Unlock()
	fail := func(err error) (*shim.Run, *job.Outcome, error) {
		o := notStarted(err.Error())
		return nil, &o, nil
	}
	if err := validate(&spec); err != nil {
		return fail(err)
	}
	if spec.Account != nil && !x.accounts {
		return fail(errAccounts)
	}
	at, err := w.place(a.folder, &spec)
	if err != nil {
		return nil, nil, err
	}
	folder := x.folders.path(a.folder)
	return &shim.Run{
		Ledger:        at.name(),
		Entry:         uint64(at.number),
		Folder:        a.folder,
		Argv:          spec.Argv,
		Env:           x.env.build(&spec, folder),
		Directory:     workingDirectory(&spec, folder),
		WalltimeNanos: int64(spec.Walltime),
		GraceNanos:    int64(x.config.Grace),
		MemoryBytes:   spec.MemoryBytes,
		Processors:    spec.Processors,
		CPUs:          cpus,
		Account:       shimAccount(spec.Account),
		Leased:        spec.Leased,
		Estimate:      shimEstimate(spec.Estimate),
	}, nil, nil
}

// place makes the folder of an attempt, with what must be in it or beside it.
func (x *Executor) place(name string, spec *work.Spec) error {
	if err := x.folders.prepare(name); err != nil {
		return err
	}
	if spec.Account != nil {
		if err := x.folders.give(name, spec.Account); err != nil {
			return err
		}
	}
	if err := x.folders.mark(name); err != nil {
		return err
	}
	if spec.Estimate != nil {
		if err := x.folders.blankEstimate(name); err != nil {
			return err
		}
	}
	if spec.Leased && spec.Lease != (work.Lease{}) {
		return x.folders.writeLease(name, spec.Lease)
	}
	return nil
}

// errAccounts is why a job cannot run as another user.
var errAccounts = errors.New("only root outside a user namespace can run jobs as other users")

func workingDirectory(s *work.Spec, folder string) string {
	switch {
	case s.Directory == "":
		return folder + "/" + workName
	case filepath.IsAbs(s.Directory):
		return s.Directory
	default:
		return filepath.Join(folder, workName, s.Directory)
	}
}

func shimAccount(a *work.Account) *shim.Account {
	if a == nil {
		return nil
	}
	return &shim.Account{UID: a.UID, GID: a.GID, Groups: a.Groups}
}

// outcomeOf translates what a shim wrote or said.
func (x *Executor) outcomeOf(a *attempt, s *shim.Exit) job.Outcome {
	o := job.Outcome{
		Kind: job.Failure, ExitCode: int32(s.Code), Signal: int32(s.Signal), Reason: s.Reason,
		Start: job.Time(s.Start), End: job.Time(s.End),
		CPUTime: time.Duration(s.CPUNanos), MaxRSSBytes: s.MaxRSSBytes,
	}
	if s.Code == 0 && s.Signal == 0 {
		o.Kind = job.Success
	}
	switch s.Cause {
	case shim.CauseWalltime:
		o.Kind = job.Timeout
	case shim.CauseMemory, shim.CauseNotStarted:
		o.Kind = job.Failure
	case shim.CauseStop:
		x.explainStop(a, &o)
	case shim.CauseAsked, shim.CauseAnswered, shim.CauseUnanswered:
		x.explainAsk(a, s.Cause, &o)
	case shim.CauseLease:
		o.Kind = job.Loss
	case shim.CauseEstimate:
		o.Kind, o.Cause, o.ExitCode, o.Signal = job.Demoted, job.OutOfLevel, 0, 0
	}
	if a.spec.Estimate != nil || s.Cause == shim.CauseEstimate {
		o.Bound = x.folders.readEstimate(a.folder)
	}
	if o.Reason == "" && o.Signal != 0 {
		o.Reason = "ended by signal " + strconv.Itoa(s.Signal) + " (" + unix.SignalName(unix.Signal(s.Signal)) + ")"
	}
	return o
}

// explainStop tells a stop that this executor, or one before it, was asked for
// from a signal that another process sent to the shim.
func (x *Executor) explainStop(a *attempt, o *job.Outcome) {
	reason, stopping := x.stopAsked(a)
	if !stopping {
		why := "the shim got SIGTERM from outside"
		if o.Reason != "" {
			why += "; " + o.Reason
		}
		o.Reason = why
		return
	}
	o.Kind, o.Reason = reason.Kind(), "stopped: "+string(reason)
}

// stopAsked returns why this executor, or one before it, was asked to stop the
// attempt, if it was.
func (x *Executor) stopAsked(a *attempt) (reason work.StopReason, asked bool) {
	x.mu.Lock()
	reason, asked = a.stop, a.stopping
	x.mu.Unlock()
	if !asked {
		reason, asked = x.folders.stopReason(a.folder)
	}
	return reason, asked
}

func notStarted(reason string) job.Outcome {
	return job.Outcome{Kind: job.Failure, Reason: "not started: " + reason, End: job.Instant(time.Now())}
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return "exit " + strconv.Itoa(status.ExitStatus())
}

func (x *Executor) isClosed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}
