package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"kith/internal/jobfile"
	"kith/internal/scarce"
	"kith/sitesched/executor/shim"
)

// ledgers are the records of light attempts ([work.Spec.Light]): an entry of the ledger of the
// shim that runs them, see [shim.LedgersName], in place of a file of their own. What is in
// memory of it can be read from the ledgers again, but for who has which entry that is blank;
// those have not begun.
type ledgers struct {
	dir string // of the attempts

	mu      sync.Mutex
	serial  uint64
	entries map[string]entry // by the names of the attempts' folders
}

// ledger is one of them. ledgers.mu guards it.
type ledger struct {
	name    string
	next    int  // the first entry that nobody had
	live    int  // entries whose attempts have not been forgotten
	retired bool // its shim gets no more of it
}

// entry is where the record of an attempt is.
type entry struct {
	ledger *ledger
	number int
}

func (e entry) offset() int64 { return shim.EntryOffset(e.number) }

// name is that of the ledger, empty for no entry.
func (e entry) name() string {
	if e.ledger == nil {
		return ""
	}
	return e.ledger.name
}

// openLedgers seals the ledgers of earlier daemons, and then reads what they have: nothing
// of them begins any more.
func openLedgers(dir string) (*ledgers, error) {
	ls := &ledgers{dir: dir, entries: make(map[string]entry)}
	all, err := os.ReadDir(ls.folder())
	if err != nil {
		return nil, err
	}
	for _, file := range all {
		n, err := strconv.ParseUint(file.Name(), 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != file.Name() {
			continue
		}
		ls.serial = max(ls.serial, n)
		if err := ls.restore(file.Name()); err != nil {
			return nil, fmt.Errorf("ledger %s of attempts: %w", file.Name(), err)
		}
	}
	return ls, nil
}

func (ls *ledgers) folder() string { return filepath.Join(ls.dir, shim.LedgersName) }

// restore takes up a ledger of an earlier daemon. One that is none any more is removed.
func (ls *ledgers) restore(name string) error {
	l := &ledger{name: name, next: shim.LedgerEntries, retired: true}
	b, err := ls.sealed(l)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, jobfile.ErrNotFile) || errors.Is(err, errNotAsMade) {
		return removeTree(filepath.Join(ls.folder(), name))
	}
	if err != nil {
		return err
	}
	for n := range shim.LedgerEntries {
		at := shim.EntryOffset(n)
		record, err := shim.ParseRecord(b[at : at+shim.RecordSize])
		if errors.Is(err, shim.ErrNoRecord) || errors.Is(err, shim.ErrBadStart) {
			continue // torn by a crash of the machine, if by anything: what ran is lost then
		}
		attempt := record.Start.Attempt
		if _, ok := ParseFolder(attempt); !ok {
			continue
		}
		if old, had := ls.entries[attempt]; had {
			if record.Exit != nil && record.Exit.Cause == shim.CauseNotStarted {
				continue // it went on elsewhere
			}
			old.ledger.live--
			if err := ls.drop(old.ledger); err != nil {
				return err
			}
		}
		ls.entries[attempt] = entry{l, n}
		l.live++
	}
	return ls.drop(l)
}

// sealed seals a ledger and returns what it has then.
func (ls *ledgers) sealed(l *ledger) ([]byte, error) {
	file, err := jobfile.Open(ls.dir, shim.LedgersName+"/"+l.name, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // what was written is in the page cache
	if _, err := file.WriteAt(shim.LedgerSeal(), 0); err != nil {
		return nil, err
	}
	b := make([]byte, shim.LedgerSize+1)
	if n, _ := file.ReadAt(b, 0); n != shim.LedgerSize {
		return nil, errNotAsMade
	}
	return b[:shim.LedgerSize], nil
}

// make makes a ledger for a shim.
func (ls *ledgers) make() (*ledger, error) {
	ls.mu.Lock()
	ls.serial++
	l := &ledger{name: strconv.FormatUint(ls.serial, 10)}
	ls.mu.Unlock()
	path := filepath.Join(ls.folder(), l.name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a ledger: %w", err)
	}
	_, err = file.Write(shim.BlankLedger())
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("make a ledger: %w", err), os.Remove(path))
	}
	return l, nil
}

// full reports whether a ledger has no entry left.
func (ls *ledgers) full(l *ledger) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return l.next >= shim.LedgerEntries
}

// assign gives an attempt that has no entry the next one of a ledger that is not full.
func (ls *ledgers) assign(l *ledger, name string) entry {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	e := entry{l, l.next}
	ls.entries[name] = e
	l.next++
	l.live++
	return e
}

// find returns the entry of an attempt.
func (ls *ledgers) find(name string) (entry, bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	e, ok := ls.entries[name]
	return e, ok
}

// names returns the attempts that have entries.
func (ls *ledgers) names() []string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var list []string
	for name := range ls.entries {
		list = append(list, name)
	}
	return list
}

// forget gives up the entry of an attempt that is not wanted any more.
func (ls *ledgers) forget(name string) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	e, ok := ls.entries[name]
	if !ok {
		return nil
	}
	delete(ls.entries, name)
	e.ledger.live--
	return ls.drop(e.ledger)
}

// retire says that the shim of a ledger gets no more of it; nil is no ledger.
func (ls *ledgers) retire(l *ledger) error {
	if l == nil {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.retired = true
	return ls.drop(l)
}

// drop removes a ledger that has nothing of use. The caller holds mu.
func (ls *ledgers) drop(l *ledger) error {
	if !l.retired || l.live > 0 {
		return nil
	}
	err := os.Remove(filepath.Join(ls.folder(), l.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// seal makes sure that an attempt whose entry is blank afterwards never begins, and reports
// whether it is. The ledger gets no more attempts.
func (ls *ledgers) seal(e entry) (blank bool, err error) {
	ls.mu.Lock()
	e.ledger.next = shim.LedgerEntries
	ls.mu.Unlock()
	b, err := ls.sealed(e.ledger)
	if err != nil {
		return false, err
	}
	_, err = shim.ParseRecord(b[e.offset() : e.offset()+shim.RecordSize])
	return errors.Is(err, shim.ErrNoRecord), nil
}

// open opens the ledger of an entry to read it. Without the ledger the error is errNoRecord:
// the attempt may have run.
func (ls *ledgers) open(e entry) (*os.File, error) {
	file, err := jobfile.Open(ls.dir, shim.LedgersName+"/"+e.ledger.name, unix.O_RDONLY)
	if err != nil && !scarce.OfHost(err) {
		return nil, errNoLedger
	}
	return file, err
}

// errNoLedger is what is known of an attempt whose ledger is gone.
var errNoLedger = errors.New("the ledger of its shim was removed")
