package executor

import (
	"errors"

	"golang.org/x/sys/unix"

	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// Light attempts ([work.Spec.Light]) cost less files. Their record is an entry of their
// shim's ledger, which says too that they were begun; and one that leaves its folder as it
// found it gives it to the next of its worker at once: one rename in place of two, and
// nothing to remove. What is said of an attempt at each of these steps, if a crash comes
// then, DESIGN.md tells.

// light reports whether an attempt is run as a light one.
func light(s *work.Spec) bool { return s.Light && s.Account == nil }

// place makes ready what an attempt needs on disk. The entry is that of a light one, and
// none of another: its record is in its folder. The error is errTaken if the attempt has
// been given to another shim that may have begun it.
func (w *worker) place(name string, spec *work.Spec) (entry, error) {
	ledgers := w.x.folders.ledgers
	if e, had := ledgers.find(name); had {
		// It was begun, or another shim died of it, or was told by an earlier daemon.
		blank, err := ledgers.seal(e)
		switch {
		case err == nil && blank:
			err = ledgers.forget(name)
		case err == nil:
			err = errTaken
		}
		if err != nil {
			return entry{}, err
		}
	}
	if !light(spec) {
		return entry{}, w.x.place(name, spec)
	}
	if !w.takeOver(name, spec) {
		w.giveUpFolder()
		if isFolder(w.x.folders.path(name)) {
			// Who made it may have told a shim, and then the record in it decides.
			return entry{}, w.x.place(name, spec)
		}
		if err := w.x.folders.makeLight(name, spec); err != nil {
			return entry{}, err
		}
	}
	if w.ledger != nil && ledgers.full(w.ledger) {
		w.retireLedger()
	}
	if w.ledger == nil {
		var err error
		if w.ledger, err = ledgers.make(); err != nil {
			return entry{}, err
		}
	}
	return ledgers.assign(w.ledger, name), nil
}

// errTaken is why an attempt is not given to a shim.
var errTaken = errors.New("another shim has or had the attempt")

// takeOver has a light attempt take over the folder of the one before, if there is one.
func (w *worker) takeOver(name string, spec *work.Spec) bool {
	lease := work.Lease{}
	if spec.Leased {
		if lease = spec.Lease; lease == (work.Lease{}) {
			return false // it is in a folder of its own
		}
	}
	if w.warm == "" || !w.x.folders.passOn(w.warm, name, lease) {
		return false
	}
	w.warm = ""
	return true
}

// makeLight makes the folder of a light attempt that has none.
func (f *folders) makeLight(name string, spec *work.Spec) error {
	if err := f.prepare(name); err != nil {
		return err
	}
	if spec.Leased && spec.Lease != (work.Lease{}) {
		return f.writeLease(name, spec.Lease)
	}
	return nil
}

// retireLedger gives up the ledger of a worker, if it has one.
func (w *worker) retireLedger() {
	if err := w.x.folders.ledgers.retire(w.ledger); err != nil {
		w.x.log.Warn("cannot remove a ledger of attempts", "error", err.Error())
	}
	w.ledger = nil
}

// leave gives up what a worker that ends has of its own.
func (w *worker) leave() {
	w.retireLedger()
	w.giveUpFolder()
}

// giveUpFolder gives up the folder for the next light attempt.
func (w *worker) giveUpFolder() {
	if name := w.warm; name != "" {
		w.warm = ""
		w.x.removals.post(func() { w.x.removeOwn(name) })
	}
}

// leftBlank reports whether a light attempt that has ended left its folder as it found it.
// Of one that is being stopped the reason may come into the folder yet.
func (w *worker) leftBlank(a *attempt) bool {
	_, is := w.x.folders.ledgers.find(a.folder) // else its record is in the folder
	w.x.mu.Lock()
	is = is && !a.stopping
	w.x.mu.Unlock()
	return is && w.x.folders.leftBlank(a.folder)
}

// removeOwn removes the folder that a worker had, and nothing else of its attempt.
func (x *Executor) removeOwn(name string) {
	if !x.folders.recycle(name) {
		if err := x.folders.discard(name); err != nil {
			x.log.Warn("cannot remove the folder of an attempt", "folder", name, "error", err.Error())
		}
	}
}

// forgetEntry forgets an attempt whose folder another has, or gets.
func (x *Executor) forgetEntry(name string) {
	if err := x.folders.ledgers.forget(name); err != nil {
		x.log.Warn("cannot remove a ledger of attempts", "error", err.Error())
	}
}

// leftBlank reports whether what can be in the folder of an attempt is there as it was made:
// streams without a byte, and two empty folders.
func (f *folders) leftBlank(name string) bool {
	path := f.path(name)
	if !ownFolder(path) {
		return false
	}
	now, ok := stampsOf(path)
	if !ok {
		return false
	}
	f.mu.Lock()
	seen, known := f.handedOut[name]
	f.mu.Unlock()
	if known && now == seen {
		return true
	}
	if !pristine(path) {
		return false
	}
	if now, ok = stampsOf(path); !ok {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.handedOut, name); settled(now) { // else a later change may not show
		f.handedOut[name] = now
	}
	return true
}

// pristine is what leftBlank looks at when times do not tell.
func pristine(path string) bool {
	if !emptyFolders(path) {
		return false
	}
	for _, entry := range names(path) {
		switch entry {
		case workName, tmpName, shim.RecordName, shim.LeaseName, shim.StdoutName, shim.StderrName:
		default:
			return false
		}
	}
	return untouched(path+"/"+shim.StdoutName, unix.S_IFREG|0o600) && untouched(path+"/"+shim.StderrName, unix.S_IFREG|0o600)
}

// passOn makes the folder of an attempt that left it blank that of the next, with its lease
// unless that is zero. It reports false, and the first one still has it, if that cannot be,
// as the next one has a folder.
func (f *folders) passOn(from, to string, lease work.Lease) bool {
	f.leasing.Lock()
	defer f.leasing.Unlock()
	path := f.path(from)
	if lease != (work.Lease{}) {
		// All of it, and before the name: what an attempt has is its own lease or a blank one.
		b := shim.Lease(lease).File()
		err := blank(path+"/"+shim.LeaseName, b)
		if errors.Is(err, unix.ENOENT) {
			err = f.replace(from, b)
		}
		if err != nil {
			return false
		}
	}
	if unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, f.path(to), unix.RENAME_NOREPLACE) != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if seen, known := f.handedOut[from]; known {
		delete(f.handedOut, from)
		f.handedOut[to] = seen
	}
	return true
}
