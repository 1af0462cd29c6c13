package shim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RecordName is the file in an attempt's folder that says how far the attempt
// came. It is one page with two slots of text:
//
//	kith-record 1 start attempt="uni-a.k3f9.17-1" pid=71 ticks=90 boot="…" at=… cpus="0,1" sum=…
//	kith-record 1 exit code=0 signal=0 cause=0 start=… end=… cpu=… rss=… reason="" sum=…
//
// Missing, empty or blank means that no shim has taken the attempt. A shim takes
// it under an exclusive flock, writes the whole page, with the second slot blank,
// before it executes anything, and keeps the lock until the second slot is
// filled. So:
//
//   - the lock is held exactly as long as a shim may still be at work;
//   - the second slot overwrites a block that the file already has, so a full
//     disk cannot keep the end of a job from being written;
//   - nothing is synced: what a process wrote survives that process in the
//     page cache. Only a crash of the machine loses it, and then the boot id has
//     changed and the job is dead anyway.
const RecordName = "record"

const (
	// RecordSize is the size of a record.
	RecordSize = 2 * slotSize
	slotSize   = 1024
	maxCPUList = 512

	recordMark = "kith-record 1 "
	// MaxReason bounds a reason, in bytes.
	MaxReason = 256
)

// Start is the first half of a record: who runs the attempt.
type Start struct {
	// Attempt is the name of the folder, so that a record in the wrong place is noticed.
	Attempt string
	Shim    Process
	// At is nanoseconds since the Unix epoch.
	At int64
	// CPUs are the processors that the job is pinned to.
	CPUs []int
}

// Exit is the second half of a record: how the attempt ended.
type Exit struct {
	// Code and Signal are what wait(2) told of the job's first process.
	Code, Signal int
	Cause        Cause
	// Reason explains an end that is not the program's own.
	Reason string
	// Start and End are nanoseconds since the Unix epoch. Start is zero if the program never ran.
	Start, End int64
	// CPUNanos is user and system time of all the job's processes.
	CPUNanos int64
	// MaxRSSBytes is the largest resident set of any one of them.
	MaxRSSBytes int64
}

// Cause says who ended the job. The numbers are stored; they are frozen.
type Cause uint8

// The causes.
const (
	CauseOwn        Cause = 0 // the program ended by itself
	CauseWalltime   Cause = 1 // the shim stopped it at its walltime
	CauseStop       Cause = 2 // the shim was told to stop it
	CauseMemory     Cause = 3 // it used more memory than it may
	CauseOutput     Cause = 4 // it wrote more output than it may
	CauseExec       Cause = 5 // the program could not be executed
	CauseNotStarted Cause = 6 // no process could be made for it
	CauseLease      Cause = 7 // the lease of its claim ended

	CauseAsked      Cause = 8  // it was asked to save and end, and ended by itself
	CauseAnswered   Cause = 9  // it was, had saved, and was stopped
	CauseUnanswered Cause = 10 // it was, and was stopped when its grace had ended

	CauseEstimate Cause = 11 // by its estimate it needs more than it may, and its command was not executed

	causeCount = 12
)

func (e *Exit) append(b []byte) []byte {
	b = binary.AppendVarint(b, int64(e.Code))
	b = binary.AppendVarint(b, int64(e.Signal))
	b = binary.AppendUvarint(b, uint64(e.Cause))
	b = appendString(b, e.Reason)
	b = binary.AppendVarint(b, e.Start)
	b = binary.AppendVarint(b, e.End)
	b = binary.AppendVarint(b, e.CPUNanos)
	return binary.AppendVarint(b, e.MaxRSSBytes)
}

func (e *Exit) decode(d *decoder) {
	e.Code = int(d.int())
	e.Signal = int(d.int())
	cause := d.uint()
	if cause >= causeCount {
		d.bad = true
	}
	e.Cause = Cause(cause)
	e.Reason = d.string()
	e.Start = d.int()
	e.End = d.int()
	e.CPUNanos = d.int()
	e.MaxRSSBytes = d.int()
}

// Record is what [ParseRecord] found.
type Record struct {
	Start Start
	// Exit is nil while no end is written.
	Exit *Exit
}

// Errors of [ParseRecord].
var (
	// ErrNoRecord is returned for an empty or blank file: no shim has taken the attempt.
	ErrNoRecord = errors.New("the record is empty")
	// ErrBadStart is returned when the first half is torn or not a record.
	ErrBadStart = errors.New("the start half of the record cannot be read")
	// ErrBadExit is returned, with a valid Start, when the second half is torn.
	ErrBadExit = errors.New("the exit half of the record cannot be read")
)

// ParseRecord reads a record.
func ParseRecord(b []byte) (Record, error) {
	var r Record
	if isBlank(b) {
		return r, ErrNoRecord
	}
	if len(b) < slotSize || !r.Start.parse(b[:slotSize]) {
		return Record{}, ErrBadStart
	}
	if len(b) != RecordSize {
		return r, ErrBadExit
	}
	slot := b[slotSize:]
	if isBlank(slot) {
		return r, nil
	}
	var e Exit
	if !e.parse(slot) {
		return r, ErrBadExit
	}
	r.Exit = &e
	return r, nil
}

// isBlank reports whether b is empty, or spaces and line ends alone.
func isBlank(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\n' {
			return false
		}
	}
	return true
}

