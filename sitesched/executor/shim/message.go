package shim

import (
	"encoding/binary"
	"errors"
)

// Version is the version of the messages. A daemon and a shim of different
// versions do not work together; the daemon then uses itself as the shim.
const Version = 7

// A Message travels between the daemon and a shim, over a stream socket, as a
// frame: four bytes of length (little-endian, counting what follows them),
// one byte that says which message it is, the fields.
//
//	daemon                         shim
//	  Setup ───────────────────────►      once
//	  ◄─────────────────────── Ready
//	  Run ─────────────────────────►      then for every job
//	  ◄───────────────────── Started      (not if it could not be started, nor of a light
//	                                      attempt that ended at once)
//	  Ask ─────────────────────────►      (perhaps)
//	  Stop ────────────────────────►      (perhaps)
//	  ◄─────────────────────── Ended      or Refused instead of both
type Message interface {
	kind() byte
	append(b []byte) []byte
}

const (
	kindSetup byte = iota + 1
	kindReady
	kindRun
	kindStarted
	kindStop
	kindEnded
	kindRefused
	kindAsk
)

// Setup is the first message to a shim.
type Setup struct {
	Version uint64
	// Directory holds the folders of all attempts; absolute.
	Directory string
	// Process names the shim as the daemon sees it. In a PID namespace the shim
	// cannot know its own number outside.
	Process Process
	// Namespaces says that the shim was started as the first process of a PID
	// namespace, with mount and IPC namespaces of its own.
	Namespaces bool
	// CgroupDirectory is where a cgroup per attempt is made; empty for none.
	CgroupDirectory string
	// MaxOutputBytes bounds each of stdout and stderr.
	MaxOutputBytes int64
	// Background says that jobs give way to everything else that the machine does.
	Background bool
}

// Process names a process for good: numbers are reused, but not with the same
// start time, and neither survives a restart of the machine.
type Process struct {
	// PID is its number in the daemon's PID namespace.
	PID int
	// StartTicks is field 22 of /proc/PID/stat.
	StartTicks uint64
	// Boot is the boot id of the machine.
	Boot string
}

// Ready answers [Setup].
type Ready struct {
	Version uint64
	// Fault says why the shim cannot work as it was set up; it exits. Empty if it can.
	Fault string
	// NoNewPrivileges, Subreaper, CoreLimit and Background say why a layer is missing; empty
	// if it is there, or was not asked for.
	NoNewPrivileges, Subreaper, CoreLimit, Background string
}

// Run asks the shim to run a job.
type Run struct {
	// Sequence numbers the jobs of this shim; replies repeat it.
	Sequence uint64
	// Folder is the attempt's folder within [Setup.Directory]; one path element.
	Folder string
	Argv   []string
	Env    []string
	// Directory is the working directory of the job; absolute.
	Directory string
	// WalltimeNanos is how long the job may run; zero means for ever.
	WalltimeNanos int64
	// GraceNanos is the time between SIGTERM and SIGKILL.
	GraceNanos int64
	// MemoryBytes limits the whole job; zero means no limit.
	MemoryBytes int64
	// Processors is what the cgroup's processor quota is made of.
	Processors int
	// CPUs are the processors to pin the job to; empty for all.
	CPUs []int
	// Account is the user to run as; nil for the shim's own user.
	Account *Account
	// Leased says that the job may run only as long as [LeaseName] says.
	Leased bool
	// Ledger, if it is not empty, names the ledger ([LedgersName]) whose entry of that number
	// is the job's record, in place of the file in its folder. One shim has it for good.
	Ledger string
	Entry  uint64
	// Estimate is run before the command; nil for nothing.
	Estimate *Estimate
}

// Account is a local user.
type Account struct {
	UID, GID uint32
	Groups   []uint32
}

// Started says that the job's program was executed.
type Started struct {
	Sequence uint64
	// At is nanoseconds since the Unix epoch.
	At int64
}

