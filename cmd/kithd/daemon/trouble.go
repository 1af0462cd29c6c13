package daemon

import (
	"fmt"
	"log/slog"
	"sync"

	"kith/internal/scarce"
	"kith/meta/api"
	"kith/store/blobstore"
)

// trouble is what keeps facts from becoming durable, if anything does.
type trouble struct {
	log *slog.Logger

	mu     sync.Mutex
	err    error         // of the latest commit; nil if it worked
	begins chan struct{} // closed while err is set
	failed int           // commits in a row
	// given is why the reserve was given up, nil while it is there.
	given error
	// wake is called, without waiting, while the disk is full.
	wake func()
}

func newTrouble(log *slog.Logger) *trouble {
	return &trouble{log: log, begins: make(chan struct{})}
}

// tellEvery is how many failures of a disk that stays as it is make a line in the log.
const tellEvery = 60

// note takes the result of a commit.
func (t *trouble) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.err == nil:
		close(t.begins)
	case err == nil && t.err != nil:
		t.begins = make(chan struct{})
		t.log.Info("commits succeed again", "failures", t.failed)
		t.failed = 0
	}
	t.err = err
	if err == nil {
		return
	}
	if t.failed%tellEvery == 0 {
		t.log.Error("commit failed; nothing is acknowledged until it succeeds", "error", err.Error())
	}
	t.failed++
	if scarce.Full(err) && t.wake != nil {
		t.wake()
	}
}

// now returns what is closed when a commit fails, and the error of the latest
// one, nil if it worked.
func (t *trouble) now() (begins <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begins, t.err
}

// reserve notes why the reserve was given up, or with nil that it is there again.
func (t *trouble) reserve(full error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case full != nil:
		t.log.Error("the disk is full: the reserve was given up, so that what has happened can be written down; nothing new is taken on",
			"error", full.Error(), "remedy", remedyFull)
		t.wake()
	case t.given != nil:
		t.log.Info("the reserve is there again")
	}
	t.given = full
}

// full returns why the disk counts as full, nil if it does not.
func (t *trouble) full() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if scarce.Full(t.err) {
		return t.err
	}
	return t.given
}

// remedyFull is what an operator does about a full disk.
const remedyFull = "free space on the disk of the data folder, or cancel the job that fills it; nothing needs a restart"

// tells says in a sentence what is wrong with the disk, empty if nothing is.
func (t *trouble) tells() string {
	_, err := t.now()
	full := t.full()
	switch {
	case full != nil && err != nil:
		return fmt.Sprintf("disk full, nothing can be written down (%v): %s", full, remedyFull)
	case full != nil:
		return "disk full, takes nothing new on: " + remedyFull
	case err != nil:
		return fmt.Sprintf("cannot write to its data folder (%v): look at the disk; it goes on by itself when it can", err)
	}
	return ""
}

// refuses is what a client is told that wants something to be done meanwhile.
func (t *trouble) refuses() error {
	_, err := t.now()
	switch {
	case err == nil:
		return nil
	case scarce.Full(err):
		return fmt.Errorf("%w; this site takes nothing on until it can write again: %s: %w", blobstore.ErrDiskFull, remedyFull, err)
	}
	return fmt.Errorf("%w: %w", api.ErrNotDurable, err)
}

// refusesNew is what a client is told that submits a job or a bag while the room that is left is for
// the facts about those that there are.
func (t *trouble) refusesNew() error {
	if full := t.full(); full != nil {
		return fmt.Errorf("%w; this site takes nothing new on: %s: %w", blobstore.ErrDiskFull, remedyFull, full)
	}
	return nil
}

// refusesCancel is what a client is told whose cancelling has been taken up, and
// cannot be written down.
func (t *trouble) refusesCancel() error {
	if err := t.refuses(); err != nil {
		return fmt.Errorf("what runs of it is told to stop, but a crash of this site now would forget that it was cancelled; cancel again to be sure: %w", err)
	}
	return nil
}

// hides is what a client is told that wants to see what is not durable yet.
func (t *trouble) hides() error {
	if _, err := t.now(); err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotDurable, err)
	}
	return nil
}
