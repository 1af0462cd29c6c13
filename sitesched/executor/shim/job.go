package shim

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/clock"
)

// StdoutName and StderrName are the job's streams in the attempt's folder.
const (
	StdoutName = "stdout"
	StderrName = "stderr"
)

// phase is how far the end of a job is.
//
//	watching ──► asked ──► stopping ──► killing ──► (gone)
//	    │  to save    has, or its   ▲          ▲
//	    │             grace ended   │          │
//	    ├───────────────────────────┘          │ told to stop, walltime
//	    └──────────────────────────────────────┘ first process ended but others live,
//	                                             too much memory, too much output
type phase uint8

const (
	watching phase = iota
	asked          // to save what it has done and to end, see [Ask]
	stopping       // SIGTERM was sent, SIGKILL follows at killAt
	killing        // SIGKILL is sent until nothing is left
)

// running is the one job of a shim.
type running struct {
	run    *Run
	phase  phase
	exit   Exit
	usage  syscall.Rusage // scratch
	cgroup *cgroup

	record   int
	at       int64 // of the record in that file: it may be an entry of the shim's ledger
	out, err int   // the stream files, kept open to see their size

	// grouped says that nothing is left to do about the group that its session is scheduled
	// in, see lowerSession.
	grouped bool

	pid   int
	pidfd int  // -1 once the first process is over
	over  bool // the first process is over

	begun bool // a process was made for it

	// tellAt is when the daemon is told that the program was executed, by the poller's clock; 0
	// once it was.
	tellAt time.Duration

	// leaseLook is when the lease ends, or what is left of the grace time with
	// it, unless it is prolonged. By the clock of leases, see package clock.
	leaseLook time.Duration

	asked *Ask // nil until it was

	estimate *estimating // nil unless the estimator runs

	// All by the poller's clock.
	askUntil  time.Duration // when the grace of the ask ends
	askPause  time.Duration // between two looks for the answer
	deadline  time.Duration // the walltime
	nextCheck time.Duration // of memory and output
	killAt    time.Duration
	giveUpAt  time.Duration
	interval  time.Duration // between two looks in the present phase
	look      time.Duration // the next of these looks
}

// run starts a job, or says why not. See [RecordName] for the order.
func (s *shim) run(m *Run) {
	if s.job != nil || s.dir < 0 || !plainName(m.Folder) || m.Directory == "" {
		s.refuse(m, false, "the shim was asked for something it cannot do")
		return
	}
	j := &running{run: m, record: -1, out: -1, err: -1, pidfd: -1, deadline: math.MaxInt64, leaseLook: math.MaxInt64}
	if taken, err := s.take(j); err != nil {
		j.close()
		s.refuse(m, taken, err.Error())
		return
	}
	s.job = j
	s.launch(j)
}

func (s *shim) refuse(m *Run, taken bool, reason string) {
	s.tell(&Refused{Sequence: m.Sequence, Taken: taken, Reason: ClipReason(reason)})
}

// plainName reports whether name is one path element.
func plainName(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}

// take opens the job's files and takes its record. On an error nothing of
// the record remains.
func (s *shim) take(j *running) (taken bool, err error) {
	folder := j.run.Folder + "/"
	var errno syscall.Errno
	open := func(name string, flags int) int {
		if errno != 0 {
			return -1
		}
		var fd int
		// Another job may have put something there that opening would wait for.
		if fd, errno = openat(s.dir, folder+name, flags|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600); errno != 0 {
			err = &os.PathError{Op: "create", Path: name, Err: errno}
		} else if !isRegular(fd) || name != RecordName && !waitAsUsual(fd, flags) {
			err = &os.PathError{Op: "open", Path: name, Err: errNotFile}
		}
		return fd
	}
	if j.run.Ledger != "" {
		if taken, err := s.takeEntry(j); err != nil {
			return taken, err
		}
	} else {
		j.record = open(RecordName, unix.O_RDWR)
		if err != nil {
			return false, err
		}
		if errno := takeLock(j.record); errno != 0 {
			return errno == syscall.EWOULDBLOCK, os.NewSyscallError("flock", errno)
		}
		page := make([]byte, RecordSize)
		if n, errno := readAt(j.record, page, 0); errno != 0 || !isBlank(page[:n]) {
			return true, errTaken
		}
	}
	j.out = open(StdoutName, unix.O_WRONLY|unix.O_APPEND)
	j.err = open(StderrName, unix.O_WRONLY|unix.O_APPEND)
	if err != nil {
		return false, err
	}
	if a := j.run.Account; a != nil {
		// The job may open its streams again by /dev/stdout.
		for _, fd := range []int{j.out, j.err} {
			if err := syscall.Fchown(fd, int(a.UID), int(a.GID)); err != nil {
				return false, os.NewSyscallError("fchown", err)
			}
		}
	}
	j.exit.Start = wallNow()
	page := appendRecord(make([]byte, 0, RecordSize), &Start{
		Attempt: j.run.Folder, Shim: s.setup.Process, At: j.exit.Start, CPUs: j.run.CPUs,
	})
	if errno := writeAt(j.record, page, j.at); errno != 0 {
		j.blankEntry()
		return false, &os.PathError{Op: "write", Path: RecordName, Err: errno}
	}
	return false, nil
}