// Stop asks the shim to end a job: SIGTERM, the grace time, SIGKILL. It is
// ignored unless it names the job that runs, so that it cannot hit the next.
type Stop struct{ Sequence uint64 }

// Ended says how the job ended. All its processes are gone and the record is
// written.
type Ended struct {
	Sequence uint64
	Exit     Exit
	// Retire says why the shim must not be used again; empty if it can.
	Retire string
}

// Refused says that the shim did not start the job and left no trace of it.
type Refused struct {
	Sequence uint64
	// Taken says that another shim has or had the attempt.
	Taken  bool
	Reason string
}

func (*Setup) kind() byte   { return kindSetup }
func (*Ready) kind() byte   { return kindReady }
func (*Run) kind() byte     { return kindRun }
func (*Started) kind() byte { return kindStarted }
func (*Stop) kind() byte    { return kindStop }
func (*Ended) kind() byte   { return kindEnded }
func (*Refused) kind() byte { return kindRefused }

func (m *Setup) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Version)
	b = appendString(b, m.Directory)
	b = binary.AppendUvarint(b, uint64(m.Process.PID))
	b = binary.AppendUvarint(b, m.Process.StartTicks)
	b = appendString(b, m.Process.Boot)
	b = appendBool(b, m.Namespaces)
	b = appendString(b, m.CgroupDirectory)
	b = binary.AppendVarint(b, m.MaxOutputBytes)
	return appendBool(b, m.Background)
}

func (m *Setup) decode(d *decoder) {
	m.Version = d.uint()
	m.Directory = d.string()
	m.Process.PID = int(d.uint())
	m.Process.StartTicks = d.uint()
	m.Process.Boot = d.string()
	m.Namespaces = d.bool()
	m.CgroupDirectory = d.string()
	m.MaxOutputBytes = d.int()
	m.Background = d.bool()
}

func (m *Ready) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Version)
	b = appendString(b, m.Fault)
	b = appendString(b, m.NoNewPrivileges)
	b = appendString(b, m.Subreaper)
	b = appendString(b, m.CoreLimit)
	return appendString(b, m.Background)
}

func (m *Ready) decode(d *decoder) {
	m.Version = d.uint()
	m.Fault = d.string()
	m.NoNewPrivileges = d.string()
	m.Subreaper = d.string()
	m.CoreLimit = d.string()
	m.Background = d.string()
}

func (m *Run) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Sequence)
	b = appendString(b, m.Folder)
	b = appendStrings(b, m.Argv)
	b = appendStrings(b, m.Env)
	b = appendString(b, m.Directory)
	b = binary.AppendVarint(b, m.WalltimeNanos)
	b = binary.AppendVarint(b, m.GraceNanos)
	b = binary.AppendVarint(b, m.MemoryBytes)
	b = binary.AppendUvarint(b, uint64(m.Processors))
	b = binary.AppendUvarint(b, uint64(len(m.CPUs)))
	for _, cpu := range m.CPUs {
		b = binary.AppendUvarint(b, uint64(cpu))
	}
	b = appendBool(b, m.Account != nil)
	if m.Account != nil {
		b = m.Account.append(b)
	}
	b = appendBool(b, m.Leased)
	b = appendString(b, m.Ledger)
	b = binary.AppendUvarint(b, m.Entry)
	b = appendBool(b, m.Estimate != nil)
	if m.Estimate != nil {
		b = m.Estimate.append(b)
	}
	return b
}

func (m *Run) decode(d *decoder) {
	m.Sequence = d.uint()
	m.Folder = d.string()
	m.Argv = d.strings()
	m.Env = d.strings()
	m.Directory = d.string()
	m.WalltimeNanos = d.int()
	m.GraceNanos = d.int()
	m.MemoryBytes = d.int()
	m.Processors = int(d.uint())
	m.CPUs = decodeNumbers[int](d)
	if d.bool() {
		m.Account = new(Account)
		m.Account.decode(d)
	}
	m.Leased = d.bool()
	m.Ledger = d.string()
	m.Entry = d.uint()
	if d.bool() {
		m.Estimate = new(Estimate)
		m.Estimate.decode(d)
	}
}