// BlankRecord returns a record that no shim has taken. Writing it over an old
// one is much cheaper than truncating that: some file systems write a truncated
// file out at once when it is written again.
func BlankRecord() []byte {
	return append(bytes.Repeat([]byte{' '}, RecordSize-1), '\n')
}

// appendRecord appends a record that has no exit yet.
func appendRecord(b []byte, s *Start) []byte {
	at := len(b)
	b = append(b, recordMark+"start attempt="...)
	b = strconv.AppendQuote(b, s.Attempt)
	b = appendField(b, " pid=", int64(s.Shim.PID))
	b = append(b, " ticks="...)
	b = strconv.AppendUint(b, s.Shim.StartTicks, 10)
	b = append(b, " boot="...)
	b = strconv.AppendQuote(b, s.Shim.Boot)
	b = appendField(b, " at=", s.At)
	b = append(b, " cpus=\""...)
	// A list too long for the slot is left out: after a restart of the daemon
	// those processors then count as free a little early.
	if list := appendCPUs(nil, s.CPUs); len(list) <= maxCPUList {
		b = append(b, list...)
	}
	b = append(b, '"')
	b = sealSlot(b, at)
	for range slotSize - 1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// appendExitSlot appends the second half.
func appendExitSlot(b []byte, e *Exit) []byte {
	at := len(b)
	b = append(b, recordMark+"exit"...)
	b = appendField(b, " code=", int64(e.Code))
	b = appendField(b, " signal=", int64(e.Signal))
	b = appendField(b, " cause=", int64(e.Cause))
	b = appendField(b, " start=", e.Start)
	b = appendField(b, " end=", e.End)
	b = appendField(b, " cpu=", e.CPUNanos)
	b = appendField(b, " rss=", e.MaxRSSBytes)
	b = append(b, " reason="...)
	b = strconv.AppendQuote(b, ClipReason(e.Reason))
	return sealSlot(b, at)
}

func appendField(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(b, name...), v, 10)
}

// sealSlot adds the checksum of the slot that begins at b[at] and fills it up.
func sealSlot(b []byte, at int) []byte {
	sum := checksum(b[at:])
	b = append(b, " sum="...)
	b = strconv.AppendUint(b, sum, 16)
	for len(b)-at < slotSize-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// checksum is FNV-1a: enough against torn and foreign bytes, which is all
// that can happen to a file that is not attacked.
func checksum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// ClipReason makes s fit for a record: one line of printable text, at most
// [MaxReason] bytes.
func ClipReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) <= MaxReason {
		return s
	}
	cut := MaxReason - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// scanner reads a slot field by field.
type scanner struct {
	rest string
	bad  bool
}

// openSlot checks how a slot begins and its checksum, and returns a scanner for
// its fields.
func openSlot(slot []byte, begin string) *scanner {
	text := strings.TrimRight(string(slot), " \n")
	i := strings.LastIndex(text, " sum=")
	if i < 0 {
		return &scanner{bad: true}
	}
	sum, err := strconv.ParseUint(text[i+len(" sum="):], 16, 64)
	if err != nil || sum != checksum([]byte(text[:i])) {
		return &scanner{bad: true}
	}
	rest, ok := strings.CutPrefix(text[:i], begin)
	return &scanner{rest: rest, bad: !ok}
}

func (s *scanner) name(name string) {
	rest, ok := strings.CutPrefix(s.rest, " "+name+"=")
	s.rest, s.bad = rest, s.bad || !ok
}

func (s *scanner) word(name string) string {
	s.name(name)
	word, _, _ := strings.Cut(s.rest, " ")
	s.rest = s.rest[len(word):]
	return word
}

func (s *scanner) int(name string) int64 {
	v, err := strconv.ParseInt(s.word(name), 10, 64)
	s.bad = s.bad || err != nil
	return v
}

func (s *scanner) uint(name string) uint64 {
	v, err := strconv.ParseUint(s.word(name), 10, 64)
	s.bad = s.bad || err != nil
	return v
}

func (s *scanner) text(name string) string {
	s.name(name)
	quoted, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		s.bad = true
		return ""
	}
	s.rest = s.rest[len(quoted):]
	v, err := strconv.Unquote(quoted)
	s.bad = s.bad || err != nil
	return v
}

func (s *scanner) done() bool { return !s.bad && s.rest == "" }

func (s *Start) parse(slot []byte) bool {
	f := openSlot(slot, recordMark+"start")
	s.Attempt = f.text("attempt")
	s.Shim.PID = int(f.int("pid"))
	s.Shim.StartTicks = f.uint("ticks")
	s.Shim.Boot = f.text("boot")
	s.At = f.int("at")
	var ok bool
	s.CPUs, ok = parseCPUs(f.text("cpus"))
	f.bad = f.bad || !ok
	return f.done() && s.Shim.PID > 0
}

func (e *Exit) parse(slot []byte) bool {
	f := openSlot(slot, recordMark+"exit")
	e.Code = int(f.int("code"))
	e.Signal = int(f.int("signal"))
	cause := f.int("cause")
	e.Cause = Cause(cause)
	e.Start = f.int("start")
	e.End = f.int("end")
	e.CPUNanos = f.int("cpu")
	e.MaxRSSBytes = f.int("rss")
	e.Reason = f.text("reason")
	return f.done() && cause >= 0 && cause < causeCount
}