const errNotFile = shimError("it is not a regular file")

const errTaken = shimError("another shim has started this attempt")

// launch executes the program and begins to watch it.
func (s *shim) launch(j *running) {
	if !s.mayBegin(j) {
		return
	}
	if j.run.Estimate == nil {
		s.execute(j)
		return
	}
	switch running, err := s.startEstimator(j); {
	case err != nil:
		s.unstarted()
	case running:
		s.attend(j)
	default:
		s.execute(j)
	}
}

// mayBegin reports whether a process may be made for a job, and else ends it.
func (s *shim) mayBegin(j *running) bool {
	if j.run.Ledger != "" && !s.ledgerIsOpen() {
		j.exit.Cause, j.exit.Reason = CauseNotStarted, errSealed.Error()
		s.unstarted()
		return false
	}
	if m := j.run; m.Leased && clock.SinceBoot() >= s.readLease(m.Folder).Stop {
		j.exit.Cause, j.exit.Reason = CauseLease, leaseEnded
		s.unstarted()
		return false
	}
	return true
}

// execute executes the program.
func (s *shim) execute(j *running) {
	if err := s.fork(j, j.run, j.out); err != nil {
		s.unstarted()
		return
	}
	j.run.Argv, j.run.Env = nil, nil
	s.attend(j)
}

// attend begins to watch the process that was made for a job: of one with an estimator twice, and what
// counts from the start of the attempt does so from the first time.
func (s *shim) attend(j *running) {
	now := s.poll.now()
	s.checkLease()
	if !j.begun {
		j.begun = true
		if j.run.WalltimeNanos > 0 && j.run.WalltimeNanos < math.MaxInt64-int64(now) {
			j.deadline = now + time.Duration(j.run.WalltimeNanos)
		}
		if j.tellAt = now; j.run.Ledger != "" {
			j.tellAt += heldStart
		}
		s.tellStart(now)
	}
	j.nextCheck, j.interval = now+firstCheck, firstCheck
	if err := s.poll.add(j.pidfd); err != nil {
		// Without its event the end is seen at the next look.
		j.nextCheck = now
	}
	s.wakeWhenDue()
}

// heldStart is for how long it is not told of a light attempt that it was started. One that
// ends before costs one message less, and the daemon two of its turns: half of the way of a
// task that takes no time. When the program was executed the end tells, too.
const heldStart = 5 * time.Millisecond

// tellStart tells the daemon that the program was executed, if that is due.
func (s *shim) tellStart(now time.Duration) {
	if j := s.job; j.tellAt != 0 && now >= j.tellAt {
		j.tellAt = 0
		s.tell(&Started{Sequence: j.run.Sequence, At: j.exit.Start})
	}
}

// unstarted ends a job that no process was made for.
func (s *shim) unstarted() {
	j := s.job
	j.exit.End, j.exit.Start = wallNow(), 0
	j.over = true
	s.finish()
}

// due is when the job needs attention next if nothing happens, its lease aside.
func (j *running) due() time.Duration {
	due := j.look
	switch j.phase {
	case watching:
		due = min(j.deadline, j.nextCheck)
	case asked:
		due = min(j.deadline, j.nextCheck, j.askUntil, j.look)
	case stopping:
		due = min(j.killAt, j.look)
	}
	if e := j.estimate; e != nil && j.phase == watching {
		due = min(due, e.until)
	}
	if j.tellAt != 0 {
		due = min(due, j.tellAt)
	}
	return due
}

// close releases the files, and with the record's the lock on the attempt. A ledger stays
// that of the shim.
func (j *running) close() {
	closeFD(j.pidfd)
	if j.estimate != nil {
		j.estimate.close()
	}
	closeFD(j.out)
	closeFD(j.err)
	if j.run.Ledger == "" {
		closeFD(j.record)
	}
}

// finish tells how the job ended, first the disk, then the daemon.
func (s *shim) finish() {
	j := s.job
	if j.estimate != nil { // its command was never executed
		j.exit.Start = 0
	}
	s.judgeOutput(j)
	s.judgeMemory(j)
	s.judgeDisk(j)
	retire := s.taint()
	if j.cgroup != nil {
		retire += j.cgroup.remove()
	}
	slot := appendExitSlot(make([]byte, 0, slotSize), &j.exit)
	if errno := writeAt(j.record, slot, j.at+slotSize); errno != 0 {
		retire = "cannot write the record: " + errno.Error()
	}
	j.close()
	s.job = nil
	s.tell(&Ended{Sequence: j.run.Sequence, Exit: j.exit, Retire: retire})
	s.retire = s.retire || retire != ""
}

// judgeDisk explains a failure that a full disk may have caused.
func (s *shim) judgeDisk(j *running) {
	if j.exit.Code == 0 && j.exit.Signal == 0 || j.exit.Reason != "" {
		return
	}
	var st unix.Statfs_t
	if unix.Fstatfs(s.dir, &st) != nil {
		return
	}
	full := st.Bavail < 16 && st.Blocks > 0
	if full || st.Ffree == 0 && st.Files > 0 {
		j.exit.Reason = "the disk of the attempt's folder is full; exit code " + strconv.Itoa(j.exit.Code)
	}
}
