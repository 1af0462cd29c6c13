package shim

import (
	"encoding/binary"
	"math"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kith/internal/donemark"
)

// AskName is the file in an attempt's folder that says that the job is to save what it has done
// and to end. The daemon makes it, tells the shim with [Ask], and so can one that was started after
// the shim: the file is looked for as often as memory is. It is one slot of text:
//
//	kith-ask 1 cause=… signal=… all=… grace=… before=… done="…" sum=…
//
// The first counts. What cannot be read is none.
const AskName = "ask"

// AskSize is the most that the file has, in bytes.
const AskSize = slotSize

const askMark = "kith-ask 1"

// Ask asks the shim to have the job save what it has done and end. As a [Message] it is ignored
// unless it names the job that runs.
type Ask struct {
	Sequence uint64
	// Cause is the daemon's.
	Cause int
	// Signal is sent to the first process, or to All of the job; 0 for none: then the job is
	// stopped at once.
	Signal int
	All    bool
	// GraceNanos is how long the job has to answer.
	GraceNanos int64
	// Before is the number that the file Done had when it was asked, 0 for none. Done is a path
	// in the attempt's folder, empty for none.
	Before uint64
	Done   string
}

func (*Ask) kind() byte { return kindAsk }

func (m *Ask) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Sequence)
	b = binary.AppendVarint(b, int64(m.Cause))
	b = binary.AppendVarint(b, int64(m.Signal))
	b = appendBool(b, m.All)
	b = binary.AppendVarint(b, m.GraceNanos)
	b = binary.AppendUvarint(b, m.Before)
	return appendString(b, m.Done)
}

func (m *Ask) decode(d *decoder) {
	m.Sequence = d.uint()
	m.Cause = int(d.int())
	m.Signal = int(d.int())
	m.All = d.bool()
	m.GraceNanos = d.int()
	m.Before = d.uint()
	m.Done = d.string()
}

// File returns the ask as it stands in the file.
func (m *Ask) File() []byte {
	b := append(make([]byte, 0, AskSize), askMark...)
	b = appendField(b, " cause=", int64(m.Cause))
	b = appendField(b, " signal=", int64(m.Signal))
	all := int64(0)
	if m.All {
		all = 1
	}
	b = appendField(b, " all=", all)
	b = appendField(b, " grace=", m.GraceNanos)
	b = strconv.AppendUint(append(b, " before="...), m.Before, 10)
	b = strconv.AppendQuote(append(b, " done="...), m.Done)
	return sealSlot(b, 0)
}

// ParseAsk reads the file; it reports false for anything else.
func ParseAsk(b []byte) (Ask, bool) {
	if len(b) != AskSize {
		return Ask{}, false
	}
	f := openSlot(b, askMark)
	m := Ask{Cause: int(f.int("cause")), Signal: int(f.int("signal"))}
	all := f.int("all")
	m.All, m.GraceNanos = all == 1, f.int("grace")
	m.Before, m.Done = f.uint("before"), f.text("done")
	if !f.done() || all < 0 || all > 1 {
		return Ask{}, false
	}
	return m, true
}

// lookForAsk asks the job if a file says so.
func (s *shim) lookForAsk() {
	j := s.job
	if j.phase != watching || j.over || j.run.Ledger != "" {
		return
	}
	fd, errno := openat(s.dir, j.run.Folder+"/"+AskName, syscall.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return
	}
	defer closeFD(fd)
	b := make([]byte, AskSize+1)
	if n, errno := readAt(fd, b, 0); errno == 0 {
		if m, ok := ParseAsk(b[:n]); ok {
			s.ask(&m)
		}
	}
}

// ask has the job save what it has done. Only the first ask counts, and none of a job that is
// being stopped.
func (s *shim) ask(m *Ask) {
	j := s.job
	if j.estimate != nil {
		s.stopBoth(CauseAnswered, "")
		return
	}
	if j.phase != watching || j.over {
		return
	}
	now := s.poll.now()
	j.phase, j.asked, j.askUntil = asked, m, math.MaxInt64
	if m.GraceNanos < math.MaxInt64-int64(now) {
		j.askUntil = now + time.Duration(max(0, m.GraceNanos))
	}
	j.askPause = firstLook
	j.look = now + j.askPause
	switch sig := syscall.Signal(m.Signal); {
	case m.Signal <= 0 || j.askUntil <= now:
		s.stop(CauseUnanswered, "")
		return
	case m.All:
		s.signalAll(sig)
	default:
		_ = syscall.Kill(j.pid, sig) // not reaped: it is over only when it was
	}
	s.wakeWhenDue()
}

// awaitAnswer looks what has become of an ask.
func (s *shim) awaitAnswer(now time.Duration) {
	j := s.job
	switch {
	case now >= j.askUntil || now >= j.deadline:
		// What it saved in the last moment counts.
		if s.answered() {
			s.stop(CauseAnswered, "")
		} else {
			s.stop(CauseUnanswered, "")
		}
	case now >= j.look:
		if s.answered() {
			s.stop(CauseAnswered, "")
			return
		}
		j.askPause = min(2*j.askPause, askLook)
		j.look = now + j.askPause
	}
}

// answered reports whether the job has saved since it was asked.
func (s *shim) answered() bool {
	j := s.job
	if j.asked.Done == "" {
		return false
	}
	fd, errno := openat(s.dir, j.run.Folder+"/"+j.asked.Done, syscall.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return false
	}
	defer closeFD(fd)
	if !isRegular(fd) {
		return false
	}
	b := make([]byte, donemark.Most+1)
	n, errno := readAt(fd, b, 0)
	if errno != 0 {
		return false
	}
	number, ok := donemark.Parse(b[:n])
	return ok && number > j.asked.Before
}
