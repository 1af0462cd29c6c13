package daemon

import (
	"fmt"
	"log/slog"
	"sync"

	"kith/meta/api"
	"kith/sitesched/runner"
	"kith/store/blobstore"
)

// trouble is what keeps facts from becoming durable, if anything does.
type trouble struct {
	log *slog.Logger

	mu     sync.Mutex
	err    error         // of the latest commit; nil if it worked
	begins chan struct{} // closed while err is set
	failed int           // commits in a row
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
}

// now returns what is closed when a commit fails, and the error of the latest
// one, nil if it worked.
func (t *trouble) now() (begins <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begins, t.err
}

// refuses is what a client is told who wants something to be done meanwhile.
func (t *trouble) refuses() error {
	_, err := t.now()
	switch {
	case err == nil:
		return nil
	case runner.IsFull(err):
		return fmt.Errorf("%w; this site takes nothing on until it can write again: free space on this disk: %w", blobstore.ErrDiskFull, err)
	}
	return fmt.Errorf("%w: %w", api.ErrNotDurable, err)
}

// hides is what a client is told who wants to see what is not durable yet.
func (t *trouble) hides() error {
	if _, err := t.now(); err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotDurable, err)
	}
	return nil
}
