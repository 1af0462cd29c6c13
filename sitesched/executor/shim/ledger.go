package shim

import (
	"bytes"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LedgersName is the folder, beside those of attempts, in which ledgers are. A ledger is the
// record of up to [LedgerEntries] attempts that one shim runs one after another, so that
// none of them needs a file of its own:
//
//	header                  open, or sealed
//	entry 0                 a record, see [RecordName]
//	...
//
// A shim holds an exclusive flock on its ledger for as long as it may add to it. Before it
// executes anything it writes the first slot of the attempt's entry, and then reads the
// header: if that is sealed it executes nothing. So whoever seals a ledger, and then finds an
// entry blank, knows that its attempt has not begun and will not. An entry does not cross a
// page: a shim that is killed leaves each slot whole or blank.
const LedgersName = ".ledgers"

// LedgerEntries is how many attempts a ledger has room for.
const LedgerEntries = 64

// LedgerSize is the size of a ledger.
const LedgerSize = (1 + LedgerEntries) * RecordSize

const (
	ledgerOpen   = "kith-ledger 1 open  \n"
	ledgerSealed = "kith-ledger 1 sealed\n"
)

// BlankLedger returns an open ledger that has room for all its attempts.
func BlankLedger() []byte {
	b := append(bytes.Repeat([]byte{' '}, LedgerSize-1), '\n')
	copy(b, ledgerOpen)
	return b
}

// LedgerSeal is what is written over the beginning of a ledger to seal it.
func LedgerSeal() []byte { return []byte(ledgerSealed) }

// EntryOffset is where in a ledger an entry is.
func EntryOffset(n int) int64 { return int64(1+n) * RecordSize }

// errSealed is why an attempt is not started: the daemon that sealed the ledger decides.
const errSealed = shimError("the ledger of the shim was sealed by a later daemon")

// openLedger makes the ledger of a run the shim's. What it had before is done with.
func (s *shim) openLedger(name string) error {
	if s.ledgerName == name {
		return nil
	}
	if strings.Contains(name, "/") {
		return errNotFile
	}
	fd, errno := openat(s.dir, LedgersName+"/"+name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errno != 0 {
		return &os.PathError{Op: "open", Path: LedgersName, Err: errno}
	}
	if size, _ := fileSize(fd); !isRegular(fd) || size != LedgerSize {
		closeFD(fd)
		return &os.PathError{Op: "open", Path: LedgersName, Err: errNotFile}
	}
	if errno := takeLock(fd); errno != 0 {
		closeFD(fd)
		return os.NewSyscallError("flock", errno)
	}
	closeFD(s.ledger)
	s.ledger, s.ledgerName = fd, name
	return nil
}

// ledgerIsOpen reports whether the shim may still begin what its ledger has.
func (s *shim) ledgerIsOpen() bool {
	var b [len(ledgerOpen)]byte
	n, errno := readAt(s.ledger, b[:], 0)
	return errno == 0 && string(b[:n]) == ledgerOpen
}

// takeEntry has a job's record be an entry of the shim's ledger.
func (s *shim) takeEntry(j *running) (taken bool, err error) {
	if j.run.Entry >= LedgerEntries {
		return false, errNotFile
	}
	if err := s.openLedger(j.run.Ledger); err != nil {
		return false, err
	}
	j.record, j.at = s.ledger, EntryOffset(int(j.run.Entry))
	page := make([]byte, RecordSize)
	if n, errno := readAt(j.record, page, j.at); errno != 0 || n != RecordSize || !isBlank(page) {
		return true, errTaken
	}
	return false, nil
}

// blankEntry takes back what was written of an entry.
func (j *running) blankEntry() {
	if j.run.Ledger == "" {
		_ = syscall.Ftruncate(j.record, 0)
		return
	}
	_ = writeAt(j.record, BlankRecord(), j.at)
}