func (a *Account) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(a.UID))
	b = binary.AppendUvarint(b, uint64(a.GID))
	b = binary.AppendUvarint(b, uint64(len(a.Groups)))
	for _, g := range a.Groups {
		b = binary.AppendUvarint(b, uint64(g))
	}
	return b
}

func (a *Account) decode(d *decoder) {
	a.UID = uint32(d.uint())
	a.GID = uint32(d.uint())
	a.Groups = decodeNumbers[uint32](d)
}

func decodeNumbers[N int | uint32](d *decoder) []N {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
	}
	if d.bad || n == 0 {
		return nil
	}
	list := make([]N, 0, n)
	for range n {
		list = append(list, N(d.uint()))
	}
	return list
}

func (m *Started) append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(b, m.Sequence), m.At)
}

func (m *Started) decode(d *decoder) { m.Sequence, m.At = d.uint(), d.int() }

func (m *Stop) append(b []byte) []byte { return binary.AppendUvarint(b, m.Sequence) }

func (m *Stop) decode(d *decoder) { m.Sequence = d.uint() }

func (m *Ended) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Sequence)
	b = m.Exit.append(b)
	return appendString(b, m.Retire)
}

func (m *Ended) decode(d *decoder) {
	m.Sequence = d.uint()
	m.Exit.decode(d)
	m.Retire = d.string()
}

func (m *Refused) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.Sequence)
	b = appendBool(b, m.Taken)
	return appendString(b, m.Reason)
}

func (m *Refused) decode(d *decoder) {
	m.Sequence = d.uint()
	m.Taken = d.bool()
	m.Reason = d.string()
}

// frameHeader is the length of a frame's length.
const frameHeader = 4

// Append appends m as a frame to b and returns the longer slice.
func Append(b []byte, m Message) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, m.kind())
	b = m.append(b)
	n := len(b) - at - frameHeader
	b[at], b[at+1], b[at+2], b[at+3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return b
}

// Errors of [Cut].
var (
	// ErrShort is returned when b ends before the message does: read more.
	ErrShort = errors.New("message not complete")
	// ErrTooLong is returned when the message is longer than the bound.
	ErrTooLong = errors.New("message too long")
)

// Cut returns the first message of b and how many bytes it took. most bounds
// the length that a frame may announce. The message shares no memory with b.
// Any error but [ErrShort] means that the stream cannot be read further.
func Cut(b []byte, most int) (Message, int, error) {
	if len(b) < frameHeader {
		return nil, 0, ErrShort
	}
	n := int(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
	switch {
	case n > most:
		return nil, 0, ErrTooLong
	case n == 0:
		return nil, 0, errMalformed
	case len(b)-frameHeader < n:
		return nil, 0, ErrShort
	}
	m, err := decode(b[frameHeader], b[frameHeader+1:frameHeader+n])
	return m, frameHeader + n, err
}

func decode(kind byte, body []byte) (Message, error) {
	d := decoder{rest: body}
	var m interface {
		Message
		decode(d *decoder)
	}
	switch kind {
	case kindSetup:
		m = new(Setup)
	case kindReady:
		m = new(Ready)
	case kindRun:
		m = new(Run)
	case kindStarted:
		m = new(Started)
	case kindStop:
		m = new(Stop)
	case kindEnded:
		m = new(Ended)
	case kindRefused:
		m = new(Refused)
	case kindAsk:
		m = new(Ask)
	default:
		return nil, errMalformed
	}
	m.decode(&d)
	if err := d.err(); err != nil {
		return nil, err
	}
	return m, nil
}
